//! Fields against what they are declared with: an object that cannot stand in a field was put there by damage, or the field
//! is none.

use crate::class::{Class, classify};
use crate::graph::Builder;
use crate::shortfall::REMEDY;
use asynctriage_clr::{Field, FieldKind, Gap, GapKind, Place, Runtime, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::{SigType, Table, TypeToken};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Objects that are looked into; among more, damage to single words is looked for in the first.
const MAX_OBJECTS: usize = 100_000;
/// `TypeAttributes.ClassSemanticsMask`: an interface.
const INTERFACE: u32 = 0x20;

/// Fields of tasks, the classes of what stands there, and whether that holds for boxes alone: their state object is the
/// context that they run in (8.0 to 11.0).
const FIELDS: [(&str, &str, bool); 5] = [
    ("_task", "System.Threading.Tasks.Task", false),
    ("m_action", "System.Delegate", false),
    (
        "m_taskScheduler",
        "System.Threading.Tasks.TaskScheduler",
        false,
    ),
    (
        "m_contingentProperties",
        "System.Threading.Tasks.Task+ContingentProperties",
        false,
    ),
    ("m_stateObject", "System.Threading.ExecutionContext", true),
];

/// What may stand in a reference field.
enum Wanted {
    /// Objects of this class and those derived from it.
    Class(Arc<str>),
    Array,
    /// Objects of any class, interfaces among them.
    Any,
}

/// The reference fields of a type: where they are in its objects, and what may stand there.
type Slots = Arc<[(u64, Wanted)]>;

/// What has been learnt of types.
#[derive(Default)]
struct Known {
    slots: FxHashMap<Addr, Slots>,
    /// By the name of a class: whether a type is derived from it.
    fits: FxHashMap<(Addr, Arc<str>), bool>,
    classes: Classes,
}

/// Names of other modules' types that CoreLib may define: whether they are classes of it. Fields name few types.
type Classes = FxHashMap<String, bool>;

impl Builder<'_, '_> {
    /// Reference fields of tasks, methods and what belongs to them whose object is of a class that cannot stand there.
    pub(crate) fn declared_gap(&self) -> Option<Gap> {
        let heap = &self.out.heap;
        // where parts of the heap are not known, objects may well be there
        if heap.shape.collection.is_running() || !heap.bad.is_empty() || !heap.gaps.is_empty() {
            return None;
        }
        let mut known = Known::default();
        let mut wrong: Vec<Addr> = Vec::new();
        let objects = heap.wanted.iter().take(MAX_OBJECTS);
        for object in self.rt.budget().each("fields, for their types", objects) {
            let slots = known.slots(self.rt, object.mt);
            for (offset, wanted) in slots.iter() {
                let slot = object.addr + *offset;
                let value = self.rt.memory().ptr(slot).and_then(Addr::non_null);
                if value.is_some_and(|v| !self.may_stand(v, wanted, &mut known)) {
                    wrong.push(slot);
                }
            }
        }
        wrong.extend(&self.strangers);
        wrong.sort_unstable();
        let first = wrong.first()?;
        Some(Gap {
            kind: GapKind::ImpossibleField,
            place: "fields of tasks, methods and what belongs to them".into(),
            why: format!(
                "{} of them, such as {first}, name objects that cannot stand there, or no objects at all",
                wrong.len()
            ),
            remedy: REMEDY.into(),
        })
    }

    fn may_stand(&self, value: Addr, wanted: &Wanted, known: &mut Known) -> bool {
        let Some(ty) = self.rt.type_of(value) else {
            // a dump without that memory says nothing against it
            return !self.rt.memory().readable(value, 8) && self.out.heap.segment(value).is_some();
        };
        match wanted {
            Wanted::Any => true,
            Wanted::Array => ty.is_array(),
            Wanted::Class(name) => known.fits(self.rt, &ty, name),
        }
    }

    /// Notes an object that is registered to be resumed and that nobody can have registered: only delegates, tasks and
    /// the runtime's own helpers are.
    pub(crate) fn note_stranger(&mut self, slot: Addr, value: Addr) {
        let Some(ty) = self.rt.type_of(value) else {
            return;
        };
        let is_runtimes = ty.module == self.rt.globals.core_lib;
        let name = self.rt.definition_name(&ty);
        let is_helper = is_runtimes
            && (name.contains("Continuation") || name.contains('+') || name.contains("Box"));
        if !is_helper {
            self.strangers.push(slot);
        }
    }
}

impl Known {
    fn slots(&mut self, rt: &Runtime<'_>, mt: Addr) -> Slots {
        let classes = &mut self.classes;
        let slots = self.slots.entry(mt).or_insert_with(|| {
            let mut all = Vec::new();
            if let Some(ty) = rt.ty(mt) {
                let is_box = classify(rt, mt, |_| None) == Some(Class::Box);
                let place = Place {
                    base: Addr(HEAD),
                    ty,
                };
                add_slots(rt, &place, is_box, classes, &mut all);
            }
            all.into()
        });
        Arc::clone(slots)
    }

    fn fits(&mut self, rt: &Runtime<'_>, ty: &Type, name: &Arc<str>) -> bool {
        let key = (ty.mt, Arc::clone(name));
        // a class without a name may be any
        let may = || rt.is_a(ty.mt, name) || rt.definition_name(ty).contains("!0x");
        *self.fits.entry(key).or_insert_with(may)
    }
}

/// Bytes of the MethodTable word in front of an object's fields.
const HEAD: u64 = 8;

fn add_slots(
    rt: &Runtime<'_>,
    place: &Place,
    is_box: bool,
    classes: &mut Classes,
    out: &mut Vec<(u64, Wanted)>,
) {
    for field in place.fields(rt).filter(|f| !f.name.starts_with("0x")) {
        let at = place.at(field).0;
        match field.kind {
            FieldKind::Reference => {
                let is_core = field.module == rt.globals.core_lib;
                let known = FIELDS.iter().find(|(name, _, of_box)| {
                    is_core && *name == &*field.name && (is_box || !of_box)
                });
                let wanted = match known {
                    Some((_, class, _)) => Wanted::Class((*class).into()),
                    None => wanted(rt, field, classes),
                };
                out.push((at, wanted));
            }
            FieldKind::ValueType if is_box && &*field.name == "StateMachine" => {
                let machine = rt.type_args(&place.ty).last().and_then(|mt| rt.ty(*mt));
                if let Some(ty) = machine {
                    let base = Addr(at);
                    add_slots(rt, &Place { base, ty }, false, classes, out);
                }
            }
            _ => {}
        }
    }
}

/// What may stand in a field; where that is not known, anything.
fn wanted(rt: &Runtime<'_>, field: &Field, classes: &mut Classes) -> Wanted {
    let mut class = |token: TypeToken| {
        let module = rt.module(field.module);
        let metadata = module.metadata.as_ref()?;
        let name = metadata.token_name(token)?;
        let is_class = match token.table()? {
            Table::TypeDef => metadata.type_def(token.rid())?.flags & INTERFACE == 0,
            // whether a class of another module is one is only known of CoreLib's
            Table::TypeRef => match rt.referred_type(field.module, token.rid()) {
                Some(found) => found.is_some_and(|place| is_core_class(rt, place)),
                None => *classes
                    .entry(name.clone())
                    .or_insert_with(|| is_class_of_core(rt, &name) == Some(true)),
            },
            _ => false,
        };
        (is_class && name != "System.Object").then(|| Wanted::Class(name.into()))
    };
    let found = match rt.field_signature(field) {
        Some(SigType::Class(token)) => class(token),
        Some(SigType::GenericInst { ty, .. }) => class(ty),
        Some(SigType::SzArray(_)) => Some(Wanted::Array),
        _ => None,
    };
    found.unwrap_or(Wanted::Any)
}

/// Whether a type is a class of CoreLib.
fn is_core_class(rt: &Runtime<'_>, (module, rid): (Addr, u32)) -> bool {
    let of = rt.module(module);
    let ty = of.metadata.as_ref().and_then(|m| m.type_def(rid));
    module == rt.globals.core_lib && ty.is_some_and(|t| t.flags & INTERFACE == 0)
}

/// `None` when CoreLib has no type of that name.
fn is_class_of_core(rt: &Runtime<'_>, name: &str) -> Option<bool> {
    let core = rt.module(rt.globals.core_lib);
    let core = core.metadata.as_ref()?;
    let (namespace, own) = name.rsplit_once('.')?;
    let flags = core.type_def(core.find_type(namespace, own)?)?.flags;
    Some(flags & INTERFACE == 0)
}
