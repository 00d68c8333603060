//! The diagnostic socket of a running .NET process (5 to 11): what the process is, and a stream of its events.
//!
//! A runtime listens on a Unix domain socket `dotnet-diagnostic-PID-KEY-socket` ([`Client::of_process`]), or announces
//! itself on a socket that it was told of when it was started ([`ReversePort`]), and then waits there, before any managed
//! code runs, until it is told to go on. Each connection carries one command and its answer; the connection of a
//! recording carries the recording itself, in the format of `.nettrace` files, until the session ends.
//!
//! Every wait has a limit and every answer is doubted: sizes are checked before they are believed, and text is text of
//! the other process. Only the standard library is used; on systems without Unix domain sockets each function says
//! [`Error::NotSupported`].
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

mod client;
mod error;
#[cfg(all(test, unix))]
mod fake;
mod info;
mod message;
mod provider;
mod reverse;
mod session;
mod socket;
mod stream;

pub use client::{Client, DumpKind};
pub use error::{Error, ErrorCode};
pub use info::ProcessInfo;
pub use provider::{ParseProviderError, Provider};
pub use reverse::{Announced, ReversePort};
pub use session::{EventStream, Recording, SessionConfig};
