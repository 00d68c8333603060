//! SqlClient: SQL Server. Its first form came with .NET Framework and bears another name.

use super::database::command_wait;
use super::{Client, Process};
use crate::facts::{ClientWait, Fact};
use crate::process::private::Dialect;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client {
    command: Some(("Microsoft.Data.SqlClient.SqlCommand", Dialect::SqlServer)),
    call: Some((is_call, call_wait)),
    ..Client::new("Microsoft.Data.SqlClient.", LeafKind::Database)
};
pub(super) const FIRST: Client = Client {
    command: Some(("System.Data.SqlClient.SqlCommand", Dialect::SqlServer)),
    call: Some((is_call, call_wait)),
    ..Client::new("System.Data.SqlClient.", LeafKind::Database)
};

/// What a call that is carried out keeps of itself; one class for each kind of call.
fn is_call(class: &str) -> bool {
    class.ends_with("AsyncCallContext") && class.contains(".SqlClient.")
}

/// A call, by the command that it carries out.
fn call_wait(process: Process<'_, '_>, call: Addr, _class: &str) -> Option<ClientWait> {
    let rt = process.rt;
    let owner = rt.reference(call, "_owner")?;
    let command = rt.reference(owner, "_command").unwrap_or(owner);
    Some(command_wait(rt, command, Dialect::SqlServer))
}

/// A promise whose state is a connection of SqlClient: the connection is being opened.
pub(super) fn connection_wait(rt: &Runtime<'_>, state: Addr) -> Option<ClientWait> {
    let name = rt.object_type_name(state)?;
    if !name.ends_with(".SqlClient.SqlConnection") {
        return None;
    }
    let options = rt.reference(state, "_userConnectionOptions");
    let server = options.and_then(|o| rt.field_text(o, "_dataSource"));
    let server = format!("database server {}", server.as_deref().unwrap_or("?"));
    Some(ClientWait {
        asks: Some("a connection of the pool, or to be opened".into()),
        facts: vec![("connection", Fact::Object(state))],
        ..ClientWait::new(LeafKind::Database, Some(server))
    })
}
