//! Waits that have no frame: in optimised code `WaitHandle.WaitOne` and its like stand inside the method that calls them,
//! above the runtime's native code.

use super::method::MethodRef;
use crate::runtime::Runtime;
use crate::stack::{FrameSource, Stack};

/// Methods of CoreLib that block in the runtime, by the begin of their names (10.0.15, 11.0.0).
const BLOCKING: [&str; 5] = [
    "System.Threading.WaitHandle.WaitOne",
    "System.Threading.WaitHandle.WaitAny",
    "System.Threading.WaitHandle.WaitAll",
    "System.Threading.Thread.Join",
    "System.Threading.Thread.Sleep",
];

impl Runtime<'_> {
    /// The method of CoreLib in which the innermost managed frame of a stack blocks, when the statement that it stands at
    /// calls one such method, and that one has no frame of its own. Ask only of threads that wait.
    #[must_use]
    pub fn blocking_call(&self, stack: &Stack) -> Option<MethodRef> {
        let frame = stack.frames.first()?;
        let is_exact = matches!(frame.source, FrameSource::Registers | FrameSource::Unwound);
        if !is_exact || self.module(frame.method.module).ships_with_dotnet {
            return None;
        }
        let statement = self.statement(frame.ip.back(1))?;
        let calls = self.calls_of((frame.method.module, frame.method.rid))?;
        let core_lib = self.core_lib().addr;
        let mut found = calls.iter().filter(|c| statement.contains(&c.at));
        let mut blocking = found.by_ref().filter_map(|call| {
            let place = call.target.filter(|(module, _)| *module == core_lib)?;
            let method = self.method_at_place(place)?;
            let name = self.method_name(&method);
            BLOCKING
                .iter()
                .any(|b| name.starts_with(b))
                .then_some(method)
        });
        blocking.next().filter(|_| blocking.next().is_none())
    }
}
