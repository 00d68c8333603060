//! A deadlock in words.

use super::super::{Facts, fact};
use crate::findings::locks::{lock_text, object_text};
use crate::paths::steps_of;
use crate::threads::{ThreadFacts, Wait};
use crate::waitfor::{Knot, Node};
use crate::words::listed;
use asynctriage_async_graph::NodeId;
use asynctriage_clr::FrameSource;
use asynctriage_dump::Addr;
use asynctriage_report::Evidence;
use rustc_hash::FxHashSet;

/// Frames of one task that are named.
const MAX_FRAMES: usize = 8;

pub(super) struct Words<'a, 'r, 'd, 'k> {
    pub(super) facts: Facts<'a, 'r, 'd>,
    pub(super) knot: &'k Knot,
}

/// From one who acts to the next: what stands between them, and who that is.
struct Way {
    over: Vec<Node>,
    to: Node,
}

impl<'a> Words<'a, '_, '_, '_> {
    fn thread(&self, id: u32) -> Option<&'a ThreadFacts> {
        let index = self.facts.hang.by_managed_id(id)?;
        self.facts.hang.threads.get(index)
    }

    /// Whether a member does something itself: a thread, or a method.
    fn acts(&self, node: Node) -> bool {
        match node {
            Node::Thread(_) => true,
            Node::Async(id) => {
                self.method(id).is_some() && (self.is_own(id) || !self.has_own_methods())
            }
            _ => false,
        }
    }

    /// Whether a method is not .NET's alone: what a program calls of .NET only stands between its methods.
    fn is_own(&self, id: NodeId) -> bool {
        let a = self.facts.a;
        !steps_of(&a.graph, id).all(|step| a.is_framework_step(step))
    }

    fn has_own_methods(&self) -> bool {
        let mut members = self.knot.members.iter();
        members.any(|m| matches!(m, Node::Async(id) if self.is_own(*id)))
    }

    /// The method or methods of a task.
    pub(super) fn method(&self, id: NodeId) -> Option<String> {
        let a = self.facts.a;
        if let Some(operation) = a.graph.operations.get(&id) {
            let frames = operation.async_frames().take(MAX_FRAMES);
            let names: Vec<&str> = frames.map(|f| &*f.name).collect();
            return (!names.is_empty()).then(|| names.join(" inside "));
        }
        let node = a.graph.object(id)?;
        if let Some(name) = a.box_method(node) {
            return Some(name.to_string());
        }
        if a.graph.machines.contains_key(&id) || a.graph.for_each.contains_key(&id) {
            return Some(a.frame_name(id).to_string());
        }
        if !a.graph.running.contains_key(&id) {
            return None;
        }
        let edges = self.knot.edges.iter();
        let mut threads = edges.filter_map(|(from, to, _)| match (from, to) {
            (Node::Async(of), Node::Thread(thread)) if *of == id => self.thread(*thread),
            _ => None,
        });
        let thread = threads.next()?;
        let mut frames = thread.frames.iter();
        let own = frames.find(|f| {
            f.frame.source != FrameSource::StackScan
                && !f.owner.is_framework()
                && a.rt.is_runtime_async(&f.frame.method)
        });
        let method = own.map(|f| f.name.to_string());
        method.or_else(|| Some(thread.own_method()?.0.name.to_string()))
    }

    /// A member by name.
    pub(super) fn name(&self, node: Node) -> String {
        let a = self.facts.a;
        let object = |at: Addr| object_text(self.facts, at);
        match node {
            Node::Thread(id) => match self.thread(id) {
                Some(thread) => {
                    let place = thread
                        .own_method()
                        .filter(|_| thread.thread.name.is_none() || thread.thread.is_pool())
                        .map(|(m, _)| format!(" {}", m.place("in")))
                        .unwrap_or_default();
                    format!("thread {}{place}", thread.title())
                }
                None => format!("managed thread {id}"),
            },
            Node::Async(id) => self.method(id).unwrap_or_else(|| a.node_text(id)),
            Node::Lock(at) => self.lock(at),
            Node::ReaderWriter { lock, waiter } => {
                let wait = self.thread(waiter).and_then(|t| t.wait.as_ref());
                match wait {
                    Some(Wait::Object(o)) => o.text.clone(),
                    _ => object(lock),
                }
            }
            Node::Semaphore(at) => self.semaphore(at),
            Node::Pump(at) | Node::Event(at) => object(at),
            Node::Class(mt) => {
                let ty = a.rt.ty(mt).map(|t| a.rt.name(&t).replace('+', "."));
                format!("the class constructor of {}", ty.unwrap_or_default())
            }
            Node::Callback(at) => format!("a callback of a cancellation ({at})"),
        }
    }

    fn lock(&self, at: Addr) -> String {
        let threads = self.facts.hang.threads.iter();
        let mut text = threads.filter_map(|t| match &t.wait {
            Some(Wait::Lock(lock)) if lock.at == at => Some(lock_text(self.facts, lock)),
            Some(Wait::Object(object)) if object.at == Some(at) => Some(object.text.clone()),
            _ => None,
        });
        text.next().unwrap_or_else(|| format!("the lock {at}"))
    }

    fn semaphore(&self, at: Addr) -> String {
        let graph = &self.facts.a.graph;
        let waiting = graph.semaphores.iter().filter(|(_, s)| **s == at);
        let mut waiting: Vec<NodeId> = waiting.filter_map(|(w, _)| graph.node(*w)).collect();
        waiting.sort_unstable();
        let field = self
            .facts
            .a
            .field_that_holds(self.facts.users, at, &waiting);
        match field {
            Some(field) => format!("a place of SemaphoreSlim {field} {at}"),
            None => format!("a place of SemaphoreSlim {at}"),
        }
    }

    /// Who acts, in their order.
    fn actors(&self) -> Vec<Node> {
        let members = self.knot.members.iter().copied();
        members.filter(|n| self.acts(*n)).collect()
    }

    /// Names that make two deadlocks alike, beginning at the lowest.
    pub(super) fn shape(&self) -> Vec<String> {
        let name = |node: Node| match node {
            Node::Thread(id) => self.thread(id).map(ThreadFacts::name).unwrap_or_default(),
            other => self.name(other),
        };
        let mut names: Vec<String> = self.actors().into_iter().map(name).collect();
        let lowest = names.iter().enumerate().min_by_key(|(_, n)| n.as_str());
        let lowest = lowest.map_or(0, |(i, _)| i);
        names.rotate_left(lowest);
        names
    }

    pub(super) fn title(&self, over: &[&str]) -> String {
        let short = |node: Node| match node {
            Node::Thread(id) => {
                let name = self.thread(id).map(ThreadFacts::name);
                format!("thread '{}'", name.unwrap_or_else(|| id.to_string()))
            }
            other => self.name(other),
        };
        let mut names: Vec<(String, usize)> = Vec::new();
        for name in self.actors().into_iter().map(short) {
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => *times = times.saturating_add(1),
                None => names.push((name, 1)),
            }
        }
        let over = listed(over);
        if let [(only, 1)] = names.as_slice() {
            return format!("Deadlock: {only} waits for itself over {over}");
        }
        let names: Vec<String> = names
            .into_iter()
            .map(|(name, times)| match times {
                1 => name,
                n => format!("{n} x {name}"),
            })
            .collect();
        format!(
            "Deadlock: {} wait for each other over {over}",
            listed(&names)
        )
    }

    /// A member by name, with its address where another one is called the same.
    fn told(&self, node: Node) -> String {
        let name = self.name(node);
        let alike = self.actors().into_iter().filter(|n| self.name(*n) == name);
        match (alike.count(), self.address(node)) {
            (2.., Some(at)) => format!("{name} ({at})"),
            _ => name,
        }
    }

    /// What each one who acts waits for, and who has it.
    pub(super) fn steps(&self) -> Vec<String> {
        let actors = self.actors();
        actors.into_iter().map(|a| self.step(a)).collect()
    }

    fn step(&self, actor: Node) -> String {
        let mut parts = Vec::new();
        for way in self.ways(actor) {
            parts.push(self.way(actor, &way));
        }
        parts.dedup();
        format!("{} {}", self.told(actor), listed(&parts))
    }

    fn way(&self, actor: Node, way: &Way) -> String {
        let to = self.told(way.to);
        let resource = way.over.iter().find(|n| !matches!(n, Node::Async(_)));
        match (actor, resource, way.to) {
            (Node::Async(_), Some(pump @ Node::Pump(_)), _) => {
                format!("goes on in {}, which {to} runs", self.name(*pump))
            }
            (_, Some(pump @ Node::Pump(_)), _) => {
                format!("waits for work of {}, which {to} runs", self.name(*pump))
            }
            (_, Some(class @ Node::Class(_)), _) => {
                format!("waits for {}, which {to} runs", self.name(*class))
            }
            (_, Some(callback @ Node::Callback(_)), _) => {
                format!("waits for {}, which {to} runs", self.name(*callback))
            }
            (_, Some(Node::Semaphore(at)), _) if self.is_signal(*at) => {
                let place = self.name(Node::Semaphore(*at));
                format!("waits for {place}, which {to} is to release")
            }
            (_, Some(event @ Node::Event(_)), _) => {
                format!("waits for {}, which {to} is to set", self.name(*event))
            }
            (_, Some(other), _) => format!("waits for {}, held by {to}", self.name(*other)),
            (_, None, _) if way.over.last().is_some_and(|n| self.is_channel(*n)) => {
                format!("waits for a channel that {to} is to use")
            }
            (_, None, _) if way.over.last().is_some_and(|n| self.is_source(*n)) => {
                format!("waits for what {to} is to complete")
            }
            (Node::Thread(_), None, Node::Thread(_)) => format!("waits for the end of {to}"),
            (Node::Thread(_), None, _) => format!("waits for the task of {to}, synchronously"),
            (_, None, Node::Thread(_)) => format!("runs on {to}"),
            (_, None, _) => format!("awaits {to}"),
        }
    }

    /// The ways from one who acts to the next ones.
    fn ways(&self, actor: Node) -> Vec<Way> {
        let mut out = Vec::new();
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut todo: Vec<(Node, Vec<Node>)> = vec![(actor, Vec::new())];
        while let Some((at, over)) = todo.pop() {
            let targets = self.knot.edges.iter().filter(|(from, ..)| *from == at);
            for (_, to, _) in targets {
                if self.acts(*to) {
                    out.push(Way {
                        over: over.clone(),
                        to: *to,
                    });
                } else if seen.insert(*to) {
                    let mut further = over.clone();
                    further.push(*to);
                    todo.push((*to, further));
                }
            }
        }
        out
    }

    /// One wait, as evidence.
    pub(super) fn edge(&self, from: Node, to: Node) -> String {
        let (name, target) = (self.name(from), self.name(to));
        match (from, to) {
            (Node::Thread(_), Node::Thread(_)) => format!("{name} waits for the end of {target}"),
            (Node::Thread(_), _) => format!("{name} waits for {target}"),
            (Node::Async(_), Node::Thread(_)) => format!("{name} runs on {target}"),
            (Node::Async(_), Node::Pump(_)) => format!("{name} goes on in {target}"),
            (Node::Async(_), _) if self.is_channel(from) => {
                format!("{target} is to read from or write to the channel of {name}")
            }
            (Node::Async(_), _) if self.is_source(from) => {
                format!("{target} is to complete {name}")
            }
            (Node::Async(_), _) => format!("{name} waits for {target}"),
            (Node::Pump(_) | Node::Class(_) | Node::Callback(_), _) => {
                format!("{target} runs {name}")
            }
            (Node::Semaphore(at), _) if self.is_signal(at) => {
                format!("{target} is to release {name}")
            }
            (Node::Event(_), _) => format!("{target} is to set {name}"),
            _ => format!("{target} holds {name}"),
        }
    }

    /// Whether nobody is inside a semaphore: who waits for it waits to be told of something.
    fn is_signal(&self, at: Addr) -> bool {
        self.facts.deadlocks.holders.of(at).is_empty()
    }

    /// Whether a node is a read from or a write to a channel.
    fn is_channel(&self, node: Node) -> bool {
        let a = self.facts.a;
        let Node::Async(id) = node else { return false };
        let object = a.graph.object(id);
        object.is_some_and(|n| a.channel_waits.contains_key(&n.addr))
    }

    /// Whether a node is the task of a source that somebody has to complete.
    fn is_source(&self, node: Node) -> bool {
        let graph = &self.facts.a.graph;
        let Node::Async(id) = node else { return false };
        let object = graph.object(id).map(|n| n.addr);
        object.is_some_and(|at| {
            let source = graph.completion_sources.get(&at).copied();
            self.facts
                .deadlocks
                .completers
                .of(source.unwrap_or(at))
                .is_some()
        })
    }

    /// Where a member is.
    pub(super) fn address(&self, node: Node) -> Option<Addr> {
        match node {
            Node::Thread(id) => self.thread(id).and_then(|t| t.thread.object),
            Node::Async(id) => self.facts.a.graph.object(id).map(|n| n.addr),
            Node::ReaderWriter { lock, .. } => Some(lock),
            Node::Lock(at)
            | Node::Semaphore(at)
            | Node::Event(at)
            | Node::Pump(at)
            | Node::Class(at)
            | Node::Callback(at) => Some(at),
        }
    }

    /// How many places the semaphores have.
    pub(super) fn own_semaphores(&self, facts: Facts<'_, '_, '_>) -> Vec<Evidence> {
        let semaphores = self.knot.members.iter().filter_map(|n| match n {
            Node::Semaphore(at) => Some(*at),
            _ => None,
        });
        semaphores
            .map(|at| {
                let limit = facts.a.rt.field_i32(at, "m_maxCount");
                let of = limit.filter(|n| *n != i32::MAX);
                let of = of.map_or_else(|| "no upper limit".to_owned(), |n| format!("{n} places"));
                let inside = facts.deadlocks.holders.of(at).len();
                fact(
                    format!(
                        "{}: {of}, none is free, {inside} are known to be inside",
                        self.name(Node::Semaphore(at))
                    ),
                    Some(at),
                    "m_maxCount, m_currentCount; who is inside by the code of the methods",
                )
            })
            .collect()
    }
}
