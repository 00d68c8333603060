//! Which listed type each type of the process is.
//!
//! Builds of one version differ by a few types: those of another operating system, or of a later patch. The rest moves in
//! blocks, and a type keeps its fields. A type with many fields is found by their shapes alone; the others are told by
//! how far the types around them moved.

use super::listed::{CoreLibBuild, ListedField, ListedType, Shape};
use crate::types::FieldKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A type as the process shows it without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Row of its definition.
    pub(super) rid: u32,
    /// Row of its base class when that is a type of CoreLib, or 0.
    pub(super) parent: u32,
    /// Its fields without constants, by row.
    pub(super) fields: Vec<SeenField>,
    /// Row of its first method, when that is known.
    pub(super) first_method: Option<u32>,
}

/// A field of such a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenField {
    pub(super) rid: u32,
    pub(super) is_static: bool,
    pub(super) kind: FieldKind,
}

/// Types with so many fields may be recognised by them, wherever they stand.
const STRONG: usize = 4;
/// Types with so many need nobody else to say so.
const VERY_STRONG: usize = 8;
/// Types with so many are told by their neighbours on one side.
const TELLING: usize = 2;
/// Types without fields are told by neighbours no farther than this.
const NEAR: u32 = 24;
/// How often what was found serves to find more.
const ROUNDS: usize = 4;
/// Types of the process that are laid beside a list; 11.0.0 loads some hundred.
const MAX_SEEN: usize = 4096;
/// Of the types that have fields, those in a hundred that must fit where the rows are said to be the same.
const FITTING: usize = 97;
/// Fewer types with fields than this prove nothing.
const FEWEST: usize = 16;

/// The class of suspended methods (8.0 to 11.0).
const BOX: &str = "AsyncStateMachineBox`1";
/// What it and all other tasks are derived from.
const TASK: (&str, &str) = ("System.Threading.Tasks", "Task");
/// Base classes above one another; boxes have three.
const MAX_LEVELS: usize = 16;

/// Which listed type each type of the process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Listed rows by row of the process.
    pub(super) rows: BTreeMap<u32, u32>,
    /// Whether every row is the listed one.
    pub(super) exact: bool,
    /// Types of the process that have fields and were recognised.
    pub(super) recognised: usize,
    /// Those that have fields.
    pub(super) seen: usize,
}

/// Whether every type stands at its listed row: as many types, methods and fields, and those seen have the listed fields.
pub(super) fn same_rows(
    build: &CoreLibBuild,
    counts: [u32; 3],
    seen: &[Seen],
) -> Option<Alignment> {
    if build.counts() != counts {
        return None;
    }
    let with_fields = || seen.iter().filter(|s| !s.fields.is_empty());
    let fits = |s: &&Seen| build.get(s.rid).is_some_and(|l| fit(l, s));
    let (all, fitting) = (with_fields().count(), with_fields().filter(fits).count());
    let believed = all >= FEWEST && fitting.saturating_mul(100) >= all.saturating_mul(FITTING);
    believed.then(|| Alignment {
        rows: (1..=counts[0]).map(|rid| (rid, rid)).collect(),
        exact: true,
        recognised: fitting,
        seen: all,
    })
}

/// Finds the types of the process, in the order of their rows, among the listed ones: those with many fields by these
/// alone, the rest by where they stand between such types.
pub(super) fn align(build: &CoreLibBuild, seen: &[Seen]) -> Alignment {
    let seen = seen.get(..MAX_SEEN).unwrap_or(seen);
    let index = Index::of(build);
    let alone: Vec<Option<i32>> = seen.iter().map(|s| index.only(s)).collect();
    let mut placed = supported(seen, &alone);
    for _ in 0..ROUNDS {
        placed = without_strange_parents(build, seen, placed);
        placed = with_neighbours(&index, seen, &placed);
    }
    placed = without_strange_parents(build, seen, placed);
    let rows: BTreeMap<u32, u32> = seen
        .iter()
        .zip(placed)
        .filter_map(|(s, shift)| Some((s.rid, s.rid.checked_add_signed(shift?)?)))
        .collect();
    let with_fields = || seen.iter().filter(|s| !s.fields.is_empty());
    Alignment {
        recognised: with_fields().filter(|s| rows.contains_key(&s.rid)).count(),
        seen: with_fields().count(),
        exact: false,
        rows,
    }
}

