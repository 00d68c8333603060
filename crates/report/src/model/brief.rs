//! The short form of a report, for bots and agents that read only a few thousand bytes.

use super::{Confidence, FindingKind, LeafKind, Report, RootKind, Severity, VerdictState, is_zero};
use crate::text::{headline, printable};
use serde::{Deserialize, Serialize};

/// Bytes of the JSON at most.
const MAX_BYTES: usize = 8_000;
/// Letters of one text at most.
const MAX_LETTERS: usize = 300;
/// Gaps that are listed.
const MAX_GAPS: usize = 5;

/// What a report says, in less than 8 KB of JSON: the verdict, the findings, the groups of chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Brief {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer.
    pub schema_version: String,
    /// The dump, as the user gave it.
    #[serde(default)]
    pub dump: String,
    /// Version and platform of the runtime.
    #[serde(default)]
    pub runtime: String,
    /// What there is, in one sentence.
    #[serde(default)]
    pub headline: String,
    /// What is wrong, the worst first.
    #[serde(default)]
    pub findings: Vec<BriefFinding>,
    /// Findings that had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_left_out: u64,
    /// The groups of chains, the largest first.
    #[serde(default)]
    pub chains: Vec<BriefChain>,
    /// Groups that had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chains_left_out: u64,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// Gaps that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gaps_left_out: u64,
}

/// A finding in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BriefFinding {
    /// Its id in the whole report.
    pub id: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    #[serde(default)]
    pub severity: Severity,
    /// How sure it is.
    #[serde(default)]
    pub confidence: Confidence,
    /// One line.
    #[serde(default)]
    pub title: String,
    /// The groups of chains it explains, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<String>,
    /// What to do about it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
}

/// A group of chains in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BriefChain {
    /// Its id in the whole report.
    pub id: String,
    /// The same in every dump.
    pub signature: String,
    /// How many chains there are.
    pub count: u64,
    /// The innermost method of the program, with its await and line.
    pub method: String,
    /// What kind of wait it is.
    pub leaf: LeafKind,
    /// What they wait for.
    pub waits_for: String,
    /// What kind of thing they belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<RootKind>,
    /// What that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_text: Option<String>,
    /// For how long the longest has waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_seconds: Option<f64>,
    /// Whether they hang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictState>,
}

/// The short form of a report: what has no room is counted. Findings weigh more than groups, groups more than gaps.
#[must_use]
pub fn brief(report: &Report) -> Brief {
    let runtime = &report.runtime;
    let mut out = Brief {
        schema_version: report.schema_version.clone(),
        dump: cut(&report.dump.path),
        runtime: cut(&format!(
            ".NET {} {} {}",
            runtime.version, runtime.os, runtime.arch
        )),
        headline: cut(&headline(report)),
        findings: Vec::new(),
        findings_left_out: report.findings.len() as u64,
        chains: Vec::new(),
        chains_left_out: report.chains.len() as u64,
        gaps: Vec::new(),
        gaps_left_out: report.gaps.len() as u64,
    };
    let mut room = MAX_BYTES.saturating_sub(size(&out));
    for row in findings(report) {
        if !takes(&mut room, &row) {
            break;
        }
        out.findings.push(row);
        out.findings_left_out = out.findings_left_out.saturating_sub(1);
    }
    for row in chains(report) {
        if !takes(&mut room, &row) {
            break;
        }
        out.chains.push(row);
        out.chains_left_out = out.chains_left_out.saturating_sub(1);
    }
    for gap in report.gaps.iter().take(MAX_GAPS) {
        let row = cut(&format!("{}: {}: {}", gap.id, gap.section, gap.why));
        if !takes(&mut room, &row) {
            break;
        }
        out.gaps.push(row);
        out.gaps_left_out = out.gaps_left_out.saturating_sub(1);
    }
    out
}

/// Whether there is room for a row; if so, it is taken.
fn takes<T: Serialize>(room: &mut usize, row: &T) -> bool {
    // a comma, and the indentation of its lines, which are as many as its fields
    let wanted = size(row).saturating_add(16);
    let fits = wanted <= *room;
    if fits {
        *room = room.saturating_sub(wanted);
    }
    fits
}

/// Bytes as indented JSON inside of a list.
fn size<T: Serialize>(value: &T) -> usize {
    serde_json::to_string_pretty(value).map_or(usize::MAX, |text| {
        text.len()
            .saturating_add(text.lines().count().saturating_mul(4))
    })
}

fn findings(report: &Report) -> impl Iterator<Item = BriefFinding> {
    report.findings.iter().map(|f| BriefFinding {
        id: cut(&f.id),
        kind: f.kind,
        severity: f.severity,
        confidence: f.confidence,
        title: cut(&f.title),
        chains: f.chains.iter().take(10).map(|c| cut(c)).collect(),
        next_step: f.next_step.as_deref().map(cut),
    })
}

fn chains(report: &Report) -> impl Iterator<Item = BriefChain> {
    report.chains.iter().map(|c| {
        let own = c.frames.iter().find(|f| !f.is_framework);
        let frame = own.or_else(|| c.frames.first());
        let method = frame.map_or_else(String::new, |f| {
            let line = f.line.map(|line| format!(":{line}"));
            let file = f.file.as_deref().map(|file| format!(" {file}"));
            let place = f.place().map(|p| format!(" {p}"));
            [Some(f.method.clone()), place, file, line]
                .into_iter()
                .flatten()
                .collect()
        });
        BriefChain {
            id: cut(&c.id),
            signature: cut(&c.signature),
            count: c.count,
            method: cut(&method),
            leaf: c.leaf.kind,
            waits_for: cut(&c.leaf.text),
            root: c.root.as_ref().map(|r| r.kind),
            root_text: c
                .root
                .as_ref()
                .map(|r| cut(&r.text))
                .filter(|t| !t.is_empty()),
            longest_seconds: c.waiting_seconds.as_ref().map(|w| w.max),
            verdict: c.verdict.as_ref().map(|v| v.state),
        }
    })
}

fn cut(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChainGroup, Finding, Gap, json};

    #[test]
    fn whatever_the_report_holds_it_stays_short_and_counts_what_it_leaves_out() {
        let text = "\u{202e}é<".repeat(500);
        let mut finding = Finding::new(FindingKind::Idle, Severity::Info, text.clone());
        finding.chains = vec![text.clone(); 50];
        let report = Report {
            findings: vec![finding; 300],
            chains: vec![
                ChainGroup {
                    id: "C1".into(),
                    ..ChainGroup::default()
                };
                3_000
            ],
            gaps: vec![
                Gap {
                    why: text,
                    ..Gap::default()
                };
                9
            ],
            ..Report::default()
        };
        let brief = brief(&report);
        assert!(json(&brief).unwrap().len() < 8_192);
        let findings = brief.findings.len() as u64 + brief.findings_left_out;
        let chains = brief.chains.len() as u64 + brief.chains_left_out;
        let gaps = brief.gaps.len() as u64 + brief.gaps_left_out;
        assert_eq!((findings, chains, gaps), (300, 3_000, 9));
    }

    #[test]
    fn a_small_report_loses_nothing() {
        let report = Report {
            chains: vec![ChainGroup::default(); 3],
            ..Report::default()
        };
        let brief = brief(&report);
        assert_eq!((brief.chains.len(), brief.chains_left_out), (3, 0));
    }
}
