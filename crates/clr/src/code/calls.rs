//! Which methods a method's IL calls, across modules: by the tables in which the runtime keeps what it has resolved.

use super::method::MethodRef;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{self, CallForm, Named};
use asynctriage_metadata::{MethodSig, Table, Token};
use std::sync::Arc;

/// Bases of a type that a method is looked for in.
const MAX_BASES: usize = 16;
/// Methods whose calls are kept.
const MAX_KNOWN: usize = 1 << 16;
/// Calls of one method that are looked at.
const MAX_CALLS: usize = 4096;
/// `MethodImplAttributes`: the runtime provides the code, as for `Invoke` of delegates.
const BY_RUNTIME: u16 = 3;

/// A method by its module and the row of its definition.
pub(super) type Place = (Addr, u32);

/// A call in a method's IL.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// Offset of the instruction.
    pub(super) at: u32,
    pub(super) form: CallForm,
    /// The method that it names, where the runtime has resolved it.
    pub(super) target: Option<Place>,
    /// Its name, and how many parameters it has.
    pub(super) name: Arc<str>,
    pub(super) params: usize,
    /// Whether it calls a delegate.
    pub(super) is_delegate: bool,
    /// Whether it may lead to another method than the one it names.
    pub(super) is_open: bool,
}

impl Runtime<'_> {
    /// The calls in a method's IL; `None` where the IL is not in the dump.
    pub(super) fn calls_of(&self, place: Place) -> Option<Arc<[Called]>> {
        let known = &self.code.calls;
        if let Some(calls) = known.read().ok().and_then(|k| k.get(&place).cloned()) {
            return calls;
        }
        let read = self.read_calls(place).map(Arc::from);
        if let Ok(mut known) = known.write()
            && known.len() < MAX_KNOWN
        {
            known.insert(place, read.clone());
        }
        read
    }

    fn read_calls(&self, (module, rid): Place) -> Option<Vec<Called>> {
        let code = self.method_il(module, rid)?;
        let calls = il::all_calls(&code).take(MAX_CALLS);
        Some(calls.filter_map(|call| self.called(module, call)).collect())
    }

    fn called(&self, module: Addr, call: il::Call) -> Option<Called> {
        let mut called = Called {
            at: call.at,
            form: call.form,
            target: None,
            name: Arc::from(""),
            params: 0,
            is_delegate: false,
            is_open: true,
        };
        if call.form == CallForm::Indirect {
            return Some(called);
        }
        let of = self.module(module);
        let metadata = of.metadata.as_ref()?;
        // arrays have methods of the runtime's own
        match metadata.named_method(call.token)? {
            Named::Own(rid) => {
                called.name = metadata.method(rid)?.name.into();
                called.params = metadata.method_signature(rid)?.params.len();
                called.target = Some((module, rid));
            }
            Named::Member {
                class,
                name,
                signature,
            } => {
                called.params = signature.params.len();
                called.target = self.member(module, class, &name, &signature);
                called.name = name.into();
            }
        }
        if let Some((module, rid)) = called.target {
            let of = self.module(module);
            let metadata = of.metadata.as_ref()?;
            let method = metadata.method(rid)?;
            let class = metadata.type_def(metadata.method_owner(rid)?)?;
            called.is_delegate = method.impl_flags & BY_RUNTIME == BY_RUNTIME;
            // `base.Run()` calls the very method; one of an interface that has no object is looked up by its type
            let is_looked_up = call.form == CallForm::Virtual && !class.is_sealed();
            called.is_open = method.is_overridable() && (is_looked_up || method.is_static());
        }
        Some(called)
    }

    /// The method that a member reference of a module stands for: of the type that it names, or of one of its bases.
    fn member(&self, module: Addr, class: Token, name: &str, sig: &MethodSig) -> Option<Place> {
        let from = self.module(module);
        let (mut of, mut rid) = match class.table()? {
            Table::TypeDef => (module, class.rid()),
            _ => self.referred_type(module, class.rid())??,
        };
        for _ in 0..MAX_BASES {
            let known = self.module(of);
            let metadata = known.metadata.as_ref()?;
            let found = metadata.method_like(rid, name, sig, from.metadata.as_ref()?);
            if let Some(method) = found {
                return Some((of, method));
            }
            let base = metadata.type_def(rid)?.extends;
            (of, rid) = match base.table()? {
                Table::TypeDef => (of, base.rid()),
                Table::TypeRef => self.referred_type(of, base.rid())??,
                _ => return None,
            };
        }
        None
    }

    /// A method by its definition, as far as the runtime knows it: with its MethodDesc where it has made one.
    pub(super) fn method_at_place(&self, (module, rid): Place) -> Option<MethodRef> {
        let map = self.offsets.module.method_map;
        let desc = map.and_then(|map| self.mapped(module + map, rid));
        let found = desc.and_then(|desc| self.method_of_desc(desc));
        if let Some(method) = found.filter(|m| (m.module, m.rid) == (module, rid)) {
            return Some(method);
        }
        let known = self.module(module);
        let owner = known.metadata.as_ref()?.method_owner(rid)?;
        Some(MethodRef {
            desc: Addr::NULL,
            owner: self.loaded_type(module, owner).unwrap_or_default(),
            module,
            rid,
            kind: super::MethodKind::Defined,
        })
    }
}
