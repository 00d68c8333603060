//! Who is to complete what chains wait for: methods and threads that hold it, and the tables that it stands in.
//!
//! Whoever completes a source needs a reference to it. So the references of the heap are followed backwards from it, up
//! to suspended methods, stacks, queued work and static fields. The awaiting methods' own references do not count. That a
//! holder will complete what it holds is believed when its code says so behind the place where it stands.

mod ahead;
mod by_code;
mod calls;
mod elsewhere;
mod named;
mod notation;
mod targets;
mod through;
mod ways;
mod web;

pub(crate) use notation::source_name;
pub(crate) use web::methods_by_object;

use crate::chains::Groups;
use crate::facts::Awaited;
use crate::holders::{Holders, Who};
use crate::paths::{Analysis, steps_of};
use crate::threads::Hang;
use crate::words::several;
use ahead::Ahead;
use asynctriage_async_graph::NodeId;
use asynctriage_clr::{Gap, GapKind};
use asynctriage_dump::Addr;
use asynctriage_report::{Completer, CompleterKind, Confidence};
use calls::{By, Calls};
use elsewhere::Elsewhere;
use named::Named;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use targets::{unsearched, waited_for};
use through::Through;
use web::{End, Way, Ways, Web};

/// Objects whose completers are looked for.
const MAX_TARGETS: usize = 20_000;
/// Methods of which it is asked who keeps their continuations.
const MAX_RESUMED: usize = 64;
/// What continuations are posted to.
const CONTEXTS: [&str; 2] = [
    "System.Threading.SynchronizationContext",
    "System.Threading.Tasks.TaskScheduler",
];
/// Completers that a group names.
const MAX_NAMED: usize = 5;
/// Nodes above an awaited object that are looked at.
const MAX_WAITERS: usize = 1 << 16;

/// What somebody has to complete for waits to end, and how that is done.
#[derive(Clone, Copy, Debug)]
struct Target {
    object: Addr,
    by: By,
}

/// One that may complete something.
#[derive(Clone, Debug)]
struct Candidate {
    /// `None` for what is no method or thread: a table, a timer, queued work.
    who: Option<Who>,
    completer: Completer,
}

/// One that completes something, as an edge of the wait-for graph.
#[derive(Clone, Debug)]
pub(crate) struct Completes {
    pub(crate) who: Who,
    /// Where that is seen.
    pub(crate) slot: Option<Addr>,
    pub(crate) how: String,
    pub(crate) confidence: Confidence,
}

/// Who completes one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    candidates: Vec<Candidate>,
    /// Those whose code completes it.
    pub(crate) by: Vec<Completes>,
    /// Whether others than these may do so.
    pub(crate) is_open: bool,
    /// Of a semaphore: whether a lambda of the program releases it that has not entered it.
    pub(crate) is_released_otherwise: bool,
    /// Whether the search ended before all was found that leads to it.
    is_cut: bool,
    /// The context or scheduler that leads to it, and the slot through which: it has been posted there.
    posted_to: Option<(Addr, Addr)>,
}

/// Who completes what is waited for.
#[derive(Debug, Default)]
pub(crate) struct Completers {
    by_object: FxHashMap<Addr, Found>,
    /// By method: who keeps the continuation of one that nothing known will resume.
    resumers: FxHashMap<Addr, Found>,
    /// What was not looked at.
    pub(crate) gaps: Vec<Gap>,
}

impl Completers {
    pub(crate) fn of(&self, object: Addr) -> Option<&Found> {
        self.by_object.get(&object)
    }

    /// The context or scheduler that keeps the continuation of a method, and the slot that leads to it.
    pub(crate) fn posted_to(&self, method: Addr) -> Option<(Addr, Addr)> {
        self.resumers.get(&method)?.posted_to
    }

    fn found(&self, target: Target) -> Option<&Found> {
        match target.by {
            By::Resume => self.resumers.get(&target.object),
            _ => self.by_object.get(&target.object),
        }
    }

