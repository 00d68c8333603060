//! The elements of arrays and of .NET's own collections, by the fields that 8.0 to 11.0 keep them in.

use super::object::Object;
use super::value::Value;
use crate::runtime::Runtime;
use crate::types::Type;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Parts of one collection (segments, nodes of a list) that are followed.
const MAX_PARTS: usize = 1 << 24;

/// What kind of collection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectionKind {
    /// An array of any rank.
    Array,
    /// `List<T>`.
    List,
    /// `Dictionary<K, V>`.
    Dictionary,
    /// `ConcurrentDictionary<K, V>`.
    ConcurrentDictionary,
    /// `HashSet<T>`.
    HashSet,
    /// `Queue<T>`.
    Queue,
    /// `ConcurrentQueue<T>`.
    ConcurrentQueue,
    /// `Stack<T>`.
    Stack,
    /// `LinkedList<T>`.
    LinkedList,
    /// `SortedList<K, V>`.
    SortedList,
    /// `PriorityQueue<T, P>`; the key is the priority.
    PriorityQueue,
}

/// An element.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'r, 'd> {
    /// The key, in dictionaries.
    pub key: Option<Value<'r, 'd>>,
    /// The element, or the value of a dictionary.
    pub value: Value<'r, 'd>,
}

/// The elements of a collection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Items<'r, 'd> {
    /// What it is.
    pub kind: CollectionKind,
    /// How many elements it says that it has; `None` when it keeps no count of its own (ConcurrentQueue and
    /// ConcurrentDictionary add theirs up: those that were found count).
    pub count: Option<u64>,
    /// The elements in the order that a `foreach` has: at most as many as were asked for.
    pub items: Vec<Item<'r, 'd>>,
    /// Whether there are more than were asked for, or a part could not be read.
    pub is_cut: bool,
}

/// The classes, by definition; the first that is the object's own or a base class of it counts.
const KINDS: [(&str, CollectionKind); 11] = {
    use CollectionKind as K;
    [
        ("System.Collections.Generic.List`1", K::List),
        ("System.Collections.Generic.Dictionary`2", K::Dictionary),
        (
            "System.Collections.Concurrent.ConcurrentDictionary`2",
            K::ConcurrentDictionary,
        ),
        ("System.Collections.Generic.HashSet`1", K::HashSet),
        ("System.Collections.Generic.Queue`1", K::Queue),
        // of System.Threading.Channels
        ("System.Collections.Generic.Deque`1", K::Queue),
        (
            "System.Collections.Concurrent.ConcurrentQueue`1",
            K::ConcurrentQueue,
        ),
        ("System.Collections.Generic.Stack`1", K::Stack),
        ("System.Collections.Generic.LinkedList`1", K::LinkedList),
        ("System.Collections.Generic.SortedList`2", K::SortedList),
        (
            "System.Collections.Generic.PriorityQueue`2",
            K::PriorityQueue,
        ),
    ]
};

pub(super) fn of<'r, 'd>(object: &Object<'r, 'd>, limit: usize) -> Option<Items<'r, 'd>> {
    let rt = object.rt;
    let kind = if object.ty.is_array() {
        CollectionKind::Array
    } else {
        rt.hierarchy(object.ty.mt).find_map(|t| {
            let name = rt.definition_name(&t);
            KINDS.iter().find(|(k, _)| **k == *name).map(|(_, k)| *k)
        })?
    };
    let reader = Reader {
        rt,
        at: object.addr,
        limit,
    };
    use CollectionKind as K;
    let (count, found) = match kind {
        K::Array => reader.array(),
        K::List | K::Stack => reader.sized(kind),
        K::Dictionary | K::HashSet => reader.hashed(kind),
        K::ConcurrentDictionary => reader.concurrent_dictionary(),
        K::Queue => reader.ring(),
        K::ConcurrentQueue => reader.concurrent_queue(),
        K::LinkedList => reader.linked(),
        K::SortedList => reader.sorted(),
        K::PriorityQueue => reader.heap(),
    }?;
    let is_cut = found.is_cut || count.is_some_and(|c| c > found.items.len() as u64);
    Some(Items {
        kind,
        count,
        items: found.items,
        is_cut,
    })
}

