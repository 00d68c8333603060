//! What is wrong, the worst first.

use super::page::Page;
use super::style::Role;
use crate::{Evidence, Finding, Report, Severity};

/// Chains that a finding names; the JSON has all.
const MAX_CHAINS: usize = 12;

pub(super) fn section(page: &mut Page<'_>, report: &Report) {
    if report.findings.is_empty() {
        if !report.chains.is_empty() {
            let text = "No finding: nothing here matches a known cause of hangs. `asynctriage runbook hang` tells how to go on, `asynctriage tree` shows what waits for what; a second dump a minute later shows what moves.";
            let spans = [page.span(Role::Dim, text)];
            page.line("", "", &spans);
        }
        return;
    }
    page.heading(
        "Findings",
        "the worst first; `asynctriage runbook KIND` explains each",
    );
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    for finding in findings {
        one(page, finding);
    }
}

pub(super) fn one(page: &mut Page<'_>, finding: &Finding) {
    let role = match finding.severity {
        Severity::Critical => Role::Critical,
        Severity::Warning => Role::Warning,
        Severity::Info => Role::Good,
    };
    let see = match finding.chains.as_slice() {
        [] => String::new(),
        chains => {
            let shown = chains.get(..MAX_CHAINS).unwrap_or(chains);
            let more = match chains.len().saturating_sub(shown.len()) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            format!("  see {}{more}", shown.join(" "))
        }
    };
    let spans = [
        page.span(role, format!("{:<8}", finding.severity)),
        page.span(Role::Strong, format!("  {}", finding.title)),
        page.span(
            Role::Dim,
            format!("  {}, {}{see}", finding.kind, finding.confidence),
        ),
    ];
    page.line("", "          ", &spans);
    let indent = "          ";
    if !finding.text.is_empty() {
        let spans = [page.span(Role::Plain, &finding.text)];
        page.line(indent, indent, &spans);
    }
    if let Some(step) = &finding.next_step {
        let spans = [page.span(Role::Strong, format!("→ {step}"))];
        page.line(indent, "            ", &spans);
    }
    // the page of most findings is named as their kind
    let page_of = finding.runbook.as_deref();
    if let Some(runbook) = page_of.filter(|r| *r != finding.kind.as_str()) {
        let spans = [page.span(Role::Dim, format!("asynctriage runbook {runbook}"))];
        page.line(indent, indent, &spans);
    }
    if page.verbose() {
        for evidence in &finding.evidence {
            fact(page, evidence);
        }
    }
}

pub(super) fn fact(page: &mut Page<'_>, evidence: &Evidence) {
    let address = evidence
        .address
        .map(|a| format!("  {a}"))
        .unwrap_or_default();
    let how = if evidence.how.is_empty() {
        String::new()
    } else {
        format!("  {}", evidence.how)
    };
    let spans = [
        page.span(Role::Plain, &evidence.what),
        page.span(Role::Dim, format!("{address}{how}")),
    ];
    page.line("          · ", "            ", &spans);
}
