//! State machines inside their boxes.

use crate::class::Class;
use asynctriage_clr::{Field, FieldKind, Place, Runtime};
use asynctriage_dump::Addr;

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
    /// What its awaiters hold: slot and object.
    pub awaits: Vec<(Addr, Addr)>,
}

/// What a box turned out to be.
#[derive(Clone, Debug)]
pub enum BoxState {
    /// It stands at an await.
    Suspended(Machine),
    /// It runs now, or has not come to its first await; the machine is where it is.
    Running(Place),
    /// An async iterator that nobody asked for its next item.
    Parked,
    /// It has ended.
    Completed,
    /// Not a state machine in use, for this reason.
    Rejected(&'static str),
}

/// Fields that hold the state, by compiler: C#, VB.
const STATE_FIELDS: [&str; 2] = ["<>1__state", "$State"];
const BUILDER_FIELDS: [&str; 2] = ["<>t__builder", "$Builder"];
/// Words of a builder among which its box stands: async void has two more in front (8.0 to 11.0).
const BUILDER_WORDS: u64 = 4;

/// Where the state machine of a box is: in place for structures, behind a reference for classes (debug builds and
/// async iterators).
pub(crate) fn place(rt: &Runtime<'_>, box_: Addr) -> Option<Place> {
    let outer = rt.place(box_)?;
    let field = rt.instance_field(&outer.ty, "StateMachine")?;
    match field.kind {
        FieldKind::Reference => rt.place(rt.memory().ptr(outer.at(&field))?),
        _ => {
            let args = rt.type_args(&outer.ty);
            Some(Place {
                base: outer.at(&field),
                ty: rt.ty(*args.last()?)?,
            })
        }
    }
}

fn first_field<'t>(rt: &Runtime<'_>, place: &'t Place, names: &[&str]) -> Option<&'t Field> {
    names
        .iter()
        .find_map(|n| rt.instance_fields(&place.ty).get(*n))
}

/// Decodes a box. `completed` is what the task's flags say; pooled boxes have none.
pub(crate) fn decode(rt: &Runtime<'_>, box_: Addr, class: Class, completed: bool) -> BoxState {
    if completed {
        return BoxState::Completed;
    }
    let Some(place) = place(rt, box_) else {
        // a class state machine that has been cleared: an idle pooled box, or torn
        return if class == Class::PooledBox {
            BoxState::Completed
        } else {
            BoxState::Rejected("the state machine is null or unreadable")
        };
    };
    let (Some(state_field), Some(builder)) = (
        first_field(rt, &place, &STATE_FIELDS),
        first_field(rt, &place, &BUILDER_FIELDS),
    ) else {
        return BoxState::Rejected("no state and builder fields are known in its type");
    };
    let Some(state) = rt.memory().i32(place.at(state_field)) else {
        return BoxState::Rejected("its state cannot be read");
    };
    let words = 0..BUILDER_WORDS.min(place.extent(rt, builder).div_euclid(8).max(1));
    let builder_words: Vec<_> = words
        .filter_map(|i| rt.memory().ptr(place.at(builder).element(i, 8)))
        .collect();
    if !builder_words.contains(&box_) {
        let blank = builder_words.iter().all(|w| w.is_null());
        return match (blank, class) {
            (true, Class::PooledBox) => BoxState::Completed,
            (true, _) if state == -1 || state == 0 => BoxState::Running(place),
            (true, _) => {
                BoxState::Rejected("its builder names no task although it is not completed")
            }
            (false, _) => BoxState::Rejected(
                "its builder names another task: a copy left behind by the garbage collector",
            ),
        };
    }
    let iterator = rt
        .instance_fields(&place.ty)
        .contains_key("<>v__promiseOfValueOrEnd");
    match state {
        0.. => BoxState::Suspended(Machine {
            state,
            iterator,
            is_void: rt
                .field_type_name(builder)
                .is_some_and(|n| n == "System.Runtime.CompilerServices.AsyncVoidMethodBuilder"),
            awaits: awaits(rt, &place),
            place,
        }),
        -1 => BoxState::Running(place),
        -2 => BoxState::Completed,
        _ if iterator => BoxState::Parked,
        _ => BoxState::Rejected("its state is no await of any method"),
    }
}

/// References inside the awaiter fields: one field per awaiter type, emptied when the method resumes.
fn awaits(rt: &Runtime<'_>, place: &Place) -> Vec<(Addr, Addr)> {
    let is_awaiter = |name: &str| {
        name.starts_with("<>u__")
            || (name.starts_with("$A") && name.get(2..).is_some_and(|n| n.parse::<u32>().is_ok()))
    };
    let fields = place.fields(rt);
    let mut out = Vec::new();
    for field in fields.into_iter().filter(|f| is_awaiter(&f.name)) {
        let words = if field.kind == FieldKind::Reference {
            1
        } else {
            place.extent(rt, field).div_euclid(8).clamp(1, 16)
        };
        let slots = (0..words).map(|i| place.at(field).element(i, 8));
        out.extend(slots.filter_map(|slot| Some((slot, rt.memory().ptr(slot)?.non_null()?))));
    }
    out
}
