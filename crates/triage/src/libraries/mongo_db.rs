//! MongoDB.Driver.

use super::Client;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client::new("MongoDB.Driver.", LeafKind::Database);
