//! The draft of a postmortem: what the dump shows, in order, each fact with the id that proves it.
//!
//! Nothing here is found out: figures, names and times are those of the report. What people have to add is marked as such.

mod text;
mod timeline;

use crate::markdown::{code, plain};
use asynctriage_report::{
    ChainGroup, Confidence, Finding, Frame, LeafKind, Pool, Report, Request, Root, RootKind,
    Severity, Thread, VerdictState, WaitNode, bytes, count, duration, headline, several,
};
use std::collections::BTreeMap;
use text::{Draft, cite};
use timeline::timeline;

/// Groups of chains, routes and threads that are told.
const MAX_CHAINS: usize = 12;
const MAX_ROUTES: usize = 12;
const MAX_THREADS: usize = 12;
/// Nodes of one deadlock that are told.
const MAX_CYCLE: usize = 24;
/// Groups that one item names.
const MAX_IDS: usize = 6;
/// Pieces of evidence in the appendix.
const MAX_EVIDENCE: usize = 200;

/// The draft as Markdown.
#[must_use]
pub fn postmortem(report: &Report) -> String {
    let mut draft = Draft::default();
    opening(&mut draft, report);
    summary(&mut draft, report);
    impact(&mut draft, report);
    timeline(&mut draft, report);
    waits(&mut draft, report);
    conditions(&mut draft, report);
    causes(&mut draft, report);
    unknown(&mut draft, report);
    actions(&mut draft, report);
    appendix(&mut draft, report);
    draft.finish()
}

fn opening(draft: &mut Draft, report: &Report) {
    let path = match report.dump.path.as_str() {
        "" => "DUMP",
        path => path,
    };
    draft.line(&format!("# Postmortem (draft): {}\n", plain(path)));
    draft.line(&format!(
        "Drafted by {} from the memory of the process at one moment. Every fact carries the id of what proves it: {} prints \
         it. What people have to add is marked **to add**. The draft speaks of code and its waits, not of who wrote it.",
        plain(&format!("{} {}", report.tool.name, report.tool.version)),
        code(&format!("asynctriage show {path} ID")),
    ));
}

fn summary(draft: &mut Draft, report: &Report) {
    draft.heading("Summary");
    draft.fact(&format!("The dump shows: {}", headline(report)), &["D1"]);
    let worst = worst(report);
    if worst.is_empty() {
        draft.fact("No finding of the dump says that something hangs.", &["D1"]);
    }
    for finding in worst.iter().take(3) {
        let text = format!(
            "{} ({}, {}).",
            finding.title, finding.severity, finding.confidence
        );
        draft.fact(&text, &[&finding.id]);
    }
    draft.open_point("when it began and ended, who noticed it, and how");
}

/// The critical findings; where there are none, the warnings.
fn worst(report: &Report) -> Vec<&Finding> {
    let of = |severity| {
        let all = report.findings.iter();
        all.filter(|f| f.severity == severity).collect::<Vec<_>>()
    };
    let critical = of(Severity::Critical);
    if critical.is_empty() {
        of(Severity::Warning)
    } else {
        critical
    }
}

fn impact(draft: &mut Draft, report: &Report) {
    draft.heading("Impact");
    if report.requests.is_empty() {
        draft.fact("No request is being served in the dump.", &["D1"]);
    }
    let routes = routes(report);
    for (name, requests) in routes.iter().take(MAX_ROUTES) {
        let waiting = requests.iter().filter(|r| r.chain.is_some()).count() as u64;
        let oldest = oldest(requests);
        let total = requests.len() as u64;
        let mut text = format!("{name}: {}", several(total, "request"));
        if waiting == total {
            text.push_str(if total == 1 { " waits" } else { ", all wait" });
        } else if waiting > 0 {
            text.push_str(&format!(", {} of them wait", count(waiting)));
        }
        if let Some(age) = oldest.and_then(|r| r.age_seconds) {
            let which = if total == 1 { "it" } else { "the oldest" };
            text.push_str(&format!("; {which} is {} old", duration(age)));
        }
        let shown = oldest.or(requests.first().copied());
        let mut ids: Vec<&str> = shown.map(|r| r.id.as_str()).into_iter().collect();
        let mut chains: Vec<&str> = requests.iter().filter_map(|r| r.chain.as_deref()).collect();
        chains.sort_by_key(|id| (id.len(), *id));
        chains.dedup();
        ids.extend(chains.into_iter().take(MAX_IDS));
        draft.item(&format!("{text}."), &ids);
    }
    draft.more(routes.len(), MAX_ROUTES, "route");
    let blocked: Vec<&Thread> = report
        .threads
        .iter()
        .filter(|t| t.waits_on.is_some())
        .collect();
    if !blocked.is_empty() {
        let ids: Vec<String> = blocked.iter().take(6).map(|t| thread_id(t)).collect();
        let count = several(blocked.len() as u64, "thread");
        let verb = if blocked.len() == 1 { "is" } else { "are" };
        let text = format!("{count} {verb} blocked.");
        draft.item(&text, &refs(&ids));
    }
    if let Some(pool) = report.pool.as_ref().filter(|p| p.queued.total() > 0) {
        let text = format!(
            "{} in the queues of the thread pool.",
            several(pool.queued.total(), "work item")
        );
        draft.item(&text, &["P1"]);
    }
    draft.open_point(
        "what users saw, and for how long; requests that had ended before the dump are not in it",
    );
}

