//! Reads `.nettrace` files: what EventPipe records of a .NET process.
//!
//! ```
//! # fn main() -> Result<(), asynctriage_nettrace::Error> {
//! # let file: &[u8] = include_bytes!("../testdata/killed-nonstreaming.nettrace");
//! let trace = asynctriage_nettrace::Trace::open(file)?;
//! println!("process {:?}, from {}", trace.header().pid, trace.header().start);
//! let mut events = trace.events();
//! for event in &mut events {
//!     println!("{} {} on thread {}", event.kind.provider, event.kind.name, event.thread);
//! }
//! let summary = events.summary();
//! println!("{} events, {} lost", summary.events, summary.lost.events);
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `trace`, `header` | the file, what it says of itself |
//! | `blocks`, `rows` | its blocks, the rows of events in them |
//! | `events` | the iterator over events, what it has to remember |
//! | `kind`, `field` | what an event is; its fields by name |
//! | `stacks`, `threads`, `labels` | what events name by number |
//! | `loss`, `damage`, `summary` | what is not in the file, or makes no sense there |
//! | [`runtime`] | methods, modules and IL maps of the runtime's own events; addresses to methods |
//! | [`tpl`] | waits of tasks, as told before .NET 11 |
//! | `cursor`, `text` | numbers and texts |
//!
//! # Versions
//!
//! Version 4, which .NET Core 3.0 and later write, whether by `dotnet-trace collect` or by environment variables; what
//! documents call version 5, the same with tags in its metadata; and version 6. All others are refused by name.
//!
//! # Damaged and cut files
//!
//! The bytes are untrusted: nothing panics, no number of the file leads to an allocation larger than the bytes that
//! are there. A block is believed as a whole or not at all: all its rows must have their place, the last one must end
//! where the block ends, and every time stamp must lie within the times that the block's header names. Blocks that
//! fail are skipped and told in [`Summary::damages`]; reading goes on behind them. In a cut file all whole blocks are
//! read; of the last one, which is not whole, nothing is, since only its end would prove where its events begin.
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

mod blocks;
mod cursor;
mod damage;
mod ends;
mod error;
mod events;
mod field;
mod header;
mod kind;
mod labels;
mod loss;
mod rows;
pub mod runtime;
mod stacks;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod threads;
pub mod tpl;
mod trace;

pub use blocks::Truncation;
pub use damage::{Damage, Damages};
pub use ends::BlockEnds;
pub use error::Error;
pub use events::{Event, Events};
pub use field::{Field, FieldType, Value, Values};
pub use header::{DateTime, Header, Version};
pub use kind::EventKind;
pub use labels::Label;
pub use loss::Lost;
pub use rows::Guid;
pub use stacks::Stack;
pub use summary::{End, Summary};
pub use text::Text;
pub use threads::Thread;
pub use trace::Trace;
