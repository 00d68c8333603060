//! How sure anything can be at most, for what the whole dump is like.

use super::Analysis;
use asynctriage_dump::StreamEnd;
use asynctriage_report::Confidence;

impl Analysis<'_, '_> {
    /// The ceiling of a dump and the reason, the lowest one first.
    pub(crate) fn ceilings(&self) -> Vec<(Confidence, String)> {
        let mut all = Vec::new();
        if self.graph.heap.shape.collection.moving {
            all.push((
                Confidence::Possible,
                "a garbage collection was moving objects: what is read of them may be half moved"
                    .into(),
            ));
        }
        if !self.rt.cut_gaps().is_empty() {
            let why = "the analysis was ended before everything was looked at: what is missing could explain it otherwise";
            all.push((Confidence::Possible, why.into()));
        }
        let packed = self.rt.dump().compression;
        if let Some(packed) = packed.filter(|p| p.end == StreamEnd::WrongChecksum) {
            let why = packed.fault().unwrap_or_default();
            all.push((Confidence::Likely, why.to_owned()));
        }
        if let Some(from) = self.rt.foreign_core_names() {
            all.push((
                Confidence::Likely,
                format!("the names that this rests on are those of another build ({from})"),
            ));
        }
        all
    }

    /// How sure it is what a chain waits for, where the whole dump leaves doubts; `None` where it leaves none.
    pub(crate) fn chain_confidence(&self) -> Option<Confidence> {
        self.ceilings().first().map(|(ceiling, _)| *ceiling)
    }
}