/// Requests by method and route, those of most requests first.
fn routes(report: &Report) -> Vec<(String, Vec<&Request>)> {
    let mut out: BTreeMap<String, Vec<&Request>> = BTreeMap::new();
    for request in &report.requests {
        let path = request.route.as_ref().unwrap_or(&request.path);
        let name = format!("{} {path}", request.method);
        out.entry(name).or_default().push(request);
    }
    let mut out: Vec<_> = out.into_iter().collect();
    out.sort_by_key(|(_, r)| std::cmp::Reverse(r.len()));
    out
}

/// The one of them that began first, as far as ages are known.
fn oldest<'r>(requests: &[&'r Request]) -> Option<&'r Request> {
    let dated = requests.iter().filter_map(|r| Some((r.age_seconds?, *r)));
    let oldest = dated.max_by(|a, b| a.0.total_cmp(&b.0));
    oldest.map(|(_, request)| request)
}

fn is_idle(group: &ChainGroup) -> bool {
    group
        .verdict
        .as_ref()
        .is_some_and(|v| v.state == VerdictState::Idle)
}

/// The innermost frame of the program, with its place.
fn own_frame(group: &ChainGroup) -> Option<&Frame> {
    let own = group.frames.iter().find(|f| !f.is_framework);
    own.or_else(|| group.frames.first())
}

fn method(group: &ChainGroup) -> String {
    own_frame(group).map_or_else(|| "an unknown method".into(), |f| f.method.clone())
}

fn waits(draft: &mut Draft, report: &Report) {
    draft.heading("What waited for what, and why it did not go on");
    for cycle in &report.waits.cycles {
        circle(draft, report, cycle);
    }
    let told: Vec<&ChainGroup> = report.chains.iter().filter(|c| !is_idle(c)).collect();
    for group in told.iter().take(MAX_CHAINS) {
        chain(draft, group);
    }
    draft.more(told.len(), MAX_CHAINS, "group");
    let blocked = blocked_alike(report);
    for threads in blocked.iter().take(MAX_THREADS) {
        threads_item(draft, threads);
    }
    draft.more(blocked.len(), MAX_THREADS, "blocked thread");
    if told.is_empty() && blocked.is_empty() {
        draft.fact("Nothing waits but what waits for work.", &["D1"]);
    }
}

/// Blocked threads; those of one name that wait for the same stand together.
fn blocked_alike(report: &Report) -> Vec<Vec<&Thread>> {
    let mut out: Vec<Vec<&Thread>> = Vec::new();
    let mut known: BTreeMap<(Option<&str>, &str, Option<&str>), usize> = BTreeMap::new();
    for thread in &report.threads {
        let Some(wait) = &thread.waits_on else {
            continue;
        };
        let key = (
            thread.name.as_deref(),
            wait.text.as_str(),
            thread.chain.as_deref(),
        );
        let at = *known.entry(key).or_insert(out.len());
        match out.get_mut(at) {
            Some(alike) => alike.push(thread),
            None => out.push(vec![thread]),
        }
    }
    out
}

fn threads_item(draft: &mut Draft, threads: &[&Thread]) {
    let Some(first) = threads.first() else {
        return;
    };
    let name = first.name.as_deref().unwrap_or("unnamed");
    let wait = first.waits_on.as_ref().map_or("", |w| w.text.as_str());
    let text = if threads.len() == 1 {
        format!("Thread '{name}' (os id {}) waits for {wait}.", first.os_id)
    } else {
        let count = several(threads.len() as u64, "thread");
        format!("{count} '{name}' wait for {wait}.")
    };
    let ids: Vec<String> = threads.iter().take(6).map(|t| thread_id(t)).collect();
    let mut ids = refs(&ids);
    ids.extend(first.chain.as_deref());
    draft.item(&text, &ids);
}

