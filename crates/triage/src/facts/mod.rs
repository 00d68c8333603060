//! What is known of the two ends of a chain, typed: what it waits for, and what it is for.
//!
//! Whoever decides something asks these types. Their texts and the `details` of the report are made here and nowhere
//! else.

mod awaited;
mod client;
mod http;
mod purpose;
mod timer;

pub(crate) use awaited::{Awaited, Fill, Runner, Socket, SystemPipe};
pub(crate) use client::{ClientWait, Fact, PoolUse};
pub(crate) use http::{HttpPool, RequestFacts, Unit};
pub(crate) use purpose::{Callback, Purpose, ThreadId};
pub(crate) use timer::Timer;

use asynctriage_dump::Addr;
use serde_json::{Value, json};

/// An object as `details` name it.
fn object(at: Addr) -> Value {
    json!(at.to_string())
}
