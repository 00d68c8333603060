//! The names of System.Private.CoreLib where neither the dump nor a file has them.
//!
//! Reduced minidumps, and cores of gdb and of the kernel, hold no metadata of any assembly. Without the names of a
//! handful of types of CoreLib nothing can be said at all: not which objects are tasks, not what resumes them. So the
//! names of some builds come with the tool. A build that has as many types, methods and fields as a listed one, and
//! the listed fields wherever a type is loaded, is that one as far as names go; any other build of the major version is
//! laid beside a listed one. What was learnt is written as metadata, which everybody reads as usual.

mod align;
mod image;
mod list;
mod listed;

#[cfg(test)]
mod tests;

pub use list::pack_core_names;
pub use listed::CoreLibBuild;

use crate::runtime::Runtime;
use align::{Alignment, Seen, SeenField};
use asynctriage_dump::Addr;
use image::Image;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one table that are believed; CoreLib 11.0.0 has 30,000 methods.
const MAX_ROWS: u32 = 1 << 17;
/// Chunks of methods of one type; real ones have some dozen.
const MAX_CHUNKS: usize = 1024;
/// Of the types with fields, those in a hundred that must be recognised; half to two thirds were, by the list of another
/// operating system.
const RECOGNISED: usize = 40;

/// The names of CoreLib, written as metadata.
#[derive(Clone, Debug)]
pub(crate) struct CoreNames {
    /// The metadata.
    pub(crate) bytes: Arc<[u8]>,
    /// Where the names are from, as the end of a sentence.
    pub(crate) from: String,
    /// The build that they are from, when it is another one than that of the process.
    pub(crate) foreign: Option<Arc<str>>,
}

impl Runtime<'_> {
    /// The build that the names of CoreLib are from, where it is not that of the process: types were then recognised by
    /// the shapes of their fields, some perhaps wrongly.
    #[must_use]
    pub fn foreign_core_names(&self) -> Option<&str> {
        self.core_names.as_ref()?.foreign.as_deref()
    }
}

/// What is known of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    namespace: Arc<str>,
    name: Arc<str>,
    /// Row of the type that it is nested in, or 0.
    enclosing: u32,
    first_field: Option<u32>,
    /// Name, and whether it is static.
    fields: Vec<(Arc<str>, bool)>,
    first_method: Option<u32>,
    methods: Vec<Arc<str>>,
}

/// Learns the names of the process's CoreLib from its types.
pub(crate) fn learn(rt: &Runtime<'_>) -> Option<CoreNames> {
    let counts = counts(rt)?;
    let seen = seen(rt, counts[0]);
    let (major, _) = rt.layout().version();
    let builds = || list::built_in().iter().filter(|b| b.major == major);
    let exact = builds().find_map(|b| Some((b, align::same_rows(b, counts, &seen)?)));
    let (build, alignment) = exact.or_else(|| {
        let aligned = builds().map(|b| (b, align::align(b, &seen)));
        aligned
            .max_by_key(|(_, a)| a.recognised)
            .filter(|(_, a)| is_believed(a))
            .filter(|(b, a)| align::knows_suspended_methods(b, a, &seen))
    })?;
    let from = format!(
        "from a built-in list of {}: {}, {} of {} types with fields were recognised by them",
        build.label,
        if alignment.exact {
            "the same numbers of types, methods and fields"
        } else {
            "another build, laid beside this one"
        },
        alignment.recognised,
        alignment.seen
    );
    let image = Image {
        assembly: "System.Private.CoreLib",
        major: u16::try_from(major).unwrap_or(0),
        mvid: if alignment.exact { build.mvid } else { [0; 16] },
        rows: counts,
        types: known(build, &alignment, &seen),
    };
    Some(CoreNames {
        bytes: image.write().into(),
        from,
        foreign: (!alignment.exact).then(|| Arc::clone(&build.label)),
    })
}

fn is_believed(alignment: &Alignment) -> bool {
    alignment.recognised.saturating_mul(100) >= alignment.seen.saturating_mul(RECOGNISED)
        && alignment.recognised > 0
}

/// How many types, methods and fields CoreLib has, by the tables that the runtime keeps of them.
fn counts(rt: &Runtime<'_>) -> Option<[u32; 3]> {
    let o = &rt.offsets;
    let rows = |map: u64| {
        let count = rt
            .memory
            .u32(rt.globals.core_lib + map + o.lookup_map.count)?;
        count.checked_sub(1).filter(|c| (1..MAX_ROWS).contains(c))
    };
    Some([
        rows(o.module.type_map)?,
        rows(o.module.method_map?)?,
        rows(o.module.field_map?)?,
    ])
}

