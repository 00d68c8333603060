//! StackExchange.Redis.

use super::{Client, DEPENDENCY, Process};
use crate::process::sockets::endpoint_text;
use asynctriage_async_graph::Helper;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use serde_json::json;

pub(super) const CLIENT: Client = Client {
    call: Some(call_leaf),
    ..Client::new("StackExchange.Redis.", LeafKind::Cache)
};

/// A command of StackExchange.Redis: sent and unanswered, or not even sent.
fn call_leaf(process: Process<'_, '_>, message: Addr, _class: &str) -> Option<Leaf> {
    let rt = process.rt;
    let member = |field: &str| rt.enum_text(message, field);
    let command = member("command").unwrap_or_else(|| "a command".into());
    let stage = match member("<Status>k__BackingField").as_deref() {
        Some("Sent") => "sent, no answer yet",
        Some("WaitingInBacklog") => {
            "not sent: it waits in the backlog, as the connection is not up"
        }
        Some("WaitingToBeSent") => "not sent yet",
        _ => "no answer yet",
    };
    let server = server(process, message);
    let mut out = Leaf {
        kind: LeafKind::Cache,
        text: format!(
            "{}: {command}, {stage}",
            server.as_deref().unwrap_or("Redis")
        ),
        ..Leaf::default()
    };
    out.details
        .insert("message".into(), json!(message.to_string()));
    out.details.insert("command".into(), json!(command));
    out.details.insert(DEPENDENCY.into(), json!(server));
    Some(out)
}

/// The server whose connection has sent a message, or in whose backlog it stands.
fn server(process: Process<'_, '_>, message: Addr) -> Option<String> {
    let rt = process.rt;
    let holds = |queue: Option<Addr>| {
        let items = queue.and_then(|q| rt.reference(q, "_array"));
        items.is_some_and(|a| {
            rt.vector_references(a, 0, u64::from(u16::MAX))
                .any(|m| m == message)
        })
    };
    let bridges = process.graph.helpers(Helper::RedisBridge);
    let bridge = bridges.iter().copied().find(|b| {
        let sent = rt.reference(*b, "physical");
        holds(sent.and_then(|p| rt.reference(p, "_writtenAwaitingResponse")))
    });
    let only = || bridges.first().copied().filter(|_| bridges.len() == 1);
    let server = rt.reference(bridge.or_else(only)?, "<ServerEndPoint>k__BackingField")?;
    let end = rt.reference(server, "<EndPoint>k__BackingField")?;
    Some(format!("Redis {}", endpoint_text(rt, end)?))
}
