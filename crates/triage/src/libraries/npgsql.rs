//! Npgsql: PostgreSQL.

use super::database::server_text;
use super::{Client, DEPENDENCY, Process};
use crate::process::private::Dialect;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use serde_json::json;

pub(super) const CLIENT: Client = Client {
    command: Some(("Npgsql.NpgsqlCommand", Dialect::Postgres)),
    object: Some(object_leaf),
    ..Client::new("Npgsql.", LeafKind::Database)
};

/// A connection that is wanted or in use: by the source of connections with its pool, or by the connection (8.0).
fn object_leaf(
    process: Process<'_, '_>,
    object: Addr,
    class: &str,
    over: LeafKind,
) -> Option<Leaf> {
    let rt = process.rt;
    let source = match class {
        "Npgsql.PoolingDataSource" | "Npgsql.UnpooledDataSource" => Some(object),
        "Npgsql.Internal.NpgsqlConnector" => rt.reference(object, "<DataSource>k__BackingField"),
        _ => None,
    }?;
    let server = server_text(rt, rt.reference(source, "<Settings>k__BackingField")?)?;
    let mut out = Leaf {
        kind: LeafKind::Database,
        text: server.clone(),
        ..Leaf::default()
    };
    out.details.insert(DEPENDENCY.into(), json!(server));
    // who finds no connection in the pool waits in its channel until another one is given back
    if over != LeafKind::ChannelRead {
        return Some(out);
    }
    out.kind = LeafKind::DatabaseConnectionPool;
    let limit = rt.field_i32(source, "<MaxConnections>k__BackingField");
    let open = rt.field_i32(source, "_numConnectors");
    let idle = rt.field_i32(source, "_idleCount");
    if let (Some(limit), Some(open), Some(idle)) = (limit, open, idle) {
        let used = open.saturating_sub(idle);
        out.details.insert("pool".into(), json!(source.to_string()));
        out.details.insert("in_use".into(), json!(used));
        out.details.insert("limit".into(), json!(limit));
        out.text.push_str(&format!(
            ": a connection of the pool ({used} of {limit} in use)"
        ));
    }
    Some(out)
}

/// The server's own process for a connection of Npgsql: what its administrators can look up.
pub(super) fn backend_process(rt: &Runtime<'_>, command: Addr) -> Option<i32> {
    let connection = rt.reference(command, "<InternalConnection>k__BackingField")?;
    let connector = rt.reference(connection, "<Connector>k__BackingField")?;
    let pid = rt.field_i32(connector, "<BackendProcessId>k__BackingField");
    pid.filter(|p| *p != 0)
}
