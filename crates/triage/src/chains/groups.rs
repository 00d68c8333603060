//! Groups of chains that are alike.

use super::signatures::{self, signature};
use super::tally::{Note, Tally};
use crate::facts::Purpose;
use crate::paths::{
    Analysis, Folded, Path, Paths, Place, Shape, Step, is_least_await, step_offset,
};
use crate::threads::{ThreadFacts, Wait};
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use asynctriage_report::{
    Address, ChainGroup, Frame, FrameKind, LeafKind, Member, RootKind, Verdict, VerdictState,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Frames whose boxes a member lists.
const MAX_MEMBER_BOXES: usize = 64;
/// Threads whose names differ by numbers alone that are told one by one.
const CROWD: usize = 10;

/// What makes two chains alike: the words of their frames by number, and the kinds of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    frames: u32,
    leaf: LeafKind,
    root: Option<RootKind>,
}

struct Group {
    shape: Rc<Shape>,
    leaf_texts: FxHashMap<String, u64>,
    root_texts: FxHashMap<String, u64>,
    paths: Vec<(Path, String, String)>,
    /// Bytes that the chains keep alive, when that is wanted and known, and the frames that are counted in it.
    keeps: Option<u64>,
    counted: FxHashSet<Addr>,
    count: u64,
    tally: Tally,
}

/// Groups, and what was left out of them.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<ChainGroup>,
    /// Chains of idle plumbing that were left out.
    pub(crate) idle_chains: u64,
    pub(crate) idle_groups: u64,
    /// Those chains by what they wait for.
    pub(crate) idle_kinds: BTreeMap<LeafKind, u64>,
    /// Paths that could not be listed.
    pub(crate) unlisted: u64,
    /// For each blocked wait the group that ends at it.
    pub(crate) by_wait: FxHashMap<NodeId, String>,
    /// For each thread, by managed id, a group that begins at what it runs.
    pub(crate) by_thread: FxHashMap<u32, String>,
    /// What the chains of each group have in common, in the order of the groups.
    pub(crate) tallies: Vec<Tally>,
}

/// Which groups and how many members are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) idle_too: bool,
    pub(crate) members: usize,
    /// What the frames keep.
    pub(crate) locals: bool,
}

impl Analysis<'_, '_> {
    /// All chains in groups, the largest first.
    pub(crate) fn groups(&self, wanted: Wanted) -> Groups {
        let budget = self.rt.budget();
        budget.begin("chains");
        let paths = Paths::find(&self.graph);
        let mut out = Groups {
            unlisted: paths.unlisted,
            ..Groups::default()
        };
        let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
        let ends = paths
            .paths
            .iter()
            .flat_map(|p| [p.innermost(), p.outermost()]);
        self.find_reachable(ends.filter_map(|id| Some(self.graph.object(id)?.addr)));
        let crowds = self.crowds(&paths.paths);
        for path in budget.each("chains", paths.paths) {
            if self.is_chain(&path) {
                self.add_to_group(&mut groups, path, wanted, &crowds);
            }
        }
        let mut sorted: Vec<(String, Group)> = groups
            .into_iter()
            .map(|(key, group)| (key.text(&group.shape.folded), group))
            .collect();
        sorted.sort_by(|(a, x), (b, y)| y.count.cmp(&x.count).then_with(|| a.cmp(b)));
        // names must not depend on whether idle groups are listed, so these come last
        let (idle, busy): (Vec<_>, Vec<_>) = sorted
            .into_iter()
            .map(|(text, group)| (self.is_idle(&group), text, group))
            .partition(|(is_idle, ..)| *is_idle);
        for (idle, text, group) in busy.into_iter().chain(idle) {
            if idle && !wanted.idle_too {
                out.idle_chains = out.idle_chains.saturating_add(group.count);
                out.idle_groups = out.idle_groups.saturating_add(1);
                let of_kind = out
                    .idle_kinds
                    .entry(group.tally.awaited.kind())
                    .or_default();
                *of_kind = of_kind.saturating_add(group.count);
                continue;
            }
            let id = format!("C{}", out.groups.len().saturating_add(1));
            for (path, ..) in &group.paths {
                if let Some(wait) = path.blocked {
                    out.by_wait.entry(wait).or_insert_with(|| id.clone());
                }
                if let Some(runs) = self.hang().running.get(&path.leaf) {
                    let of_thread = out.by_thread.entry(runs.thread);
                    of_thread.or_insert_with(|| id.clone());
                }
            }
            let row = self.report_group(id, signature(&text), &group, wanted, idle);
            out.groups.push(row);
            out.tallies.push(group.tally);
        }
        out
    }

