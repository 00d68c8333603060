//! StackExchange.Redis.

use super::{Client, Process};
use crate::facts::{ClientWait, Fact};
use crate::process::sockets::endpoint_text;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    call: Some((|class| class == "StackExchange.Redis.Message", call_wait)),
    // connections, each to one server
    besides: Some(|class| class == "StackExchange.Redis.PhysicalBridge"),
    ..Client::new("StackExchange.Redis.", LeafKind::Cache)
};

/// A command of StackExchange.Redis: sent and unanswered, or not even sent.
fn call_wait(process: Process<'_, '_>, message: Addr, _class: &str) -> Option<ClientWait> {
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
    Some(ClientWait {
        unnamed: "Redis",
        asks: Some(format!("{command}, {stage}")),
        facts: vec![
            ("message", Fact::Object(message)),
            ("command", Fact::Text(Some(command))),
        ],
        ..ClientWait::new(LeafKind::Cache, server(process, message))
    })
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
    let bridges = process.besides(&CLIENT);
    let bridge = bridges.iter().copied().find(|b| {
        let sent = rt.reference(*b, "physical");
        holds(sent.and_then(|p| rt.reference(p, "_writtenAwaitingResponse")))
    });
    let only = || bridges.first().copied().filter(|_| bridges.len() == 1);
    let server = rt.reference(bridge.or_else(only)?, "<ServerEndPoint>k__BackingField")?;
    let end = rt.reference(server, "<EndPoint>k__BackingField")?;
    Some(format!("Redis {}", endpoint_text(rt, end)?))
}
