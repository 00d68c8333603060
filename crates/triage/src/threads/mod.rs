//! Threads: which ones live, what each blocks on, what it holds, and the figures of their pool.

mod hang;
mod living;
mod pool;
mod running;
mod waits;

pub(crate) use hang::{Hang, OnStack, StackMethod, ThreadFacts, Wait};
pub(crate) use living::{Threads, display_name};
pub(crate) use pool::PoolFacts;
pub(crate) use running::{RunsOn, is_running_delegate};
pub(crate) use waits::{ObjectWait, WaitsOn};

use crate::process::private::Values;
use asynctriage_async_graph::AsyncGraph;
use asynctriage_clr::Runtime;

/// What is looked at to tell what threads do.
#[derive(Clone, Copy)]
pub(crate) struct Stacks<'a, 'd> {
    pub(crate) rt: &'a Runtime<'d>,
    pub(crate) graph: &'a AsyncGraph,
    pub(crate) threads: &'a Threads,
    pub(crate) values: Values,
}