    /// That nobody was found who completes some objects, and that not all was found that leads to them.
    fn cut_gap(&self) -> Option<Gap> {
        let all = self.by_object.values();
        let without = all.filter(|f| f.is_cut && f.candidates.is_empty());
        let count = without.count() as u64;
        (count > 0).then(|| Gap {
            kind: GapKind::CompleterLimit,
            place: "who completes what chains wait for".into(),
            why: format!(
                "too much leads to {}: the references of the heap were followed backwards for some steps only",
                several(count, "awaited object")
            ),
            remedy: "no completer is named for them although there may be one; `asynctriage show DUMP ADDRESS` shows single objects".into(),
        })
    }

    /// The objects that somebody's code completes.
    pub(crate) fn completed(&self) -> impl Iterator<Item = Addr> {
        let known = self.by_object.iter().filter(|(_, f)| !f.by.is_empty());
        known.map(|(object, _)| *object)
    }
}

/// A group of chains that end at an object.
struct Ending {
    group: String,
    /// The methods of its frames.
    methods: Rc<[String]>,
}

/// Finds completers.
struct Search<'a, 'r, 'd> {
    analysis: &'a Analysis<'r, 'd>,
    hang: &'a Hang,
    holders: &'a Holders,
    /// The groups of chains that end at a node.
    groups: FxHashMap<NodeId, Vec<Ending>>,
    /// The tasks that an object completes.
    tasks: FxHashMap<Addr, Vec<NodeId>>,
    calls: &'a Calls,
    ahead: Ahead,
    through: Through,
    elsewhere: Elsewhere,
    web: Web,
}

impl Analysis<'_, '_> {
    /// Adds to what each group waits for who would complete it.
    pub(crate) fn add_completers(
        &self,
        groups: &mut Groups,
        hang: &Hang,
        holders: &Holders,
    ) -> Completers {
        let mut out = Completers::default();
        // while objects are moved, references lead astray
        if self.graph.heap.shape.collection.moving {
            return out;
        }
        let of_groups: Vec<Vec<(Target, u64)>> = groups
            .groups
            .iter()
            .zip(&groups.tallies)
            .map(|(group, tally)| {
                let leaves = tally.leaves.iter();
                let targets =
                    leaves.filter_map(|(id, n)| Some((self.target(group.leaf.kind, *id)?, *n)));
                let mut targets: Vec<(Target, u64)> = targets.collect();
                targets.sort_unstable_by_key(|(t, _)| t.object);
                targets
            })
            .collect();
        let all = of_groups.iter().flatten().map(|(t, _)| *t);
        let (resumed, all): (Vec<Target>, Vec<Target>) = all.partition(|t| t.by == By::Resume);
        let mut targets: Vec<Target> = resumed.into_iter().take(MAX_RESUMED).chain(all).collect();
        targets.extend(waited_for(hang));
        targets.sort_unstable_by_key(|t| t.object);
        targets.dedup_by_key(|t| t.object);
        out.gaps.extend(unsearched(targets.len()));
        targets.truncate(MAX_TARGETS);
        if targets.is_empty() {
            return out;
        }
        let calls = Calls::default();
        let objects: Vec<Addr> = targets.iter().map(|t| t.object).collect();
        let wanted = targets.iter().map(|t| (t.object, t.by)).collect();
        let search = Search {
            analysis: self,
            hang,
            holders,
            groups: groups_by_leaf(groups),
            tasks: self.tasks_of(),
            ahead: Ahead::find(self, hang, &calls, &wanted),
            through: Through::find(self, hang, &calls),
            calls: &calls,
            elsewhere: Elsewhere::default(),
            web: Web::find(self, &objects),
        };
        let awaited = "awaited objects, for who completes them";
        for target in self.rt.budget().each(awaited, targets) {
            let found = search.completers(target);
            match target.by {
                By::Resume => out.resumers.insert(target.object, found),
                _ => out.by_object.insert(target.object, found),
            };
        }
        out.gaps.extend(out.cut_gap());
        self.tell(groups, of_groups, &out);
        out
    }

