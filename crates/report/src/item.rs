//! What the ids of a report stand for.

use crate::{
    ChainGroup, Dump, Evidence, Finding, Gap, Heap, Member, Pool, Report, Request, SCHEMA_VERSION,
    Thread, WaitNode,
};
use serde::Serialize;

/// A part of a report that has an id.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", content = "value", rename_all = "kebab-case")]
pub enum Item<'r> {
    /// `F1`.
    Finding(&'r Finding),
    /// `E1`, with the id of its finding.
    Evidence {
        /// The finding.
        finding: &'r str,
        /// The fact.
        #[serde(flatten)]
        evidence: &'r Evidence,
    },
    /// `C1`.
    Chains(&'r ChainGroup),
    /// `C1.1`, with the group.
    Chain {
        /// The one chain.
        member: &'r Member,
        /// What all chains of the group have in common.
        group: &'r ChainGroup,
    },
    /// `G1`.
    Gap(&'r Gap),
    /// `R1`.
    Request(&'r Request),
    /// `T` and the id of the operating system.
    Thread(&'r Thread),
    /// `W1`: a node of the wait-for graph.
    Wait(&'r WaitNode),
    /// `D1`: the dump.
    Dump(&'r Dump),
    /// `P1`: the thread pool.
    Pool(&'r Pool),
    /// `H1`: the heap.
    Heap(&'r Heap),
}

/// The answer to an id: what it stands for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemReport<'r> {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: String,
    /// The id.
    pub id: &'r str,
    /// What it stands for.
    #[serde(flatten)]
    pub item: Item<'r>,
}

impl<'r> ItemReport<'r> {
    /// What an id of a report stands for.
    #[must_use]
    pub fn of(report: &'r Report, id: &'r str) -> Option<Self> {
        Some(Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            id,
            item: find(report, id)?,
        })
    }
}

/// What an id of a report stands for.
#[must_use]
pub fn find<'r>(report: &'r Report, id: &str) -> Option<Item<'r>> {
    match id {
        "D1" => return Some(Item::Dump(&report.dump)),
        "P1" => return report.pool.as_ref().map(Item::Pool),
        "H1" => return Some(Item::Heap(&report.heap)),
        _ => {}
    }
    let mut all = report.findings.iter();
    match id.chars().next()? {
        'F' => all.find(|f| f.id == id).map(Item::Finding),
        'E' => all.find_map(|f| {
            let evidence = f.evidence.iter().find(|e| e.id == id)?;
            Some(Item::Evidence {
                finding: &f.id,
                evidence,
            })
        }),
        'C' => chain(report, id),
        'G' => report.gaps.iter().find(|g| g.id == id).map(Item::Gap),
        'R' => report
            .requests
            .iter()
            .find(|r| r.id == id)
            .map(Item::Request),
        'T' => {
            let os_id: u64 = id.get(1..)?.parse().ok()?;
            report
                .threads
                .iter()
                .find(|t| t.os_id == os_id)
                .map(Item::Thread)
        }
        'W' => report
            .waits
            .nodes
            .iter()
            .find(|n| n.id == id)
            .map(Item::Wait),
        _ => None,
    }
}

fn chain<'r>(report: &'r Report, id: &str) -> Option<Item<'r>> {
    let name = id.split_once('.').map_or(id, |(group, _)| group);
    let group = report.chains.iter().find(|c| c.id == name)?;
    if name == id {
        return Some(Item::Chains(group));
    }
    let member = group.members.iter().find(|m| m.id == id)?;
    Some(Item::Chain { member, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_to_what_they_name() {
        let report = Report {
            chains: vec![ChainGroup {
                id: "C1".into(),
                members: vec![Member {
                    id: "C1.1".into(),
                    ..Member::default()
                }],
                ..ChainGroup::default()
            }],
            threads: vec![Thread {
                os_id: 12,
                ..Thread::default()
            }],
            ..Report::default()
        };
        assert!(matches!(find(&report, "C1"), Some(Item::Chains(_))));
        assert!(matches!(find(&report, "C1.1"), Some(Item::Chain { .. })));
        assert!(matches!(find(&report, "T12"), Some(Item::Thread(_))));
        assert!(matches!(find(&report, "D1"), Some(Item::Dump(_))));
        for none in ["", "C2", "C1.2", "C1.1.1", "T13", "P1", "F1", "X1"] {
            assert!(find(&report, none).is_none(), "{none}");
        }
    }
}
