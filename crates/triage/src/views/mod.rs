//! Answers to narrower questions than the whole report.

mod claims;
mod elements;
mod evidence;
mod heap;
mod object;
mod objects;
mod root;
mod runtimes;
mod tasks;
mod trimmed;
mod why;

pub use evidence::{Evidence, evidence};
pub use heap::heap;
pub use object::{ObjectOptions, object};
pub use objects::{objects, texts};
pub use root::root;
pub use runtimes::runtimes;
pub use tasks::{TaskOptions, tasks};
pub use trimmed::{Also, TrimError, Trimmed, everything, trim};
pub use why::{Subject, why};

use crate::summary::report_gap;
use asynctriage_clr::{Gap, Runtime};
use asynctriage_report as report;

/// The gaps of an answer, with what was not looked at for it: to be asked for when all else is done.
fn gaps<'g>(rt: &Runtime<'_>, gaps: impl Iterator<Item = &'g Gap>) -> Vec<report::Gap> {
    let all = gaps.cloned().chain(rt.cut_gaps()).enumerate();
    all.map(|(i, g)| report_gap(i, &g)).collect()
}
