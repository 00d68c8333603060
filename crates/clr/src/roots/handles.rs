//! The tables of GC handles.

use super::Roots;
use crate::heap::Heap;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// A segment of a handle table: 64 KiB, a header of one page, then blocks of 64 handles (8.0 to 11.0).
const SEGMENT: u64 = 0x1_0000;
const HEADER: u64 = 0x1000;
const BLOCK_HANDLES: u64 = 64;
const BLOCK_BYTES: u64 = BLOCK_HANDLES * 8;
const BLOCKS: u64 = (SEGMENT - HEADER) / BLOCK_BYTES;
/// Header: four generation bytes and one allocation byte per block, two u32 masks, then a byte per block for the type
/// of its handles, one for the block that holds what its handles carry besides, and one for locks.
const BLOCK_TYPES: u64 = BLOCKS * (4 + 1 + 8);
const BLOCK_DATA: u64 = BLOCK_TYPES + BLOCKS;
/// Six bytes per type of handle follow (two of hints, a u32 of free ones), then the next segment and the table that the
/// segment is part of, neither aligned. The number of types grew from 8.0 to 10.0; the table's address tells it.
const PER_TYPE: u64 = BLOCK_TYPES + BLOCKS * 3;
const TYPES: std::ops::Range<u64> = 8..24;
const NO_BLOCK: u8 = u8::MAX;

/// A handle of the garbage collector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub(super) kind: HandleKind,
    /// Where it stands.
    pub(super) slot: Addr,
    pub(super) object: Addr,
    /// What a dependent handle keeps alive while its object lives.
    pub(super) value: Option<Addr>,
}

/// What a handle does for its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandleKind {
    /// It keeps nothing alive.
    Weak,
    /// It keeps its object alive.
    Strong,
    /// And where it is.
    Pinned,
    /// It keeps its object alive while native code counts references to it.
    RefCounted,
    /// It keeps its value alive while its object lives.
    Dependent,
    /// Memory of input and output under way.
    AsyncPinned,
    /// Another kind that keeps its object alive.
    Other,
}

impl HandleKind {
    /// By the runtime's number (8.0 to 11.0): weak are short and long ones, those with native data, and those into an object.
    fn of(number: u8) -> Self {
        match number {
            0 | 1 | 9 | 10 => Self::Weak,
            2 => Self::Strong,
            3 => Self::Pinned,
            5 => Self::RefCounted,
            6 => Self::Dependent,
            7 => Self::AsyncPinned,
            _ => Self::Other,
        }
    }
}

/// Statics of assemblies that can be unloaded hang on this object, which native code holds weakly: instances keep it
/// alive through their type.
const LOADER: &str = "System.Reflection.LoaderAllocator";

/// The map from which all tables hang: buckets in one part, tables in a bucket, parts.
const MAP_BUCKETS: u64 = 64;
const MAX_TABLES: u64 = 1024;
const MAX_MAPS: usize = 64;
const MAX_SEGMENTS: usize = 1 << 16;

