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

mod analysis;
mod channels;
mod clients;
mod clock;
mod collection;
mod context;
mod dispatchers;
mod facts;
mod findings;
mod groups;
mod hang;
mod http;
mod leaves;
mod lines;
mod names;
mod native;
mod paths;
mod pool;
mod requests;
mod retained;
mod roots;
mod rows;
mod services;
mod since;
mod sockets;
mod steps;
mod summary;
mod tally;
mod threads;
mod timers;
pub mod trace;
mod users;
pub mod views;
mod waits;

pub use analysis::Analysis;
pub use dispatchers::{Dispatcher, DispatcherFamily, DispatcherFrame};
pub use summary::{Options, analyse};

#[doc(no_inline)]
pub use asynctriage_image::ImageFiles;
#[doc(no_inline)]
pub use asynctriage_report::Report;
