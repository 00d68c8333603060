//! What was asked about: an address, a chain or a thread as something that waits or runs.

use super::{Item, MAX_GROUPS, Scene, Subject};
use crate::chains::Tally;
use crate::waitfor::Node;
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use asynctriage_report::{Address, Thread};

impl Scene<'_, '_, '_> {
    /// The subject in words, and what it is; `None` when there is no such thing, or it neither waits nor runs.
    pub(super) fn resolve(&self, subject: &Subject) -> Option<(String, Vec<Item>)> {
        match subject {
            Subject::Chain(id) => {
                let wanted = id.split_once('.').map_or(id.as_str(), |(group, _)| group);
                let mut groups = self.report.chains.iter().enumerate();
                let (index, group) = groups.find(|(_, g)| g.id.eq_ignore_ascii_case(wanted))?;
                Some((format!("chain {}", group.id), vec![Item::Group(index)]))
            }
            Subject::Thread(number) => {
                let rows = self.report.threads.iter();
                let by_os = rows.clone().find(|t| t.os_id == *number);
                let by_managed = || {
                    let mut rows = rows.clone();
                    rows.find(|t| t.managed_id.map(u64::from) == Some(*number))
                };
                let row = by_os.or_else(by_managed)?;
                let item = Item::Thread(row.managed_id?);
                Some((format!("thread {}", row.os_id), vec![item]))
            }
            Subject::Object(addr) => {
                let items = self.of_object(*addr);
                let name = self.a.rt.object_type_name(*addr);
                let text = format!("{addr} {}", name.as_deref().unwrap_or("(no object)"));
                (!items.is_empty()).then_some((text, items))
            }
        }
    }

    /// Everything that an object means and that waits or runs, the nearest meaning first.
    fn of_object(&self, addr: Addr) -> Vec<Item> {
        let (rt, graph) = (self.a.rt, &self.a.graph);
        if let Some(groups) = self.through.get(&Address(addr.0)) {
            return groups.iter().copied().map(Item::Group).collect();
        }
        if let Some(id) = graph.node(addr) {
            let found = self.of_node(id);
            if !found.is_empty() {
                return found;
            }
        }
        if rt.object_type_name(addr).as_deref() == Some("System.Threading.Thread") {
            let id = rt.field_u32(addr, "_managedThreadId");
            let row = id.and_then(|id| self.thread_row(id)?.managed_id);
            return row.map(Item::Thread).into_iter().collect();
        }
        // sources stand for their tasks, semaphores and locks for those who are inside
        let task = graph
            .completion_sources
            .iter()
            .find(|(_, source)| **source == addr);
        let of_source = task.and_then(|(task, _)| graph.node(*task));
        if let Some(id) = of_source {
            return self.of_node(id);
        }
        for node in [Node::Semaphore(addr), Node::Lock(addr)] {
            let found = self.awaited(node);
            if !found.is_empty() {
                return found.into_iter().map(|(item, _)| item).collect();
            }
        }
        let held = self.of_held(addr);
        if !held.is_empty() {
            return held;
        }
        self.of_request(addr)
    }

    /// The threads that hold something, else those that wait for it.
    fn of_held(&self, addr: Addr) -> Vec<Item> {
        let wanted = Some(Address(addr.0));
        let rows = || self.report.threads.iter();
        let holders = rows().filter(|t| t.holds.iter().any(|h| h.address == wanted));
        let waiters = rows().filter(|t| t.waits_on.as_ref().is_some_and(|w| w.address == wanted));
        let items = |found: Vec<&Thread>| -> Vec<Item> {
            let ids = found.into_iter().filter_map(|t| t.managed_id);
            ids.take(MAX_GROUPS).map(Item::Thread).collect()
        };
        let held = items(holders.collect());
        if held.is_empty() {
            items(waiters.collect())
        } else {
            held
        }
    }

    /// The chains that go through a node, end at it, or wait for it.
    fn of_node(&self, id: NodeId) -> Vec<Item> {
        if let Some((thread, _)) = self.a.hang().runner(id) {
            return vec![Item::Thread(thread.thread.managed_id)];
        }
        let mut groups = self.groups_of(id);
        if groups.is_empty() {
            let below = self.a.graph.awaited(id).map(|(from, _)| from);
            let above = self.a.graph.waiters(id);
            groups = below.chain(above).flat_map(|n| self.groups_of(n)).collect();
            groups.sort_unstable();
            groups.dedup();
        }
        groups.into_iter().map(Item::Group).collect()
    }

    /// The chain or thread that serves a request, by the object of the request.
    fn of_request(&self, addr: Addr) -> Vec<Item> {
        let serves = |t: &Tally| t.requests.contains(&addr);
        let group = self.tallies.iter().position(serves);
        group.map(Item::Group).into_iter().collect()
    }
}
