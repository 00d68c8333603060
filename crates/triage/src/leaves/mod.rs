//! What a chain waits for in the end.

mod client;
mod io;
mod object;
mod running;

use crate::facts::Awaited;
use crate::libraries::{self, http_client};
use crate::paths::{Analysis, Path, Shape};
use asynctriage_async_graph::{Chosen, Node};
use asynctriage_report::{Confidence, Leaf, LeafKind};

/// Where the first request of a handler waits until its parts are made (10.0 and later).
const HANDLER_SETUP: &str =
    "System.Net.Http.SocketsHttpHandler.SendAsync.CreateHandlerAndSendAsync";

/// Kinds that a frame above may replace by what it stands for.
fn is_plumbing(kind: LeafKind) -> bool {
    use LeafKind as K;
    matches!(
        kind,
        K::SocketReceive
            | K::SocketSend
            | K::SocketConnect
            | K::TaskCompletionSource
            | K::ValueTaskSource
            | K::Unknown
            | K::PipeRead
            | K::Semaphore
    )
}

impl Analysis<'_, '_> {
    /// What a path waits for.
    pub(crate) fn awaited(&self, path: &Path, shape: &Shape) -> Awaited {
        if path.cycle {
            return self.cycle(path);
        }
        let Some(node) = self.graph.object(path.leaf) else {
            return Awaited::Missing;
        };
        if let Some(running) = self.running(path, node) {
            return running;
        }
        let mut found = self.awaited_object(path, node);
        let kind = found.kind();
        if is_plumbing(kind) {
            found = self.lift(path, shape, found);
            if shape.in_library {
                found = self.lift_to_library(path, found);
            }
        } else if kind == LeafKind::TaskQueued && self.is_handler_setup(path) {
            found = self.unsent(path, found);
        } else if kind == LeafKind::ChannelRead && self.is_inside_library(path) {
            found = self.lift_to_library(path, found);
        }
        if self.is_dead(path) {
            found = Awaited::Unreachable(Box::new(found));
        }
        found
    }

    /// Adds what shows that a path waits for its leaf, and how sure that is.
    pub(crate) fn add_evidence(&self, path: &Path, found: &mut Leaf) {
        let Some(node) = self.graph.object(path.leaf).filter(|_| !path.cycle) else {
            return;
        };
        found.confidence = self.chain_confidence();
        let mut evidence = self.leaf_evidence(path, node);
        if let Some((_, runs)) = self.hang().runner(path.leaf) {
            evidence = format!("{}; {evidence}", runs.how);
            if runs.is_possible {
                found.confidence = Some(Confidence::Possible);
            }
        }
        let machine = path.frames.first().and_then(|f| self.graph.machines.get(f));
        match machine.map(|m| m.chosen).unwrap_or_default() {
            Chosen::Only => {}
            Chosen::ByCode => {
                evidence.push_str("; other awaiters of the method hold old values, by its code");
            }
            Chosen::Confirmed => {
                evidence.push_str("; other awaiters hold something too, but what they hold does not resume the method");
            }
            Chosen::Unclear => {
                evidence.push_str(
                    "; several awaiters of the method hold something, and its code, which tells the one that counts, is not in the dump",
                );
                found.confidence = Some(Confidence::Possible);
            }
        }
        found.evidence = Some(evidence);
    }

    /// Whether a chain is garbage: nothing reaches what it begins with, and nobody alive waits for its end. Who reaches the
    /// innermost method reaches what it awaits, so one test per end is enough. Where the ends of a link disagree, what
    /// reaches what is not known either.
    fn is_dead(&self, path: &Path) -> bool {
        let mut nodes = path.frames.iter().chain([&path.leaf]);
        if nodes.any(|id| self.graph.is_contradicted(*id)) {
            return false;
        }
        let reached = |id| {
            let node = self.graph.object(id);
            node.is_some_and(|n| self.is_reachable(n.addr))
        };
        !reached(path.innermost()) && !reached(path.outermost())
    }

    /// A cycle waits for itself; others can wait for it from outside.
    fn cycle(&self, path: &Path) -> Awaited {
        let member = self.frame_name(path.leaf);
        if path.frames.contains(&path.leaf) {
            return Awaited::Cycle { member };
        }
        let at = self.graph.object(path.leaf).map(|n| n.addr);
        Awaited::OutsideCycle { member, at }
    }

    fn leaf_evidence(&self, path: &Path, node: Node) -> String {
        let edge = path
            .frames
            .first()
            .and_then(|f| self.graph.awaited(*f).find(|(from, _)| *from == path.leaf));
        match edge {
            Some((_, e)) => format!(
                "{} at {} names {} ({})",
                e.field,
                e.slot,
                node.addr,
                self.type_name(node.mt)
            ),
            None => format!("object {} ({})", node.addr, self.type_name(node.mt)),
        }
    }

    /// A request whose handler is not made yet.
    fn unsent(&self, path: &Path, found: Awaited) -> Awaited {
        let mut steps = self.steps(path);
        let request =
            steps.find_map(|s| http_client::request_among(self.rt, &self.captured(s), self.values));
        match request {
            Some((message, request)) => Awaited::HttpUnsent {
                message,
                request,
                over: Box::new(found),
            },
            None => found,
        }
    }

    /// The process whose end a method waits for.
    fn process_among(&self, path: &Path) -> Option<i32> {
        let mut variables = self.steps(path).flat_map(|s| self.captured(s));
        variables.find_map(|v| {
            let is_process = self.rt.object_type_name(v)?.as_ref() == "System.Diagnostics.Process";
            is_process.then(|| self.rt.field_i32(v, "_processId"))?
        })
    }

    /// Whether the innermost method is one of a client library: what it waits with is the library's own.
    fn is_inside_library(&self, path: &Path) -> bool {
        let innermost = self.steps(path).next();
        innermost.is_some_and(|s| matches!(self.step_owner(s), libraries::Owner::Library(_)))
    }

    fn is_handler_setup(&self, path: &Path) -> bool {
        let innermost = self.steps(path).next();
        innermost.is_some_and(|s| self.step_name(s).starts_with(HANDLER_SETUP))
    }

    /// The nearest frame above that stands for a wait of its own kind.
    fn lift(&self, path: &Path, shape: &Shape, found: Awaited) -> Awaited {
        let mut kinds = shape.stands_for.iter();
        let is_semaphore = found.kind() == LeafKind::Semaphore;
        let passes = |kind: &&LeafKind| **kind == LeafKind::HttpResponse || !is_semaphore;
        let Some(kind) = kinds.find(passes).copied() else {
            return found;
        };
        let request = self
            .steps(path)
            .find_map(|s| http_client::request_among(self.rt, &self.captured(s), self.values));
        let over = Box::new(found);
        let lifted = match request {
            Some((message, request)) => Awaited::Http {
                kind,
                message,
                request,
                over,
            },
            None => Awaited::Kind { kind, over },
        };
        let process = (kind == LeafKind::ProcessExit).then(|| self.process_among(path));
        match process.flatten() {
            Some(id) => Awaited::Process {
                id,
                over: Box::new(lifted),
            },
            None => lifted,
        }
    }
}
