//! The steps of a story, each behind the one that it hangs on.

use super::ends::of_leaf;
use super::{Item, Scene};
use crate::chains::Dependency;
use crate::facts::Awaited;
use crate::waitfor::{Edge, Node};
use asynctriage_report::{
    ChainGroup, Completer, CompleterKind, Confidence, FindingKind, Frame, LeafKind, Thread, WhyEnd,
    WhyKind, WhyRelation, WhyStep,
};
use rustc_hash::FxHashMap;

/// Steps of one story.
const MAX_STEPS: usize = 400;
/// Steps that hang on one.
const MAX_BRANCHES: usize = 8;
/// Frames of a chain or thread that are told.
const MAX_FRAMES: usize = 8;
/// Objects of one group's leaves that are asked who holds them.
const MAX_LEAVES: usize = 4;
/// Threads of the pool that are told when all of them block.
const MAX_POOL: usize = 3;

/// A step that has yet to be told.
struct Next {
    /// The step that it hangs on, by its place.
    parent: Option<usize>,
    relation: WhyRelation,
    confidence: Option<Confidence>,
    how: String,
    evidence: String,
    what: What,
}

impl Next {
    fn new(relation: WhyRelation, what: What) -> Self {
        Self {
            parent: None,
            relation,
            confidence: None,
            how: String::new(),
            evidence: String::new(),
            what,
        }
    }
}

enum What {
    Item(Item),
    /// What a group waits for in the end.
    Leaf(usize),
    /// A step with nothing behind it.
    Last(Box<WhyStep>),
}

/// The story so far.
pub(super) struct Story<'s, 'a, 'r, 'd> {
    pub(super) scene: &'s Scene<'a, 'r, 'd>,
    pub(super) steps: Vec<WhyStep>,
    parents: Vec<Option<usize>>,
    told: FxHashMap<Item, usize>,
    left_out: u64,
}

impl<'s, 'a, 'r, 'd> Story<'s, 'a, 'r, 'd> {
    pub(super) fn new(scene: &'s Scene<'a, 'r, 'd>) -> Self {
        Self {
            scene,
            steps: Vec::new(),
            parents: Vec::new(),
            told: FxHashMap::default(),
            left_out: 0,
        }
    }

    pub(super) fn finish(self) -> (Vec<WhyStep>, u64) {
        (self.steps, self.left_out)
    }

