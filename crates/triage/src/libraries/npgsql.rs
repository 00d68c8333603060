//! Npgsql: PostgreSQL.

use super::database::server_text;
use super::{Client, Process};
use crate::facts::{ClientWait, PoolUse};
use crate::process::private::Dialect;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    command: Some(("Npgsql.NpgsqlCommand", Dialect::Postgres)),
    object: Some(object_wait),
    ..Client::new("Npgsql.", LeafKind::Database)
};

/// A connection that is wanted or in use: by the source of connections with its pool, or by the connection (8.0).
fn object_wait(
    process: Process<'_, '_>,
    object: Addr,
    class: &str,
    over: LeafKind,
) -> Option<ClientWait> {
    let rt = process.rt;
    let source = match class {
        "Npgsql.PoolingDataSource" | "Npgsql.UnpooledDataSource" => Some(object),
        "Npgsql.Internal.NpgsqlConnector" => rt.reference(object, "<DataSource>k__BackingField"),
        _ => None,
    }?;
    let server = server_text(rt, rt.reference(source, "<Settings>k__BackingField")?)?;
    // who finds no connection in the pool waits in its channel until another one is given back
    if over != LeafKind::ChannelRead {
        return Some(ClientWait::new(LeafKind::Database, Some(server)));
    }
    Some(ClientWait {
        pool: pool_use(rt, source),
        ..ClientWait::new(LeafKind::DatabaseConnectionPool, Some(server))
    })
}

fn pool_use(rt: &Runtime<'_>, source: Addr) -> Option<PoolUse> {
    let open = rt.field_i32(source, "_numConnectors")?;
    Some(PoolUse {
        at: source,
        in_use: open.saturating_sub(rt.field_i32(source, "_idleCount")?),
        limit: rt.field_i32(source, "<MaxConnections>k__BackingField")?,
    })
}

/// The server's own process for a connection of Npgsql: what its administrators can look up.
pub(super) fn backend_process(rt: &Runtime<'_>, command: Addr) -> Option<i32> {
    let connection = rt.reference(command, "<InternalConnection>k__BackingField")?;
    let connector = rt.reference(connection, "<Connector>k__BackingField")?;
    let pid = rt.field_i32(connector, "<BackendProcessId>k__BackingField");
    pid.filter(|p| *p != 0)
}