    /// Puts into the groups who completes what they wait for, and what their continuations were posted to.
    fn tell(&self, groups: &mut Groups, of_groups: Vec<Vec<(Target, u64)>>, found: &Completers) {
        let tallies = groups.tallies.iter_mut();
        for ((group, tally), targets) in groups.groups.iter_mut().zip(tallies).zip(of_groups) {
            let mut posted = targets
                .iter()
                .filter_map(|(t, _)| found.found(*t)?.posted_to);
            if let Some((context, _)) = posted.next() {
                tally.awaited = Awaited::Posted {
                    context,
                    class: self.rt.object_type_name(context).unwrap_or_default(),
                    continuation: None,
                };
                let leaf = tally.awaited.leaf();
                (group.leaf.kind, group.leaf.text) = (leaf.kind, leaf.text);
                group.leaf.details = leaf.details;
                continue;
            }
            let mut named = Named::default();
            for (target, chains) in targets {
                if let Some(found) = found.found(target) {
                    named.add(&found.told(target), chains);
                }
            }
            group.leaf.completers = named.ranked();
        }
    }
}

fn groups_by_leaf(groups: &Groups) -> FxHashMap<NodeId, Vec<Ending>> {
    let mut out: FxHashMap<NodeId, Vec<Ending>> = FxHashMap::default();
    for (group, tally) in groups.groups.iter().zip(&groups.tallies) {
        let methods: Rc<[String]> = group.frames.iter().map(|f| f.method.clone()).collect();
        for leaf in tally.leaves.keys() {
            let of_leaf = out.entry(*leaf).or_default();
            of_leaf.push(Ending {
                group: group.id.clone(),
                methods: Rc::clone(&methods),
            });
        }
    }
    out
}

impl Found {
    /// What a group tells of them.
    fn told(&self, target: Target) -> Vec<&Candidate> {
        let all = self.candidates.iter();
        let surest = all.clone().map(|c| c.completer.confidence).max();
        // a static table is told beside whoever takes from it; other mere holders are not
        // a semaphore is for many to use: only who releases it is told
        let is_telling = |c: &&Candidate| {
            let c = &c.completer;
            c.confidence > Confidence::Possible
                || target.by == By::Resume && c.kind != CompleterKind::Thread
                || target.by == By::Result
                    && (Some(c.confidence) == surest || c.kind == CompleterKind::Static)
        };
        all.filter(is_telling).collect()
    }
}

