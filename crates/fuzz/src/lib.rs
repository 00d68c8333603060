//! Changed and arbitrary bytes against everything that reads bytes of a dump, and everything that shows what was read.
//!
//! Each [`Target`] has seeds, which are real or made as real ones are, a way to change them, and what is run on the outcome.
//! [`fuzz`] does so for a while on all processors, with nothing but the stable toolchain: no instrumentation guides it, so
//! the seeds have to lead to all code, and the changes are such as lead on from there.

mod changes;
mod random;
mod run;
mod seeds;
mod targets;

pub use changes::EXTREME;
pub use random::Random;
pub use run::{Failure, Tried, fuzz, replay};
pub use targets::{ALL, Target};
