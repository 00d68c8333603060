//! State machines inside their boxes.

use crate::class::Class;
use crate::own;
use crate::running::RunningMachine;
use asynctriage_clr::{Field, FieldKind, Place, Runtime, Type};
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A state machine that waits.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where its fields are, and its exact type.
    pub place: Place,
    /// The state number: the await that it stands at, counted from 0 in the compiler's order.
    pub state: i32,
    /// Whether it is an async iterator.
    pub iterator: bool,
    /// Whether it is an `async void` method.
    pub is_void: bool,
    /// What its awaiter holds: slot and object.
    pub awaits: Vec<(Addr, Addr)>,
    /// How it is known which of its awaiters that is.
    pub chosen: Chosen,
    /// Whether these awaiters are the runtime's own, which register with what they hold and nothing else.
    pub(crate) is_plain: bool,
    /// What proves that it stands at that await.
    pub(crate) proof: Proof,
}

/// What proves that a state machine stands at the await that its state names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Its builder names its box, and its state is an await.
    Builder,
    /// Its builder names its box, but the state stays while the method runs: what it awaits must not have ended.
    Awaited,
    /// Nothing in it: what it awaits must name it. Builders of other makers may leave copies of the machine behind.
    Continuation,
}

/// How the awaiter that counts was told from others. Methods empty an awaiter when they go on, so others than that of
/// the await hold something in code that was rewritten, or in damaged memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chosen {
    /// No other holds anything.
    #[default]
    Only,
    /// The method's code says which one this await uses.
    ByCode,
    /// Several hold something, and only what this one holds names the method as the one to be resumed.
    Confirmed,
    /// Several hold something, and the code that tells which one counts is not there: all are taken.
    Unclear,
}

/// What a box turned out to be.
#[derive(Clone, Debug)]
pub enum BoxState {
    /// It stands at an await.
    Suspended(Machine),
    /// It runs now, or has not come to its first await.
    Running(RunningMachine),
    /// An async iterator that nobody asked for its next item.
    Parked,
    /// It has ended.
    Completed,
    /// Not a state machine in use, for this reason.
    Rejected(&'static str),
}

/// Fields that hold the state and the builder, by compiler: C#, VB, F#.
const FIELDS: [(&str, &str); 3] = [
    ("<>1__state", "<>t__builder"),
    ("$State", "$Builder"),
    RESUMABLE,
];
/// Resumable code of F#: `task`, `backgroundTask`, and what libraries build likewise. The state counts from 1, stays
/// while the method runs, and the builder stands inside a structure that the library defines.
const RESUMABLE: (&str, &str) = ("ResumptionPoint", "Data");
/// Why a box is passed over that a collection has moved elsewhere.
pub(crate) const COPY: &str =
    "its builder names another task: a copy left behind by the garbage collector";
/// Where the runtime's own awaiters are defined.
const AWAITERS: &str = "System.Runtime.CompilerServices.";
/// The structure around the awaiter of `Task.Yield`.
const YIELD: &str = "System.Runtime.CompilerServices.YieldAwaitable";
/// Words of a builder among which its box stands: async void has two more in front (8.0 to 11.0), builders that wrap one of
/// the runtime's may have more.
const BUILDER_WORDS: u64 = 8;
/// Awaits of one method; none has as many.
const MAX_STATE: i32 = 1 << 20;
/// Words of one awaiter; those of the BCL have three at most.
const MAX_AWAITER_WORDS: u64 = 16;

/// Where the state machine of a type of boxes is: in place for structures, behind a reference for classes (debug builds
/// and async iterators).
#[derive(Clone)]
pub(crate) enum Holder {
    Inline(u64, Arc<Type>),
    Behind(u64),
}

/// Where the fields that every state machine of a type has are, from the start of its fields.
struct Shape {
    state: u64,
    builder: u64,
    builder_words: u64,
    iterator: bool,
    is_void: bool,
    resumable: bool,
    /// One field per awaiter type, emptied when the method resumes.
    awaiters: Vec<Awaiter>,
    /// The field of the awaiter of `Task.Yield`, which never holds anything.
    empty: Option<Arc<str>>,
}

struct Awaiter {
    name: Arc<str>,
    offset: u64,
    words: u64,
    is_runtimes: bool,
}

impl Shape {
    /// Whether what awaiters hold stands in awaiters of the runtime alone.
    fn is_plain(&self, place: &Place, awaits: &[(Addr, Addr)]) -> bool {
        let holds = |awaiter: &Awaiter, slot: Addr| {
            let from = slot.since(place.base + awaiter.offset);
            from.is_some_and(|bytes| bytes < awaiter.words.saturating_mul(8))
        };
        let is_runtimes = |slot: Addr| {
            let awaiter = self.awaiters.iter().find(|a| holds(a, slot));
            awaiter.is_some_and(|a| a.is_runtimes)
        };
        awaits.iter().all(|(slot, _)| is_runtimes(*slot))
    }
}

/// Decodes boxes; what it learns of a type serves all of its boxes.
pub(crate) struct Decoder<'r, 'd> {
    rt: &'r Runtime<'d>,
    holders: FxHashMap<Addr, Option<Holder>>,
    shapes: FxHashMap<Addr, Option<Arc<Shape>>>,
    /// By type and state: the name of the awaiter that the code uses there.
    by_code: FxHashMap<(Addr, i32), Option<Arc<str>>>,
}

impl<'r, 'd> Decoder<'r, 'd> {
    pub(crate) fn new(rt: &'r Runtime<'d>) -> Self {
        Self {
            rt,
            holders: FxHashMap::default(),
            shapes: FxHashMap::default(),
            by_code: FxHashMap::default(),
        }
    }

