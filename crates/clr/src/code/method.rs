//! MethodDescs: which method of which type.

use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::names::{self, simple_type_name};
use asynctriage_metadata::{Method, Table, Token};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Low bits of MethodDesc.Flags: what kind of method it is (8.0 to 11.0).
const KIND_MASK: u16 = 7;
const KIND_INSTANTIATED: u16 = 5;
const KIND_DYNAMIC: u16 = 7;
/// MethodDescs of a chunk stand in units of this many bytes.
const UNIT: u64 = 8;
/// The part of a method's row that stands in its own word, and in that of its chunk.
const ROW_BITS: u32 = 12;
const ROW_MASK: u16 = 0xfff;
const MAX_METHOD_ARGS: u64 = 64;
/// What names of lambdas end with.
pub(super) const LAMBDA: &str = " lambda";

/// What kind of method a MethodDesc describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// A method of its type's module.
    Defined,
    /// The same with generic arguments of its own.
    Instantiated,
    /// A DynamicMethod: the program or a library emitted it, as compiled expressions and regular expressions do.
    Dynamic,
    /// A stub that the runtime emitted, between two kinds of code.
    Stub,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodRef {
    /// Its MethodDesc; null for a method that is known by its definition alone.
    pub desc: Addr,
    /// MethodTable of its type: exact, or that of the canonical form where code is shared among reference types.
    pub owner: Addr,
    /// Module of its type.
    pub module: Addr,
    /// Row of its definition in the module's metadata; 0 for dynamic methods and stubs.
    pub rid: u32,
    /// What kind of method it is.
    pub kind: MethodKind,
}

impl Runtime<'_> {
    /// The method whose code an address lies in. A return address stands behind its call: ask for one byte less.
    #[must_use]
    pub fn method_at(&self, ip: Addr) -> Option<MethodRef> {
        self.method_of_desc(self.code_at(ip)?.desc)
    }

    /// The method that a MethodDesc describes; `None` when nothing there looks like one.
    #[must_use]
    pub fn method_of_desc(&self, desc: Addr) -> Option<MethodRef> {
        let (m, o) = (self.memory, &self.offsets);
        let index = u64::from(m.u8(desc + o.method_desc.chunk_index)?);
        let chunk = desc.back(index.wrapping_mul(UNIT).wrapping_add(o.chunk.head));
        let owner = self.ty(m.ptr(chunk + o.chunk.method_table)?)?;
        let kind = match m.u16(desc + o.method_desc.flags)? & KIND_MASK {
            KIND_DYNAMIC => self.dynamic_kind(desc),
            KIND_INSTANTIATED => MethodKind::Instantiated,
            _ => MethodKind::Defined,
        };
        let high = u32::from(m.u16(chunk + o.chunk.row)? & ROW_MASK);
        let low = u32::from(m.u16(desc + o.method_desc.row)? & ROW_MASK);
        Some(MethodRef {
            desc,
            owner: owner.mt,
            module: owner.module,
            rid: match kind {
                MethodKind::Dynamic | MethodKind::Stub => 0,
                _ => high << ROW_BITS | low,
            },
            kind,
        })
    }

    /// The method's own generic arguments, as type handles.
    #[must_use]
    pub fn method_args(&self, method: &MethodRef) -> Vec<Addr> {
        let (m, o) = (self.memory, &self.offsets.instantiated);
        if method.kind != MethodKind::Instantiated {
            return Vec::new();
        }
        let read = || -> Option<Vec<Addr>> {
            let count = u64::from(m.u16(method.desc + o.count)?).min(MAX_METHOD_ARGS);
            let args = m.ptr(method.desc + o.args)?;
            (0..count).map(|i| m.ptr(args.element(i, 8))).collect()
        };
        read().unwrap_or_default()
    }

    /// The row of the method in its module's metadata.
    #[must_use]
    pub fn method_definition(&self, method: &MethodRef) -> Option<Method> {
        self.module(method.module)
            .metadata
            .as_ref()?
            .method(method.rid)
    }

    /// Whether the method is declared async and compiled as runtime-async (.NET 11).
    #[must_use]
    pub fn is_runtime_async(&self, method: &MethodRef) -> bool {
        self.method_definition(method)
            .is_some_and(|d| d.is_runtime_async())
    }

    /// The method as a C# programmer would write it, `Namespace.Type<Guid>.Method<String>`; never empty. Of a state
    /// machine's MoveNext it is the method in the source.
    #[must_use]
    pub fn method_name(&self, method: &MethodRef) -> Arc<str> {
        if method.desc.is_null() {
            return self.make_method_name(method).into();
        }
        let known = &self.code.names;
        if let Some(name) = known.read().ok().and_then(|k| k.get(&method.desc).cloned()) {
            return name;
        }
        let name: Arc<str> = self.make_method_name(method).into();
        if let Ok(mut known) = known.write() {
            known.insert(method.desc, Arc::clone(&name));
        }
        name
    }

    pub(super) fn make_method_name(&self, method: &MethodRef) -> String {
        if matches!(method.kind, MethodKind::Dynamic | MethodKind::Stub) {
            return self.dynamic_name(method);
        }
        self.defined_name(method).unwrap_or_else(|| {
            let module = self.module(method.module);
            module.unnamed.store(true, Ordering::Relaxed);
            let of = if module.name.is_empty() {
                format!("module {}", method.module)
            } else {
                module.name.clone()
            };
            format!("{of}!0x06{:06x}", method.rid)
        })
    }

    fn defined_name(&self, method: &MethodRef) -> Option<String> {
        let module = self.module(method.module);
        let metadata = module.metadata.as_ref()?;
        let definition = metadata.method(method.rid)?;
        // arrays have methods of the runtime's own, without rows
        let path = metadata.type_path(metadata.method_owner(method.rid)?)?;
        let simple = |handle: &Addr| simple_type_name(&self.handle_name(*handle));
        let owner = self.ty(method.owner);
        let args = owner
            .map(|owner| self.type_args(&owner))
            .unwrap_or_default();
        let args: Vec<String> = args.iter().map(simple).collect();
        let own: Vec<String> = self.method_args(method).iter().map(simple).collect();
        let around = metadata.params_around_local(Token::new(Table::MethodDef, method.rid));
        let text = names::method_around(&path, &args, &definition.name, &own, around);
        if !definition.is_runtime_async() || !text.ends_with(LAMBDA) {
            return Some(text);
        }
        Some(match self.lambda_number(method, &path, &definition.name) {
            0 | 1 => text,
            number => format!("{text}#{number}"),
        })
    }
}
