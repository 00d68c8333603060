//! gRPC: calls of Grpc.Net.Client, methods that Grpc.AspNetCore serves.

use super::{Client, Process};
use crate::facts::{ClientWait, Fact};
use crate::process::private::origin;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    call: Some((
        |class| class == "Grpc.Net.Client.Internal.GrpcCall`2",
        call_wait,
    )),
    object: Some(stream_wait),
    ..Client::new("Grpc.Net.Client.", LeafKind::Grpc)
};

/// Where Grpc.AspNetCore calls the methods of a service.
pub(crate) const HANDLERS: &str = "Grpc.AspNetCore.Server.Internal.CallHandlers.";

/// A reader or writer of a call that streams messages.
fn stream_wait(
    process: Process<'_, '_>,
    stream: Addr,
    class: &str,
    _over: LeafKind,
) -> Option<ClientWait> {
    let is_stream = class.starts_with("Grpc.Net.Client.Internal.HttpContentClientStream");
    let call = process
        .rt
        .reference(stream, "_call")
        .filter(|_| is_stream)?;
    call_wait(process, call, class)
}

/// A call of Grpc.Net.Client.
fn call_wait(process: Process<'_, '_>, call: Addr, _class: &str) -> Option<ClientWait> {
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
    Some(ClientWait {
        asks: Some(method.clone().unwrap_or_else(|| "a call".into())),
        facts: vec![("call", Fact::Object(call)), ("method", Fact::Text(method))],
        ..ClientWait::new(LeafKind::Grpc, Some(server))
    })
}
