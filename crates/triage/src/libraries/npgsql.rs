//! Npgsql: PostgreSQL.

use super::Client;
use crate::process::private::Dialect;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    command: Some(("Npgsql.NpgsqlCommand", Dialect::Postgres)),
    ..Client::new("Npgsql.", LeafKind::Database)
};

/// The server's own process for a connection of Npgsql: what its administrators can look up.
pub(super) fn backend_process(rt: &Runtime<'_>, command: Addr) -> Option<i32> {
    let connection = rt.reference(command, "<InternalConnection>k__BackingField")?;
    let connector = rt.reference(connection, "<Connector>k__BackingField")?;
    let pid = rt.field_i32(connector, "<BackendProcessId>k__BackingField");
    pid.filter(|p| *p != 0)
}
