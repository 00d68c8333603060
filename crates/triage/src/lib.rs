//! What the graph means: chains in groups, what they wait for, what they are for.
//!
//! [`analyse`] goes from a dump to a [`Report`]; [`Analysis`] answers narrower questions.
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

mod chains;
mod completers;
pub mod diff;
mod facts;
mod findings;
mod holders;
mod leaves;
mod libraries;
mod lines;
mod options;
mod paths;
mod process;
pub mod services;
mod summary;
mod threads;
pub mod trace;
pub mod views;
mod waitfor;
mod words;

pub use options::{Options, Values};
pub use paths::{Analysis, Dispatcher, DispatcherFamily, DispatcherFrame};
pub use process::dump::rfc3339;
pub use summary::analyse;

#[doc(no_inline)]
pub use asynctriage_image::ImageFiles;
#[doc(no_inline)]
pub use asynctriage_report::Report;
