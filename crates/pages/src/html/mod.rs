//! A report as one page for a browser, with nothing to fetch.
//!
//! What matters first stands in the page as it is: the verdict, the findings, the picture of who waits for whom. Lists that
//! can be long are drawn by the page's script from the report itself, which the page holds once as JSON.

mod graph;

use asynctriage_report::{
    Evidence, Finding, Gap, Pool, Report, bytes, count, headline, printable, several,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
///
/// # Errors
/// Those of the JSON serialiser, which has no reason for any.
pub fn html(report: &Report) -> serde_json::Result<String> {
    let data = data(report)?;
    let title = title(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="referrer" content="no-referrer";
                title { (title) ": asynctriage" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#findings" { "to the findings" }
                (head(report, &title))
                (navigation(report))
                main {
                    (findings(report))
                    (waits(report))
                    (drawn(report))
                    @if let Some(pool) = &report.pool { (pool_section(pool)) }
                    (heap(report))
                    (gaps(report))
                }
                footer { p { (origin(report)) } }
                script type="application/json" id="report" { (PreEscaped(data)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

/// Only this page's own style and script, by their hashes; nothing is loaded, sent or framed.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

/// The report as JSON that no element of the page can end. Rejected objects and layouts are for other tools.
fn data(report: &Report) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(report)?;
    if let Some(fields) = value.as_object_mut() {
        for left in [
            "rejected", "waits", "findings", "gaps", "timings", "runtime",
        ] {
            fields.remove(left);
        }
    }
    clean(&mut value);
    Ok(serde_json::to_string(&value)?.replace('<', "\\u003c"))
}

/// Escapes what would change how a text reads, such as marks that turn its direction.
fn clean(value: &mut Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => *text = printable(text),
            Value::Array(all) => open.extend(all.iter_mut()),
            Value::Object(fields) => open.extend(fields.values_mut()),
            _ => {}
        }
    }
}

fn title(report: &Report) -> String {
    match report.dump.path.as_str() {
        "" => "a dump".to_owned(),
        path => printable(path),
    }
}

fn head(report: &Report, title: &str) -> Markup {
    let (dump, runtime) = (&report.dump, &report.runtime);
    let mut about = vec![format!("{} {}", dump.format, dump.kind)];
    about.extend((dump.bytes > 0).then(|| bytes(dump.bytes)));
    about.extend(dump.time.as_ref().map(|t| format!("taken {t}")));
    about.push(format!(
        ".NET {} {} {} {}",
        runtime.version, runtime.os, runtime.arch, runtime.flavor
    ));
    about.extend(dump.process_id.map(|id| format!("process {id}")));
    html! {
        header.top {
            h1 { (title) }
            p.dim { (printable(&about.join(", "))) }
            @if let Some(command) = &dump.command_line { p.dim { code { (printable(command)) } } }
            @if dump.truncated { p { span.badge.critical { "truncated" } " The file ends before its own tables say." } }
            @if let Some(fault) = &dump.fault { p { span.badge.critical { "damaged" } " " (printable(fault)) ": copy it again." } }
            p.verdict { (printable(&headline(report))) }
            noscript { p { "The lists and pictures below the findings are drawn by a script of this page, and scripts are off." } }
        }
    }
}

fn navigation(report: &Report) -> Markup {
    html! {
        nav aria-label="sections" {
            div {
                a href="#findings" { "Findings" }
                a href="#waits" { "Who waits for whom" }
                @if !report.chains.is_empty() { a href="#tree" { "Tree" } }
                @if !report.requests.is_empty() { a href="#requests" { "Requests" } }
                a href="#chains" { "Chains" }
                a href="#threads" { "Threads" }
                a href="#age" { "Ages" }
                @if report.pool.is_some() { a href="#pool" { "Pool" } }
                @if !report.gaps.is_empty() { a href="#gaps" { "Gaps" } }
                input type="search" id="search" placeholder="search methods, waits, requests ( / )" aria-label="search";
            }
        }
    }
}

fn findings(report: &Report) -> Markup {
    html! {
        section.findings id="findings" {
            h2 { "Findings" small { "the worst first" } }
            @for finding in &report.findings { (one(finding)) }
            @if report.findings.is_empty() {
                p.card { "No finding: nothing here matches a known cause of hangs. A second dump a minute later shows what moves." }
            }
        }
    }
}

fn one(finding: &Finding) -> Markup {
    html! {
        article class=(format!("card finding {}", finding.severity)) id=(finding.id) {
            h3 {
                a href=(format!("#{}", finding.id)) { (finding.id) } " " (printable(&finding.title)) " "
                span class=(format!("badge {}", finding.severity)) { (finding.severity) } " "
                span class=(format!("badge {}", finding.confidence)) { (finding.confidence) }
            }
            p { (printable(&finding.text)) }
            @if let Some(step) = &finding.next_step { p.next { (printable(step)) } }
            p.dim {
                (finding.kind)
                @if let Some(page) = &finding.runbook { ", " code { "asynctriage runbook " (page) } }
                @for chain in &finding.chains { " " a href=(format!("#{chain}")) { (chain) } }
            }
            @if !finding.evidence.is_empty() { (evidence(&finding.evidence)) }
        }
    }
}

fn evidence(facts: &[Evidence]) -> Markup {
    html! {
        details.more {
            summary { (several(facts.len() as u64, "piece")) " of evidence" }
            ul.facts {
                @for fact in facts {
                    li id=[(!fact.id.is_empty()).then_some(&fact.id)] {
                        @if !fact.id.is_empty() { a href=(format!("#{}", fact.id)) { (fact.id) } " " }
                        (printable(&fact.what)) " "
                        @if let Some(address) = fact.address { code { (address) } " " }
                        span.dim { (printable(&fact.how)) }
                    }
                }
            }
        }
    }
}

fn waits(report: &Report) -> Markup {
    let cycles = report.waits.cycles.len() as u64;
    html! {
        section id="waits" {
            h2 {
                "Who waits for whom"
                small { "arrows lead from who waits to what is waited for, and on to who has or completes it; dashed is possible only" }
            }
            @if cycles > 0 { p { span.badge.critical { (several(cycles, "deadlock")) } " drawn in red" } }
            (graph::section(&report.waits))
        }
    }
}

/// The places that the script fills.
fn drawn(report: &Report) -> Markup {
    html! {
        section id="tree" hidden[report.chains.is_empty()] {
            h2 { "All chains merged" small { "from what they are for, inwards to what they wait for; the width is the number of chains" } }
            div.tools {
                span.legend { i.swatch.root {} "what it is for" }
                span.legend { i.swatch.own {} "the program and its libraries" }
                span.legend { i.swatch.fw {} ".NET" }
                span.legend { i.swatch.leaf {} "what it waits for" }
                label { input type="checkbox" id="idle"; " without chains that wait for work, as they should" }
                button id="whole" { "zoom out" }
                span.dim { "click or Enter zooms, arrows move, Esc goes out" }
            }
            div.card { div id="icicle" role="group" aria-label="all chains as one tree" {} p id="detail" aria-live="polite" {} }
        }
        @if !report.requests.is_empty() {
            section id="requests" {
                h2 { "Requests" small id="request-count" {} }
                div.tools { input type="search" id="request-filter" placeholder="filter requests" aria-label="filter requests"; }
                div.card.scroll { table { thead id="request-head" {} tbody id="request-rows" {} } button id="request-more" hidden {} }
                @if report.left_out.requests > 0 { p.dim { (count(report.left_out.requests)) " more are not in this report." } }
            }
        }
        section id="chains" {
            h2 { "Chains" small id="chain-count" {} }
            div id="chain-list" {}
            @if report.left_out.groups > 0 {
                p.dim { (several(report.left_out.groups, "group")) " of " (several(report.left_out.chains, "chain")) " are not in this report." }
            }
        }
        section id="threads" {
            h2 { "Threads" small id="thread-count" {} }
            div id="thread-list" {}
        }
        section id="age" {
            h2 { "Ages" small { "for how long chains and requests have waited; from the shortest to the longest, the dot is the median; what tells it stands on each" } }
            div.card.scroll id="ages" {}
        }
    }
}

fn pool_section(pool: &Pool) -> Markup {
    let figures = [
        ("threads", pool.workers),
        ("made without delay", pool.min),
        ("at most", pool.max),
        ("wanted now", pool.goal),
        ("idle", pool.idle),
        ("blocked on tasks", pool.blocked),
    ];
    let queued = &pool.queued;
    html! {
        section id="pool" {
            h2 { "Thread pool" }
            div.card {
                dl.plain {
                    @for (name, figure) in figures {
                        @if let Some(figure) = figure { dt { (name) } dd { (count(figure)) } }
                    }
                    dt { "queued" }
                    dd {
                        (several(queued.total(), "work item"))
                        @if queued.total() > 0 {
                            ": " (count(queued.global)) " for all, " (count(queued.high_priority)) " first, " (count(queued.local)) " of single threads"
                        }
                    }
                }
                @if !queued.by_kind.is_empty() {
                    div.scroll { table {
                        thead { tr { th.num { "queued" } th { "what" } } }
                        tbody { @for kind in &queued.by_kind { tr { td.num { (count(kind.count)) } td { code { (printable(&kind.kind)) } } } } }
                    } }
                }
                @if queued.left_out > 0 { p.dim { (count(queued.left_out)) " more were counted only." } }
            }
        }
    }
}

fn heap(report: &Report) -> Markup {
    let heap = &report.heap;
    html! {
        section id="heap" {
            h2 { "Heap" }
            div.card {
                dl.plain {
                    @if let Some(gc) = &heap.gc { dt { "garbage collector" } dd { (printable(gc)) } }
                    dt { "objects" } dd { (count(heap.objects)) " of " (bytes(heap.bytes)) }
                    dt { "tasks" } dd { (count(heap.tasks)) }
                    dt { "state machines" } dd { (count(heap.state_machines)) }
                    @if heap.free_bytes > 0 { dt { "free between objects" } dd { (bytes(heap.free_bytes)) } }
                    @if heap.invalid_objects > 0 { dt { "unreadable places" } dd { (count(heap.invalid_objects)) " of " (bytes(heap.skipped_bytes)) } }
                    @if let Some(running) = &heap.collection {
                        dt { "a collection ran" } dd { (running.stage) ": " (printable(&running.evidence)) }
                    }
                    @for (reason, n) in &report.rejected_by_reason {
                        dt { "not shown" } dd { (count(*n)) " " (printable(reason)) }
                    }
                }
            }
        }
    }
}

fn gaps(report: &Report) -> Markup {
    html! {
        @if !report.gaps.is_empty() {
            section id="gaps" {
                h2 { "Gaps" small { "what this report cannot say" } }
                @for gap in &report.gaps { (one_gap(gap)) }
            }
        }
    }
}

fn one_gap(gap: &Gap) -> Markup {
    html! {
        div.card id=(gap.id) {
            a href=(format!("#{}", gap.id)) { (gap.id) } " " b { (printable(&gap.section)) } ": " (printable(&gap.why)) " "
            span.dim { (printable(&gap.place)) }
            @if !gap.remedy.is_empty() { p.next { (printable(&gap.remedy)) } }
        }
    }
}

fn origin(report: &Report) -> String {
    let tool = &report.tool;
    let hash = report.dump.sha256.as_ref();
    let hash = hash
        .map(|h| format!(", dump sha256 {h}"))
        .unwrap_or_default();
    printable(&format!(
        "{} {}, schema {}{hash}. This page fetches and sends nothing.",
        tool.name, tool.version, report.schema_version
    ))
}

#[cfg(test)]
mod tests;
