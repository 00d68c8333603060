//! What groups of chains wait for, as edges.

use super::*;

impl Builder<'_, '_, '_, '_> {
    /// What the chains of a group wait for, and who completes that.
    pub(super) fn group(&mut self, index: usize, group: &ChainGroup) {
        let Some(from) = self.chain(group) else {
            self.graph.left_out = self.graph.left_out.saturating_add(1);
            return;
        };
        let sure = group.leaf.confidence.unwrap_or(Confidence::Certain);
        let how = group.leaf.evidence.clone().unwrap_or_default();
        let targets = self.targets(index, group, from);
        for (to, count) in &targets {
            let text = match group.leaf.kind {
                LeafKind::TaskRunning | LeafKind::ThreadBlocked => "runs on",
                LeafKind::HttpConnectionPool | LeafKind::DatabaseConnectionPool => {
                    "waits for a free connection to"
                }
                LeafKind::TaskQueued | LeafKind::Ready | LeafKind::SyncContextPost => {
                    "waits to run in"
                }
                _ => "waits for",
            };
            let edge = WaitEdge {
                count: *count,
                ..plain(text, sure, &how)
            };
            self.edge(from, *to, edge);
        }
        // of several things the report does not say which one a completer completes
        if let [(only, _)] = targets.as_slice() {
            for completer in group.leaf.completers.iter().take(MAX_COMPLETERS) {
                self.completer(*only, completer);
            }
        }
    }

    fn awaited(&self, index: usize) -> Option<&Awaited> {
        self.facts.groups.tallies.get(index).map(|t| &t.awaited)
    }

    fn targets(&mut self, index: usize, group: &ChainGroup, from: usize) -> Vec<(usize, u64)> {
        let leaf = &group.leaf;
        match leaf.kind {
            LeafKind::Cycle => return vec![(from, group.count)],
            LeafKind::TaskRunning | LeafKind::ThreadBlocked => {
                let runner = match self.awaited(index) {
                    Some(Awaited::Running { runner, .. }) => runner.as_ref(),
                    _ => None,
                };
                let os_id = runner.filter(|_| group.count == 1).map(|r| r.os_id);
                if let Some(at) = os_id.and_then(|id| self.thread(u64::from(id))) {
                    return vec![(at, group.count)];
                }
            }
            _ => {}
        }
        let mut shares: Vec<(Dependency, u64)> = Vec::new();
        if let Some(tally) = self.facts.groups.tallies.get(index) {
            shares.extend(tally.shares.iter().map(|(d, s)| (d.clone(), s.chains)));
        }
        shares.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut out: Vec<(usize, u64)> = Vec::new();
        let mut rest = group.count;
        for (dependency, count) in shares.into_iter().take(MAX_OBJECTS) {
            if let Some(at) = self.dependency(index, group, &dependency) {
                out.push((at, count));
                rest = rest.saturating_sub(count);
            }
        }
        if rest > 0 {
            let more = match (out.is_empty(), group.count, leaf.kind) {
                (false, ..) => "others: ",
                (true, 2.., LeafKind::TaskRunning | LeafKind::ThreadBlocked) => "several; one: ",
                _ => "",
            };
            let text = format!("{more}{}", leaf.text);
            let node = self.named(leaf_kind(leaf.kind), &text, &group.id);
            out.extend(node.map(|at| (at, rest)));
        }
        out
    }

    /// What several groups may wait for is one node.
    fn dependency(
        &mut self,
        index: usize,
        group: &ChainGroup,
        dependency: &Dependency,
    ) -> Option<usize> {
        match dependency {
            Dependency::Http(server) | Dependency::Service(server) => {
                self.named(WaitNodeKind::Remote, server, "")
            }
            Dependency::Object(at) => {
                let is_own = match self.awaited(index) {
                    Some(Awaited::Semaphore { at: own, .. }) => own == at,
                    Some(Awaited::Channel { at: own, .. }) => *own == Some(*at),
                    _ => false,
                };
                let kind = leaf_kind(group.leaf.kind);
                let shared = matches!(
                    kind,
                    WaitNodeKind::Semaphore | WaitNodeKind::Lock | WaitNodeKind::Channel
                );
                if !shared {
                    return None;
                }
                let text = if is_own {
                    group.leaf.text.clone()
                } else {
                    format!("{} {at}", group.leaf.kind)
                };
                self.object(kind, *at, &text)
            }
            Dependency::Place(_) => None,
        }
    }

    fn completer(&mut self, from: usize, completer: &Completer) {
        let to = match (&completer.chain, completer.thread) {
            (Some(chain), _) => self.chain_by_id(chain),
            (None, Some(os_id)) => self.thread(os_id),
            (None, None) => {
                let kind = match completer.kind {
                    CompleterKind::Timer => WaitNodeKind::Timer,
                    CompleterKind::WorkItem => WaitNodeKind::Queue,
                    _ => WaitNodeKind::Completer,
                };
                self.named(kind, &completer.text, "")
            }
        };
        let Some(to) = to.filter(|to| *to != from) else {
            return;
        };
        let text = match completer.confidence {
            Confidence::Possible => "may be completed by",
            _ => "completed by",
        };
        let edge = WaitEdge {
            count: completer.count,
            ..plain(text, completer.confidence, &completer.evidence)
        };
        self.edge(from, to, edge);
    }
}