/// Whether suspended methods are known for what they are, or none is there: every kind of task that the process has,
/// and nobody recognised, may be one of them. Where they are taken for other tasks, what waits for what is wrong; seen
/// with a trimmed CoreLib laid beside a whole one.
pub(super) fn knows_suspended_methods(
    build: &CoreLibBuild,
    alignment: &Alignment,
    seen: &[Seen],
) -> bool {
    let name = |rid: u32| {
        let ty = build.get(*alignment.rows.get(&rid)?)?;
        Some((&*ty.namespace, &*ty.name))
    };
    if alignment
        .rows
        .keys()
        .any(|rid| name(*rid).is_some_and(|(_, name)| name == BOX))
    {
        return true;
    }
    let parents: BTreeMap<u32, u32> = seen.iter().map(|s| (s.rid, s.parent)).collect();
    let is_task = |rid: u32| {
        let up = std::iter::successors(Some(rid), |rid| parents.get(rid).copied());
        up.take(MAX_LEVELS).any(|rid| name(rid) == Some(TASK))
    };
    let mut unknown = seen.iter().filter(|s| name(s.rid).is_none());
    !unknown.any(|s| is_task(s.rid))
}

/// Places the types that stand beside placed ones.
fn with_neighbours(index: &Index<'_>, seen: &[Seen], placed: &[Option<i32>]) -> Vec<Option<i32>> {
    let known = || seen.iter().zip(placed);
    let before = nearest(known());
    let mut after = nearest(known().rev());
    after.reverse();
    known()
        .zip(before.into_iter().zip(after))
        .map(|((s, own), (before, after))| own.or_else(|| by_place(index, s, before, after)))
        .collect()
}

/// Takes back what was said of types whose base class turns out to be another one than the listed.
fn without_strange_parents(
    build: &CoreLibBuild,
    seen: &[Seen],
    placed: Vec<Option<i32>>,
) -> Vec<Option<i32>> {
    let rows: BTreeMap<u32, u32> = seen
        .iter()
        .zip(&placed)
        .filter_map(|(s, shift)| Some((s.rid, s.rid.checked_add_signed((*shift)?)?)))
        .collect();
    let fits = |s: &Seen, shift: i32| {
        let listed = s.rid.checked_add_signed(shift).and_then(|r| build.get(r));
        let parent = rows.get(&s.parent);
        listed.is_some_and(|l| parent.is_none_or(|p| *p == l.parent))
    };
    let all = seen.iter().zip(placed);
    all.map(|(s, shift)| shift.filter(|shift| fits(s, *shift)))
        .collect()
}

/// The listed types by what tells them apart most.
struct Index<'b> {
    build: &'b CoreLibBuild,
    /// Rows by the number of fields.
    by_fields: FxHashMap<usize, Vec<u32>>,
    /// Row of the first method of each type; the first item is for row 1.
    first_methods: Vec<u32>,
}

impl<'b> Index<'b> {
    fn of(build: &'b CoreLibBuild) -> Self {
        let mut by_fields: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
        let (mut first_methods, mut method) = (Vec::new(), 1_u32);
        for (rid, ty) in (1..).zip(&build.types) {
            by_fields.entry(kept(ty).count()).or_default().push(rid);
            first_methods.push(method);
            let count = u32::try_from(ty.methods.len()).unwrap_or(u32::MAX);
            method = method.saturating_add(count);
        }
        Self {
            build,
            by_fields,
            first_methods,
        }
    }

    fn first_method(&self, rid: u32) -> Option<u32> {
        let at = usize::try_from(rid.checked_sub(1)?).ok()?;
        self.first_methods.get(at).copied()
    }

    /// Whether as many methods stand between two types of the process as between the listed ones.
    fn methods_apart(&self, a: &Seen, b: &Seen, shift: i32) -> bool {
        let distance = || {
            let listed = |s: &Seen| self.first_method(s.rid.checked_add_signed(shift)?);
            let there = a.first_method?.wrapping_sub(b.first_method?);
            Some(there == listed(a)?.wrapping_sub(listed(b)?))
        };
        distance() == Some(true)
    }

    /// How far a type with many fields moved, when one listed type alone has them.
    fn only(&self, seen: &Seen) -> Option<i32> {
        if seen.fields.len() < STRONG {
            return None;
        }
        let fits = |rid: &&u32| self.build.get(**rid).is_some_and(|ty| fit(ty, seen));
        let mut fitting = self.by_fields.get(&seen.fields.len())?.iter().filter(fits);
        let first = fitting.next()?;
        fitting.next().is_none().then(|| shift(seen.rid, *first))
    }
}

