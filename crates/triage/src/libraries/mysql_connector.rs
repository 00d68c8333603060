//! MySqlConnector: MySQL and MariaDB.

use super::Client;
use crate::process::private::Dialect;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    command: Some(("MySqlConnector.MySqlCommand", Dialect::MySql)),
    ..Client::new("MySqlConnector.", LeafKind::Database)
};
