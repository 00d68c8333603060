//! Requests, threads and the thread pool.

use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{count, duration, several};
use crate::{FrameStanding, ObjectRef, Pool, Report, Request, Thread, ThreadFrame};
use std::collections::BTreeMap;

/// Who is affected: requests by route, the oldest age of each; one by one with `-v`.
pub(super) fn requests(page: &mut Page<'_>, report: &Report) {
    if report.requests.is_empty() {
        return;
    }
    page.heading("Requests", "being served");
    let rows = if page.verbose() {
        each(&report.requests)
    } else {
        by_route(&report.requests)
    };
    let shown = page.options.cap(rows.len());
    let mut table = Table::new(vec![
        Column::right("count"),
        Column::right("oldest"),
        Column::flexible("request"),
        Column::flexible("chains"),
    ]);
    for (request, route) in rows.iter().take(shown) {
        let age = route.oldest.map(duration).unwrap_or_default();
        table.row(vec![
            count(route.count),
            age,
            request.clone(),
            route.chains.join(" "),
        ]);
    }
    table.write(page, "");
    more(page, rows.len().saturating_sub(shown), "row");
}

/// Requests that are alike.
#[derive(Default)]
struct Route {
    count: u64,
    oldest: Option<f64>,
    chains: Vec<String>,
}

impl Route {
    fn add(&mut self, request: &Request) {
        self.count = self.count.saturating_add(1);
        self.oldest = match (self.oldest, request.age_seconds) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        if let Some(chain) = request
            .chain
            .as_ref()
            .filter(|chain| !self.chains.contains(chain))
        {
            self.chains.push(chain.clone());
        }
    }
}

fn by_route(requests: &[Request]) -> Vec<(String, Route)> {
    let mut routes: BTreeMap<String, Route> = BTreeMap::new();
    for request in requests {
        let name = format!(
            "{} {}",
            request.method,
            request.route.as_ref().unwrap_or(&request.path)
        );
        routes.entry(name).or_default().add(request);
    }
    let mut routes: Vec<(String, Route)> = routes.into_iter().collect();
    routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.count));
    routes
}

fn each(requests: &[Request]) -> Vec<(String, Route)> {
    let one = |request: &Request| {
        let mut route = Route::default();
        route.add(request);
        let notes = [&request.route, &request.trace_id, &request.connection]
            .into_iter()
            .flatten();
        let name = notes.fold(
            format!("{} {}", request.method, request.path),
            |name, note| format!("{name}  {note}"),
        );
        (name, route)
    };
    requests.iter().map(one).collect()
}

/// The blocked threads; all with `-v`.
pub(super) fn threads(page: &mut Page<'_>, report: &Report) {
    let all = page.verbose();
    let worth = |t: &&Thread| {
        all || t.waits_on.is_some()
            || t.chain.is_some()
            || t.runs.is_some()
            || !t.holds.is_empty()
            || sleeps(t)
    };
    let chosen: Vec<&Thread> = report.threads.iter().filter(worth).collect();
    let others = (report.threads.len().saturating_sub(chosen.len()) as u64)
        .saturating_add(report.left_out.threads);
    if chosen.is_empty() {
        return;
    }
    let runs = chosen.iter().any(|t| t.runs.is_some() || sleeps(t));
    page.heading(
        "Threads",
        match (all, runs) {
            (true, _) => "",
            (_, true) => "that are blocked, run or sleep in the program, or stand behind a chain",
            _ => "that are blocked or stand behind a chain",
        },
    );
    let shown = page.options.cap(chosen.len());
    for thread in chosen.iter().take(shown) {
        one_thread(page, thread);
    }
    more(page, chosen.len().saturating_sub(shown), "such thread");
    if others > 0 {
        let spans = [page.span(
            Role::Dim,
            format!("{}: -v", several(others, "other thread")),
        )];
        page.line("", "", &spans);
    }
}

/// Whether a thread sleeps in the program's code, or waits there for what is not known: often the loop that polls, or the
/// one that tries again.
pub(super) fn sleeps(thread: &Thread) -> bool {
    let is_own = |f: &ThreadFrame| {
        !f.native && !f.is_framework && f.standing != Some(FrameStanding::Possible)
    };
    thread.waits_on.is_none()
        && matches!(thread.state.as_str(), "sleeping" | "waiting")
        && thread.frames.iter().any(is_own)
}

