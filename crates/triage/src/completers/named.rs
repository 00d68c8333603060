//! What groups of chains tell of who completes what they wait for.

use super::{Candidate, MAX_NAMED};
use crate::holders::Who;
use asynctriage_report::{Completer, CompleterKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Completers of a group's chains, equal ones counted together.
#[derive(Default)]
pub(super) struct Named {
    by_text: FxHashMap<(CompleterKind, String), Completer>,
    /// The threads and methods behind each of them.
    who: FxHashMap<(CompleterKind, String), FxHashSet<Who>>,
}

impl Named {
    pub(super) fn add(&mut self, candidates: &[&Candidate], chains: u64) {
        let mut seen = FxHashSet::default();
        for candidate in candidates {
            let completer = &candidate.completer;
            let key = (completer.kind, completer.text.clone());
            self.who
                .entry(key.clone())
                .or_default()
                .extend(candidate.who);
            // several of one method count these chains once
            let chains = if seen.insert(key.clone()) { chains } else { 0 };
            let known = self.by_text.entry(key).or_insert_with(|| Completer {
                count: 0,
                ..completer.clone()
            });
            known.count = known.count.saturating_add(chains);
            known.confidence = known.confidence.max(completer.confidence);
        }
    }

    /// The surest first, then those of most chains. What only may complete it is named where nothing surer is known.
    pub(super) fn ranked(self) -> Vec<Completer> {
        let who = self.who;
        let all = self.by_text.into_iter().map(|(key, completer)| Completer {
            alike: who.get(&key).map_or(0, |all| all.len() as u64),
            ..completer
        });
        let mut all: Vec<Completer> = all.collect();
        all.sort_by(|a, b| {
            let key = |c: &Completer| (Reverse(c.confidence), Reverse(c.count), c.kind);
            key(a).cmp(&key(b)).then_with(|| a.text.cmp(&b.text))
        });
        all.truncate(MAX_NAMED);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_report::Confidence;

    #[test]
    fn chains_are_counted_once_for_completers_of_one_name() {
        let candidate = |text: &str, confidence, thread| Candidate {
            who: Some(Who::Thread(thread)),
            completer: Completer {
                kind: CompleterKind::Chain,
                text: text.into(),
                confidence,
                ..Completer::default()
            },
        };
        let all = [
            candidate("Use, which is inside", Confidence::Possible, 1),
            candidate("Use, which is inside", Confidence::Likely, 2),
            candidate("Other", Confidence::Possible, 3),
        ];
        let two: Vec<&Candidate> = all.iter().collect();
        let mut named = Named::default();
        named.add(&two, 8);
        named.add(&two, 2);
        let counts: Vec<(String, u64, u64)> = named
            .ranked()
            .into_iter()
            .map(|c| (c.text, c.count, c.alike))
            .collect();
        let expected = [
            ("Use, which is inside".to_owned(), 10, 2),
            ("Other".to_owned(), 10, 1),
        ];
        assert_eq!(counts, expected);
    }
}
