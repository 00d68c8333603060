//! Several dumps as one picture.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::words::{count, duration, several, verb};
use crate::{Confidence, Hop, RequestPath, Service, ServicesReport};

/// Requests followed across processes, as text.
#[must_use]
pub fn services(report: &ServicesReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let joined = report.paths.iter().filter(|p| p.hops.len() > 1).count() as u64;
    let text = format!(
        "{} in {}; {} {} through more than one of them.",
        several(report.paths.len() as u64, "request"),
        several(report.services.len() as u64, "dump"),
        count(joined),
        verb(joined, "goes", "go"),
    );
    let spans = [page.span(Role::Strong, text)];
    page.line("", "", &spans);
    page.heading("Services", "those first that most requests end in");
    for service in &report.services {
        self::service(&mut page, service);
    }
    if !report.paths.is_empty() {
        page.heading(
            "Requests",
            "each from the service it came to first, inwards",
        );
        let shown = page.options.cap(report.paths.len());
        for path in report.paths.iter().take(shown) {
            page.blank();
            one(&mut page, path);
        }
        if let Some(more) = report.paths.len().checked_sub(shown).filter(|n| *n > 0) {
            let text = format!("{} not shown: --all", several(more as u64, "more request"));
            let spans = [page.span(Role::Dim, text)];
            page.blank();
            page.line("", "", &spans);
        }
    }
    missing(&mut page, report);
    page.finish()
}

fn service(page: &mut Page<'_>, service: &Service) {
    let text = format!(
        "{}  {} served, {} {} here",
        service.name,
        several(service.requests, "request"),
        count(service.ends),
        verb(service.ends, "ends", "end"),
    );
    let spans = [
        page.span(Role::Strong, text),
        page.span(Role::Dim, format!("  {}", service.dump)),
    ];
    page.line("", "  ", &spans);
    for wait in service.waits_for.iter().filter(|w| !w.is_empty()) {
        let spans = [page.span(Role::Plain, format!("waits for {wait}"))];
        page.line("  ", "    ", &spans);
    }
}

fn missing(page: &mut Page<'_>, report: &ServicesReport) {
    if report.missing.is_empty() {
        return;
    }
    page.heading(
        "Missing",
        "servers that are called and of which no dump was given",
    );
    for server in &report.missing {
        let text = format!(
            "{} from {} {} to {}",
            several(server.calls, "call"),
            server.from.join(", "),
            verb(server.calls, "goes", "go"),
            server.server
        );
        let spans = [page.span(Role::Plain, text)];
        page.line("- ", "  ", &spans);
    }
}

fn one(page: &mut Page<'_>, path: &RequestPath) {
    let last = path.hops.len().saturating_sub(1);
    for (depth, hop) in path.hops.iter().enumerate() {
        self::hop(page, hop, depth, depth == last);
    }
    let by_name = path.certainty != Confidence::Certain && path.hops.len() > 1;
    let facts = [
        path.trace_id.as_ref().map(|t| format!("trace {t}")),
        by_name.then(|| "joined by method and path: a call carries no ids".to_owned()),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if !facts.is_empty() {
        let spans = [page.span(Role::Dim, facts.join("; "))];
        page.line("    ", "    ", &spans);
    }
}

fn hop(page: &mut Page<'_>, hop: &Hop, depth: usize, is_last: bool) {
    let arrow = if page.options.unicode {
        "  → "
    } else {
        "  > "
    };
    let indent = if depth == 0 { "" } else { arrow };
    let age = hop.age_seconds.map(|s| format!("  {}", duration(s)));
    let chain = hop.chain.as_ref().map(|c| format!("  {c}"));
    let facts = format!("{}{}", age.unwrap_or_default(), chain.unwrap_or_default());
    let mut spans = vec![
        page.span(Role::Strong, format!("{}  {}", hop.service, hop.request)),
        page.span(Role::Dim, facts),
    ];
    if is_last && !hop.waits_for.is_empty() {
        spans.push(page.span(Role::Plain, format!("  waits for {}", hop.waits_for)));
    }
    page.line(indent, "      ", &spans);
}
