//! MySqlConnector: MySQL and MariaDB.

use super::Client;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    command: Some(("MySqlConnector.MySqlCommand", false)),
    ..Client::new("MySqlConnector.", LeafKind::Database)
};