/// Of the types that were found by their fields, those that moved as far as one of their neighbours did, or have so many
/// fields that no chance gives them to another type.
fn supported(seen: &[Seen], alone: &[Option<i32>]) -> Vec<Option<i32>> {
    let known: Vec<(usize, i32)> = (0..)
        .zip(alone)
        .filter_map(|(i, own)| Some((i, (*own)?)))
        .collect();
    let mut out = vec![None; seen.len()];
    for (at, (i, own)) in known.iter().enumerate() {
        let left = at.checked_sub(1).and_then(|l| known.get(l));
        let right = known.get(at.saturating_add(1));
        let alike = [left, right].into_iter().flatten().any(|(_, s)| s == own);
        let strong = seen.get(*i).is_some_and(|s| s.fields.len() >= VERY_STRONG);
        if let Some(slot) = out.get_mut(*i).filter(|_| alike || strong) {
            *slot = Some(*own);
        }
    }
    out
}

/// A placed type in some direction, and how far it moved.
type Neighbour<'s> = Option<(&'s Seen, i32)>;

/// The placed type met last before each place.
fn nearest<'s>(of: impl Iterator<Item = (&'s Seen, &'s Option<i32>)>) -> Vec<Neighbour<'s>> {
    of.scan(None, |last, (s, own)| {
        let before = *last;
        *last = own.map(|shift| (s, shift)).or(before);
        Some(before)
    })
    .collect()
}

/// How far a type moved that cannot be told by its fields alone: as far as the types on both sides did; one side is
/// enough when it has fields, or when its methods are as far from that type's as they should be.
fn by_place(
    index: &Index<'_>,
    seen: &Seen,
    before: Neighbour<'_>,
    after: Neighbour<'_>,
) -> Option<i32> {
    let there = |shift: &i32| {
        let listed = seen.rid.checked_add_signed(*shift);
        listed
            .and_then(|rid| index.build.get(rid))
            .is_some_and(|ty| fit(ty, seen))
    };
    let counted = |(of, shift): &(&Seen, i32)| index.methods_apart(seen, of, *shift);
    let exact = [before, after].into_iter().flatten().find(counted);
    if let Some((_, shift)) = exact.filter(|(_, shift)| there(shift)) {
        return Some(shift);
    }
    let shift = |n: Neighbour<'_>| n.map(|(_, shift)| shift);
    if seen.fields.len() < TELLING {
        let near = |n: Neighbour<'_>| {
            let (of, shift) = n?;
            (of.rid.abs_diff(seen.rid) <= NEAR).then_some(shift)
        };
        let both = near(before).filter(|s| Some(*s) == near(after));
        return both.filter(there);
    }
    let (before, after) = (shift(before), shift(after));
    let mut sides = [before, after.filter(|a| Some(*a) != before)]
        .into_iter()
        .flatten()
        .filter(there);
    let only = sides.next()?;
    sides.next().is_none().then_some(only)
}

/// How far a row moved.
fn shift(rid: u32, listed: u32) -> i32 {
    listed.wrapping_sub(rid).cast_signed()
}

/// The fields that the runtime knows of, with their place among all.
fn kept(ty: &ListedType) -> impl Iterator<Item = (u32, &ListedField)> {
    let all = (0_u32..).zip(&ty.fields);
    all.filter(|(_, f)| f.shape != Shape::Literal)
}

/// Whether a type of the process may be the listed one: as many fields, in rows as far apart, of the same shapes.
fn fit(listed: &ListedType, seen: &Seen) -> bool {
    if kept(listed).count() != seen.fields.len() {
        return false;
    }
    let Some((start, first)) = kept(listed).next().zip(seen.fields.first()) else {
        return true;
    };
    kept(listed).zip(&seen.fields).all(|((at, field), there)| {
        there.rid.wrapping_sub(first.rid) == at.wrapping_sub(start.0) && alike(field, there)
    })
}

fn alike(listed: &ListedField, seen: &SeenField) -> bool {
    let shape = match (listed.shape, seen.kind) {
        (Shape::Any, _)
        // enumerations are kept as the number they are
        | (Shape::Value, FieldKind::ValueType | FieldKind::Primitive(_) | FieldKind::Native)
        | (Shape::Reference, FieldKind::Reference)
        | (Shape::Native, FieldKind::Native) => true,
        (Shape::Primitive(size), FieldKind::Primitive(there)) => size == there,
        _ => false,
    };
    shape && listed.is_static == seen.is_static
}