    /// Decodes a box of type `mt`. `completed` is what the task's flags say; pooled boxes have none.
    pub(crate) fn decode(
        &mut self,
        box_: Addr,
        mt: Addr,
        class: Class,
        completed: bool,
    ) -> BoxState {
        if completed {
            return BoxState::Completed;
        }
        let Some(place) = self.place(box_, mt, class) else {
            // a class state machine that has been cleared: an idle pooled box, or torn
            return if class == Class::PooledBox {
                BoxState::Completed
            } else {
                BoxState::Rejected("the state machine is null or unreadable")
            };
        };
        let Some(shape) = self.shape(&place.ty) else {
            return BoxState::Rejected("no state and builder fields are known in its type");
        };
        let memory = self.rt.memory();
        let Some(state) = memory.i32(place.base + shape.state) else {
            return BoxState::Rejected("its state cannot be read");
        };
        let mut builder = words(self.rt, place.base + shape.builder, shape.builder_words);
        let names_box = builder.any(|(_, word)| word == box_);
        if !names_box && class != Class::OwnBox {
            let blank = words(self.rt, place.base + shape.builder, shape.builder_words)
                .next()
                .is_none();
            let others = words(self.rt, place.base + shape.builder, shape.builder_words);
            let is_box =
                |(_, word): (Addr, Addr)| self.rt.type_of(word).is_some_and(|t| t.mt == mt);
            let is_copy = { others }.any(is_box);
            return not_its_own(running(place, &shape), class, state, blank, is_copy);
        }
        let proof = match (names_box, shape.resumable) {
            (false, _) => Proof::Continuation,
            (true, true) => Proof::Awaited,
            (true, false) => Proof::Builder,
        };
        let state = if shape.resumable {
            state.saturating_sub(1).max(-1)
        } else {
            state
        };
        match state {
            0..=MAX_STATE => {
                let (awaits, chosen) = self.awaits(&place, &shape, state);
                let is_plain = shape.is_plain(&place, &awaits);
                BoxState::Suspended(Machine {
                    state,
                    iterator: shape.iterator,
                    is_void: shape.is_void,
                    awaits,
                    chosen,
                    is_plain,
                    place,
                    proof,
                })
            }
            -1 => BoxState::Running(running(place, &shape)),
            -2 => BoxState::Completed,
            _ if shape.iterator => BoxState::Parked,
            _ => BoxState::Rejected("its state is no await of any method"),
        }
    }

    fn place(&mut self, box_: Addr, mt: Addr, class: Class) -> Option<Place> {
        let rt = self.rt;
        let find = || match class {
            Class::OwnBox => own::holder(rt, mt),
            _ => holder(rt, mt),
        };
        let holder = self.holders.entry(mt).or_insert_with(find);
        match holder.clone()? {
            Holder::Inline(offset, ty) => Some(Place {
                base: box_ + offset,
                ty,
            }),
            Holder::Behind(offset) => rt.place(rt.memory().ptr(box_ + offset)?),
        }
    }

    fn shape(&mut self, ty: &Arc<Type>) -> Option<Arc<Shape>> {
        let rt = self.rt;
        let shape = self
            .shapes
            .entry(ty.mt)
            .or_insert_with(|| shape(rt, ty).map(Arc::new));
        shape.clone()
    }

