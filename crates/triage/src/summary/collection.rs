//! The garbage collection that a dump was taken in, for the report.

use crate::paths::Analysis;
use asynctriage_clr::{Background, SegmentKind};
use asynctriage_report::{Collection, CollectionStage};

impl Analysis<'_, '_> {
    /// What is known of it; `None` when none ran.
    pub(crate) fn collection_facts(&self) -> Option<Collection> {
        let seen = &self.graph.heap.shape.collection;
        let stage = match seen.background {
            _ if seen.moving => CollectionStage::Moving,
            _ if seen.marked > 0 => CollectionStage::Marking,
            Some(Background::Marking) => CollectionStage::BackgroundMarking,
            Some(Background::Sweeping) => CollectionStage::BackgroundSweeping,
            None => return None,
        };
        let is_blocking = matches!(stage, CollectionStage::Marking | CollectionStage::Moving);
        let stopper = seen.stopped_by.filter(|_| is_blocking);
        let (threads, _) = self.rt.threads();
        let thread = stopper.and_then(|at| threads.iter().find(|t| t.addr == at));
        let evidence = match stage {
            CollectionStage::Moving => {
                "the collector says that the heap's structures are not valid"
            }
            CollectionStage::Marking => "MethodTable words of objects bear the collector's mark",
            _ => "the collector's state of its background collection",
        };
        Some(Collection {
            stage,
            // later on, what looks like a mark may be left over
            extent: seen
                .oldest_marked
                .filter(|_| stage == CollectionStage::Marking)
                .map(extent),
            thread: thread.map(|t| t.os_id),
            marked: seen.marked,
            evidence: evidence.into(),
        })
    }
}

/// Large and pinned objects are collected with generation 2.
fn extent(kind: SegmentKind) -> String {
    match kind {
        SegmentKind::Small(generation) => format!("generation {generation}"),
        SegmentKind::Large | SegmentKind::Pinned | SegmentKind::Frozen => "generation 2".into(),
    }
}
