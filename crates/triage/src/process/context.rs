//! ExecutionContext: what flows with an operation.

use asynctriage_async_graph::{AsyncGraph, Class, Node};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// Values of one context that are looked at.
const MAX_VALUES: u64 = 64;

/// The values of the AsyncLocals that flow with a box.
pub(crate) fn async_locals(rt: &Runtime<'_>, graph: &AsyncGraph, node: Node) -> Vec<Addr> {
    let context = match node.class {
        Class::PooledBox => rt.reference(node.addr, "Context"),
        // up to .NET 7 the box has a field of its own; later it stands in the task's state object
        _ => rt
            .reference(node.addr, "Context")
            .or_else(|| graph.task?.state_object(rt, node.addr)),
    };
    context.map(|c| values_of(rt, c)).unwrap_or_default()
}

/// The values of an ExecutionContext.
pub(crate) fn values_of(rt: &Runtime<'_>, context: Addr) -> Vec<Addr> {
    values(rt, context).unwrap_or_default()
}

/// The maps hold one to four pairs in fields, up to 16 in an array, more in a dictionary (8.0 to 11.0).
fn values(rt: &Runtime<'_>, context: Addr) -> Option<Vec<Addr>> {
    let map = rt.reference(context, "m_localValues")?;
    let place = rt.place(map)?;
    if let Some(array) = place.reference(rt, "_keyValues") {
        let (start, stride, len) = rt.vector(array)?;
        return Some(
            (0..len.min(MAX_VALUES))
                .filter_map(|i| rt.memory().ptr(start.element(i, stride) + 8)?.non_null())
                .collect(),
        );
    }
    let pairs = (0..4).filter_map(|i| place.addr(rt, &format!("_item{i}")));
    let mut out: Vec<Addr> = pairs
        .filter_map(|pair| rt.memory().ptr(pair + 8)?.non_null())
        .collect();
    if let Some(entries) = place.reference(rt, "_entries") {
        let value = rt
            .element_type(entries)
            .and_then(|t| rt.instance_field(&t, "value"))?
            .offset;
        let (start, stride, len) = rt.vector(entries)?;
        out.extend((0..len.min(MAX_VALUES)).filter_map(|i| {
            rt.memory()
                .ptr(start.element(i, stride) + value)?
                .non_null()
        }));
    }
    Some(out)
}

/// The operation name of an Activity among the values.
pub(crate) fn activity(rt: &Runtime<'_>, values: &[Addr]) -> Option<(Addr, String)> {
    values.iter().find_map(|v| {
        let name = rt.object_type_name(*v)?;
        (&*name == "System.Diagnostics.Activity").then_some(())?;
        // programs put data into the display name, such as the path of a call
        let text = rt.field_text(*v, "<OperationName>k__BackingField")?;
        Some((*v, text))
    })
}
