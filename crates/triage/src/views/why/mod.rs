//! Why something waits: its wait, who would end that, what those wait for, until something that runs, another process, a
//! time, or nothing.

mod circles;
mod ends;
mod story;
mod subject;

use crate::chains::{Tally, Wanted};
use crate::holders::Holders;
use crate::paths::Analysis;
use crate::waitfor::{Edge, Node, waits_of};
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use asynctriage_report::{Address, ChainGroup, Report, Thread, WhyReport, WhyStep};
use rustc_hash::{FxHashMap, FxHashSet};
use story::Story;

/// Groups that one object is part of and that are told.
const MAX_GROUPS: usize = 8;
/// Things between one that waits and who it waits for: locks, semaphores, contexts.
const MAX_BETWEEN: usize = 64;

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An object: a box, a task, a source, a lock, a semaphore, a request.
    Object(Addr),
    /// A group of chains or one of its members, by id: `C3`, `C3.2`.
    Chain(String),
    /// A thread, by its number in the operating system or in .NET.
    Thread(u64),
}

/// Tells why something waits; `None` when nothing in the process is what was asked about, or nothing of it waits or runs.
#[must_use]
pub fn why(analysis: &Analysis<'_, '_>, subject: &Subject) -> Option<WhyReport> {
    let scene = Scene::new(analysis);
    let (text, items) = scene.resolve(subject)?;
    let mut story = Story::new(&scene);
    story.tell(items);
    let (mut steps, steps_left_out) = story.finish();
    ends::weigh(&mut steps);
    Some(WhyReport {
        subject: text,
        conclusions: ends::conclusions(&steps),
        steps,
        steps_left_out,
        gaps: scene.report.gaps.clone(),
        ..WhyReport::default()
    })
}

/// Something that waits or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    /// A group of chains, by its place in the report.
    Group(usize),
    /// A thread, by its managed id.
    Thread(u32),
}

/// All that the story is told from.
struct Scene<'a, 'r, 'd> {
    a: &'a Analysis<'r, 'd>,
    report: Report,
    tallies: Vec<Tally>,
    /// For each blocked wait the group that ends at it.
    by_wait: FxHashMap<NodeId, String>,
    holders: Holders,
    groups: FxHashMap<String, usize>,
    /// The groups whose chains go through an object.
    through: FxHashMap<Address, Vec<usize>>,
    /// The groups that end at a node.
    ending: FxHashMap<NodeId, Vec<usize>>,
}

impl<'a, 'r, 'd> Scene<'a, 'r, 'd> {
    fn new(a: &'a Analysis<'r, 'd>) -> Self {
        let groups = a.groups(Wanted {
            idle_too: true,
            members: usize::MAX,
            locals: false,
        });
        let (tallies, by_wait) = (groups.tallies.clone(), groups.by_wait.clone());
        let mut report = a.report(groups);
        a.add_cuts(&mut report);
        let mut through: FxHashMap<Address, Vec<usize>> = FxHashMap::default();
        let mut ending: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
        for (index, group) in report.chains.iter().enumerate() {
            for object in group.members.iter().flat_map(|m| &m.boxes) {
                add(through.entry(*object).or_default(), index);
            }
        }
        for (index, tally) in tallies.iter().enumerate() {
            for leaf in tally.leaves.keys() {
                add(ending.entry(*leaf).or_default(), index);
            }
        }
        let ids = report.chains.iter().enumerate();
        Self {
            groups: ids.map(|(i, g)| (g.id.clone(), i)).collect(),
            holders: Holders::find(a, a.hang()),
            a,
            report,
            tallies,
            by_wait,
            through,
            ending,
        }
    }

    fn group(&self, index: usize) -> Option<&ChainGroup> {
        self.report.chains.get(index)
    }

    fn thread_row(&self, managed_id: u32) -> Option<&Thread> {
        let mut rows = self.report.threads.iter();
        rows.find(|t| t.managed_id == Some(managed_id))
    }

    /// Whether the report calls it a deadlock that the chains and threads of some steps wait for each other.
    fn is_deadlock(&self, steps: &[&WhyStep]) -> bool {
        let waits = &self.report.waits;
        waits.cycles.iter().any(|cycle| {
            let nodes = || waits.nodes.iter().filter(|n| cycle.contains(&n.id));
            steps.iter().all(|step| {
                let of_chain = |id: &String| nodes().any(|n| n.chain.as_ref() == Some(id));
                let of_thread = |os: u64| nodes().any(|n| n.thread == Some(os));
                step.chain.as_ref().is_none_or(of_chain) && step.thread.is_none_or(of_thread)
            })
        })
    }

    /// The groups that a node of the graph is part of.
    fn groups_of(&self, id: NodeId) -> Vec<usize> {
        let object = self.a.graph.object(id).map(|n| Address(n.addr.0));
        let through = object.and_then(|o| self.through.get(&o));
        let mut out: Vec<usize> = Vec::new();
        for index in through
            .or_else(|| self.ending.get(&id))
            .into_iter()
            .flatten()
        {
            add(&mut out, *index);
        }
        out
    }

    /// Chains and threads that a node waits for, with what stands between.
    fn awaited(&self, node: Node) -> Vec<(Item, Edge)> {
        let mut out: Vec<(Item, Edge)> = Vec::new();
        let mut seen: FxHashSet<Node> = FxHashSet::from_iter([node]);
        let mut todo = vec![node];
        while let Some(at) = todo.pop() {
            for (target, edge) in waits_of(self.a, self.a.hang(), &self.holders, at) {
                let items: Vec<Item> = match target {
                    Node::Thread(id) => vec![Item::Thread(id)],
                    Node::Async(id) => match self.a.hang().runner(id) {
                        Some((thread, _)) => vec![Item::Thread(thread.thread.managed_id)],
                        None => self.groups_of(id).into_iter().map(Item::Group).collect(),
                    },
                    _ => {
                        if seen.len() < MAX_BETWEEN && seen.insert(target) {
                            todo.push(target);
                        }
                        continue;
                    }
                };
                for item in items {
                    if out.iter().all(|(known, _)| *known != item) {
                        out.push((item, edge.clone()));
                    }
                }
            }
        }
        out
    }
}

/// Adds a number to a short list without doubles.
fn add(list: &mut Vec<usize>, index: usize) {
    if list.len() < MAX_GROUPS && !list.contains(&index) {
        list.push(index);
    }
}
