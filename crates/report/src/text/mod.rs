//! The report as a person on call reads it: what hangs, why, who is affected, what to do; then the details.

mod chains;
mod closing;
mod diff;
mod escape;
mod findings;
mod fleet;
mod fold;
mod item;
mod merged;
mod objects;
mod observe;
mod opening;
mod page;
mod part;
mod process;
mod roots;
mod runtimes;
mod services;
mod stack;
mod style;
mod table;
mod trace;
mod tree;
mod verify;
mod views;
mod why;
pub(crate) mod words;

#[cfg(test)]
mod tests;

use crate::Report;
use page::Page;

pub use diff::diff;
pub use fleet::fleet;
pub use item::item;
pub use merged::merged;
pub use objects::objects;
pub use observe::observe;
pub use opening::headline;
pub use part::{Part, part};
pub use roots::roots;
pub use runtimes::runtimes;
pub use services::services;
pub use trace::{trace, trace_record};
pub use tree::tree;
pub use verify::verify;
pub use views::{heap, object, tasks};
pub use why::why;
pub use words::{bytes, count, duration, several};

/// How a report is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal; 0 stands for 80, and less than 40 is taken as 40.
    pub width: usize,
    /// Whether lines may hold anything but ASCII; without it, such characters of the dump's names are escaped.
    pub unicode: bool,
    /// Whether to write escape sequences for colours.
    pub color: bool,
    /// 0 for the first look; more shows every frame, address and piece of evidence.
    pub verbose: u8,
    /// Whether runs of native frames and of .NET's own on a thread's stack are one line each.
    pub fold: bool,
    /// Groups, threads and requests listed at most; `None` for all. What is left out is counted.
    pub rows: Option<usize>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            width: 100,
            unicode: true,
            color: false,
            verbose: 0,
            fold: false,
            rows: Some(25),
        }
    }
}

impl TextOptions {
    /// How many of `all` rows are shown.
    fn cap(&self, all: usize) -> usize {
        self.rows.map_or(all, |rows| rows.min(all))
    }
}

/// `text` out of a dump or a command line with everything escaped that a terminal would act on; one line stays one line.
#[must_use]
pub fn printable(text: &str) -> String {
    escape::clean(text, false)
}

/// The whole report as text; ends with a newline.
#[must_use]
pub fn text(report: &Report, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    opening::header(&mut page, report);
    opening::summary(&mut page, report);
    findings::section(&mut page, report);
    process::requests(&mut page, report);
    chains::section(&mut page, report);
    process::threads(&mut page, report);
    process::pool(&mut page, report);
    closing::heap(&mut page, report);
    closing::rejected(&mut page, report);
    closing::gaps(&mut page, &report.gaps);
    closing::left_out(&mut page, report);
    closing::timings(&mut page, report);
    page.finish()
}
