//! Waits put together to chains, from what is awaited outwards.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{TaskId, TplRecording};

/// Chains of the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingChain {
    /// How many there are.
    pub count: u64,
    /// Names of the operations, the innermost first. A task that is no operation is "task"; a thread that blocks is
    /// "thread" with its id.
    pub names: Vec<String>,
    /// Operations further out that are not in `names`, which has a bound.
    pub more_names: u64,
    /// Whether the operations wait for each other in a circle; then `names` begins anywhere.
    pub cycle: bool,
    /// The innermost tasks of the first chains.
    pub leaves: Vec<TaskId>,
    /// When the first and the last of the innermost waits began, in ticks of the file's clock.
    pub since: (u64, u64),
}

/// Longest chain that is told name by name.
const MAX_NAMES: usize = 1_000;
/// Chains that are put together; one more would not make the list clearer.
const MAX_CHAINS: u64 = 100_000;
/// Parts of all shapes together: threads that block tell apart chains that are alike otherwise.
const MAX_PARTS: usize = 4_000_000;
/// Groups that are listed.
const MAX_GROUPS: usize = 1_000;
/// Innermost tasks that are named per group.
const MAX_LEAVES: usize = 5;

/// A part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// An operation, by its name.
    Operation(super::NameId),
    /// A task that is no operation.
    Task,
    Thread(u64),
}

/// What tells groups apart.
type Shape = (Vec<Part>, u64, bool);

#[derive(Debug)]
struct Group {
    count: u64,
    leaves: Vec<TaskId>,
    since: (u64, u64),
}

#[derive(Debug, Default)]
struct Groups {
    by_shape: BTreeMap<Shape, Group>,
    chains: u64,
    parts: usize,
    more: u64,
}

impl Groups {
    fn add(&mut self, parts: &[Part], depth: usize, cycle: bool, leaf: TaskId, since: u64) {
        if self.chains >= MAX_CHAINS {
            self.more = self.more.saturating_add(1);
            return;
        }
        let more = depth.saturating_sub(parts.len()) as u64;
        let shape = (parts.to_vec(), more, cycle);
        if !self.by_shape.contains_key(&shape) {
            if self.parts.saturating_add(parts.len()) > MAX_PARTS {
                self.more = self.more.saturating_add(1);
                return;
            }
            self.parts = self.parts.saturating_add(parts.len());
        }
        self.chains = self.chains.saturating_add(1);
        let group = self.by_shape.entry(shape).or_insert(Group {
            count: 0,
            leaves: Vec::new(),
            since: (since, since),
        });
        group.count = group.count.saturating_add(1);
        group.since = (group.since.0.min(since), group.since.1.max(since));
        if group.leaves.len() < MAX_LEAVES && !group.leaves.contains(&leaf) {
            group.leaves.push(leaf);
        }
    }
}

/// The chains of all pending waits in groups, and how many chains are in none.
pub(super) fn chains(recording: &TplRecording<'_>) -> (Vec<PendingChain>, u64) {
    let mut walk = Walk {
        recording,
        threads: threads(recording),
        groups: Groups::default(),
        seen: FxHashSet::default(),
    };
    let waited_for = recording.waiters.keys().chain(walk.threads.keys());
    let mut leaves: Vec<_> = waited_for
        .copied()
        .filter(|task| !recording.waits.contains_key(task))
        .collect();
    leaves.sort_unstable();
    leaves.dedup();
    for leaf in leaves {
        walk.outwards(leaf);
    }
    let mut rest: Vec<_> = recording.waits.keys().copied().collect();
    rest.sort_unstable();
    for task in rest {
        walk.cycle(task);
    }
    let Groups { by_shape, more, .. } = walk.groups;
    let mut more = more;
    let mut groups: Vec<_> = by_shape.into_iter().collect();
    groups.sort_by(|(a_shape, a), (b_shape, b)| b.count.cmp(&a.count).then(a_shape.cmp(b_shape)));
    for (_, group) in groups.drain(MAX_GROUPS.min(groups.len())..) {
        more = more.saturating_add(group.count);
    }
    let told = |((parts, more_names, cycle), group): (Shape, Group)| PendingChain {
        count: group.count,
        names: parts.iter().map(|part| name(recording, *part)).collect(),
        more_names,
        cycle,
        leaves: group.leaves,
        since: group.since,
    };
    (groups.into_iter().map(told).collect(), more)
}

