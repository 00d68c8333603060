//! The check of a bundle as text.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use crate::{CheckState, VerifyReport};

/// What no longer holds, or that all does.
#[must_use]
pub fn verify(report: &VerifyReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let count = |state| report.checks.iter().filter(|c| c.state == state).count();
    let (broken, held) = (count(CheckState::Broken), count(CheckState::Holds));
    let verdict = if report.holds {
        page.span(Role::Strong, format!("All {held} checks hold."))
    } else {
        page.span(
            Role::Strong,
            format!(
                "{broken} of {} checks do not hold.",
                broken.saturating_add(held)
            ),
        )
    };
    let bundle = page.span(Role::Plain, format!("{}  ", report.bundle));
    page.line("", "  ", &[bundle, verdict]);
    for check in &report.checks {
        let (word, is_shown) = match check.state {
            CheckState::Holds => ("holds", options.verbose > 0),
            CheckState::Broken => ("BROKEN", true),
            CheckState::NotChecked => ("not checked", true),
        };
        if is_shown {
            let why = if check.why.is_empty() {
                String::new()
            } else {
                format!(": {}", check.why)
            };
            let spans = [
                page.span(Role::Strong, format!("{word}  ")),
                page.span(Role::Plain, format!("{}{why}", check.what)),
            ];
            page.line("  ", "    ", &spans);
        }
    }
    let seal = page.span(Role::Dim, format!("seal {}", report.seal));
    page.line("", "  ", &[seal]);
    page.finish()
}
