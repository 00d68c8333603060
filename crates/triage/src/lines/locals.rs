//! What suspended methods have in their hands: parameters and locals by their names in the source.

use super::{Lines, Spot};
use crate::analysis::Analysis;
use crate::steps::Step;
use crate::views::{ObjectOptions, primitive_text, reference_text};
use asynctriage_async_graph::{AsyncFrame, Machine};
use asynctriage_clr::{Field, FieldKind, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::{LocalName, hoisted_local};
use asynctriage_report::{Address, Local};

/// Variables of one frame that are listed.
const MAX_LOCALS: usize = 64;

impl Lines {
    /// Name in the source of a variable of a runtime-async method, by its number: arguments come first, `this` among
    /// them. Names of locals stand in the symbols only.
    fn variable_name(&self, rt: &Runtime<'_>, frame: &AsyncFrame, number: u32) -> Option<String> {
        let method = frame.point.method?;
        let module = rt.module(method.module);
        let metadata = module.metadata.as_ref()?;
        let signature = metadata.method_signature(method.rid)?;
        let arguments = signature
            .params
            .len()
            .saturating_add(usize::from(signature.has_this()));
        let number = usize::try_from(number).ok()?;
        let Some(local) = number.checked_sub(arguments) else {
            return metadata.argument_name(method.rid, u16::try_from(number).ok()?);
        };
        let symbols = self.symbols(rt, method.module);
        let pdb = symbols.pdb.as_ref().ok()?;
        let alive = pdb.locals(method.rid, frame.point.il_offset?);
        let slot = u16::try_from(local).ok()?;
        let named = alive.into_iter().rev().find(|(s, _)| *s == slot);
        named.map(|(_, name)| name)
    }

    /// Whether a hoisted local lives where its method stands; without symbols all do.
    fn is_alive(&self, rt: &Runtime<'_>, machine: &Machine, field: &str, spot: &Spot) -> bool {
        let scope = || {
            let ty = &machine.place.ty;
            let method = self.move_next(rt, ty.module, ty.rid)?;
            let symbols = self.symbols(rt, ty.module);
            let scopes = symbols.pdb.as_ref().ok()?.hoisted_scopes(method)?;
            let (_, number) = field.rsplit_once("__")?;
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            let (start, length) = *scopes.get(index)?;
            let at = spot.il_offset?.checked_sub(start);
            Some(at.is_some_and(|at| at < length))
        };
        scope().unwrap_or(true)
    }
}

impl Analysis<'_, '_> {
    /// The parameters and locals that a frame keeps.
    pub(crate) fn step_variables(&self, step: Step<'_>, values: bool) -> Vec<Local> {
        let mut out = match (step.frame, self.graph.machines.get(&step.node)) {
            (Some(frame), _) => self.variables(frame, values),
            (None, Some(machine)) => self.hoisted(machine, &self.step_spot(step), values),
            (None, None) => Vec::new(),
        };
        out.truncate(MAX_LOCALS);
        out
    }

    fn hoisted(&self, machine: &Machine, spot: &Spot, values: bool) -> Vec<Local> {
        let fields = machine.place.fields(self.rt).into_iter();
        let locals = fields.filter_map(|field| {
            let name = hoisted_local(&field.name)?;
            let is_local = matches!(name, LocalName::Local(_));
            if is_local && !self.lines.is_alive(self.rt, machine, &field.name, spot) {
                return None;
            }
            let name = name.source_name()?.to_owned();
            Some(self.hoisted_value(machine, field, name, values))
        });
        locals.collect()
    }

    fn hoisted_value(&self, machine: &Machine, field: &Field, name: String, values: bool) -> Local {
        let at = machine.place.at(field);
        match field.kind {
            FieldKind::Reference => self.reference_value(name, at, values),
            FieldKind::Primitive(size) => Local {
                name,
                value: primitive_text(self.rt, at, field.element_type, size),
                ..Local::default()
            },
            FieldKind::ValueType | FieldKind::Native => Local {
                name,
                type_name: self.rt.field_type_name(field),
                ..Local::default()
            },
        }
    }

    /// The variables of a runtime-async method whose slots are known: those of compiled code that the JIT described.
    fn variables(&self, frame: &AsyncFrame, values: bool) -> Vec<Local> {
        let mut references = Vec::new();
        self.rt
            .for_each_reference(frame.continuation, &mut |slot, _| references.push(slot));
        let known = frame.point.variables.iter();
        let locals = known.filter_map(|(number, offset)| {
            let name = self
                .lines
                .variable_name(self.rt, frame, u32::try_from(*number).ok()?)?;
            let at = frame.continuation + u64::from(*offset);
            if references.contains(&at) {
                return Some(self.reference_value(name, at, values));
            }
            Some(Local {
                name,
                ..Local::default()
            })
        });
        locals.collect()
    }

    /// The name of the variable of a runtime-async method that a slot of its continuation holds.
    pub(crate) fn slot_name(&self, frame: &AsyncFrame, slot: Addr) -> Option<String> {
        let offset = slot.since(frame.continuation)?;
        let mut known = frame.point.variables.iter();
        let (number, _) = known.find(|(_, at)| u64::from(*at) == offset)?;
        self.lines
            .variable_name(self.rt, frame, u32::try_from(*number).ok()?)
    }

    fn reference_value(&self, name: String, at: Addr, values: bool) -> Local {
        let rt = self.rt;
        let object = rt.memory().ptr(at).and_then(Addr::non_null);
        let ty = object.and_then(|o| rt.type_of(o));
        let options = ObjectOptions { limit: 0, values };
        Local {
            name,
            type_name: ty.as_ref().map(|t| rt.name(t).to_string()),
            value: reference_text(rt, object, options),
            bytes: object.zip(ty).map(|(o, t)| rt.object_size(o, &t)),
            address: object.map(|o| Address(o.0)),
        }
    }
}