    /// Whether a path is a chain. A method that runs and that nobody waits for is one when its thread is known and the
    /// path is not told by what that thread waits for.
    fn is_chain(&self, path: &Path) -> bool {
        if !self.graph.running.contains_key(&path.leaf) || self.steps(path).nth(1).is_some() {
            return true;
        }
        let runner = self.hang().runner(path.leaf);
        let told = |thread: &ThreadFacts| {
            matches!(thread.wait, Some(Wait::Task(_)))
                && self.steps(path).all(|s| self.is_framework_step(s))
        };
        runner.is_some_and(|(thread, _)| !told(thread))
    }

    /// The words, by number, of paths that end at many threads whose names differ by numbers alone: `worker 1` to
    /// `worker 400` do the same, and are one group.
    fn crowds(&self, paths: &[Path]) -> FxHashSet<u32> {
        let mut named: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
        for path in paths.iter().filter(|p| p.blocked.is_some()) {
            let shape = self.shape(path);
            named.entry(shape.alike).or_default().insert(shape.number);
        }
        let crowds = named.into_iter().filter(|(_, names)| names.len() > CROWD);
        crowds.map(|(alike, _)| alike).collect()
    }

    fn add_to_group(
        &self,
        groups: &mut FxHashMap<Key, Group>,
        path: Path,
        wanted: Wanted,
        crowds: &FxHashSet<u32>,
    ) {
        let shape = self.shape(&path);
        let awaited = self.awaited(&path, &shape);
        let purpose = self.purpose(&path, &shape);
        let note = Note::of(self, &path, &awaited, purpose.as_ref());
        let key = Key {
            frames: if crowds.contains(&shape.alike) {
                shape.alike
            } else {
                shape.number
            },
            leaf: awaited.kind(),
            root: purpose.as_ref().map(Purpose::kind),
        };
        let leaf_text = awaited.text();
        let root_text = purpose.as_ref().map(Purpose::text).unwrap_or_default();
        let group = groups.entry(key).or_insert_with(|| Group {
            shape,
            leaf_texts: FxHashMap::default(),
            root_texts: FxHashMap::default(),
            paths: Vec::new(),
            keeps: None,
            counted: FxHashSet::default(),
            count: 0,
            tally: Tally::new(awaited, purpose),
        });
        group.tally.add(note);
        group.count = group.count.saturating_add(1);
        if wanted.locals
            && let Some(bytes) = self.path_keeps(&path, &mut group.counted)
        {
            group.keeps = Some(group.keeps.unwrap_or_default().saturating_add(bytes));
        }
        for (texts, text) in [
            (&mut group.leaf_texts, &leaf_text),
            (&mut group.root_texts, &root_text),
        ] {
            match texts.get_mut(text) {
                Some(n) => *n = n.saturating_add(1),
                None => {
                    texts.insert(text.clone(), 1);
                }
            }
        }
        // one more than is shown: all threads at the ends are needed, too
        let ends_at_thread = path.blocked.is_some() || self.hang().running.contains_key(&path.leaf);
        if group.paths.len() < wanted.members.max(1) || ends_at_thread {
            group.paths.push((path, leaf_text, root_text));
        }
    }

    /// Framework code that waits for work: nothing of the application, no request, no service behind it.
    fn is_idle(&self, group: &Group) -> bool {
        let Some((path, ..)) = group.paths.first() else {
            return false;
        };
        let kind = group.tally.awaited.kind();
        let purpose = group.tally.purpose.as_ref();
        let purpose = purpose.map_or(RootKind::None, Purpose::kind);
        let nobody = matches!(
            purpose,
            RootKind::None
                | RootKind::AsyncVoid
                | RootKind::Main
                | RootKind::Thread
                | RootKind::Activity
        );
        let mut names = group.shape.folded.iter().map(|(name, ..)| name);
        let idle_client = names.any(|name| is_long_lived(name));
        (nobody || idle_client)
            && !is_outgoing(kind)
            && group.shape.is_framework
            && kind != LeafKind::Cycle
            && self.is_idle_runner(path.leaf)
            && group.paths.iter().all(|(path, ..)| self.is_idle_end(path))
    }