/// A deadlock, from one to the next.
fn circle(draft: &mut Draft, report: &Report, cycle: &[String]) {
    let node = |id: &String| report.waits.nodes.iter().find(|n| n.id == *id);
    let nodes: Vec<&WaitNode> = cycle.iter().filter_map(node).collect();
    draft.item("These wait for each other:", &refs(cycle));
    let inside = |id: &String| nodes.iter().find(|n| n.id == *id);
    let edges = report.waits.edges.iter().filter(|e| e.in_cycle);
    let steps = edges.filter_map(|e| Some((inside(&e.from)?, e, inside(&e.to)?)));
    for (from, edge, to) in steps.take(MAX_CYCLE) {
        let text = format!(
            "{}: {} {} ({}).",
            from.text, edge.text, to.text, edge.confidence
        );
        draft.sub_item(&text, &[&from.id, &to.id]);
    }
}

fn chain(draft: &mut Draft, group: &ChainGroup) {
    let frame = own_frame(group);
    let place = frame.and_then(Frame::place).map(|p| format!(" at {p}"));
    let file = frame.and_then(|f| f.file.as_ref()).map(|file| {
        let line = frame.and_then(|f| f.line);
        line.map_or_else(|| format!(" ({file})"), |line| format!(" ({file}:{line})"))
    });
    let chains = several(group.count, "chain");
    let text = match group.leaf.kind {
        // the text is a sentence of its own
        LeafKind::TaskRunning | LeafKind::ThreadBlocked => {
            let verb = if group.count == 1 { "ends" } else { "end" };
            format!("{chains} {verb} at work: {}.", group.leaf.text)
        }
        _ => format!(
            "{chains} through {}{}{} {} for {}.",
            method(group),
            place.unwrap_or_default(),
            file.unwrap_or_default(),
            if group.count == 1 { "waits" } else { "wait" },
            group.leaf.text
        ),
    };
    draft.item(&text, &[&group.id]);
    if let Some(root) = group.root.as_ref().filter(|r| !r.text.is_empty()) {
        draft.sub_item(&purpose(root), &[&group.id]);
    }
    for completer in group.leaf.completers.iter().take(2) {
        let thread = completer.thread.map(|id| format!("T{id}"));
        let mut ids = vec![group.id.as_str()];
        ids.extend(completer.chain.as_deref());
        ids.extend(thread.as_deref());
        let verb = match completer.confidence {
            Confidence::Certain => "Completed by",
            Confidence::Likely => "Likely completed by",
            Confidence::Possible => "Possibly completed by",
        };
        draft.sub_item(&format!("{verb} {}.", completer.text), &ids);
    }
    if let Some(verdict) = &group.verdict {
        draft.sub_item(
            &format!("{}: {}.", verdict.state, verdict.why.trim_end_matches('.')),
            &[&group.id],
        );
    }
}

/// What chains are for, as a sentence.
fn purpose(root: &Root) -> String {
    match root.kind {
        RootKind::HttpRequest => format!("It serves the request {}.", root.text),
        // the text says who waits
        RootKind::Main | RootKind::Thread => format!("In the end, {}.", root.text),
        _ => format!("It belongs to {}.", root.text),
    }
}

fn conditions(draft: &mut Draft, report: &Report) {
    draft.heading("Contributing conditions");
    let mut told = false;
    let candidates = worst(report);
    let warnings = report.findings.iter();
    let warnings = warnings.filter(|f| f.severity == Severity::Warning);
    for finding in warnings.filter(|f| candidates.iter().all(|c| c.id != f.id)) {
        draft.item(
            &format!("{} ({}).", finding.title, finding.confidence),
            &[&finding.id],
        );
        told = true;
    }
    if let Some(text) = report.pool.as_ref().and_then(pool) {
        draft.item(&text, &["P1"]);
        told = true;
    }
    if let Some(collection) = &report.heap.collection {
        draft.item(
            &format!("A garbage collection ran: {}.", collection.stage),
            &["H1"],
        );
        told = true;
    }
    if !told {
        draft.fact("The dump shows none.", &["D1"]);
    }
}

