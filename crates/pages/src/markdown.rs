//! A report for a ticket: the verdict, the findings, the oldest requests, the first chains folded.

use asynctriage_report::{
    ChainGroup, Finding, Report, Request, bytes, count, duration, headline, printable, several,
};
use std::fmt::Write;

/// Requests and groups that are listed.
const MAX_REQUESTS: usize = 10;
const MAX_CHAINS: usize = 8;
/// Frames of one chain that are listed.
const MAX_FRAMES: usize = 40;
const MAX_GAPS: usize = 5;

/// The report as Markdown of the kind that GitHub and GitLab show.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut out = String::new();
    opening(&mut out, report);
    for finding in &report.findings {
        one(&mut out, finding);
    }
    if report.findings.is_empty() {
        out.push_str("No finding: nothing here matches a known cause of hangs.\n\n");
    }
    requests(&mut out, report);
    chains(&mut out, report);
    gaps(&mut out, report);
    out
}

fn opening(out: &mut String, report: &Report) {
    let (dump, runtime) = (&report.dump, &report.runtime);
    let path = if dump.path.is_empty() {
        "a dump"
    } else {
        &dump.path
    };
    let _ = writeln!(
        out,
        "### {}\n\n**{}**\n",
        plain(path),
        plain(&headline(report))
    );
    let mut about = vec![format!(
        ".NET {} {} {}",
        runtime.version, runtime.os, runtime.arch
    )];
    about.push(format!("{} {}", dump.format, dump.kind));
    about.extend((dump.bytes > 0).then(|| bytes(dump.bytes)));
    about.extend(dump.time.as_ref().map(|t| format!("taken {t}")));
    about.extend(dump.truncated.then(|| "truncated".to_owned()));
    about.extend(dump.fault.clone());
    about.push(format!("{} {}", report.tool.name, report.tool.version));
    let _ = writeln!(out, "{}\n", plain(&about.join(", ")));
}

fn one(out: &mut String, finding: &Finding) {
    let _ = writeln!(
        out,
        "**{} {}, {}: {}**\n",
        plain(&finding.id),
        finding.severity,
        finding.confidence,
        plain(&finding.title)
    );
    if !finding.text.is_empty() {
        let _ = writeln!(out, "{}\n", plain(&finding.text));
    }
    let chains = finding.chains.join(" ");
    let mut notes = Vec::new();
    notes.extend(
        finding
            .next_step
            .as_ref()
            .map(|s| format!("Next: {}", plain(s))),
    );
    notes.extend((!chains.is_empty()).then(|| format!("Chains: {}", plain(&chains))));
    for note in notes {
        let _ = writeln!(out, "- {note}");
    }
    if let Some(page) = &finding.runbook {
        let _ = writeln!(out, "- {}", code(&format!("asynctriage runbook {page}")));
    }
    out.push('\n');
}

fn requests(out: &mut String, report: &Report) {
    let mut all: Vec<&Request> = report.requests.iter().collect();
    let age = |r: &Request| r.age_seconds.unwrap_or(-1.0);
    all.sort_by(|a, b| age(b).total_cmp(&age(a)));
    if all.is_empty() {
        return;
    }
    out.push_str("| request | age | chain | waits for |\n| --- | --- | --- | --- |\n");
    for request in all.iter().take(MAX_REQUESTS) {
        let chain = request.chain.as_deref().unwrap_or_default();
        let group = report.chains.iter().find(|c| c.id == chain);
        let waits = group.map_or(String::new(), |c| c.leaf.text.clone());
        let path = request.route.as_ref().unwrap_or(&request.path);
        let _ = writeln!(
            out,
            "| {} {} | {} | {} | {} |",
            plain(&request.method),
            plain(path),
            request.age_seconds.map(duration).unwrap_or_default(),
            plain(chain),
            plain(&waits)
        );
    }
    let more =
        (all.len().saturating_sub(MAX_REQUESTS) as u64).saturating_add(report.left_out.requests);
    if more > 0 {
        let _ = writeln!(out, "\nand {}", several(more, "more request"));
    }
    out.push('\n');
}

fn chains(out: &mut String, report: &Report) {
    for group in report.chains.iter().take(MAX_CHAINS) {
        chain(out, group);
    }
    let more = report.chains.len().saturating_sub(MAX_CHAINS) as u64;
    if more > 0 {
        let _ = writeln!(out, "and {} of chains\n", several(more, "more group"));
    }
}

fn chain(out: &mut String, group: &ChainGroup) {
    let root = group
        .root
        .as_ref()
        .map(|r| r.text.as_str())
        .unwrap_or_default();
    let root = if root.is_empty() {
        "nothing waits for it"
    } else {
        root
    };
    let _ = writeln!(
        out,
        "<details><summary>{} ×{} {}: {} ({})</summary>\n",
        plain(&group.id),
        count(group.count),
        group.leaf.kind,
        plain(&group.leaf.text),
        plain(root),
    );
    if let Some(verdict) = &group.verdict {
        let _ = writeln!(out, "{}: {}\n", verdict.state, plain(&verdict.why));
    }
    if let Some(waiting) = &group.waiting_seconds {
        let _ = writeln!(
            out,
            "longest wait {} ({})\n",
            duration(waiting.max),
            plain(&waiting.how)
        );
    }
    // indented code: no text of the dump can end it
    for frame in group.frames.iter().take(MAX_FRAMES) {
        let place = frame.place().map(|p| format!("  {p}")).unwrap_or_default();
        let line = frame.line.map(|l| format!(":{l}")).unwrap_or_default();
        let file = frame
            .file
            .as_ref()
            .map(|f| format!("  {f}{line}"))
            .unwrap_or_default();
        let times = if frame.repeat > 1 {
            format!("  ×{}", count(frame.repeat))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "    {}",
            printable(&format!("{}{place}{times}{file}", frame.method))
        );
    }
    let more = group.frames.len().saturating_sub(MAX_FRAMES) as u64;
    if more > 0 {
        let _ = writeln!(out, "    … {}", several(more, "more frame"));
    }
    out.push_str("\n</details>\n\n");
}

fn gaps(out: &mut String, report: &Report) {
    if report.gaps.is_empty() {
        return;
    }
    out.push_str("What the report cannot say:\n\n");
    for gap in report.gaps.iter().take(MAX_GAPS) {
        let _ = writeln!(
            out,
            "- {} {}: {} {}",
            plain(&gap.id),
            plain(&gap.section),
            plain(&gap.why),
            plain(&gap.remedy)
        );
    }
    let more = report.gaps.len().saturating_sub(MAX_GAPS) as u64;
    if more > 0 {
        let _ = writeln!(out, "- and {}", several(more, "more gap"));
    }
}

/// Text that is shown as it is: what Markdown or HTML would act on is escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // nobody is notified because of a name in a dump
            '@' => out.push_str("&#64;"),
            _ => out.push(c),
        }
    }
    out
}

/// Text as code; it holds no backtick.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", printable(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_report_as_markdown() {
        insta::assert_snapshot!(markdown(&samples::deadlock()));
    }

    #[test]
    fn names_are_shown_as_they_are() {
        assert_eq!(
            plain("a|b`c <img> [x](y) *z* @all"),
            "a\\|b\\`c &lt;img&gt; \\[x\\](y) \\*z\\* &#64;all"
        );
        assert_eq!(code("a`b"), "`a'b`");
    }
}
