//! Methods without metadata: DynamicMethods, and the stubs that the runtime emits between two kinds of code.

use super::method::{MethodKind, MethodRef};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// Bit of DynamicMethodDesc's flags: the runtime emitted it for itself (8.0 to 11.0).
const IS_STUB: u32 = 0x8000;
/// The longest name of a dynamic method that is read.
const MAX_NAME: u64 = 1024;

/// What the runtime's stubs are for, by the begin of the name that it gives them (names of 10.0.15 and 11.0.0).
const STUBS: [(&str, &str); 16] = [
    ("IL_STUB_PInvoke", "P/Invoke marshalling"),
    ("IL_STUB_ReversePInvoke", "callback from native code"),
    ("IL_STUB_MulticastDelegate_Invoke", "multicast delegate"),
    ("IL_STUB_Delegate_Invoke", "delegate invoke"),
    ("IL_STUB_WrapperDelegate_Invoke", "delegate invoke"),
    (
        "IL_STUB_DelegateShuffleThunk",
        "delegate of a static method",
    ),
    ("IL_STUB_UnboxingStub", "unboxing"),
    ("IL_STUB_InstantiatingStub", "instantiating"),
    ("IL_STUB_StoreTailCallArgs", "tail call"),
    ("IL_STUB_CallTailCallTarget", "tail call"),
    ("IL_STUB_VirtualStaticMethodDispatch", "static virtual call"),
    ("IL_STUB_AsyncResume", "resumes an async method"),
    ("IL_STUB_StructMarshal", "structure marshalling"),
    ("IL_STUB_Array", "array access"),
    ("IL_STUB_CLRtoCOM", "call to COM"),
    ("IL_STUB_COMtoCLR", "callback from COM"),
];

impl Runtime<'_> {
    /// Who emitted a method without metadata.
    pub(super) fn dynamic_kind(&self, desc: Addr) -> MethodKind {
        let flags = self.memory.u32(desc + self.offsets.dynamic_method.flags);
        if flags.is_some_and(|f| f & IS_STUB != 0) {
            MethodKind::Stub
        } else {
            MethodKind::Dynamic
        }
    }

    pub(super) fn dynamic_name(&self, method: &MethodRef) -> String {
        let text = self
            .memory
            .ptr(method.desc + self.offsets.dynamic_method.name);
        let name = text.and_then(|t| self.memory.c_str(t, MAX_NAME));
        describe(name.as_deref().unwrap_or_default(), method.kind)
    }
}

/// The name with what it is the name of.
fn describe(name: &str, kind: MethodKind) -> String {
    if kind != MethodKind::Stub {
        return match name {
            "" => "unnamed DynamicMethod".to_owned(),
            _ => format!("{name} (DynamicMethod)"),
        };
    }
    match STUBS.iter().find(|(known, _)| name.starts_with(known)) {
        Some((_, purpose)) => format!("{name} ({purpose})"),
        None if name.is_empty() => "unnamed stub of the runtime".to_owned(),
        None => format!("{name} (stub of the runtime)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_say_what_they_are_for() {
        let stub = |name| describe(name, MethodKind::Stub);
        assert_eq!(
            stub("IL_STUB_PInvoke"),
            "IL_STUB_PInvoke (P/Invoke marshalling)"
        );
        assert_eq!(
            stub("IL_STUB_AsyncResume_Shop_Buy"),
            "IL_STUB_AsyncResume_Shop_Buy (resumes an async method)"
        );
        assert_eq!(stub("IL_STUB"), "IL_STUB (stub of the runtime)");
        assert_eq!(stub(""), "unnamed stub of the runtime");
    }

    #[test]
    fn dynamic_methods_are_told_from_the_methods_of_types() {
        let named = |name| describe(name, MethodKind::Dynamic);
        assert_eq!(named("lambda_method1"), "lambda_method1 (DynamicMethod)");
        assert_eq!(named("IL_STUB_of_mine"), "IL_STUB_of_mine (DynamicMethod)");
        assert_eq!(named(""), "unnamed DynamicMethod");
    }
}