/// The figures of the thread pool, as a sentence.
fn pool(pool: &Pool) -> Option<String> {
    let workers = pool.workers?;
    let of = |n: Option<u64>, what: &str| {
        let n = n.filter(|n| *n > 0)?;
        Some(format!("{} {what}", count(n)))
    };
    let doing: Vec<String> = [
        of(pool.idle, "without work"),
        of(pool.blocked, "blocked on tasks"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let doing = if doing.is_empty() {
        String::new()
    } else {
        format!(", {}", doing.join(" and "))
    };
    let limits = match (pool.min, pool.max) {
        (Some(min), Some(max)) => format!(
            "; it makes {} without delay and {} at most",
            count(min),
            count(max)
        ),
        _ => String::new(),
    };
    let threads = several(workers, "thread");
    Some(format!("The thread pool has {threads}{doing}{limits}."))
}

fn causes(draft: &mut Draft, report: &Report) {
    draft.heading("Root-cause candidates");
    let worst = worst(report);
    for finding in &worst {
        let mut ids = vec![finding.id.as_str()];
        ids.extend(finding.evidence.iter().take(3).map(|e| e.id.as_str()));
        let text = format!(
            "{} ({}, {}). {}",
            finding.title, finding.kind, finding.confidence, finding.text
        );
        draft.item(&text, &ids);
    }
    if worst.is_empty() {
        draft.fact("The dump names none.", &["D1"]);
    }
    draft.open_point("which of these is the cause, and what led to it");
}

fn unknown(draft: &mut Draft, report: &Report) {
    draft.heading("What the dump cannot tell");
    for gap in &report.gaps {
        let remedy = if gap.remedy.is_empty() {
            String::new()
        } else {
            format!(" What helps: {}.", gap.remedy)
        };
        draft.item(
            &format!("{}: {} ({}).{remedy}", gap.section, gap.why, gap.place),
            &[&gap.id],
        );
    }
    draft.line("- It is one moment: whether things move, only a second dump shows. What came before is known only as far as the objects remember it.");
}

fn actions(draft: &mut Draft, report: &Report) {
    draft.heading("Action items");
    draft.table(&["action", "because of", "owner", "due"]);
    // one action for all findings that ask for it
    let mut steps: Vec<(&str, &Finding, Vec<&Finding>)> = Vec::new();
    let serious = report.findings.iter();
    for finding in serious.filter(|f| f.severity > Severity::Info) {
        let Some(step) = finding.next_step.as_deref() else {
            continue;
        };
        let known = steps
            .iter_mut()
            .find(|(text, first, _)| *text == step && first.runbook == finding.runbook);
        match known {
            Some((_, _, of)) => of.push(finding),
            None => steps.push((step, finding, vec![finding])),
        }
    }
    for (step, first, of) in &steps {
        let page = first
            .runbook
            .as_ref()
            .map(|r| format!(" ({})", code(&format!("asynctriage runbook {r}"))));
        let action = format!("{}{}", plain(step), page.unwrap_or_default());
        let because: Vec<String> = of
            .iter()
            .map(|f| format!("{} {}", plain(&f.title), cite(&[&f.id])))
            .collect();
        draft.row(&[&action, &because.join("; "), "**to add**", "**to add**"]);
    }
    if steps.is_empty() {
        draft.row(&["**to add**", "", "", ""]);
    }
    draft.line("");
}

fn appendix(draft: &mut Draft, report: &Report) {
    draft.heading("Appendix: evidence");
    let (dump, runtime) = (&report.dump, &report.runtime);
    let mut about = vec![format!("{} {}", dump.format, dump.kind)];
    about.extend((dump.bytes > 0).then(|| bytes(dump.bytes)));
    about.extend(dump.sha256.as_ref().map(|h| format!("sha256 {h}")));
    about.push(format!(
        ".NET {} {} {}",
        runtime.version, runtime.os, runtime.arch
    ));
    draft.fact(&format!("{}.", about.join(", ")), &["D1"]);
    let all = report.findings.iter();
    let all: Vec<_> = all
        .flat_map(|f| f.evidence.iter().map(move |e| (f, e)))
        .collect();
    if all.is_empty() {
        return;
    }
    draft.table(&["id", "fact", "address", "how it was read"]);
    for (finding, fact) in all.iter().take(MAX_EVIDENCE) {
        let ids = cite(&[&fact.id, &finding.id]);
        let address = fact
            .address
            .map(|a| code(&a.to_string()))
            .unwrap_or_default();
        draft.row(&[&ids, &plain(&fact.what), &address, &plain(&fact.how)]);
    }
    draft.line("");
    draft.more(all.len(), MAX_EVIDENCE, "piece");
}

fn thread_id(thread: &Thread) -> String {
    format!("T{}", thread.os_id)
}

fn refs(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
