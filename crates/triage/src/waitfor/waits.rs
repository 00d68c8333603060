//! What each node waits for.

use super::Reader;
use super::graph::{Edge, Needs, Node, Waits};
use crate::completers::{Completes, Found};
use crate::holders::Holder;
use crate::threads::{ObjectWait, ThreadFacts, Wait, WaitsOn};
use asynctriage_async_graph::{Chosen, Class, Combinator, Edge as Link, NodeId, Witness};
use asynctriage_clr::Lock;
use asynctriage_dump::Addr;
use asynctriage_report::Confidence;

impl Reader<'_, '_, '_> {
    pub(super) fn waits(&self, node: Node) -> Waits {
        match node {
            Node::Thread(id) => self
                .thread(id)
                .map_or_else(Waits::default, |t| self.of_thread(t)),
            Node::Async(id) => self.of_async(id),
            Node::Lock(at) => self.of_lock(at),
            Node::ReaderWriter { lock, waiter } => self.of_reader_writer(lock, waiter),
            Node::Semaphore(at) => self.of_semaphore(at),
            Node::Event(at) => self
                .completers
                .of(at)
                .map_or_else(Waits::default, of_completers),
            Node::Pump(at) => self.of_pump(at),
            Node::Class(at) => self.of_owner(|w| w.on == WaitsOn::Class(Some(at))),
            Node::Callback(at) => self.of_owner(|w| w.on == WaitsOn::Callback && w.at == Some(at)),
        }
    }

    pub(super) fn thread(&self, id: u32) -> Option<&ThreadFacts> {
        let index = self.hang.by_managed_id(id)?;
        self.hang.threads.get(index)
    }

    fn of_thread(&self, thread: &ThreadFacts) -> Waits {
        let block = thread.block.as_ref();
        let certain = |slot: Option<Addr>, how: &'static str| Edge {
            slot,
            how: how.into(),
            confidence: Confidence::Certain,
        };
        let at = block.map(|b| b.at);
        let to = match &thread.wait {
            Some(Wait::Lock(lock)) => {
                let how = block.map_or("", |b| b.how);
                Some((Node::Lock(lock.at), certain(at, how)))
            }
            Some(Wait::Task(wait)) => {
                let how = block.map_or("the wait's object stands on its stack", |b| b.how);
                Some((Node::Async(*wait), certain(at, how)))
            }
            Some(Wait::Object(object)) => return self.of_object(thread, object),
            Some(Wait::Pulse(_) | Wait::Inside(..)) | None => None,
        };
        Waits {
            needs: Needs::All,
            on: to.into_iter().collect(),
        }
    }

    fn of_object(&self, thread: &ThreadFacts, object: &ObjectWait) -> Waits {
        let edge = object_edge(object);
        let waiter = thread.thread.managed_id;
        let to = match (object.on, object.at) {
            (WaitsOn::Read | WaitsOn::Write, Some(lock)) => Node::ReaderWriter { lock, waiter },
            (WaitsOn::Semaphore, Some(at)) => Node::Semaphore(at),
            (WaitsOn::Event, Some(at)) => Node::Event(at),
            (WaitsOn::Class(Some(class)), _) => Node::Class(class),
            (WaitsOn::Callback, Some(at)) => Node::Callback(at),
            (WaitsOn::Other, Some(at)) if !object.owners.is_empty() => Node::Lock(at),
            _ => {
                let owners = object.owners.iter();
                return Waits {
                    needs: Needs::All,
                    on: owners.map(|id| (Node::Thread(*id), edge.clone())).collect(),
                };
            }
        };
        Waits {
            needs: Needs::All,
            on: vec![(to, edge)],
        }
    }

    fn of_lock(&self, at: Addr) -> Waits {
        let lock = self.hang.threads.iter().find_map(|t| match &t.wait {
            Some(Wait::Lock(lock)) if lock.at == at => Some(lock),
            _ => None,
        });
        let Some((lock, owner)) = lock.and_then(|l: &Lock| Some((l, l.owner?))) else {
            // a mutex
            return self.of_owner(|w| w.on == WaitsOn::Other && w.at == Some(at));
        };
        if self.a.threads.has_ended(owner) {
            return Waits {
                needs: Needs::Never,
                on: Vec::new(),
            };
        }
        if self.thread(owner).is_none() {
            return Waits::default();
        }
        let edge = Edge {
            slot: Some(lock.at),
            how: lock.how.into(),
            confidence: Confidence::Certain,
        };
        Waits {
            needs: Needs::All,
            on: vec![(Node::Thread(owner), edge)],
        }
    }

    /// Who reads waits for who writes, and for those who wait to write: they go first. Who writes waits for all.
    fn of_reader_writer(&self, lock: Addr, waiter: u32) -> Waits {
        let object = self.thread(waiter).and_then(|t| match &t.wait {
            Some(Wait::Object(object)) if object.at == Some(lock) => Some(object),
            _ => None,
        });
        let Some(object) = object else {
            return Waits::default();
        };
        let threads = self.hang.threads.iter();
        let writers = threads.filter(|t| {
            let wait = t.wait.as_ref();
            matches!(wait, Some(Wait::Object(o)) if o.at == Some(lock) && o.on == WaitsOn::Write)
        });
        let ids: Vec<(u32, &'static str)> = match object.on {
            WaitsOn::Read if object.writes => known(&object.owners, "entered for writing"),
            WaitsOn::Read => {
                let ids: Vec<u32> = writers.map(|t| t.thread.managed_id).collect();
                known(&ids, "it wants to write and comes before new readers")
            }
            _ => known(
                &object.owners,
                "the lock's own fields, and the lists that threads keep of the locks they have entered",
            ),
        };
        let edge = |(id, how): (u32, &'static str)| {
            let edge = Edge {
                slot: Some(lock),
                how: how.into(),
                confidence: Confidence::Certain,
            };
            (Node::Thread(id), edge)
        };
        Waits {
            needs: if object.ended > 0 && object.on == WaitsOn::Write {
                Needs::Never
            } else {
                Needs::All
            },
            on: ids.into_iter().map(edge).collect(),
        }
    }

    /// A place becomes free when one of those who are inside leaves.
    fn of_semaphore(&self, at: Addr) -> Waits {
        let inside: &[Holder] = self.holders.of(at);
        if let Some(found) = self.completers.of(at).filter(|_| inside.is_empty()) {
            return of_completers(found);
        }
        let found = self.completers.of(at);
        let open = self.holders.may_hold_more(self.a.rt, at)
            || found.is_some_and(|f| f.is_released_otherwise);
        let edge = |holder: &Holder| {
            let edge = Edge {
                slot: holder.slot,
                how: holder.how.clone().into(),
                confidence: holder.confidence,
            };
            (holder.who.into(), edge)
        };
        // whoever releases it without having entered gives a place away as well
        let is_inside = |c: &Completes| inside.iter().any(|h| h.who == c.who);
        let others = found.into_iter().flat_map(|f| &f.by);
        let others = others.filter(|c| !is_inside(c)).map(of_completer);
        Waits {
            needs: Needs::Any { open },
            on: inside.iter().map(edge).chain(others).collect(),
        }
    }

    /// What another thread runs, by the waits for it.
    fn of_owner(&self, is_it: impl Fn(&ObjectWait) -> bool) -> Waits {
        let mut waits = self.hang.threads.iter().filter_map(|t| match &t.wait {
            Some(Wait::Object(object)) if is_it(object) => Some(object),
            _ => None,
        });
        let Some(object) = waits.next() else {
            return Waits::default();
        };
        let owners = object.owners.iter();
        Waits {
            needs: Needs::All,
            on: owners
                .map(|id| (Node::Thread(*id), object_edge(object)))
                .collect(),
        }
    }

    fn of_async(&self, id: NodeId) -> Waits {
        let graph = &self.a.graph;
        let Some(node) = graph.object(id) else {
            return Waits::default();
        };
        let mut out = Waits::default();
        if let Some((thread, edge)) = self.runs_on(id) {
            out.on.push((Node::Thread(thread), edge));
            return out;
        }
        if let Some(semaphore) = graph.semaphores.get(&node.addr) {
            let how = "the queue of the semaphore, from m_asyncHead on";
            out.on
                .push((Node::Semaphore(*semaphore), certain(Some(node.addr), how)));
            return out;
        }
        let channel = self.a.channel_waits.get(&node.addr).map(|w| w.channel);
        let source = graph.completion_sources.get(&node.addr).copied();
        let source = source.or(channel).unwrap_or(node.addr);
        if let Some(found) = self.completers.of(source) {
            return of_completers(found);
        }
        let awaited = graph.awaited(id);
        let is_denied = |from| graph.is_contradicted(id) || graph.is_contradicted(from);
        out.on.extend(
            awaited.map(|(from, edge)| (Node::Async(from), of_link(&edge, is_denied(from)))),
        );
        let is_any = node.class == Class::Combinator(Combinator::WhenAny)
            || graph
                .machines
                .get(&id)
                .is_some_and(|m| m.chosen == Chosen::Unclear);
        if is_any {
            out.needs = Needs::Any {
                open: !self.knows_all(id),
            };
        }
        let pump = self.pump_of(id);
        if let Some((pump, edge)) = pump.filter(|_| !is_any) {
            out.on.push((Node::Pump(pump), edge));
        }
        out
    }

    /// The tasks of sources that somebody's code completes, ascending.
    pub(super) fn completed_sources(&self) -> Vec<Node> {
        let graph = &self.a.graph;
        let is_completed = |source| {
            let found = self.completers.of(source);
            found.is_some_and(|f| !f.by.is_empty())
        };
        let sources = graph.completion_sources.iter();
        let tasks = sources.filter(|(_, s)| is_completed(**s)).map(|(t, _)| *t);
        let channels = self.a.channel_waits.iter();
        let operations = channels.filter(|(_, w)| is_completed(w.channel));
        let tasks = tasks.chain(operations.map(|(operation, _)| *operation));
        // sources of value tasks are nodes themselves
        let tasks = tasks.chain(self.completers.completed());
        let nodes = tasks.filter_map(|at| Some(Node::Async(graph.node(at)?)));
        let mut nodes: Vec<Node> = nodes.collect();
        nodes.sort_unstable();
        nodes
    }

    /// Whether everything is known that can complete a `WhenAny`: as many links as it has tasks.
    fn knows_all(&self, id: NodeId) -> bool {
        let rt = self.a.rt;
        let Some(node) = self.a.graph.object(id) else {
            return false;
        };
        if node.class != Class::Combinator(Combinator::WhenAny) {
            return true;
        }
        let links = self.a.graph.awaited(id).count() as u64;
        let wanted = if rt.reference(node.addr, "_task1").is_some() {
            Some(2)
        } else {
            rt.reference(node.addr, "_tasks").and_then(|tasks| {
                rt.array_len(tasks)
                    .or_else(|| rt.field_u32(tasks, "_size").map(u64::from))
            })
        };
        wanted.is_some_and(|count| links >= count)
    }
}

