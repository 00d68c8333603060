//! MassTransit: consumers of message queues.

use super::Service;
use asynctriage_report::RootKind;

pub(super) const CONSUMER: Service = Service {
    frame: "MassTransit.Transports.ReceivePipeDispatcher.Dispatch",
    kind: RootKind::QueueConsumer,
    what: "MassTransit consumer of",
    holder: "MassTransit.Context.BaseReceiveContext",
    name: &["<InputAddress>k__BackingField", "_string"],
};
