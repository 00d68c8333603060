//! Exact generic arguments of suspended methods whose code is shared.
//!
//! Code for reference types is compiled once, for `__Canon`. What tells the real arguments is the generic context, which
//! the continuation keeps when the rest of the method needs it, or the object whose method it is.

use super::debug_info::GENERIC_CONTEXT;
use super::method::{MethodKind, MethodRef};
use super::resume::{CANON, ResumePoint};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use std::sync::Arc;

/// Number of the variable `this` in methods that are called with an object.
const THIS: i64 = 0;

impl Runtime<'_> {
    /// Whether an object is a continuation of runtime-async methods, or one of those that stand for what is awaited.
    #[must_use]
    pub fn is_continuation(&self, object: Addr) -> bool {
        let ty = self.type_of(object);
        ty.is_some_and(|t| {
            self.is_dynamic_continuation(t.mt)
                || self.is_a(t.mt, "System.Runtime.CompilerServices.Continuation")
        })
    }

    /// The name of the method that a continuation suspends, with exact generic arguments where it tells them.
    #[must_use]
    pub fn suspended_method_name(&self, point: &ResumePoint, continuation: Addr) -> Arc<str> {
        let shared = Arc::clone(&point.name);
        if !shared.contains(CANON) {
            return shared;
        }
        let exact = point
            .method
            .and_then(|m| self.exact_method(&m, point, continuation));
        exact.map_or(shared, |m| self.exact_name(&m))
    }

    fn exact_name(&self, method: &MethodRef) -> Arc<str> {
        let (known, key) = (&self.code.exact_names, (method.desc, method.owner));
        if let Some(name) = known.read().ok().and_then(|k| k.get(&key).cloned()) {
            return name;
        }
        let name: Arc<str> = self.make_method_name(method).into();
        if let Ok(mut known) = known.write() {
            known.insert(key, Arc::clone(&name));
        }
        name
    }

    fn exact_method(
        &self,
        method: &MethodRef,
        point: &ResumePoint,
        continuation: Addr,
    ) -> Option<MethodRef> {
        let kept = |number: i64| {
            let (_, offset) = point.variables.iter().find(|(n, _)| *n == number)?;
            self.memory
                .ptr(continuation + u64::from(*offset))?
                .non_null()
        };
        let by_context = || self.by_context(method, kept(GENERIC_CONTEXT)?);
        let by_this = || self.owner_among_bases(method, kept(THIS)?);
        let with_owner = |owner| MethodRef { owner, ..*method };
        by_context().or_else(|| {
            if self.method_definition(method)?.is_static() {
                return None;
            }
            let owner = by_this().or_else(|| self.owner_among_kept(method, continuation));
            owner.map(with_owner)
        })
    }

    /// The context is the MethodDesc of a generic method, or the MethodTable of the type.
    fn by_context(&self, method: &MethodRef, context: Addr) -> Option<MethodRef> {
        let same = |m: &MethodRef| (m.module, m.rid) == (method.module, method.rid);
        let instance = self
            .method_of_desc(context)
            .filter(|m| m.kind == MethodKind::Instantiated && same(m));
        instance.or_else(|| {
            let owner = self.ty(method.owner)?;
            let ty = self.ty(context)?;
            ((ty.module, ty.rid) == (owner.module, owner.rid)).then_some(MethodRef {
                owner: ty.mt,
                ..*method
            })
        })
    }

    /// The exact form of the method's type that an object is or derives from.
    fn owner_among_bases(&self, method: &MethodRef, object: Addr) -> Option<Addr> {
        let owner = self.ty(method.owner)?;
        let mt = self.type_of(object)?.mt;
        let found = self
            .hierarchy(mt)
            .find(|t| (t.module, t.rid) == (owner.module, owner.rid))?;
        Some(found.mt)
    }

    /// The same from all that the continuation refers to, when that leaves no choice.
    fn owner_among_kept(&self, method: &MethodRef, continuation: Addr) -> Option<Addr> {
        let mut owners = Vec::new();
        self.for_each_reference(continuation, &mut |_, object| {
            owners.extend(self.owner_among_bases(method, object));
        });
        owners.sort_unstable();
        owners.dedup();
        match owners.as_slice() {
            [owner] => Some(*owner),
            _ => None,
        }
    }
}
