//! Commands of databases: the statement, and the server that carries it out.

use super::{CLIENTS, npgsql};
use crate::facts::{ClientWait, Fact};
use crate::process::private::{Dialect, statement};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;

/// The language of an object that is a command of a database that is known.
pub(crate) fn command_dialect(rt: &Runtime<'_>, object: Addr) -> Option<Dialect> {
    let name = rt.object_type_name(object)?;
    let mut commands = CLIENTS.iter().filter_map(|c| c.command);
    let known = commands.find(|(n, _)| *n == &*name);
    known.map(|(_, dialect)| dialect)
}

/// A statement that a database carries out.
pub(crate) fn command_wait(rt: &Runtime<'_>, command: Addr, dialect: Dialect) -> ClientWait {
    let text = rt
        .field_text(command, "_commandText")
        .or_else(|| rt.field_text(command, "m_commandText"));
    let statement = text.map(|t| statement(&t, dialect));
    let mut asks = statement.clone().unwrap_or_else(|| "a statement".into());
    let mut facts = vec![
        ("command", Fact::Object(command)),
        ("statement", Fact::Text(statement)),
    ];
    if let Some(pid) = npgsql::backend_process(rt, command) {
        facts.push(("backend_process", Fact::Number(pid)));
        asks.push_str(&format!(" (server process {pid})"));
    }
    ClientWait {
        unnamed: "a database",
        asks: Some(asks),
        facts,
        ..ClientWait::new(LeafKind::Database, server_of(rt, command))
    }
}

/// `database NAME on HOST` of a command's connection; connection strings are never read: they hold passwords.
fn server_of(rt: &Runtime<'_>, command: Addr) -> Option<String> {
    let field = |object: Addr, names: &[&str]| names.iter().find_map(|n| rt.reference(object, n));
    let connection = field(
        command,
        &[
            "_activeConnection",
            "<InternalConnection>k__BackingField",
            "<Connection>k__BackingField",
        ],
    )?;
    let settings = field(
        connection,
        &["_userConnectionOptions", "_connectionSettings"],
    )
    .or_else(|| {
        let source = rt.reference(connection, "_dataSource")?;
        rt.reference(source, "<Settings>k__BackingField")
    })?;
    server_text(rt, settings)
}

/// The same from the settings of a connection.
pub(super) fn server_text(rt: &Runtime<'_>, settings: Addr) -> Option<String> {
    let text = |names: &[&str]| names.iter().find_map(|n| rt.field_text(settings, n));
    let host = text(&["_dataSource", "_host", "<HostName>k__BackingField"])?;
    let database = text(&["_initialCatalog", "_database", "<Database>k__BackingField"]);
    let host = match rt.field_i32(settings, "_port") {
        Some(port) if port > 0 => format!("{host}:{port}"),
        _ => host,
    };
    Some(match database {
        Some(database) => format!("database {database} on {host}"),
        None => format!("database server {host}"),
    })
}
