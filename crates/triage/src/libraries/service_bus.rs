//! Azure Service Bus.

use super::{Client, Service};
use asynctriage_report::{LeafKind, RootKind};

pub(super) const CLIENT: Client = Client::new("Azure.Messaging.", LeafKind::MessageBroker);
pub(super) const PROCESSOR: Service = Service {
    frame: "Azure.Messaging.ServiceBus.ReceiverManager.ProcessOneMessage",
    kind: RootKind::QueueConsumer,
    what: "Service Bus processor of",
    holder: "Azure.Messaging.ServiceBus.ReceiverManager",
    name: &["Processor", "<EntityPath>k__BackingField"],
};
