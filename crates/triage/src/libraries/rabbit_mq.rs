//! RabbitMQ.Client.

use super::{Client, DEPENDENCY, Process, Service};
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind, RootKind};
use serde_json::json;

pub(super) const CLIENT: Client = Client {
    call: Some(call_leaf),
    ..Client::new("RabbitMQ.Client.", LeafKind::MessageBroker)
};
pub(super) const CONSUMER: Service = Service {
    frame: "RabbitMQ.Client.ConsumerDispatching.AsyncConsumerDispatcher.ProcessChannelAsync",
    kind: RootKind::QueueConsumer,
    what: "RabbitMQ consumer",
    holder: "",
    name: &[],
};

fn call_leaf(_process: Process<'_, '_>, _call: Addr, class: &str) -> Option<Leaf> {
    Some(answer_leaf(class))
}

/// What RabbitMQ.Client asks its server; the class says which request it is.
fn answer_leaf(class: &str) -> Leaf {
    let short = class.rsplit('.').next().unwrap_or(class);
    let short = short.split(['<', '`', '+']).next().unwrap_or(short);
    let request = short
        .strip_suffix("AsyncRpcContinuation")
        .or_else(|| short.strip_suffix("RpcContinuation"))
        .unwrap_or(short);
    let mut out = Leaf {
        kind: LeafKind::MessageBroker,
        text: format!("RabbitMQ: the answer to {request}"),
        ..Leaf::default()
    };
    out.details.insert("request".into(), json!(request));
    out.details.insert(DEPENDENCY.into(), json!("RabbitMQ"));
    out
}

#[cfg(test)]
mod tests {
    use super::answer_leaf;

    #[test]
    fn requests_to_the_broker_are_named_by_their_class() {
        let leaf = answer_leaf("RabbitMQ.Client.Impl.QueueDeclareAsyncRpcContinuation");
        assert_eq!(leaf.text, "RabbitMQ: the answer to QueueDeclare");
    }
}
