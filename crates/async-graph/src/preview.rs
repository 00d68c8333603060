//! Runtime-async of .NET 10, which a switch turns on (`DOTNET_RuntimeAsync=1`; seen in 10.0.15): recognised, not read.
//!
//! Its continuations are all of one sealed class, keep variables in two arrays (`Data`, `GCData`) and name the function
//! that resumes rather than a place in the method, which has no name in the dump. .NET 11 changed all of that.

use asynctriage_clr::{Gap, GapKind, Heap, Runtime};

/// The tasks of such methods; a generic form has the same beginning.
const THUNK_TASK: &str = "System.Runtime.CompilerServices.AsyncHelpers+ThunkTask";

/// What is missing when there are such tasks.
pub(crate) fn gap(rt: &Runtime<'_>, heap: &Heap) -> Option<Gap> {
    let tasks = heap.types.iter().filter(|t| {
        let ty = rt.ty(t.mt);
        ty.is_some_and(|ty| {
            let name = rt.definition_name(&ty);
            name.strip_prefix(THUNK_TASK)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('`'))
        })
    });
    let count = tasks.map(|t| t.count).fold(0, u64::saturating_add);
    (count > 0).then(|| Gap {
        kind: GapKind::RuntimeAsyncPreview,
        place: "runtime-async as a preview of .NET 10".into(),
        why: format!(
            "{count} tasks are of methods compiled as runtime-async, which .NET 10 keeps in another form than .NET 11: what these methods are and what they wait for is not read, so chains are missing or end early"
        ),
        remedy: "build the program without Features=runtime-async=on, or run it on .NET 11".into(),
    })
}
