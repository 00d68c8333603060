//! Reports of many dumps as tables.
//!
//! [`Table`] names the tables and their columns, [`rows`] makes the rows of one dump, [`Store`] keeps them in files by day and
//! service: lines of JSON, one file for each dump and table, and Parquet files made of those. [`Common`] adds up what many
//! dumps have in common.
//!
//! A dump whose row of [`Table::Dumps`] lies in the store is done; that row is written last. Parquet files are made anew from
//! the lines of their folder, so that a run that was cut short leaves nothing wrong behind.
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

mod common;
mod pack;
mod store;
mod tables;

pub use common::Common;
pub use store::{Done, Store, StoreError};
pub use tables::{Cell, Field, Kind, Origin, Row, Rows, Status, Table, rows, schema};

/// Version of the tables: the first number changes when a column changes its meaning or goes, the second when one is added.
pub const TABLES_VERSION: &str = "1.0";
