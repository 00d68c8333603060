//! Confluent.Kafka.

use super::Client;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client::new("Confluent.Kafka.", LeafKind::MessageBroker);