/// Elements up to a limit.
struct Found<'r, 'd> {
    items: Vec<Item<'r, 'd>>,
    limit: usize,
    is_cut: bool,
}

impl<'r, 'd> Found<'r, 'd> {
    /// Adds an element; whether there is room for more to look at.
    fn add(&mut self, key: Option<Value<'r, 'd>>, value: Value<'r, 'd>) -> bool {
        if self.items.len() >= self.limit {
            self.is_cut = true;
            return false;
        }
        self.items.push(Item { key, value });
        true
    }
}

/// An array with its elements' type.
struct Array {
    start: Addr,
    stride: u64,
    len: u64,
    element: Option<Arc<Type>>,
}

impl Array {
    fn at(&self, index: u64) -> Option<Addr> {
        (index < self.len).then(|| self.start.element(index, self.stride))
    }
}

struct Reader<'r, 'd> {
    rt: &'r Runtime<'d>,
    at: Addr,
    limit: usize,
}

type Read<'r, 'd> = Option<(Option<u64>, Found<'r, 'd>)>;

impl<'r, 'd> Reader<'r, 'd> {
    fn found(&self) -> Found<'r, 'd> {
        Found {
            items: Vec::new(),
            limit: self.limit,
            is_cut: false,
        }
    }

    fn array_at(&self, at: Addr) -> Option<Array> {
        let (start, stride, len) = self.rt.vector(at)?;
        Some(Array {
            start,
            stride,
            len,
            element: self.rt.element_type(at),
        })
    }

    /// The array in a field. A collection that was never filled may have none.
    fn array_of(&self, object: Addr, field: &str) -> Option<Array> {
        self.array_at(self.rt.reference(object, field)?)
    }

    fn element(&self, array: &Array, index: u64) -> Option<Value<'r, 'd>> {
        let at = array.at(index)?;
        Some(Value::of_type(
            self.rt,
            at,
            array.element.clone(),
            array.stride,
        ))
    }

    fn array(&self) -> Read<'r, 'd> {
        let array = self.array_at(self.at)?;
        let mut out = self.found();
        for i in 0..array.len {
            if !out.add(None, self.element(&array, i)?) {
                break;
            }
        }
        Some((Some(array.len), out))
    }

    fn size(&self, field: &str) -> Option<u64> {
        self.rt.field_u32(self.at, field).map(u64::from)
    }

    fn sized(&self, kind: CollectionKind) -> Read<'r, 'd> {
        let is_list = kind == CollectionKind::List;
        let size = self.size("_size")?;
        let mut out = self.found();
        if let Some(array) = self.array_of(self.at, if is_list { "_items" } else { "_array" }) {
            for i in 0..size.min(array.len) {
                // a stack hands out the last one first
                let index = if is_list {
                    i
                } else {
                    size.saturating_sub(1).saturating_sub(i)
                };
                let Some(value) = self.element(&array, index) else {
                    break;
                };
                if !out.add(None, value) {
                    break;
                }
            }
        }
        Some((Some(size), out))
    }

    fn hashed(&self, kind: CollectionKind) -> Read<'r, 'd> {
        let is_set = kind == CollectionKind::HashSet;
        let used = self.size("_count")?;
        let free = self.size("_freeCount").unwrap_or(0);
        let count = Some(used.saturating_sub(free));
        let mut out = self.found();
        let Some(entries) = self.array_of(self.at, "_entries") else {
            return Some((count, out));
        };
        let entry = entries.element.clone()?;
        for i in 0..used.min(entries.len) {
            let at = entries.at(i)?;
            let place = crate::objects::Place {
                base: at,
                ty: Arc::clone(&entry),
            };
            let field = |of_dictionary, of_set| {
                let name = if is_set { of_set } else { of_dictionary };
                self.rt.instance_field(&entry, name)
            };
            let next = self.rt.memory.i32(place.at(&field("next", "Next")?))?;
            // entries that were removed lead from -3 downwards to one another
            if next < -1 {
                continue;
            }
            let value = |f| super::value::field_value(self.rt, &place, &f);
            let key = if is_set {
                None
            } else {
                Some(value(field("key", "key")?))
            };
            if !out.add(key, value(field("value", "Value")?)) {
                break;
            }
        }
        Some((count, out))
    }

