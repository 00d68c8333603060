//! What is wanted of a report.

use asynctriage_clr::PointLists;
use std::path::PathBuf;

/// How much of what is known goes into the report.
#[derive(Clone, Debug)]
pub struct Options {
    /// Members of a group that are listed.
    pub members: usize,
    /// Chains of framework code that waits for work, too.
    pub idle_too: bool,
    /// How long each phase took.
    pub timings: bool,
    /// Folders with symbol files, besides those of the modules.
    pub symbols: Vec<PathBuf>,
    /// Suspension points of images that the built-in list does not know.
    pub points: PointLists,
    /// What each frame keeps: parameters and locals.
    pub locals: bool,
    /// Whether data of the process is shown as it is.
    pub values: Values,
    /// The native frames below the managed ones of each thread.
    pub native: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            members: 5,
            idle_too: false,
            timings: false,
            symbols: Vec::new(),
            points: PointLists::default(),
            locals: false,
            values: Values::Hidden,
            native: false,
        }
    }
}

/// Whether the data of the process is shown as it is, or only how much of it there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Sizes only.
    #[default]
    Hidden,
    /// Somebody has asked for it.
    Shown,
}

impl Values {
    /// Shown when asked for.
    #[must_use]
    pub fn shown(asked: bool) -> Self {
        if asked { Self::Shown } else { Self::Hidden }
    }
}
