//! What a report becomes outside of a terminal.
//!
//! [`html`] is one page for a browser with nothing to fetch, [`markdown`] a short text for a ticket, [`dot`] the wait-for
//! graph for Graphviz, [`postmortem`] a draft with a source for each sentence, [`tables`] are for spreadsheets. All are made
//! from a [`Report`](asynctriage_report::Report) alone, so that one saved as JSON is rendered without its dump. They hold what the report holds: what it redacts, they cannot show.
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

mod dot;
mod html;
mod layout;
mod markdown;
mod postmortem;
mod tables;

#[cfg(test)]
mod samples;

pub use dot::dot;
pub use html::html;
pub use markdown::markdown;
pub use postmortem::postmortem;
pub use tables::{Table, tables};