    fn concurrent_dictionary(&self) -> Read<'r, 'd> {
        let tables = self.rt.reference(self.at, "_tables")?;
        let buckets = self.array_of(tables, "_buckets")?;
        let mut out = self.found();
        let mut seen = FxHashSet::default();
        'all: for i in 0..buckets.len {
            // a bucket is a reference, from 8.0 on inside a structure of its own
            let mut node = self.rt.memory.ptr(buckets.at(i)?).and_then(Addr::non_null);
            while let Some(at) = node.filter(|n| seen.len() < MAX_PARTS && seen.insert(*n)) {
                let node_object = Object::at(self.rt, at)?;
                if !out.add(Some(node_object.field("_key")), node_object.field("_value")) {
                    break 'all;
                }
                node = self.rt.reference(at, "_next");
            }
        }
        Some((None, out))
    }

    fn ring(&self) -> Read<'r, 'd> {
        let (size, head) = (self.size("_size")?, self.size("_head")?);
        let mut out = self.found();
        if let Some(array) = self.array_of(self.at, "_array").filter(|a| a.len > 0) {
            for i in 0..size.min(array.len) {
                let index = head.saturating_add(i).checked_rem(array.len)?;
                if !out.add(None, self.element(&array, index)?) {
                    break;
                }
            }
        }
        Some((Some(size), out))
    }

    fn concurrent_queue(&self) -> Read<'r, 'd> {
        let mut out = self.found();
        let mut seen = FxHashSet::default();
        let mut segment = self.rt.reference(self.at, "_head");
        'all: while let Some(at) = segment.filter(|s| seen.len() < MAX_PARTS && seen.insert(*s)) {
            for value in self.segment(at)? {
                if !out.add(None, value) {
                    break 'all;
                }
            }
            segment = self.rt.reference(at, "_nextSegment");
        }
        Some((None, out))
    }

    /// A segment's elements, oldest first: a slot is full when its sequence number is one ahead of its position.
    fn segment(&self, segment: Addr) -> Option<Vec<Value<'r, 'd>>> {
        let slots = self.array_of(segment, "_slots")?;
        let slot = slots.element.clone()?;
        let number = self.rt.instance_field(&slot, "SequenceNumber")?;
        let item = self.rt.instance_field(&slot, "Item")?;
        let full = (0..slots.len).filter_map(|i| {
            let place = crate::objects::Place {
                base: slots.at(i)?,
                ty: Arc::clone(&slot),
            };
            let at = u64::from(self.rt.memory.u32(place.at(&number))?);
            let is_full = at.wrapping_sub(1).checked_rem(slots.len)? == i && at > 0;
            is_full.then_some((at, place))
        });
        let mut full: Vec<_> = full.collect();
        full.sort_unstable_by_key(|(at, _)| *at);
        let value = |place| super::value::field_value(self.rt, &place, &item);
        Some(full.into_iter().map(|(_, place)| value(place)).collect())
    }

    fn linked(&self) -> Read<'r, 'd> {
        let count = self.size("count")?;
        let mut out = self.found();
        let mut seen = FxHashSet::default();
        let mut node = self.rt.reference(self.at, "head");
        while let Some(at) = node.filter(|n| seen.len() < MAX_PARTS && seen.insert(*n)) {
            if !out.add(None, Object::at(self.rt, at)?.field("item")) {
                break;
            }
            node = self.rt.reference(at, "next");
        }
        Some((Some(count), out))
    }

    fn sorted(&self) -> Read<'r, 'd> {
        let size = self.size("_size")?;
        let mut out = self.found();
        let arrays = (
            self.array_of(self.at, "keys"),
            self.array_of(self.at, "values"),
        );
        if let (Some(keys), Some(values)) = arrays {
            for i in 0..size.min(keys.len).min(values.len) {
                if !out.add(self.element(&keys, i), self.element(&values, i)?) {
                    break;
                }
            }
        }
        Some((Some(size), out))
    }

    fn heap(&self) -> Read<'r, 'd> {
        let size = self.size("_size")?;
        let mut out = self.found();
        if let Some(nodes) = self.array_of(self.at, "_nodes") {
            for i in 0..size.min(nodes.len) {
                let node = self.element(&nodes, i)?;
                if !out.add(Some(node.field("Item2")), node.field("Item1")) {
                    break;
                }
            }
        }
        Some((Some(size), out))
    }
}
