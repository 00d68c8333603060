//! The figures of the thread pool.

use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// From the begin of `PortableThreadPool._separated` to the counts: they have a cache line of their own (8.0 to 11.0).
const COUNTS: u64 = 64;
/// 16 bits each: workers that process work, that exist, that are wanted. The top bit of 11.0 is a flag.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = 0x7fff;
/// The figures of the managed pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolFacts {
    pub(crate) object: Addr,
    pub(crate) processing: Option<u64>,
    pub(crate) existing: Option<u64>,
    pub(crate) goal: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    /// Workers that block in `Task.Wait` and the like, as the pool counts them.
    pub(crate) blocked: Option<u64>,
}

impl PoolFacts {
    /// The managed pool, when the process has used it.
    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Option<Self> {
        let object = *graph.helpers(Helper::Pool).first()?;
        let short = |name| {
            let at = rt.field_addr(object, name)?;
            rt.memory().u16(at).map(u64::from)
        };
        let counts = rt
            .field_addr(object, "_separated")
            .and_then(|at| rt.memory().u64(at + COUNTS));
        let count =
            |index: u32| counts.map(|c| (c >> COUNT_BITS.saturating_mul(index)) & COUNT_MASK);
        Some(Self {
            object,
            processing: count(0),
            existing: count(1),
            goal: count(2),
            min: short("_minThreads"),
            max: short("_maxThreads"),
            blocked: short("_numBlockedThreads"),
        })
    }

    /// Workers without work.
    pub(crate) fn idle(&self) -> Option<u64> {
        Some(self.existing?.saturating_sub(self.processing?))
    }
}