/// The types of CoreLib that the process has loaded and the dump shows, by row.
fn seen(rt: &Runtime<'_>, types: u32) -> Vec<Seen> {
    let core_lib = rt.globals.core_lib;
    let listed = (1..=types).filter_map(|rid| rt.loaded_type(core_lib, rid));
    // instances of generic types are not listed there, and their definitions may be missing
    let heap = rt.walk_heap(&|_| false);
    let of_objects = heap.types.iter().flat_map(|t| {
        let levels: Vec<Addr> = rt.hierarchy(t.mt).map(|level| level.mt).collect();
        levels
    });
    let mut out: BTreeMap<u32, Seen> = BTreeMap::new();
    for mt in listed.chain(of_objects) {
        let Some(ty) = rt.ty(mt).filter(|t| t.module == core_lib && !t.is_array()) else {
            continue;
        };
        if ty.rid == 0 || ty.rid > types || out.contains_key(&ty.rid) {
            continue;
        }
        let mut fields: Vec<SeenField> = rt
            .own_fields(&ty)
            .iter()
            .map(|f| SeenField {
                rid: f.rid,
                is_static: f.is_static,
                kind: f.kind,
            })
            .collect();
        fields.sort_unstable_by_key(|f| f.rid);
        let parent = rt.ty(ty.parent).filter(|p| p.module == core_lib);
        let seen = Seen {
            rid: ty.rid,
            parent: parent.map_or(0, |p| p.rid),
            fields,
            first_method: first_method(rt, mt),
        };
        out.insert(ty.rid, seen);
    }
    out.into_values().collect()
}

/// The lowest row among the methods of a type.
fn first_method(rt: &Runtime<'_>, mt: Addr) -> Option<u32> {
    let (m, o) = (rt.memory, &rt.offsets);
    let class = m.ptr(rt.canonical(mt)? + o.method_table.class)?;
    let mut chunk = m.ptr(class + o.class.chunks?)?.non_null()?;
    let mut lowest: Option<u32> = None;
    for _ in 0..MAX_CHUNKS {
        let method = rt.method_of_desc(chunk + o.chunk.head)?;
        lowest = Some(lowest.map_or(method.rid, |l| l.min(method.rid)));
        match m.ptr(chunk + o.chunk.next)?.non_null() {
            Some(next) => chunk = next,
            None => return lowest.filter(|rid| *rid > 0),
        }
    }
    None
}

/// The names of all types that have a listed row.
fn known(build: &CoreLibBuild, alignment: &Alignment, seen: &[Seen]) -> BTreeMap<u32, Known> {
    let back: BTreeMap<u32, u32> = alignment
        .rows
        .iter()
        .map(|(rid, listed)| (*listed, *rid))
        .collect();
    let mut out = BTreeMap::new();
    for (rid, listed) in &alignment.rows {
        let Some(ty) = build.get(*listed) else {
            continue;
        };
        let mut known = Known {
            namespace: Arc::clone(&ty.namespace),
            name: Arc::clone(&ty.name),
            enclosing: back.get(&ty.enclosing).copied().unwrap_or(0),
            fields: ty
                .fields
                .iter()
                .map(|f| (Arc::clone(&f.name), f.is_static))
                .collect(),
            methods: ty.methods.clone(),
            ..Known::default()
        };
        if ty.enclosing != 0 && known.enclosing == 0 {
            (known.namespace, known.name) = whole_name(build, *listed);
        }
        out.insert(*rid, known);
    }
    place_members(build, alignment, seen, &mut out);
    out
}

/// Namespace, and name with those of the types around it, of a type whose enclosing type is not known here.
fn whole_name(build: &CoreLibBuild, listed: u32) -> (Arc<str>, Arc<str>) {
    let outwards = std::iter::successors(build.get(listed), |t| build.get(t.enclosing));
    let levels: Vec<_> = outwards.take(16).collect();
    let names: Vec<&str> = levels.iter().rev().map(|t| &*t.name).collect();
    let namespace = levels.last().map(|t| Arc::clone(&t.namespace));
    (namespace.unwrap_or_default(), names.join("+").into())
}

/// Finds where the members of each type begin: as the process shows it, else behind those of the type before.
fn place_members(
    build: &CoreLibBuild,
    alignment: &Alignment,
    seen: &[Seen],
    types: &mut BTreeMap<u32, Known>,
) {
    let shown: BTreeMap<u32, &Seen> = seen.iter().map(|s| (s.rid, s)).collect();
    let (mut last, mut field, mut method) = (0_u32, None, None);
    if alignment.exact {
        (field, method) = (Some(1), Some(1));
    }
    for (rid, known) in types {
        if *rid != last.saturating_add(1) {
            (field, method) = (None, None);
        }
        last = *rid;
        let here = shown.get(rid);
        let first_shown = here.and_then(|s| s.fields.first()).map(|f| f.rid);
        let listed = alignment.rows.get(rid).and_then(|l| build.get(*l));
        let leading = listed.map_or(0, listed::leading_constants);
        field = first_shown.and_then(|f| f.checked_sub(leading)).or(field);
        method = here.and_then(|s| s.first_method).or(method);
        (known.first_field, known.first_method) = (field, method);
        let after =
            |first: Option<u32>, count: usize| first?.checked_add(u32::try_from(count).ok()?);
        field = after(field, known.fields.len());
        method = after(method, known.methods.len());
    }
}