pub(super) fn one_thread(page: &mut Page<'_>, thread: &Thread) {
    let managed = thread
        .managed_id
        .map(|id| format!(" (managed {id})"))
        .unwrap_or_default();
    let name = thread
        .name
        .as_ref()
        .map(|name| format!("  \"{name}\""))
        .unwrap_or_default();
    let role = if thread.waits_on.is_some() {
        Role::Critical
    } else {
        Role::Dim
    };
    let chain = thread
        .chain
        .as_ref()
        .map(|chain| format!("  see {chain}"))
        .unwrap_or_default();
    let spans = [
        page.span(
            Role::Strong,
            format!("thread {}{managed}{name}", thread.os_id),
        ),
        page.span(role, format!("  {}", thread.state)),
        page.span(Role::Dim, chain),
    ];
    page.line("", "    ", &spans);
    if let Some(wait) = &thread.waits_on {
        object(page, "waits for", wait);
    }
    if let Some(runs) = &thread.runs {
        let spans = [page.span(Role::Plain, runs.clone())];
        page.line("    ", "      ", &spans);
    }
    for held in &thread.holds {
        object(page, "holds", held);
    }
    if let Some(request) = &thread.request {
        let spans = [
            page.span(Role::Good, "http-request"),
            page.span(Role::Plain, format!("  {request}")),
        ];
        page.line("    ", "      ", &spans);
    }
    super::stack::stack(page, thread);
}

fn object(page: &mut Page<'_>, what: &str, object: &ObjectRef) {
    let address = object.address.map(|a| a.to_string());
    let address = address.filter(|a| !object.text.contains(a));
    let address = address.map(|a| format!("  {a}")).unwrap_or_default();
    let type_name = object
        .type_name
        .as_ref()
        .filter(|_| page.verbose())
        .map(|t| format!("  {t}"))
        .unwrap_or_default();
    let spans = [
        page.span(Role::Plain, format!("{what} {}", object.text)),
        page.span(Role::Dim, format!("{address}{type_name}")),
    ];
    page.line("    ", "      ", &spans);
}

/// Size of the thread pool and what waits for it.
pub(super) fn pool(page: &mut Page<'_>, report: &Report) {
    let Some(pool) = &report.pool else { return };
    page.heading("Thread pool", "");
    let spans = [page.span(Role::Plain, sizes(pool))];
    page.line("", "  ", &spans);
    let queued = &pool.queued;
    let parts = format!(
        "{} queued: {} global, {} high priority, {} local",
        several(queued.total(), "work item"),
        count(queued.global),
        count(queued.high_priority),
        count(queued.local)
    );
    let spans = [page.span(
        if queued.total() > 0 {
            Role::Strong
        } else {
            Role::Plain
        },
        parts,
    )];
    page.line("", "  ", &spans);
    let shown = page.options.cap(queued.by_kind.len());
    let mut table = Table::new(vec![
        Column::right("count"),
        Column::flexible("work"),
        Column::flexible("resumes"),
    ]);
    for kind in queued.by_kind.iter().take(shown) {
        table.row(vec![
            count(kind.count),
            kind.kind.clone(),
            resumed(report, kind.resumes.as_deref()),
        ]);
    }
    if shown > 0 {
        table.write(page, "  ");
    }
    more(page, queued.by_kind.len().saturating_sub(shown), "kind");
}

/// The id of the group with a signature: shorter, and what the rest of the page uses.
fn resumed(report: &Report, signature: Option<&str>) -> String {
    let Some(signature) = signature else {
        return String::new();
    };
    let group = report.chains.iter().find(|c| c.signature == signature);
    group.map_or_else(|| signature.to_owned(), |c| c.id.clone())
}

fn sizes(pool: &Pool) -> String {
    let parts = [
        pool.workers.map(|n| several(n, "worker")),
        pool.blocked
            .filter(|n| *n > 0)
            .map(|n| format!("{} blocked", count(n))),
        pool.idle.map(|n| format!("{} idle", count(n))),
        pool.goal.map(|n| format!("{} wanted", count(n))),
        pool.min.map(|n| format!("min {}", count(n))),
        pool.max.map(|n| format!("max {}", count(n))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "size unknown".to_owned()
    } else {
        parts.join(", ")
    }
}

fn more(page: &mut Page<'_>, hidden: usize, noun: &str) {
    if hidden > 0 {
        let spans = [page.span(
            Role::Dim,
            format!(
                "{} not shown: --all",
                several(hidden as u64, &format!("more {noun}"))
            ),
        )];
        page.line("", "", &spans);
    }
}
