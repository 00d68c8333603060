//! What suspended methods have in their hands: parameters and locals by their names in the source.

use super::{Analysis, Step};
use crate::lines::Spot;
use crate::process::values::{primitive_text, reference_text};
use asynctriage_async_graph::{AsyncFrame, Machine};
use asynctriage_clr::{Field, FieldKind};
use asynctriage_dump::Addr;
use asynctriage_metadata::SigType;
use asynctriage_metadata::names::{LocalName, hoisted_local};
use asynctriage_report::{Address, Local};
use std::collections::BTreeSet;

/// Variables of one frame that are listed.
const MAX_LOCALS: usize = 64;

impl Analysis<'_, '_> {
    /// The parameters and locals that a frame keeps.
    pub(crate) fn step_variables(&self, step: Step<'_>) -> Vec<Local> {
        let mut out = match (step.frame, self.graph.machines.get(&step.node)) {
            (Some(frame), _) => self.variables(frame),
            (None, Some(machine)) => self.hoisted(machine, &self.step_spot(step)),
            (None, None) => Vec::new(),
        };
        out.truncate(MAX_LOCALS);
        out
    }

    fn hoisted(&self, machine: &Machine, spot: &Spot) -> Vec<Local> {
        let fields = machine.place.fields(self.rt);
        let locals = fields.filter_map(|field| {
            let name = hoisted_local(&field.name)?;
            let is_local = matches!(name, LocalName::Local(_));
            if is_local && !self.lines.is_alive(self.rt, machine, &field.name, spot) {
                return None;
            }
            let name = name.source_name()?.to_owned();
            Some(self.hoisted_value(machine, field, name))
        });
        locals.collect()
    }

    fn hoisted_value(&self, machine: &Machine, field: &Field, name: String) -> Local {
        let at = machine.place.at(field);
        match field.kind {
            FieldKind::Reference => self.reference_value(name, at),
            FieldKind::Primitive(_) => Local {
                name,
                value: primitive_text(self.rt, at, field.element_type, self.values),
                ..Local::default()
            },
            FieldKind::ValueType | FieldKind::Native => Local {
                name,
                type_name: self.rt.field_type_name(field),
                retained_bytes: self.kept().and_then(|k| k.variable(at)),
                ..Local::default()
            },
        }
    }

    /// The variables of a runtime-async method: those that the JIT described by their names, and what else the
    /// continuation refers to by its slot.
    fn variables(&self, frame: &AsyncFrame) -> Vec<Local> {
        let mut references = self.slots(frame);
        let known = frame.point.variables.iter();
        let mut out: Vec<Local> = known
            .filter_map(|(number, offset)| {
                let number = u32::try_from(*number).ok()?;
                let at = frame.continuation + u64::from(*offset);
                let is_reference = references.remove(&at);
                let name = self.lines.variable_name(self.rt, frame, number);
                let name = name.or_else(|| is_reference.then(|| slot_label(frame, at)))?;
                if is_reference {
                    return Some(self.reference_value(name, at));
                }
                let ty = self.parameter_type(frame, number);
                Some(self.value_by_signature(name, at, ty.as_ref()))
            })
            .collect();
        let others = references.into_iter();
        out.extend(others.map(|at| self.reference_value(slot_label(frame, at), at)));
        out
    }

    /// The slots of a continuation that refer to what its method keeps: not to the next frame or to contexts.
    fn slots(&self, frame: &AsyncFrame) -> BTreeSet<Addr> {
        let mut out = BTreeSet::new();
        self.rt
            .for_each_reference(frame.continuation, &mut |slot, _| {
                if !frame.is_plumbing(slot) {
                    out.insert(slot);
                }
            });
        out
    }

    /// The type of a parameter of a runtime-async method, by its number; `this` is 0 where there is one.
    fn parameter_type(&self, frame: &AsyncFrame, number: u32) -> Option<SigType> {
        let method = frame.point.method?;
        let module = self.rt.module(method.module);
        let signature = module.metadata.as_ref()?.method_signature(method.rid)?;
        let number = usize::try_from(number).ok()?;
        let index = number.checked_sub(usize::from(signature.has_this()))?;
        signature.params.into_iter().nth(index)
    }

    /// A value that is no reference, or a reference that is null.
    fn value_by_signature(&self, name: String, at: Addr, ty: Option<&SigType>) -> Local {
        let value = match ty {
            Some(SigType::Primitive(p)) => {
                primitive_text(self.rt, at, p.element_type().into(), self.values)
            }
            Some(SigType::String | SigType::Object | SigType::Class(_) | SigType::SzArray(_)) => {
                match self.rt.memory().ptr(at) {
                    Some(Addr::NULL) => "null".to_owned(),
                    _ => String::new(),
                }
            }
            _ => String::new(),
        };
        Local {
            name,
            value,
            ..Local::default()
        }
    }

    /// What a slot of the continuation of a runtime-async method is called: the variable, where that is known.
    pub(crate) fn slot_name(&self, frame: &AsyncFrame, slot: Addr) -> String {
        let offset = slot.since(frame.continuation);
        let mut known = frame.point.variables.iter();
        let variable = known.find(|(_, at)| Some(u64::from(*at)) == offset);
        let name = variable.and_then(|(number, _)| {
            self.lines
                .variable_name(self.rt, frame, u32::try_from(*number).ok()?)
        });
        name.map_or_else(|| slot_label(frame, slot), |name| format!("local '{name}'"))
    }

    fn reference_value(&self, name: String, at: Addr) -> Local {
        let rt = self.rt;
        let object = rt.memory().ptr(at).and_then(Addr::non_null);
        let ty = object.and_then(|o| rt.type_of(o));
        Local {
            name,
            type_name: ty.as_ref().map(|t| rt.name(t).to_string()),
            value: reference_text(rt, object, self.values),
            bytes: object.zip(ty).map(|(o, t)| rt.object_size(o, &t)),
            retained_bytes: object.and_then(|_| self.kept()?.variable(at)),
            address: object.map(|o| Address(o.0)),
        }
    }
}

/// `slot 4`: where a continuation keeps something that has no name without the symbols. Slots count as its flags count
/// them.
fn slot_label(frame: &AsyncFrame, slot: Addr) -> String {
    match frame.slot_number(slot) {
        Some(number) => format!("slot {number}"),
        None => format!("the reference at {slot}"),
    }
}
