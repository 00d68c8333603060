//! How sure findings can be at most, for what the whole dump is like.

use super::fact;
use crate::paths::Analysis;
use asynctriage_clr::{Gap, GapKind};
use asynctriage_report::{Finding, FindingKind};

/// What is told from single words of many objects: while objects are moved, leftovers of others look the same.
const BY_SINGLE_WORDS: [FindingKind; 5] = [
    FindingKind::FaultedTasks,
    FindingKind::CancelledTasks,
    FindingKind::CompletedNotCollected,
    FindingKind::RetainedByStateMachine,
    FindingKind::NeverCompletes,
];

/// Takes out what the dump cannot show, lowers what is said to be surer than it allows, and says why. What was taken out
/// is a gap.
pub(super) fn lower(analysis: &Analysis<'_, '_>, findings: &mut Vec<Finding>) -> Option<Gap> {
    let before = findings.len();
    if analysis.graph.heap.shape.collection.moving {
        findings.retain(|f| !BY_SINGLE_WORDS.contains(&f.kind));
    }
    let removed = before > findings.len();
    if !analysis.rt.budget().cuts().is_empty() {
        // who completes it may be among what was not looked at; the gap of that says so
        findings.retain(|f| f.kind != FindingKind::NeverCompletes);
    }
    let ceilings = analysis.ceilings();
    for finding in findings {
        for (ceiling, why) in &ceilings {
            if finding.confidence > *ceiling {
                finding.confidence = *ceiling;
                let how = "lowers the confidence of every finding of this dump";
                finding.evidence.insert(0, fact(why.clone(), None, how));
            }
        }
    }
    removed.then(unsaid)
}

/// What is not said of a dump in which objects were moved.
fn unsaid() -> Gap {
    Gap {
        kind: GapKind::Unsaid,
        place: "objects that a garbage collection was moving".into(),
        why: "nothing is said of tasks that have failed, were cancelled or were never looked at, of what suspended methods keep alive, and of what nothing can complete: leftovers of objects look the same".into(),
        remedy: "take another dump a few seconds later".into(),
    }
}