    /// Whether nobody waits at the end of a path but threads of .NET's own and the main one, for the end of the host.
    /// What a thread of the program waits for is never idle.
    fn is_idle_end(&self, path: &Path) -> bool {
        let Some(wait) = path.blocked else {
            return true;
        };
        let mut waiting = self.hang().task_waits().filter(|(_, w)| *w == wait);
        let is_idle = |thread: &ThreadFacts| {
            thread.own_method().is_none() && !thread.frames.is_empty() && !path.frames.is_empty()
                || self.steps(path).any(|s| self.is_end_of_host(s))
        };
        waiting.next().is_some_and(|(thread, _)| is_idle(thread))
    }

    /// Whether no method of the program stands on the stack of the thread that runs what a path begins with.
    fn is_idle_runner(&self, leaf: NodeId) -> bool {
        let runner = self.hang().runner(leaf);
        runner.is_none_or(|(thread, _)| thread.own_method().is_none())
    }

    fn report_group(
        &self,
        id: String,
        signature: String,
        group: &Group,
        wanted: Wanted,
        idle: bool,
    ) -> ChainGroup {
        let mut leaf = group.tally.awaited.leaf();
        let mut root = group.tally.purpose.as_ref().map(Purpose::root);
        if let Some((path, ..)) = group.paths.first() {
            self.add_evidence(path, &mut leaf);
        }
        common_text(&mut leaf.text, &group.leaf_texts);
        group.tally.note_due(&mut leaf, &self.clock);
        if let Some(root) = &mut root {
            common_text(&mut root.text, &group.root_texts);
        }
        let frames = group
            .paths
            .first()
            .map(|(path, ..)| self.frames(path, wanted))
            .unwrap_or_default();
        let several = |texts: &FxHashMap<String, u64>| texts.len() > 1;
        let members: Vec<Member> = group
            .paths
            .iter()
            .take(wanted.members)
            .enumerate()
            .map(|(n, (path, leaf_text, root_text))| Member {
                id: format!("{id}.{}", n.saturating_add(1)),
                boxes: self.member_boxes(path),
                waits_on: self.graph.object(path.leaf).map(|o| Address(o.addr.0)),
                leaf: several(&group.leaf_texts).then(|| leaf_text.clone()),
                root: several(&group.root_texts).then(|| root_text.clone()),
                waiting_seconds: None,
                retained_bytes: wanted
                    .locals
                    .then(|| self.path_keeps(path, &mut FxHashSet::default()))
                    .flatten(),
            })
            .collect();
        let left_out = group.count.saturating_sub(members.len() as u64);
        let verdict = idle.then(|| Verdict {
            state: VerdictState::Idle,
            why: "framework code that waits for work".into(),
        });
        let own = signatures::of_chains(&frames, leaf.kind, root.as_ref().map(|r| r.kind));
        ChainGroup {
            id,
            signature,
            app_signature: own.text,
            names_incomplete: own.names_incomplete,
            count: group.count,
            retained_bytes: group.keeps,
            frames,
            leaf,
            root,
            members,
            members_left_out: left_out,
            verdict,
            waiting_seconds: group.tally.waiting(&self.clock),
            ..ChainGroup::default()
        }
    }

    fn member_boxes(&self, path: &Path) -> Vec<Address> {
        let objects = self
            .steps(path)
            .take(MAX_MEMBER_BOXES)
            .filter_map(|s| self.step_object(s));
        objects.map(|o| Address(o.0)).collect()
    }

    fn frames(&self, path: &Path, wanted: Wanted) -> Vec<Frame> {
        let mut out: Vec<Frame> = Vec::new();
        let mut below = (!path.cycle).then_some(path.leaf);
        let blocked = path.blocked.map(|node| Step { node, frame: None });
        for step in self.steps(path).chain(blocked) {
            let frame = self.frame(step, below);
            below = Some(step.node);
            match out.last_mut() {
                Some(last)
                    if last.method == frame.method
                        && (last.await_index, last.il_offset)
                            == (frame.await_index, frame.il_offset) =>
                {
                    last.repeat = last.repeat.saturating_add(1);
                }
                _ if wanted.locals => out.push(Frame {
                    locals: self.step_variables(step),
                    retained_bytes: self.step_keeps(step),
                    ..frame
                }),
                _ => out.push(frame),
            }
        }
        out
    }

