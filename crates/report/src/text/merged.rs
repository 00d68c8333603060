//! The stacks of all threads as one tree.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::words::{count, several};
use crate::{MergedFrame, MergedStacks};

/// Deeper rows go on in one column.
const MAX_INDENT: u64 = 20;

/// Merged stacks as text: how many threads go through each frame, outermost first.
#[must_use]
pub fn merged(report: &MergedStacks, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let said = format!(
        "{}, from their outermost frames inwards",
        several(report.threads, "stack")
    );
    let spans = [page.span(Role::Strong, said)];
    page.line("", "", &spans);
    page.blank();
    for row in &report.rows {
        let depth = usize::try_from(row.depth.min(MAX_INDENT)).unwrap_or(0);
        let indent = "  ".repeat(depth);
        let mut number = format!("{indent}{:>4}  ", count(row.count));
        let rest = " ".repeat(number.len());
        let same = |a: &MergedFrame, b: &MergedFrame| {
            !page.verbose() && a.native == b.native && is_plumbing(a) && is_plumbing(b)
        };
        let runs: Vec<&[MergedFrame]> = row.frames.chunk_by(same).collect();
        for run in runs {
            let names: Vec<&str> = run.iter().map(|f| f.method.as_str()).collect();
            let (role, text) = match run {
                [one] if is_plumbing(one) => (Role::Dim, one.method.clone()),
                [one] => (Role::Strong, one.method.clone()),
                [first, ..] if first.native => (Role::Dim, super::fold::natives(&names)),
                _ => {
                    let room = page.width().saturating_sub(rest.len());
                    (Role::Dim, super::fold::methods(&names, room))
                }
            };
            let spans = [page.span(role, text)];
            page.line(&number, &format!("{rest}  "), &spans);
            number.clone_from(&rest);
        }
        if !row.end.is_empty() {
            let threads: Vec<String> = row.end.iter().map(ToString::to_string).collect();
            let spans = [page.span(Role::Dim, format!("= {}", threads.join(", ")))];
            page.line(&rest, &format!("{rest}  "), &spans);
        }
    }
    page.finish()
}

fn is_plumbing(frame: &MergedFrame) -> bool {
    frame.native || frame.is_framework
}