/// Threads that block on a task, and since when, in the order of their ids.
type Blocked = Vec<(u64, u64)>;

fn threads(recording: &TplRecording<'_>) -> FxHashMap<TaskId, Blocked> {
    let mut threads = FxHashMap::<_, Blocked>::default();
    for ((task, thread), since) in &recording.blocked {
        threads.entry(*task).or_default().push((*thread, *since));
    }
    threads
        .values_mut()
        .for_each(|of_task| of_task.sort_unstable());
    threads
}

fn name(recording: &TplRecording<'_>, part: Part) -> String {
    match part {
        Part::Operation(id) => {
            let name = usize::try_from(id)
                .ok()
                .and_then(|id| recording.names.get(id));
            name.cloned().unwrap_or_default()
        }
        Part::Task => "task".to_owned(),
        Part::Thread(id) => format!("thread {id}"),
    }
}

struct Walk<'r, 'a> {
    recording: &'r TplRecording<'a>,
    threads: FxHashMap<TaskId, Blocked>,
    groups: Groups,
    /// Operations that are in some chain.
    seen: FxHashSet<TaskId>,
}

impl Walk<'_, '_> {
    fn part(&self, task: TaskId) -> Part {
        let name = self.recording.operations.get(&task);
        name.map_or(Part::Task, |name| Part::Operation(*name))
    }

    /// Operations that wait for a task, in the order of their ids.
    fn waiters(&self, task: TaskId) -> Vec<TaskId> {
        let waiters = self.recording.waiters.get(&task);
        let mut found: Vec<_> = waiters.into_iter().flatten().copied().collect();
        found.sort_unstable();
        found
    }

    /// All chains of one innermost task. An operation waits for one task, so what waits for a task is a tree.
    fn outwards(&mut self, leaf: TaskId) {
        let mut parts = Vec::new();
        // tasks still to visit, with how far out they are and since when the innermost wait of their chain lasts
        let mut open = vec![(leaf, 0_usize, u64::MAX)];
        while let Some((task, depth, since)) = open.pop() {
            parts.truncate(depth);
            if parts.len() < MAX_NAMES {
                parts.push(self.part(task));
            }
            let outer = depth.saturating_add(1);
            let begun = |at: u64| if since == u64::MAX { at } else { since };
            let waiters = self.waiters(task);
            let threads = self.threads.get(&task).map_or(&[][..], Vec::as_slice);
            for (thread, at) in threads {
                let kept = parts.len();
                if kept < MAX_NAMES {
                    parts.push(Part::Thread(*thread));
                }
                let depth = outer.saturating_add(1);
                self.groups.add(&parts, depth, false, leaf, begun(*at));
                parts.truncate(kept);
            }
            if waiters.is_empty() && threads.is_empty() {
                self.groups.add(&parts, outer, false, leaf, since);
            }
            for waiter in waiters.into_iter().rev() {
                if self.seen.insert(waiter) {
                    let at = self.recording.waits.get(&waiter).map_or(0, |w| w.since);
                    open.push((waiter, outer, begun(at)));
                }
            }
        }
    }

    /// What no innermost task leads to: operations that wait for each other, and those that wait for them.
    fn cycle(&mut self, task: TaskId) {
        let mut at = task;
        let mut path = FxHashSet::default();
        while !self.seen.contains(&at) && path.insert(at) {
            match self.recording.waits.get(&at) {
                Some(wait) => at = wait.task,
                None => return,
            }
        }
        if self.seen.contains(&at) {
            return;
        }
        // `at` is in the circle: once around, then outwards from each of its members
        let mut circle = Vec::new();
        let mut since = u64::MAX;
        let mut member = at;
        while self.seen.insert(member) {
            circle.push(member);
            let Some(wait) = self.recording.waits.get(&member) else {
                break;
            };
            since = since.min(wait.since);
            member = wait.task;
        }
        // each waits for the next one, so that the innermost comes last
        let parts: Vec<_> = circle
            .iter()
            .rev()
            .take(MAX_NAMES)
            .map(|task| self.part(*task))
            .collect();
        self.groups.add(&parts, circle.len(), true, at, since);
        for member in circle {
            let unseen = |waiter: &TaskId| !self.seen.contains(waiter);
            if self.threads.contains_key(&member) || self.waiters(member).iter().any(unseen) {
                self.outwards(member);
            }
        }
    }
}
