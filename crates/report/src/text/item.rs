//! One part of a report, by its id.

use super::page::Page;
use super::style::Role;
use super::{TextOptions, chains, closing, findings, opening, process};
use crate::{Item, Report, WaitEdge, find};

/// What an id of the report stands for, with all that is known of it; `None` when the report has no such id.
#[must_use]
pub fn item(report: &Report, id: &str, options: &TextOptions) -> Option<String> {
    let options = TextOptions {
        verbose: options.verbose.max(1),
        ..options.clone()
    };
    let mut page = Page::new(&options);
    match find(report, id)? {
        Item::Finding(finding) => findings::one(&mut page, finding),
        Item::Evidence { finding, evidence } => {
            findings::fact(&mut page, evidence);
            note(&mut page, &format!("of {finding}"));
        }
        Item::Chains(group) => chains::one(&mut page, group),
        Item::Chain { member, group } => {
            note(
                &mut page,
                &format!(
                    "{}, one of {} chains of {}",
                    member.id, group.count, group.id
                ),
            );
            for at in &member.boxes {
                note(&mut page, &at.to_string());
            }
            let own = [&member.root, &member.leaf];
            own.into_iter()
                .flatten()
                .for_each(|text| note(&mut page, text));
            page.blank();
            chains::without_members(&mut page, group);
        }
        Item::Gap(gap) => closing::gaps(&mut page, std::slice::from_ref(gap)),
        Item::Request(request) => process::requests(
            &mut page,
            &Report {
                requests: vec![request.clone()],
                ..Report::default()
            },
        ),
        Item::Thread(thread) => process::one_thread(&mut page, thread),
        Item::Wait(node) => {
            let address = node.address.map(|a| format!("  {a}")).unwrap_or_default();
            note(
                &mut page,
                &format!("{}  {}  {}{address}", node.id, node.kind, node.text),
            );
            let edges = report.waits.edges.iter();
            for edge in edges.filter(|e| e.from == node.id || e.to == node.id) {
                note(&mut page, &edge_text(report, edge));
            }
        }
        Item::Dump(_) => {
            opening::header(&mut page, report);
            opening::summary(&mut page, report);
        }
        Item::Pool(_) => process::pool(&mut page, report),
        Item::Heap(_) => closing::heap(&mut page, report),
    }
    Some(page.finish())
}

fn edge_text(report: &Report, edge: &WaitEdge) -> String {
    let name = |id: &str| {
        let node = report.waits.nodes.iter().find(|n| n.id == id);
        node.map(|n| format!("{id} {}", n.text)).unwrap_or_default()
    };
    format!(
        "  {} {} {} ({}) {}",
        name(&edge.from),
        edge.text,
        name(&edge.to),
        edge.confidence,
        edge.how
    )
}

fn note(page: &mut Page<'_>, text: &str) {
    let spans = [page.span(Role::Plain, text)];
    page.line("", "    ", &spans);
}
