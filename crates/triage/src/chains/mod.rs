//! Chains in groups of the same shape: what they wait for, what they are for, since when.

mod ages;
mod groups;
mod queued;
mod requests;
mod roots;
mod services;
pub(crate) mod signatures;
mod tally;

pub(crate) use groups::{Groups, Wanted};
pub(crate) use tally::{Dependency, Share, Tally};
