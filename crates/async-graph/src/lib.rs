//! Suspended operations of a .NET process, and what resumes what.
//!
//! [`AsyncGraph::build`] walks the heap once and links state machine boxes, tasks with runtime-async frames, combinators,
//! value-task sources and blocked threads. An edge leads from what is awaited to who awaits it, with the slot that proves it. The graph says
//! what is linked; what that means is another crate's business.
//!
//! ```
//! use asynctriage_async_graph::AsyncGraph;
//! use asynctriage_clr::Runtime;
//! use asynctriage_dump::{Dump, OpenOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdumps/chain-10.0.15.dmp.gz"));
//! let dump = Dump::open(path, &OpenOptions::default())?;
//! let runtime = Runtime::open(&dump)?;
//! let graph = AsyncGraph::build(&runtime);
//! for (id, machine) in &graph.machines {
//!     println!("{} waits at await {}", runtime.name(&machine.place.ty), machine.state);
//!     for (_, edge) in graph.awaited(*id) {
//!         println!("  {} at {}", edge.field, edge.slot);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod callee;
mod class;
mod declared;
mod fsharp;
mod graph;
mod link;
mod machine;
mod own;
mod preview;
mod queue;
mod resolve;
mod running;
mod runtime_async;
mod shortfall;
mod source;
pub mod task;
mod torn;
mod witness;

pub use class::{Class, Combinator, Helper, Wanted};
pub use graph::{AsyncGraph, Edge, Node, NodeId, Rejected};
pub use machine::{BoxState, Chosen, Machine};
pub use queue::{Queues, concurrent_queue_length};
pub use resolve::{Waiter, resolve, work_item_targets};
pub use running::{Dispatcher, Running, RunningMachine, RunningOperation};
pub use runtime_async::{AsyncFrame, Head, Operation, PostedTo};
pub use task::TaskFields;
pub use torn::Torn;
pub use witness::{Contradiction, End, Witness};