    fn frame(&self, step: Step<'_>, below: Option<NodeId>) -> Frame {
        let kind = self.step_kind(step);
        let machine = self.graph.machines.get(&step.node);
        let object = self.step_object(step);
        let edge = below.and_then(|b| self.graph.awaited(step.node).find(|(from, _)| *from == b));
        let linked = edge.map(|(_, e)| format!("{} at {}", e.field, e.slot));
        let spot = self.step_spot(step);
        let index = self
            .step_await(step)
            .and_then(|state| u32::try_from(state).ok());
        let truth = machine.zip(edge.filter(|(_, e)| e.field == "awaiter"));
        let truth = truth.and_then(|(m, (_, e))| spot.awaiter_truth(self.rt, m, e.slot));
        let evidence: Vec<String> = linked
            .into_iter()
            .chain(truth)
            .chain(step.frame.map(Self::step_evidence))
            .collect();
        Frame {
            method: self.step_name(step).to_string(),
            kind,
            await_index: index,
            await_index_least: is_least_await(step),
            il_offset: step_offset(step).filter(|_| index.is_none()),
            awaits: spot.awaits.clone(),
            line: spot.location.as_ref().map(|l| l.line),
            file: spot.location.as_ref().map(|l| l.file.clone()),
            source_url: spot.url.clone(),
            address: object.map(|o| Address(o.0)),
            type_name: self
                .machine_place(step.node)
                .map(|place| Arc::clone(&place.ty))
                .or_else(|| self.rt.type_of(object?))
                .map(|t| self.rt.name(&t).to_string()),
            is_async_void: self.is_void(step.node),
            is_framework: self.is_framework_step(step) && kind != FrameKind::Thread,
            evidence: (!evidence.is_empty()).then(|| evidence.join("; ")),
            ..Frame::default()
        }
    }
}

/// Frames of connections that are open for as long as the client likes: web sockets and SignalR. When no method of the
/// program stands in their chain, they wait for the client to say something.
fn is_long_lived(method: &str) -> bool {
    const FRAMES: [&str; 3] = [
        "Microsoft.AspNetCore.Http.Connections.Internal.",
        "Microsoft.AspNetCore.SignalR.HubConnectionHandler",
        "System.Net.WebSockets.ManagedWebSocket.",
    ];
    FRAMES.iter().any(|f| method.starts_with(f))
}

/// Whether somebody outside is asked for something: whoever has asked waits for it, even where no frame tells who.
fn is_outgoing(kind: LeafKind) -> bool {
    use LeafKind as K;
    matches!(
        kind,
        K::HttpResponse
            | K::HttpConnectionPool
            | K::HttpBody
            | K::HttpRequestBody
            | K::SocketConnect
            | K::Dns
            | K::TlsHandshake
            | K::Database
            | K::DatabaseConnectionPool
            | K::Cache
            | K::MessageBroker
            | K::Grpc
    )
}

/// The text that most members share; says so when others differ.
fn common_text(text: &mut String, texts: &FxHashMap<String, u64>) {
    let mut all: Vec<_> = texts.iter().collect();
    all.sort_unstable_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    if let Some((most, _)) = all.first() {
        *text = if all.len() > 1 {
            let others = all.len().saturating_sub(1);
            format!(
                "{most} (and {others} other{})",
                if others == 1 { "" } else { "s" }
            )
        } else {
            (*most).clone()
        };
    }
}

impl Key {
    fn text(&self, frames: &Folded) -> String {
        let mut out = format!("{}|{}", self.leaf, self.root.unwrap_or_default());
        for (name, place, repeat) in frames {
            let at = match place {
                Some(Place::Await(number)) => number.to_string(),
                Some(Place::Offset(il)) => format!("il{il}"),
                None => "-".to_owned(),
            };
            out.push_str(&format!("|{name}@{at}x{repeat}"));
        }
        out
    }
}
