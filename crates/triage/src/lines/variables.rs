//! Variables by their names and scopes in the symbols.

use super::{Lines, Spot};
use asynctriage_async_graph::{AsyncFrame, Machine};
use asynctriage_clr::Runtime;

impl Lines {
    /// Name in the source of a variable of a runtime-async method, by its number: arguments come first, `this` among
    /// them. Names of locals stand in the symbols only.
    pub(crate) fn variable_name(
        &self,
        rt: &Runtime<'_>,
        frame: &AsyncFrame,
        number: u32,
    ) -> Option<String> {
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
    pub(crate) fn is_alive(
        &self,
        rt: &Runtime<'_>,
        machine: &Machine,
        field: &str,
        spot: &Spot,
    ) -> bool {
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
