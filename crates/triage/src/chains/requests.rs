//! The requests that are being served.

use super::Groups;
use crate::libraries::server;
use crate::paths::{Analysis, Step, steps_of};
use crate::threads::Hang;
use asynctriage_async_graph::{Helper, NodeId};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// Methods that are looked at outwards of one that runs, for the request that they serve.
const MAX_ABOVE: usize = 10_000;

impl Analysis<'_, '_> {
    /// Tells of threads that run a method which waits for no request itself: somebody that awaits it serves one.
    pub(crate) fn add_requests(&self, hang: &mut Hang) {
        let mut running: Vec<_> = hang.running.iter().map(|(id, r)| (*id, r.thread)).collect();
        running.sort_unstable();
        for (id, managed_id) in running {
            let threads = hang.threads.iter_mut();
            let mut unknown = threads.filter(|t| t.request.is_none());
            if let Some(thread) = unknown.find(|t| t.thread.managed_id == managed_id) {
                let request = self.request_above(id);
                thread.request = request.and_then(|o| server::read(self.rt, o, self.values));
            }
        }
    }

    /// The request that somebody serves who waits for the end of what runs.
    fn request_above(&self, running: NodeId) -> Option<Addr> {
        let mut seen = FxHashSet::default();
        let mut todo = vec![running];
        while let Some(id) = todo.pop().filter(|_| seen.len() < MAX_ABOVE) {
            if !seen.insert(id) {
                continue;
            }
            // the name of a running method that has no state machine is what is being found out
            let is_known = |s: &Step<'_>| s.frame.is_some() || self.machine_place(id).is_some();
            let mut steps = steps_of(&self.graph, id).filter(is_known);
            if let Some(request) = steps.find_map(|s| self.request_of_frame(s)) {
                return Some(request);
            }
            todo.extend(self.graph.waiters(id));
        }
        None
    }

    /// The objects of all requests that are served: those whose state says so, those that chains end at, and those on the
    /// stacks of threads.
    pub(crate) fn requests_in_flight(&self, groups: &Groups, hang: &Hang) -> Vec<Addr> {
        let servers = self.graph.helpers(Helper::ServerRequest).iter().copied();
        let mut all: Vec<Addr> = servers
            .filter(|o| server::is_served(self.rt, *o))
            .chain(
                groups
                    .tallies
                    .iter()
                    .flat_map(|t| t.requests.iter().copied()),
            )
            .chain(
                hang.threads
                    .iter()
                    .filter_map(|t| Some(t.request.as_ref()?.object)),
            )
            .collect();
        let mut seen = FxHashSet::default();
        all.retain(|o| seen.insert(*o));
        all
    }
}