    fn awaits(&mut self, place: &Place, shape: &Shape, state: i32) -> (Vec<(Addr, Addr)>, Chosen) {
        let held = |awaiter: &Awaiter| -> Vec<_> {
            words(self.rt, place.base + awaiter.offset, awaiter.words).collect()
        };
        let all = shape.awaiters.iter().map(|a| (&*a.name, held(a)));
        let all: Vec<_> = all.filter(|(_, words)| !words.is_empty()).collect();
        // an await of `Task.Yield` keeps nothing, so what one awaiter holds beside it may be left over
        let doubtful = all.len() > 1 || all.len() == 1 && shape.empty.is_some();
        let used = doubtful.then(|| self.awaiter_by_code(&place.ty, state));
        choose(all, used.flatten().as_deref(), shape.empty.as_deref())
    }

    fn awaiter_by_code(&mut self, ty: &Type, state: i32) -> Option<Arc<str>> {
        let rt = self.rt;
        let known = self.by_code.entry((ty.mt, state)).or_insert_with(|| {
            let number = u32::try_from(state).ok()?;
            rt.awaiter_field(ty, number).map(Arc::from)
        });
        known.clone()
    }
}

/// What the awaiter of an await holds. `all` are the awaiters that hold something, `used` is the one that the code uses
/// there, and `empty` the one that never holds anything.
fn choose(
    mut all: Vec<(&str, Vec<(Addr, Addr)>)>,
    used: Option<&str>,
    empty: Option<&str>,
) -> (Vec<(Addr, Addr)>, Chosen) {
    // an awaiter that has to hold something and does not: the code is not that of this method
    let fits = |u: &str| Some(u) == empty || all.iter().any(|(name, _)| *name == u);
    let used = used.filter(|u| fits(u));
    let chosen = match (all.len(), used) {
        (_, Some(u)) if Some(u) == empty => Chosen::ByCode,
        (0 | 1, _) => Chosen::Only,
        (_, Some(_)) => Chosen::ByCode,
        (_, None) => Chosen::Unclear,
    };
    if let Some(used) = used {
        all.retain(|(name, _)| *name == used);
    }
    let words = all.into_iter().flat_map(|(_, words)| words);
    (words.collect(), chosen)
}

fn running(place: Place, shape: &Shape) -> RunningMachine {
    RunningMachine {
        place,
        iterator: shape.iterator,
        is_void: shape.is_void,
    }
}

/// A box whose builder does not name it.
fn not_its_own(
    machine: RunningMachine,
    class: Class,
    state: i32,
    blank: bool,
    is_copy: bool,
) -> BoxState {
    match (blank, class) {
        (true, Class::PooledBox) => BoxState::Completed,
        (true, _) if state == -1 || state == 0 => BoxState::Running(machine),
        (true, _) => BoxState::Rejected("its builder names no task although it is not completed"),
        (false, _) if is_copy => BoxState::Rejected(COPY),
        (false, _) => BoxState::Rejected("its builder names no task of its type"),
    }
}

/// Slots and values of the words from `start` on that are not null.
fn words<'r>(
    rt: &'r Runtime<'_>,
    start: Addr,
    count: u64,
) -> impl Iterator<Item = (Addr, Addr)> + 'r {
    (0..count).filter_map(move |i| {
        let slot = start.element(i, 8);
        Some((slot, rt.memory().ptr(slot)?.non_null()?))
    })
}

fn holder(rt: &Runtime<'_>, mt: Addr) -> Option<Holder> {
    let ty = rt.ty(mt)?;
    let field = rt.instance_field(&ty, "StateMachine")?;
    let offset = field.offset.saturating_add(8);
    if field.kind == FieldKind::Reference {
        return Some(Holder::Behind(offset));
    }
    let args = rt.type_args(&ty);
    Some(Holder::Inline(offset, rt.ty(*args.last()?)?))
}