impl Runtime<'_> {
    pub(super) fn add_handles(&self, heap: &Heap, roots: &mut Roots) {
        let mut seen = FxHashSet::default();
        let segments: Vec<Addr> = self
            .handle_tables()
            .into_iter()
            .flat_map(|table| self.handle_segments(table, &mut seen))
            .collect();
        if segments.is_empty() {
            roots.missing.push("handles");
        }
        for segment in segments {
            self.add_segment(segment, heap, roots);
        }
    }

    fn handle_tables(&self) -> Vec<Addr> {
        let m = self.memory;
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        let mut lists = FxHashSet::default();
        let mut map = m.ptr(self.globals.gc_vars + self.offsets.gc_vars.handle_map);
        for _ in 0..MAX_MAPS {
            let Some(at) = map.and_then(Addr::non_null).filter(|a| seen.insert(*a)) else {
                break;
            };
            let buckets = m.ptr(at).unwrap_or_default();
            for bucket in (0..MAP_BUCKETS).filter_map(|i| m.ptr(buckets.element(i, 8))?.non_null())
            {
                let tables = m.ptr(bucket).unwrap_or_default();
                if !lists.insert(tables) {
                    continue;
                }
                out.extend((0..MAX_TABLES).map_while(|i| {
                    m.ptr(tables.element(i, 8))
                        .filter(|t| !t.is_null() && m.readable(*t, 64))
                }));
            }
            map = m.ptr(at + 8);
        }
        out
    }

    /// The segments of a table. Its first words hold the pointer to the first one; a segment that names another table
    /// is none: what stands behind the last table of a bucket is not a table.
    fn handle_segments(&self, table: Addr, seen: &mut FxHashSet<Addr>) -> Vec<Addr> {
        let m = self.memory;
        let mut out = Vec::new();
        let mut next = (0..16)
            .filter_map(|i| m.ptr(table.element(i, 8)))
            .find(|a| self.next_segment(*a, table).is_some());
        while let Some(segment) = next.filter(|s| seen.len() < MAX_SEGMENTS && seen.insert(*s)) {
            let Some(follower) = self.next_segment(segment, table) else {
                break;
            };
            out.push(segment);
            next = follower.non_null();
        }
        out
    }

    /// What follows a segment of a table, null behind the last; `None` for what is no segment of it.
    fn next_segment(&self, segment: Addr, table: Addr) -> Option<Addr> {
        let m = self.memory;
        if segment.is_null() || segment.0 & (SEGMENT - 1) != 0 || !m.readable(segment, HEADER) {
            return None;
        }
        let links = TYPES.map(|types| (segment + PER_TYPE).element(types, 6));
        let link = links
            .into_iter()
            .find(|link| m.ptr(*link + 8) == Some(table))?;
        m.ptr(link)
    }

    fn add_segment(&self, segment: Addr, heap: &Heap, roots: &mut Roots) {
        self.for_each_handle(segment, &mut |handle| {
            if !heap.is_object(handle.object) {
                return;
            }
            match handle.kind {
                HandleKind::Dependent => {
                    if let Some(value) = handle.value.filter(|v| heap.is_object(*v)) {
                        roots.dependent.push((handle.object, value));
                    }
                }
                HandleKind::Weak => {
                    if self.object_type_name(handle.object).as_deref() == Some(LOADER) {
                        roots.strong.push(handle.object);
                    }
                }
                _ => {
                    roots.strong.push(handle.object);
                    roots.counts.handles = roots.counts.handles.saturating_add(1);
                }
            }
        });
    }

    /// All handles that are in use, weak ones included.
    pub(super) fn handles(&self) -> Vec<Handle> {
        let mut seen = FxHashSet::default();
        let mut out = Vec::new();
        for table in self.handle_tables() {
            for segment in self.handle_segments(table, &mut seen) {
                self.for_each_handle(segment, &mut |handle| out.push(handle));
            }
        }
        out
    }

    fn for_each_handle(&self, segment: Addr, found: &mut dyn FnMut(Handle)) {
        let m = self.memory;
        let byte = |of: u64, block: u64| m.u8(segment + of + block).unwrap_or(NO_BLOCK);
        // blocks that hold no handles but what other handles carry
        let data: FxHashSet<u64> = (0..BLOCKS)
            .map(|b| byte(BLOCK_DATA, b))
            .filter(|d| *d != NO_BLOCK)
            .map(u64::from)
            .collect();
        let slot =
            |block: u64, i: u64| (segment + HEADER).element(block, BLOCK_BYTES).element(i, 8);
        for block in (0..BLOCKS).filter(|b| !data.contains(b)) {
            let number = byte(BLOCK_TYPES, block);
            if number == NO_BLOCK {
                continue;
            }
            let kind = HandleKind::of(number);
            let values = u64::from(byte(BLOCK_DATA, block));
            for i in 0..BLOCK_HANDLES {
                let at = slot(block, i);
                let Some(object) = m.ptr(at).and_then(Addr::non_null) else {
                    continue;
                };
                let carries = kind == HandleKind::Dependent && values < BLOCKS;
                let value = || m.ptr(slot(values, i))?.non_null();
                found(Handle {
                    kind,
                    slot: at,
                    object,
                    value: carries.then(value).flatten(),
                });
            }
        }
    }
}
