//! RabbitMQ.Client.

use super::{Client, Process, Service};
use crate::facts::{ClientWait, Fact};
use asynctriage_dump::Addr;
use asynctriage_report::{LeafKind, RootKind};

pub(super) const CLIENT: Client = Client {
    call: Some((
        |class| class == "RabbitMQ.Client.Impl.AsyncRpcContinuation`1",
        call_wait,
    )),
    ..Client::new("RabbitMQ.Client.", LeafKind::MessageBroker)
};
pub(super) const CONSUMER: Service = Service {
    frame: "RabbitMQ.Client.ConsumerDispatching.AsyncConsumerDispatcher.ProcessChannelAsync",
    kind: RootKind::QueueConsumer,
    what: "RabbitMQ consumer",
    holder: "",
    name: &[],
};

fn call_wait(_process: Process<'_, '_>, _call: Addr, class: &str) -> Option<ClientWait> {
    Some(answer(class))
}

/// What RabbitMQ.Client asks its server; the class says which request it is.
fn answer(class: &str) -> ClientWait {
    let short = class.rsplit('.').next().unwrap_or(class);
    let short = short.split(['<', '`', '+']).next().unwrap_or(short);
    let request = short
        .strip_suffix("AsyncRpcContinuation")
        .or_else(|| short.strip_suffix("RpcContinuation"))
        .unwrap_or(short);
    ClientWait {
        asks: Some(format!("the answer to {request}")),
        facts: vec![("request", Fact::Text(Some(request.to_owned())))],
        ..ClientWait::new(LeafKind::MessageBroker, Some("RabbitMQ".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn requests_to_the_broker_are_named_by_their_class() {
        let wait = answer("RabbitMQ.Client.Impl.QueueDeclareAsyncRpcContinuation");
        assert_eq!(wait.asks.as_deref(), Some("the answer to QueueDeclare"));
    }
}