/// Whoever completes it first ends the wait.
fn of_completers(found: &Found) -> Waits {
    Waits {
        needs: Needs::Any {
            open: found.is_open,
        },
        on: found.by.iter().map(of_completer).collect(),
    }
}

fn of_completer(c: &Completes) -> (Node, Edge) {
    let edge = Edge {
        slot: c.slot,
        how: c.how.clone().into(),
        confidence: c.confidence,
    };
    (c.who.into(), edge)
}

pub(super) fn certain(slot: Option<Addr>, how: &'static str) -> Edge {
    Edge {
        slot,
        how: how.into(),
        confidence: Confidence::Certain,
    }
}

/// A link that only one of its ends keeps is believed less, and so is one between methods of whose links another is denied.
fn of_link(link: &Link, is_denied: bool) -> Edge {
    Edge {
        slot: Some(link.slot),
        how: link.field.into(),
        confidence: if link.witness == Witness::Both && !is_denied {
            Confidence::Certain
        } else {
            Confidence::Likely
        },
    }
}

fn known(ids: &[u32], how: &'static str) -> Vec<(u32, &'static str)> {
    ids.iter().map(|id| (*id, how)).collect()
}

fn object_edge(object: &ObjectWait) -> Edge {
    Edge {
        slot: object.at,
        how: object.how.clone().into(),
        confidence: if object.is_possible {
            Confidence::Possible
        } else {
            Confidence::Certain
        },
    }
}
