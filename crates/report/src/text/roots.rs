//! What keeps an object alive.

use super::page::Page;
use super::style::Role;
use super::words::several;
use super::{TextOptions, closing};
use crate::{Confidence, RootHop, RootPath, RootsReport};

/// Objects of a way that are shown without `-v`.
const MAX_SHOWN: usize = 12;

/// The ways from roots to an object, as text.
#[must_use]
pub fn roots(report: &RootsReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let spans = [
        page.span(Role::Strong, report.address.to_string()),
        page.span(Role::Strong, format!("  {}", report.type_name)),
    ];
    page.line("", "    ", &spans);
    let said = match (report.paths.is_empty(), report.is_complete) {
        (false, _) => format!(
            "{} from {}, the shortest of each",
            several(report.paths.len() as u64, "way"),
            "roots"
        ),
        (true, true) => "No root leads to it: it is garbage.".to_owned(),
        (true, false) => "No way from a root was found; not all could be followed.".to_owned(),
    };
    let spans = [page.span(Role::Dim, said)];
    page.line("", "", &spans);
    for path in &report.paths {
        one(&mut page, path);
    }
    if report.paths_left_out > 0 {
        let more = several(report.paths_left_out, "more way");
        let spans = [page.span(Role::Dim, format!("{more} not shown: --limit N"))];
        page.blank();
        page.line("", "", &spans);
    }
    closing::gaps(&mut page, &report.gaps);
    page.finish()
}

fn one(page: &mut Page<'_>, path: &RootPath) {
    page.blank();
    let mut spans = vec![
        page.span(Role::Kind, path.kind.as_str()),
        page.span(Role::Strong, format!("  {}", path.path)),
    ];
    if let Some(chain) = &path.chain {
        spans.push(page.span(Role::Dim, format!("  see {chain}")));
    }
    if path.confidence == Confidence::Possible {
        let doubt = "  possible: the word may be a leftover of the stack";
        spans.push(page.span(Role::Dim, doubt));
    }
    page.line("", "    ", &spans);
    if let Some(slot) = path.slot {
        let spans = [page.span(Role::Dim, format!("{slot}  {}", path.root))];
        page.line("  ", "    ", &spans);
    }
    let shown = if page.verbose() {
        usize::MAX
    } else {
        MAX_SHOWN
    };
    let (head, tail) = ends_of(&path.hops, shown);
    let hidden = path
        .hops
        .len()
        .saturating_sub(head.len())
        .saturating_sub(tail.len()) as u64;
    let hidden = hidden.saturating_add(path.hops_left_out);
    let (head, between) = match hidden {
        // a long way has its gap in the middle
        0 => (path.hops.as_slice(), &[][..]),
        _ if tail.is_empty() => path.hops.split_at(path.hops.len() / 2),
        _ => (head, tail),
    };
    for (part, is_first) in [(head, true), (between, false)] {
        if !is_first && hidden > 0 {
            let spans = [page.span(Role::Dim, several(hidden, "more object"))];
            page.line("  … ", "      ", &spans);
        }
        for hop in part {
            let spans = [
                page.span(Role::Plain, hop.address.to_string()),
                page.span(Role::Plain, format!("  {}", hop.type_name)),
                page.span(Role::Dim, format!("  {}", hop.by)),
            ];
            page.line("  → ", "      ", &spans);
        }
    }
}

/// The begin and the end of a way that is longer than `shown`; else all of it and nothing.
fn ends_of(hops: &[RootHop], shown: usize) -> (&[RootHop], &[RootHop]) {
    if hops.len() <= shown {
        return (hops, &[]);
    }
    let half = shown / 2;
    let (head, rest) = hops.split_at(half);
    let (_, tail) = rest.split_at(rest.len().saturating_sub(half));
    (head, tail)
}
