//! gRPC: calls of Grpc.Net.Client, methods that Grpc.AspNetCore serves.

use super::{Client, DEPENDENCY, Process};
use crate::process::private::origin;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use serde_json::json;

pub(super) const CLIENT: Client = Client {
    call: Some(call_leaf),
    object: Some(stream_leaf),
    ..Client::new("Grpc.Net.Client.", LeafKind::Grpc)
};

/// Where Grpc.AspNetCore calls the methods of a service.
pub(crate) const HANDLERS: &str = "Grpc.AspNetCore.Server.Internal.CallHandlers.";

/// A reader or writer of a call that streams messages.
fn stream_leaf(
    process: Process<'_, '_>,
    stream: Addr,
    class: &str,
    _over: LeafKind,
) -> Option<Leaf> {
    let is_stream = class.starts_with("Grpc.Net.Client.Internal.HttpContentClientStream");
    let call = process
        .rt
        .reference(stream, "_call")
        .filter(|_| is_stream)?;
    call_leaf(process, call, class)
}

/// A call of Grpc.Net.Client.
fn call_leaf(process: Process<'_, '_>, call: Addr, _class: &str) -> Option<Leaf> {
    let rt = process.rt;
    let method = rt
        .reference(call, "<Method>k__BackingField")
        .and_then(|m| rt.field_text(m, "fullName"));
    let channel = rt.reference(call, "<Channel>k__BackingField");
    let address = channel
        .and_then(|c| rt.reference(c, "<Address>k__BackingField"))
        .and_then(|u| rt.field_text(u, "_string"))
        .and_then(|u| origin(&u));
    let server = format!("gRPC server {}", address.as_deref().unwrap_or("?"));
    let mut out = Leaf {
        kind: LeafKind::Grpc,
        text: format!("{server}: {}", method.as_deref().unwrap_or("a call")),
        ..Leaf::default()
    };
    out.details.insert("call".into(), json!(call.to_string()));
    out.details.insert("method".into(), json!(method));
    out.details.insert(DEPENDENCY.into(), json!(server));
    Some(out)
}
