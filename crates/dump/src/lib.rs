//! What was in the process.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod addr;
mod memory;

pub use addr::Addr;
pub use memory::{Fault, FaultReason, Memory};