impl Search<'_, '_, '_> {
    fn completers(&self, target: Target) -> Found {
        let tasks = self.tasks.get(&target.object);
        let own = self.analysis.graph.node(target.object);
        let leaves: Vec<NodeId> = tasks.into_iter().flatten().copied().chain(own).collect();
        let mut waiting = self.waiting_for(&leaves);
        if target.by == By::Resume {
            // what a method keeps itself resumes it no more than what waits for it
            waiting.extend(&leaves);
        }
        let ways = self.web.ways_to(target.object, &waiting);
        let methods: FxHashSet<String> = waiting
            .iter()
            .flat_map(|id| steps_of(&self.analysis.graph, *id))
            .map(|s| self.analysis.step_name(s).to_string())
            .collect();
        let mut candidates = self.inside(target);
        let at_ends = ways
            .all
            .iter()
            .filter_map(|way| self.at_end_of(target, way, &methods))
            .filter(|c| !self.only_waits(c, &waiting));
        for candidate in at_ends {
            let who = candidate.who;
            if who.is_none() || !candidates.iter().any(|c| c.who == who) {
                candidates.push(candidate);
            }
        }
        let through = self.through.on(target, &ways.all).into_iter();
        for proved in self.ahead.all(target.object).iter().chain(through) {
            let is_waiting = matches!(proved.who, Who::Method(id) if waiting.contains(&id));
            let is_known = candidates
                .iter()
                .any(|c| c.who == Some(proved.who) && c.completer.confidence >= proved.confidence);
            if !is_waiting && !is_known {
                candidates.retain(|c| c.who != Some(proved.who));
                candidates.push(self.proved(proved));
            }
        }
        self.found(target, candidates, &ways, &waiting)
    }

    /// Which of the candidates are edges of the wait-for graph, how sure they are, and whether others may do it as well.
    fn found(
        &self,
        target: Target,
        candidates: Vec<Candidate>,
        ways: &Ways,
        waiting: &FxHashSet<NodeId>,
    ) -> Found {
        let (is_cut, ways) = (ways.is_cut, ways.all.as_slice());
        let acting = candidates.iter().filter_map(|c| {
            let who = c
                .who
                .filter(|_| c.completer.confidence > Confidence::Possible)?;
            Some((who, &c.completer))
        });
        let mut by: Vec<Completes> = acting
            .map(|(who, completer)| Completes {
                who,
                slot: completer.object.map(|a| Addr(a.0)),
                how: completer.evidence.clone(),
                confidence: completer.confidence,
            })
            .collect();
        let acts = |id: &NodeId| by.iter().any(|c| c.who == Who::Method(*id));
        let is_known = |way: &Way| match &way.end {
            End::Method(node, _) => acts(node),
            _ => false,
        };
        // whoever else leads to it may hand it on
        let is_proved = !is_cut && !ways.is_empty() && ways.iter().all(is_known);
        if !is_proved {
            for one in &mut by {
                one.confidence = one.confidence.min(Confidence::Likely);
            }
        }
        let acts_later =
            |way: &Way| matches!(way.end, End::Queued | End::Timer | End::Registration);
        let is_open = by.is_empty()
            || ways.iter().any(acts_later)
            || !is_proved && self.is_completed_elsewhere(target, &by, ways, waiting);
        Found {
            is_released_otherwise: target.by == By::Release && self.is_released_by_lambda(ways),
            candidates,
            by,
            is_open,
            is_cut,
            posted_to: self.posted_to(target),
        }
    }

    /// The context or scheduler among the objects that lead to a continuation.
    fn posted_to(&self, target: Target) -> Option<(Addr, Addr)> {
        let rt = self.analysis.rt;
        let runs = |holder: Addr| {
            let ty = rt.type_of(holder);
            ty.is_some_and(|ty| CONTEXTS.iter().any(|c| rt.is_a(ty.mt, c)))
        };
        (target.by == By::Resume).then(|| self.web.nearest(target.object, &runs))?
    }

    /// Whether a thread holds an object because it waits for it, as nothing in its code completes it.
    fn only_waits(&self, candidate: &Candidate, waiting: &FxHashSet<NodeId>) -> bool {
        let Some(Who::Thread(id)) = candidate.who else {
            return false;
        };
        let mut waits = self.hang.task_waits();
        let is_waiting = waits.any(|(t, on)| t.thread.managed_id == id && waiting.contains(&on));
        is_waiting && candidate.completer.confidence <= Confidence::Possible
    }

    /// Everything that waits for some nodes, directly or through others.
    fn waiting_for(&self, leaves: &[NodeId]) -> FxHashSet<NodeId> {
        let mut seen = FxHashSet::default();
        let mut todo = leaves.to_vec();
        while let Some(id) = todo.pop() {
            if seen.len() >= MAX_WAITERS {
                break;
            }
            todo.extend(self.analysis.graph.waiters(id).filter(|w| seen.insert(*w)));
        }
        seen
    }

    /// The group of the chain that a method is part of, by what it waits for in the end.
    fn chain_of(&self, node: NodeId) -> Option<String> {
        let a = self.analysis;
        let names = || steps_of(&a.graph, node).map(|s| a.step_name(s));
        let mut seen = FxHashSet::default();
        let mut todo = vec![node];
        while let Some(id) = todo.pop().filter(|_| seen.len() < MAX_WAITERS) {
            // chains of many groups may end at one object
            let mut groups = self.groups.get(&id).into_iter().flatten();
            let stands_in = |methods: &[String]| names().any(|n| methods.iter().any(|m| **m == *n));
            if let Some(ending) = groups.find(|e| stands_in(&e.methods)) {
                return Some(ending.group.clone());
            }
            let below = self.analysis.graph.awaited(id).map(|(from, _)| from);
            todo.extend(below.filter(|b| seen.insert(*b)));
        }
        None
    }
}
