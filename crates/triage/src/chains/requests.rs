//! The requests that are being served.

use super::Groups;
use crate::libraries::server;
use crate::paths::Analysis;
use crate::threads::Hang;
use asynctriage_async_graph::Helper;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

impl Analysis<'_, '_> {
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
