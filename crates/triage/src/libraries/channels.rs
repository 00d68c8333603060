//! Which channel a waiting read or write belongs to.

use asynctriage_async_graph::{AsyncGraph, Helper, concurrent_queue_length};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Operations waiting on one channel.
const MAX_WAITERS: usize = 1 << 20;

/// A channel as far as its waiters are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelWait {
    pub(crate) channel: Addr,
    pub(crate) writes: bool,
}

const NAMESPACE: &str = "System.Threading.Channels.";

/// Fields that hold waiting operations, and whether they are writers. Up to 9.0 blocked ones stand in a Deque and waiting
/// ones in a ring; 10.0 and later link all of them.
const FIELDS: [(&str, bool); 10] = [
    ("_blockedReaders", false),
    ("_blockedReadersHead", false),
    ("_blockedReader", false),
    ("_waitingReadersTail", false),
    ("_waitingReadersHead", false),
    ("_waitingReader", false),
    ("_blockedWriters", true),
    ("_blockedWritersHead", true),
    ("_waitingWritersTail", true),
    ("_waitingWritersHead", true),
];

/// Waiting operations by address.
pub(crate) fn waits(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashMap<Addr, ChannelWait> {
    let mut out = FxHashMap::default();
    for channel in graph.helpers(Helper::Channel) {
        for (field, writes) in FIELDS {
            let Some(first) = rt.reference(*channel, field) else {
                continue;
            };
            for operation in operations(rt, first) {
                out.insert(
                    operation,
                    ChannelWait {
                        channel: *channel,
                        writes,
                    },
                );
            }
        }
    }
    out
}

fn operations(rt: &Runtime<'_>, first: Addr) -> Vec<Addr> {
    if let Some(array) = rt.reference(first, "_array") {
        return rt
            .vector_references(array, 0, MAX_WAITERS as u64)
            .filter(|a| !a.is_null())
            .collect();
    }
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    let mut next = Some(first);
    while let Some(at) = next.filter(|a| out.len() < MAX_WAITERS && seen.insert(*a)) {
        out.push(at);
        next = rt
            .reference(at, "Next")
            .or_else(|| rt.reference(at, "<Next>k__BackingField"));
    }
    out
}

/// The channel that its reader, its writer, or the enumerator of `ReadAllAsync` belongs to; anything else is itself.
pub(crate) fn channel_of(rt: &Runtime<'_>, object: Addr) -> Addr {
    let ty = rt.type_of(object);
    let definition = ty.map(|t| rt.definition_name(&t));
    if !definition.is_some_and(|name| name.starts_with(NAMESPACE)) {
        return object;
    }
    let reader = rt.reference(object, "<>4__this").unwrap_or(object);
    rt.reference(reader, "_parent").unwrap_or(object)
}

/// How many items nobody has taken from a channel yet.
pub(crate) fn unread(rt: &Runtime<'_>, channel: Addr) -> u64 {
    let items = rt.reference(channel, "_items");
    let deque = |items| rt.field_u32(items, "_size").map(u64::from);
    let count = items.map(|i| deque(i).unwrap_or_else(|| concurrent_queue_length(rt, i)));
    count.unwrap_or(0)
}

/// How full a bounded channel is: items and capacity.
pub(crate) fn fill(rt: &Runtime<'_>, channel: Addr) -> Option<(u64, u64)> {
    let capacity = rt.field_u32(channel, "_bufferedCapacity")?;
    let items = rt.reference(channel, "_items")?;
    let size = rt.field_u32(items, "_size")?;
    Some((u64::from(size), u64::from(capacity)))
}