fn shape(rt: &Runtime<'_>, ty: &Arc<Type>) -> Option<Shape> {
    // only the distances count: the place is not in memory
    let place = Place {
        base: Addr::NULL,
        ty: Arc::clone(ty),
    };
    let fields = rt.instance_fields(ty);
    let named = |(state, builder): &(&str, &str)| Some((fields.get(state)?, fields.get(builder)?));
    let (state, builder) = FIELDS
        .iter()
        .find_map(named)
        .or_else(|| first_fields(rt, &place))?;
    let resumable = &*state.name == RESUMABLE.0;
    let words_of = |field: &Field, most| place.extent(rt, field).div_euclid(8).clamp(1, most);
    let is_awaiter = |f: &&Field| {
        if resumable {
            is_resumable_awaiter(rt, f)
        } else {
            is_awaiter(&f.name)
        }
    };
    let awaiters = place.fields(rt).filter(is_awaiter);
    let (empty, awaiters): (Vec<_>, Vec<_>) = awaiters.partition(|f| {
        rt.field_type_name(f)
            .is_some_and(|n| n.starts_with(YIELD) && n.ends_with("YieldAwaiter"))
    });
    Some(Shape {
        state: state.offset,
        builder: builder.offset,
        builder_words: words_of(builder, BUILDER_WORDS),
        iterator: fields.contains_key("<>v__promiseOfValueOrEnd"),
        resumable,
        is_void: rt
            .field_type_name(builder)
            .is_some_and(|n| n == "System.Runtime.CompilerServices.AsyncVoidMethodBuilder"),
        empty: empty.first().map(|f| Arc::clone(&f.name)),
        awaiters: awaiters
            .into_iter()
            .map(|f| Awaiter {
                name: Arc::clone(&f.name),
                offset: f.offset,
                is_runtimes: f.kind != FieldKind::Reference
                    && rt
                        .field_type_name(f)
                        .is_none_or(|n| n.starts_with(AWAITERS) && n.contains("Awaiter")),
                words: match f.kind {
                    FieldKind::Reference => 1,
                    _ => words_of(f, MAX_AWAITER_WORDS),
                },
            })
            .collect(),
    })
}

/// State and builder of a type whose metadata is missing: the compilers of C# declare them first, in this order. The box
/// that the builder has to name shows whether it is so.
fn first_fields<'p>(rt: &Runtime<'_>, place: &'p Place) -> Option<(&'p Field, &'p Field)> {
    if rt.module(place.ty.module).metadata.is_some() {
        return None;
    }
    let mut own: Vec<&Field> = place.fields(rt).collect();
    own.retain(|f| f.module == place.ty.module);
    own.sort_unstable_by_key(|f| f.rid);
    let [state, builder, ..] = own.as_slice() else {
        return None;
    };
    let fit = state.kind == FieldKind::Primitive(4) && builder.kind == FieldKind::ValueType;
    fit.then_some((*state, *builder))
}

/// `<>u__1` by C#, `$A0` by Visual Basic.
fn is_awaiter(name: &str) -> bool {
    let number = name
        .strip_prefix("<>u__")
        .or_else(|| name.strip_prefix("$A"));
    number.is_some_and(|n| n.parse::<u32>().is_ok())
}

/// `awaiter`, `awaiter0`: F# names them after the variables of the library's inlined code, one field for each await.
fn is_resumable_awaiter(rt: &Runtime<'_>, field: &Field) -> bool {
    let is_structure = || {
        field.kind == FieldKind::ValueType
            && rt
                .field_type_name(field)
                .is_some_and(|n| n.ends_with("Awaiter") || n.ends_with("Awaiter`1"))
    };
    field.name.starts_with("awaiter") || is_structure()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(held: &[&'static str], used: Option<&str>) -> (usize, Chosen) {
        let all = held.iter().map(|name| (*name, vec![(Addr(8), Addr(16))]));
        let (words, chosen) = choose(all.collect(), used, Some("<>u__3"));
        (words.len(), chosen)
    }

    #[test]
    fn the_code_decides_between_awaiters() {
        let (a, b, empty) = ("<>u__1", "<>u__2", "<>u__3");
        assert_eq!(chosen(&[a, b], None), (2, Chosen::Unclear));
        assert_eq!(chosen(&[a, b], Some(b)), (1, Chosen::ByCode));
        assert_eq!(chosen(&[a, b], Some(empty)), (0, Chosen::ByCode));
        assert_eq!(chosen(&[a, b], Some("<>u__9")), (2, Chosen::Unclear));
        assert_eq!(chosen(&[a], Some(a)), (1, Chosen::Only));
        assert_eq!(chosen(&[a], None), (1, Chosen::Only));
        assert_eq!(chosen(&[], None), (0, Chosen::Only));
    }

    #[test]
    fn what_stands_beside_an_await_of_yield_is_left_over() {
        assert_eq!(chosen(&["<>u__1"], Some("<>u__3")), (0, Chosen::ByCode));
        assert_eq!(chosen(&["<>u__1"], Some("<>u__2")), (1, Chosen::Only));
        let (words, how) = choose(vec![("<>u__1", vec![(Addr(8), Addr(16))])], None, None);
        assert_eq!((words.len(), how), (1, Chosen::Only));
    }
}
