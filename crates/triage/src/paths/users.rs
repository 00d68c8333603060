//! Which suspended methods use a shared object, and what the field is called that holds it.

use super::{Analysis, steps_of};
use asynctriage_async_graph::{Helper, NodeId};
use asynctriage_clr::{FieldKind, Type};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Reference slots of one object that are looked at: what holds a lock is no large array.
const MAX_SLOTS: usize = 256;

/// Users of semaphores and channels.
#[derive(Debug, Default)]
pub(crate) struct Users {
    by_object: FxHashMap<Addr, Vec<NodeId>>,
    /// The object whose field holds it, and the slot.
    holders: FxHashMap<Addr, (Addr, Addr)>,
    /// Suspended methods by name.
    by_method: FxHashMap<Arc<str>, Vec<NodeId>>,
}

impl Users {
    /// Looks through the variables of all suspended methods and one step further: a method's `this` holds the lock.
    pub(crate) fn find(analysis: &Analysis<'_, '_>) -> Self {
        let wanted: FxHashSet<Addr> = analysis
            .graph
            .semaphores
            .values()
            .copied()
            .chain(analysis.channel_waits.values().map(|w| w.channel))
            .collect();
        let mut out = Self::default();
        if wanted.is_empty() {
            return out;
        }
        let graph = &analysis.graph;
        // one `this` is shared by many methods
        let mut inside: FxHashMap<Addr, Vec<(Addr, Addr)>> = FxHashMap::default();
        let methods = analysis.suspended_methods();
        for node in analysis
            .rt
            .budget()
            .each("methods, for what they use", methods)
        {
            out.by_method
                .entry(analysis.frame_name(node))
                .or_default()
                .push(node);
            let variables: Vec<Addr> = steps_of(graph, node)
                .flat_map(|s| analysis.captured(s))
                .collect();
            let mut used: Vec<Addr> = Vec::new();
            for variable in variables {
                if wanted.contains(&variable) {
                    used.push(variable);
                } else if graph.heap.is_object(variable) {
                    let found = inside
                        .entry(variable)
                        .or_insert_with(|| out.look_into(analysis, variable, &wanted));
                    for (slot, object) in found.iter() {
                        used.push(*object);
                        // what a lock hands out names its semaphore, too; the lock's own method waits
                        if let Some(known) = out.holders.get_mut(object)
                            && known.0 != variable
                            && !is_plumbing(analysis, variable)
                            && waits_for(analysis, node, *object)
                        {
                            *known = (variable, *slot);
                        }
                    }
                }
            }
            used.sort_unstable();
            used.dedup();
            for object in used {
                out.by_object.entry(object).or_default().push(node);
            }
        }
        out
    }

    /// Slots of an object that hold what is wanted, with that.
    fn look_into(
        &mut self,
        analysis: &Analysis<'_, '_>,
        holder: Addr,
        wanted: &FxHashSet<Addr>,
    ) -> Vec<(Addr, Addr)> {
        let mut slots = 0_usize;
        let mut found = Vec::new();
        analysis.rt.for_each_reference(holder, &mut |slot, target| {
            slots = slots.saturating_add(1);
            if slots <= MAX_SLOTS && wanted.contains(&target) {
                found.push((slot, target));
            }
        });
        let is_plumbing = found.is_empty() || is_plumbing(analysis, holder);
        for (slot, target) in found.iter().filter(|_| !is_plumbing) {
            self.holders.entry(*target).or_insert((holder, *slot));
        }
        found
    }

    /// Suspended methods of a name.
    pub(crate) fn named(&self, method: &str) -> &[NodeId] {
        self.by_method.get(method).map_or(&[], Vec::as_slice)
    }

    /// Suspended methods that use an object.
    pub(crate) fn of(&self, object: Addr) -> &[NodeId] {
        self.by_object.get(&object).map_or(&[], Vec::as_slice)
    }
}

/// Waiters, and .NET's own objects around a semaphore, name it as well; those are no fields of the program.
fn is_plumbing(analysis: &Analysis<'_, '_>, holder: Addr) -> bool {
    let rt = analysis.rt;
    let is_dotnet = |module| rt.module(module).ships_with_dotnet;
    analysis.graph.node(holder).is_some() || rt.type_of(holder).is_none_or(|t| is_dotnet(t.module))
}

