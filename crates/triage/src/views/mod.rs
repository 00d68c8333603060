//! Answers to narrower questions than the whole report.

mod heap;
mod object;
mod runtimes;
mod tasks;

pub use heap::heap;
pub use object::{ObjectOptions, object};
pub use runtimes::runtimes;
pub use tasks::{TaskOptions, tasks};

use crate::summary::report_gap;
use asynctriage_clr::Gap;
use asynctriage_report as report;

fn gaps<'g>(gaps: impl Iterator<Item = &'g Gap>) -> Vec<report::Gap> {
    gaps.enumerate().map(|(i, g)| report_gap(i, g)).collect()
}
