//! SignalR: invocations of the methods of hubs.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// How the frames begin in which SignalR calls a method of a hub.
pub(crate) const HUB_DISPATCHER: &str =
    "Microsoft.AspNetCore.SignalR.Internal.DefaultHubDispatcher";
const HUB: &str = "Microsoft.AspNetCore.SignalR.Hub";
const INVOCATIONS: [&str; 2] = [
    "Microsoft.AspNetCore.SignalR.Protocol.InvocationMessage",
    "Microsoft.AspNetCore.SignalR.Protocol.StreamInvocationMessage",
];
/// The message that invokes a method, and the method, among the variables of the dispatcher's frames.
pub(crate) fn invocation_among(rt: &Runtime<'_>, variables: &[Addr]) -> Option<(Addr, String)> {
    let mut message = None;
    let mut hub = None;
    for object in variables {
        let Some(ty) = rt.type_of(*object) else {
            continue;
        };
        if INVOCATIONS.contains(&&*rt.definition_name(&ty)) {
            message = message.or(Some(*object));
        } else if rt.is_a(ty.mt, HUB) {
            hub = hub.or_else(|| Some(rt.name(&ty)));
        }
    }
    let message = message?;
    let target = rt.field_text(message, "<Target>k__BackingField")?;
    let text = match hub {
        Some(hub) => format!("{hub}.{target}"),
        None => target,
    };
    Some((message, text))
}
