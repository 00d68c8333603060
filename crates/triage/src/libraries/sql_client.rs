//! SqlClient: SQL Server. Its first form came with .NET Framework and bears another name.

use super::database::command_leaf;
use super::{Client, DEPENDENCY, Process};
use crate::process::private::Dialect;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use serde_json::json;

pub(super) const CLIENT: Client = Client {
    command: Some(("Microsoft.Data.SqlClient.SqlCommand", Dialect::SqlServer)),
    call: Some(call_leaf),
    ..Client::new("Microsoft.Data.SqlClient.", LeafKind::Database)
};
pub(super) const FIRST: Client = Client {
    command: Some(("System.Data.SqlClient.SqlCommand", Dialect::SqlServer)),
    call: Some(call_leaf),
    ..Client::new("System.Data.SqlClient.", LeafKind::Database)
};

/// A call, by the command that it carries out.
fn call_leaf(process: Process<'_, '_>, call: Addr, _class: &str) -> Option<Leaf> {
    let rt = process.rt;
    let owner = rt.reference(call, "_owner")?;
    let command = rt.reference(owner, "_command").unwrap_or(owner);
    Some(command_leaf(rt, command, Dialect::SqlServer))
}

/// A promise whose state is a connection of SqlClient: the connection is being opened.
pub(super) fn connection_leaf(rt: &Runtime<'_>, state: Addr) -> Option<Leaf> {
    let name = rt.object_type_name(state)?;
    if !name.ends_with(".SqlClient.SqlConnection") {
        return None;
    }
    let options = rt.reference(state, "_userConnectionOptions");
    let server = options.and_then(|o| rt.field_text(o, "_dataSource"));
    let server = format!("database server {}", server.as_deref().unwrap_or("?"));
    let mut out = Leaf {
        kind: LeafKind::Database,
        text: format!("{server}: a connection of the pool, or to be opened"),
        ..Leaf::default()
    };
    out.details.insert(DEPENDENCY.into(), json!(server));
    out.details
        .insert("connection".into(), json!(state.to_string()));
    Some(out)
}