    /// Tells what some things wait for, depth first.
    pub(super) fn tell(&mut self, items: Vec<Item>) {
        let items = items.into_iter().map(What::Item);
        let first = items.map(|item| Next::new(WhyRelation::Asked, item));
        let mut todo: Vec<Next> = first.collect();
        todo.reverse();
        while let Some(next) = todo.pop() {
            if self.steps.len() >= MAX_STEPS {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            let mut behind = self.step(next);
            let hidden = behind.len().saturating_sub(MAX_BRANCHES);
            self.left_out = self.left_out.saturating_add(hidden as u64);
            behind.truncate(MAX_BRANCHES);
            todo.extend(behind.into_iter().rev());
        }
    }

    /// Tells one step; what hangs on it is left for later.
    fn step(&mut self, next: Next) -> Vec<Next> {
        let place = self.steps.len();
        let depth = next.parent.and_then(|p| self.steps.get(p));
        let depth = depth.map_or(0, |p| p.depth.saturating_add(1));
        let (mut step, mut behind) = match &next.what {
            What::Item(item) => match self.told.get(item).copied() {
                Some(earlier) => (self.again(*item, earlier, next.parent), Vec::new()),
                None => {
                    self.told.insert(*item, place);
                    self.item(*item)
                }
            },
            What::Leaf(group) => self.leaf(*group),
            What::Last(step) => ((**step).clone(), Vec::new()),
        };
        step.number = (place as u64).saturating_add(1);
        step.depth = depth;
        step.relation = next.relation;
        step.confidence = next.confidence.or(step.confidence);
        step.how = next.how;
        if !next.evidence.is_empty() {
            step.evidence = next.evidence;
        }
        for one in &mut behind {
            one.parent = Some(place);
        }
        self.steps.push(step);
        self.parents.push(next.parent);
        behind
    }

    /// What was told before: a circle when it stands above.
    fn again(&self, item: Item, earlier: usize, parent: Option<usize>) -> WhyStep {
        let mut step = match item {
            Item::Group(index) => self.chain_step(index),
            Item::Thread(id) => self.thread_step(id),
        };
        step.frames.clear();
        step.same_as = Some((earlier as u64).saturating_add(1));
        let above: Vec<usize> =
            std::iter::successors(parent, |p| self.parents.get(*p).copied().flatten()).collect();
        if above.contains(&earlier) {
            let is_circle = self.is_circle(&above, earlier);
            step.end = Some(match is_circle {
                true if self.is_limited(&above, earlier) => WhyEnd::Clock,
                true => WhyEnd::Cycle,
                false => WhyEnd::Unknown,
            });
        }
        step
    }

    fn item(&self, item: Item) -> (WhyStep, Vec<Next>) {
        match item {
            Item::Group(index) => {
                let leaf = Next::new(WhyRelation::WaitsFor, What::Leaf(index));
                (self.chain_step(index), vec![leaf])
            }
            Item::Thread(id) => self.thread(id),
        }
    }

    fn chain_step(&self, index: usize) -> WhyStep {
        let Some(group) = self.scene.group(index) else {
            return WhyStep::default();
        };
        let root = group.root.as_ref();
        let root = root.map_or_else(|| "nobody waits for it".to_owned(), |r| r.text.clone());
        let count = match group.count {
            1 => String::new(),
            n => format!(", one of {n} alike"),
        };
        let own = group.frames.iter().filter(|f| !f.is_framework);
        WhyStep {
            kind: WhyKind::Chain,
            text: format!("{}  {root}{count}", group.id),
            frames: innermost(own.map(frame_text)),
            chain: Some(group.id.clone()),
            address: group.frames.first().and_then(|f| f.address),
            ..WhyStep::default()
        }
    }

    /// What a group waits for, and who would end that.
    fn leaf(&self, index: usize) -> (WhyStep, Vec<Next>) {
        let Some(group) = self.scene.group(index) else {
            return (WhyStep::default(), Vec::new());
        };
        let leaf = &group.leaf;
        if leaf.kind == LeafKind::Cycle {
            return self.circle(index, group);
        }
        let mut behind: Vec<Next> = leaf
            .completers
            .iter()
            .map(|c| self.completer(group, c))
            .collect();
        for (item, edge) in self.held(index) {
            let is_told = |n: &Next| matches!(n.what, What::Item(known) if known == item);
            if !behind.iter().any(is_told) {
                behind.push(self.by_edge(item, &edge, group.leaf.kind));
            }
        }
        behind.extend(self.connections(index));
        if matches!(leaf.kind, LeafKind::TaskQueued | LeafKind::Ready) {
            behind.push(self.pool());
        }
        let end = behind.is_empty().then(|| self.end(index, group));
        let step = WhyStep {
            kind: WhyKind::Wait,
            text: format!("{}  {}", leaf.kind, leaf.text),
            confidence: leaf.confidence,
            evidence: leaf.evidence.clone().unwrap_or_default(),
            end,
            ..WhyStep::default()
        };
        (step, behind)
    }

    /// A group that waits for itself, or from outside for others that do.
    fn circle(&self, index: usize, group: &ChainGroup) -> (WhyStep, Vec<Next>) {
        let is_outside = |index: usize| {
            let tally = self.scene.tallies.get(index);
            tally.is_some_and(|t| matches!(t.awaited, Awaited::OutsideCycle { .. }))
        };
        let mut behind = Vec::new();
        if is_outside(index) {
            let items = self.held(index).into_iter();
            behind = items
                .filter(|(item, _)| match item {
                    Item::Group(other) => !is_outside(*other),
                    Item::Thread(_) => true,
                })
                .map(|(item, edge)| self.by_edge(item, &edge, LeafKind::Cycle))
                .collect();
        }
        let step = WhyStep {
            kind: WhyKind::Wait,
            text: group.leaf.text.clone(),
            end: behind.is_empty().then_some(WhyEnd::Cycle),
            ..WhyStep::default()
        };
        (step, behind)
    }

    /// How the story ends with what a group waits for.
    fn end(&self, index: usize, group: &ChainGroup) -> WhyEnd {
        let never = self.scene.report.findings.iter().any(|f| {
            f.kind == FindingKind::NeverCompletes
                && f.confidence >= Confidence::Likely
                && f.chains.contains(&group.id)
        });
        if never {
            return WhyEnd::Nothing;
        }
        let tally = self.scene.tallies.get(index);
        match of_leaf(group.leaf.kind) {
            // one that is not due ends no wait; somebody may cancel it
            WhyEnd::Clock if tally.is_none_or(|t| t.limited() == 0) => WhyEnd::Unknown,
            WhyEnd::Unknown if tally.is_some_and(|t| t.limited() > 0) => WhyEnd::Clock,
            other => other,
        }
    }

    fn completer(&self, group: &ChainGroup, completer: &Completer) -> Next {
        let chain = completer
            .chain
            .as_ref()
            .and_then(|id| self.scene.groups.get(id));
        let thread = completer.thread.and_then(|os| {
            let mut rows = self.scene.report.threads.iter();
            rows.find(|t| t.os_id == os)?.managed_id
        });
        let of = match (completer.count, group.count) {
            (some, all) if some < all => format!(" (for {some} of {all} chains)"),
            _ => String::new(),
        };
        let what = match (completer.kind, chain, thread) {
            (CompleterKind::Chain, Some(index), _) => What::Item(Item::Group(*index)),
            (CompleterKind::Thread, _, Some(id)) => What::Item(Item::Thread(id)),
            (kind, ..) => What::Last(Box::new(WhyStep {
                kind: WhyKind::Completer,
                text: format!("{}{of}", completer.text),
                address: completer.object,
                end: Some(match kind {
                    CompleterKind::Timer => WhyEnd::Clock,
                    _ => WhyEnd::Unknown,
                }),
                ..WhyStep::default()
            })),
        };
        let is_said = matches!(what, What::Last(_));
        Next {
            confidence: Some(completer.confidence),
            how: if is_said {
                String::new()
            } else {
                format!("{}{of}", completer.text)
            },
            evidence: completer.evidence.clone(),
            ..Next::new(WhyRelation::CompletedBy, what)
        }
    }

    /// Who holds or runs what the chains of a group end at, by the wait-for graph.
    fn held(&self, index: usize) -> Vec<(Item, Edge)> {
        let Some(tally) = self.scene.tallies.get(index) else {
            return Vec::new();
        };
        let mut leaves: Vec<_> = tally.leaves.keys().copied().collect();
        leaves.sort_unstable();
        let nodes = leaves.into_iter().take(MAX_LEAVES);
        let mut out: Vec<(Item, Edge)> = Vec::new();
        for node in nodes {
            for (item, edge) in self.scene.awaited(Node::Async(node)) {
                let is_new = out.iter().all(|(known, _)| *known != item);
                if is_new && item != Item::Group(index) {
                    out.push((item, edge));
                }
            }
        }
        out
    }

    fn by_edge(&self, item: Item, edge: &Edge, leaf: LeafKind) -> Next {
        let relation = match (item, leaf) {
            (Item::Thread(_), LeafKind::TaskRunning | LeafKind::ThreadBlocked) => {
                WhyRelation::RunsOn
            }
            (_, LeafKind::Cycle) => WhyRelation::WaitsFor,
            _ => WhyRelation::HeldBy,
        };
        Next {
            confidence: Some(edge.confidence),
            evidence: match edge.slot {
                Some(slot) => format!("{} at {slot}", edge.how),
                None => edge.how.to_string(),
            },
            ..Next::new(relation, What::Item(item))
        }
    }

    /// The chains that use the connections of a pool which others wait for.
    fn connections(&self, index: usize) -> Vec<Next> {
        let tally = self.scene.tallies.get(index);
        let Some(Awaited::HttpPool(Some(pool))) = tally.map(|t| &t.awaited) else {
            return Vec::new();
        };
        let origin = &pool.origin;
        let server = Dependency::Http(origin.clone());
        let groups = self.scene.report.chains.iter().zip(&self.scene.tallies);
        let users = groups.enumerate().filter(|(_, (group, tally))| {
            matches!(group.leaf.kind, LeafKind::HttpResponse | LeafKind::HttpBody)
                && tally.shares.contains_key(&server)
        });
        users
            .map(|(index, _)| Next {
                confidence: Some(Confidence::Likely),
                how: format!("its call goes to {origin}, so it has one of the connections"),
                ..Next::new(WhyRelation::HeldBy, What::Item(Item::Group(index)))
            })
            .collect()
    }

    /// The thread pool that would run something, and what its threads do when all of them block.
    fn pool(&self) -> Next {
        let rows = || self.scene.report.threads.iter();
        let is_worker = |t: &&Thread| t.name.as_deref() == Some(".NET TP Worker");
        let (all, blocked) = (
            rows().filter(is_worker).count(),
            rows().filter(is_worker).filter(|t| t.state == "blocked"),
        );
        let names: Vec<String> = blocked
            .clone()
            .take(MAX_POOL)
            .map(|t| t.os_id.to_string())
            .collect();
        let blocked = blocked.count();
        let more = if names.is_empty() {
            String::new()
        } else {
            format!(" (such as {})", names.join(", "))
        };
        Next::new(
            WhyRelation::WaitsFor,
            What::Last(Box::new(WhyStep {
                kind: WhyKind::Pool,
                text: format!("a thread of the pool: {blocked} of {all} workers block{more}"),
                end: Some(WhyEnd::Unknown),
                ..WhyStep::default()
            })),
        )
    }

    fn thread_step(&self, id: u32) -> WhyStep {
        let Some(row) = self.scene.thread_row(id) else {
            return WhyStep::default();
        };
        let name = row.name.as_deref().unwrap_or("without a name");
        let does = match (&row.waits_on, &row.runs) {
            (Some(wait), _) => format!("waits for {}", wait.text),
            (None, Some(runs)) => runs.clone(),
            (None, None) => row.state.clone(),
        };
        let own = row.frames.iter();
        let own = own.filter(|f| !f.native && !f.is_framework);
        WhyStep {
            kind: WhyKind::Thread,
            text: format!("thread {} '{name}': {does}", row.os_id),
            frames: innermost(own.map(|f| f.method.clone())),
            thread: Some(row.os_id),
            address: row.waits_on.as_ref().and_then(|w| w.address),
            ..WhyStep::default()
        }
    }

    fn thread(&self, id: u32) -> (WhyStep, Vec<Next>) {
        let mut step = self.thread_step(id);
        let hang = self.scene.a.hang();
        let facts = hang.by_managed_id(id).and_then(|i| hang.threads.get(i));
        let task = hang.task_waits().find(|(t, _)| t.thread.managed_id == id);
        let group = task.and_then(|(_, wait)| self.scene.by_wait.get(&wait));
        let mut behind: Vec<Next> = Vec::new();
        if let Some(index) = group.and_then(|g| self.scene.groups.get(g)) {
            behind.push(Next {
                evidence: "the wait's object stands on its stack".into(),
                ..Next::new(WhyRelation::WaitsFor, What::Item(Item::Group(*index)))
            });
        } else {
            let held = self.scene.awaited(Node::Thread(id)).into_iter();
            behind.extend(held.map(|(item, edge)| self.by_edge(item, &edge, LeafKind::AsyncLock)));
        }
        if behind.is_empty() {
            let row = self.scene.thread_row(id);
            let blocks = row.is_some_and(|r| r.waits_on.is_some());
            let sleeps = row.is_some_and(|r| r.state == "sleeping");
            step.end = Some(match (blocks, sleeps, facts) {
                // the dump does not tell for how long
                (true, ..) | (_, true, _) => WhyEnd::Unknown,
                (false, _, Some(_)) => WhyEnd::Runs,
                (false, _, None) => WhyEnd::Unknown,
            });
        }
        (step, behind)
    }
}

/// The first of what stands innermost first, outermost first and without neighbours that are equal.
fn innermost(frames: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = frames.take(MAX_FRAMES).collect();
    out.dedup();
    out.reverse();
    out
}

/// `Webhooks.PaymentCallback.ProcessAsync at await 2 (WebIncident.cs:57)`.
fn frame_text(frame: &Frame) -> String {
    let at = frame
        .place()
        .map(|p| format!(" at {p}"))
        .unwrap_or_default();
    let awaits = frame
        .awaits
        .as_ref()
        .map(|a| format!(": {a}"))
        .unwrap_or_default();
    let file = frame
        .file
        .as_deref()
        .map(|f| f.rsplit(['/', '\\']).next().unwrap_or(f));
    let line = match (file, frame.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    format!("{}{at}{awaits}{line}", frame.method)
}
