//! Recordings of the .NET 11 async profiler: from the provider's events to chains that wait, with what the recording
//! proves of itself.
//!
//! [`Recording`] takes the payloads of the events of [`PROVIDER`] and gives an [`AsyncTrace`]. Every batch is checked
//! against all that it says of itself before one record of it is used. Dispatchers that ended are folded into counts and
//! frame lists are kept once, so that memory follows what is alive in the traced process.
//!
//! All of it was measured on recordings of .NET 11.0.0 (linux-x64). Other versions of batches and records are refused.
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

mod account;
pub mod batch;
mod books;
mod bytes;
mod clock;
mod delivery;
mod dispatchers;
mod frames;
mod gaps;
mod horizon;
mod identities;
mod ids;
pub mod markers;
mod recording;
mod reject;
mod spans;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod thread;
pub mod tpl;
mod verdict;
mod wire;

pub use account::{AsyncTrace, ContextFacts};
pub use batch::{Header, Metadata, Outer, Record, SyncClock};
pub use clock::Clock;
pub use dispatchers::{Dispatcher, Moment, State, Totals};
pub use frames::{Frame, FrameList, FrameListId, FrameLists};
pub use horizon::{Horizon, Horizons, Session, Standing};
pub use identities::{Breach, Identities, Identity, RecordRef};
pub use recording::Recording;
pub use reject::{Rejected, Rejection};
pub use spans::{Span, SpanSink};
pub use verdict::{Container, Flag, Judgement, Verdict, judge};
pub use wire::{Family, Kind, Manifest};

/// The provider whose events hold the batches.
pub const PROVIDER: &str = "System.Runtime.CompilerServices.AsyncProfilerEventSource";
/// The provider of previews of .NET 11, whose form is refused.
pub const PREVIEW_PROVIDER: &str =
    "System.Runtime.CompilerServices.AsyncProfilerBufferedEventSource";
/// Its event that holds a batch.
pub const EVENT: u32 = 1;