/// Whether a method waits for a semaphore itself.
fn waits_for(analysis: &Analysis<'_, '_>, method: NodeId, semaphore: Addr) -> bool {
    let graph = &analysis.graph;
    let mut awaited = graph.awaited(method);
    awaited.any(|(id, _)| {
        let waiter = graph.object(id);
        waiter.is_some_and(|n| graph.semaphores.get(&n.addr) == Some(&semaphore))
    })
}

impl Analysis<'_, '_> {
    /// The field that holds a shared object, as `Type.field`: of what its users refer to, else a static of a type
    /// whose method waits for it.
    pub(crate) fn field_that_holds(
        &self,
        users: &Users,
        object: Addr,
        awaited: &[NodeId],
    ) -> Option<String> {
        if let Some((holder, slot)) = users.holders.get(&object) {
            let ty = self.rt.type_of(*holder)?;
            let offset = slot.since(*holder)?.checked_sub(8)?;
            let field = self
                .rt
                .instance_fields(&ty)
                .values()
                .find(|f| f.offset == offset)?;
            return Some(format!(
                "{}.{}",
                self.plain_type(&ty),
                plain_field(&field.name)
            ));
        }
        let waiting: Vec<NodeId> = awaited
            .iter()
            .flat_map(|id| self.graph.waiters(*id))
            .take(MAX_SLOTS)
            .collect();
        let above = waiting.iter().flat_map(|id| self.graph.waiters(*id));
        let mut methods = waiting.iter().copied().chain(above.take(MAX_SLOTS));
        methods.find_map(|id| self.static_that_holds(id, object))
    }

    /// Module and row of the type whose method is suspended.
    fn declaring_type(&self, method: NodeId) -> Option<(Addr, u32)> {
        if let Some(machine) = self.graph.machines.get(&method) {
            let ty = &machine.place.ty;
            let module = self.rt.module(ty.module);
            return Some((ty.module, module.metadata.as_ref()?.enclosing(ty.rid)?));
        }
        let mut frames = self.graph.operations.get(&method)?.async_frames();
        let owner = frames.find_map(|f| self.rt.ty(f.point.method?.owner))?;
        Some((owner.module, owner.rid))
    }

    /// A static field of the type whose method is suspended.
    fn static_that_holds(&self, method: NodeId, object: Addr) -> Option<String> {
        let (of, mut rid) = self.declaring_type(method)?;
        let module = self.rt.module(of);
        // closures stand between the machine and the program's own type
        for level in 0..4 {
            if level > 0 {
                rid = module.metadata.as_ref()?.enclosing(rid)?;
            }
            let mt = self.rt.loaded_type(of, rid)?;
            let ty = self.rt.ty(mt)?;
            let fields = self.rt.own_fields(&ty);
            let holds = fields.iter().find(|f| {
                f.is_static
                    && f.kind == FieldKind::Reference
                    && self.rt.static_reference(mt, &f.name) == Some(object)
            });
            if let Some(field) = holds {
                return Some(format!(
                    "{}.{}",
                    self.plain_type(&ty),
                    plain_field(&field.name)
                ));
            }
        }
        None
    }

    /// A type without the closures that compilers put inside it.
    fn plain_type(&self, ty: &Type) -> String {
        let name = self.rt.name(ty);
        let outer = name.split("+<>").next().unwrap_or(&name);
        outer.replace('+', ".")
    }
}

/// The property of a backing field, the local of a closure's field.
fn plain_field(name: &str) -> &str {
    name.strip_prefix('<')
        .and_then(|n| n.split_once('>'))
        .map_or(name, |(n, _)| n)
}

/// The semaphores of the process.
pub(crate) fn semaphores(analysis: &Analysis<'_, '_>) -> Vec<Addr> {
    let mut all = analysis.graph.helpers(Helper::Semaphore).to_vec();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::plain_field;

    #[test]
    fn backing_fields_are_called_like_their_property() {
        assert_eq!(plain_field("<Gate>k__BackingField"), "Gate");
        assert_eq!(plain_field("_gate"), "_gate");
        assert_eq!(plain_field("<x"), "<x");
    }
}
