//! What is tried.

mod async_graph;
mod async_trace;
mod clr;
mod dump;
mod il;
mod image;
mod metadata;
mod names;
mod nettrace;
mod pdb;
mod recording;
mod render;
mod triage;

use crate::changes::{anyhow, arbitrary, in_place};
use crate::random::Random;
use crate::seeds;
use std::fmt;

/// Something that takes bytes from outside.
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Makes another input of one.
    pub change: fn(&[u8], &mut Random) -> Vec<u8>,
    /// Takes an input; panics when something is wrong.
    pub run: fn(&[u8]),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub static ALL: &[Target] = &[
    Target {
        name: "async_graph",
        seeds: seeds::living,
        change: in_place,
        run: async_graph::run,
    },
    Target {
        name: "async_trace",
        seeds: async_trace::seeds,
        change: anyhow,
        run: async_trace::run,
    },
    Target {
        name: "clr",
        seeds: seeds::living,
        change: in_place,
        run: clr::run,
    },
    Target {
        name: "dump",
        seeds: seeds::dumps,
        change: anyhow,
        run: dump::run,
    },
    Target {
        name: "il",
        seeds: || vec![Vec::new()],
        change: arbitrary,
        run: il::run,
    },
    Target {
        name: "image",
        seeds: || vec![seeds::ASSEMBLY.to_vec()],
        change: anyhow,
        run: image::run,
    },
    Target {
        name: "metadata",
        seeds: || vec![seeds::metadata()],
        change: anyhow,
        run: metadata::run,
    },
    Target {
        name: "names",
        seeds: names::seeds,
        change: anyhow,
        run: names::run,
    },
    Target {
        name: "nettrace",
        seeds: seeds::recordings,
        change: anyhow,
        run: nettrace::run,
    },
    Target {
        name: "pdb",
        seeds: || vec![Vec::new()],
        change: arbitrary,
        run: pdb::run,
    },
    Target {
        name: "recording",
        seeds: seeds::recordings,
        change: in_place,
        run: recording::run,
    },
    Target {
        name: "render",
        seeds: render::seeds,
        change: render::change,
        run: render::run,
    },
    Target {
        name: "triage",
        seeds: seeds::living,
        change: in_place,
        run: triage::run,
    },
];
