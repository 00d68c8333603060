//! What client libraries wait for: databases, caches, message brokers, gRPC servers.
//!
//! The libraries are told by their own public names; none of them is part of .NET. Statements are shown without their
//! literals and keys not at all: both may hold what users have typed.

use crate::analysis::Analysis;
use crate::http;
use crate::paths::Path;
use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::iter::Peekable;
use std::str::Chars;

/// Characters of a statement that are shown.
const MAX_STATEMENT: usize = 120;
/// Detail that names what others may wait for, too.
pub(crate) const DEPENDENCY: &str = "dependency";

/// Frames of libraries by how their names begin, and what a wait inside them is.
const LIBRARIES: [(&str, LeafKind); 11] = [
    ("Npgsql.", LeafKind::Database),
    ("MySqlConnector.", LeafKind::Database),
    ("Microsoft.Data.SqlClient.", LeafKind::Database),
    ("System.Data.SqlClient.", LeafKind::Database),
    ("MongoDB.Driver.", LeafKind::Database),
    ("StackExchange.Redis.", LeafKind::Cache),
    ("RabbitMQ.Client.", LeafKind::MessageBroker),
    ("Confluent.Kafka.", LeafKind::MessageBroker),
    ("Azure.Messaging.", LeafKind::MessageBroker),
    ("Grpc.Net.Client.", LeafKind::Grpc),
    ("Microsoft.EntityFrameworkCore.", LeafKind::Database),
];

/// Commands of databases, and whether double quotes stand around names rather than texts in their language.
const COMMANDS: [(&str, bool); 4] = [
    ("Npgsql.NpgsqlCommand", true),
    ("Microsoft.Data.SqlClient.SqlCommand", true),
    ("System.Data.SqlClient.SqlCommand", true),
    ("MySqlConnector.MySqlCommand", false),
];

/// Calls of client libraries by the TaskCompletionSource that ends them.
pub(crate) fn calls(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashMap<Addr, Addr> {
    let calls = graph.helpers(Helper::ClientCall);
    if calls.is_empty() {
        return FxHashMap::default();
    }
    let sources: FxHashSet<Addr> = graph.completion_sources.values().copied().collect();
    let mut out = FxHashMap::default();
    for call in calls {
        rt.for_each_reference(*call, &mut |_, target| {
            if sources.contains(&target) {
                out.insert(target, *call);
            }
        });
    }
    out
}

/// Whether a method belongs to a library that only carries out what the program asked for.
pub(crate) fn is_library(method: &str) -> bool {
    LIBRARIES
        .iter()
        .any(|(prefix, _)| method.starts_with(prefix))
}

impl Analysis<'_, '_> {
    /// What a promise of a client library stands for, by the call that it ends.
    pub(crate) fn client_promise(&self, task: Addr, source: Addr) -> Option<Leaf> {
        let state = || self.graph.task?.state_object(self.rt, task);
        let Some(call) = self.client_calls.get(&source).copied() else {
            return self.sql_connection_leaf(state()?);
        };
        let name = self.rt.object_type_name(call)?;
        match &*name {
            n if n.contains(".SqlClient.") => {
                let owner = self.rt.reference(call, "_owner")?;
                let command = self.rt.reference(owner, "_command").unwrap_or(owner);
                Some(self.command_leaf(command, true))
            }
            n if n.starts_with("Grpc.Net.Client.") => Some(self.grpc_leaf(call)),
            n if n.starts_with("RabbitMQ.Client.") => Some(rabbit_leaf(n)),
            n if n.starts_with("StackExchange.Redis.") => Some(self.redis_leaf(call)),
            _ => None,
        }
    }

    /// Waits inside a library's methods, for what nothing below names: the innermost frames up to the first one that
    /// is the program's own.
    pub(crate) fn lift_to_library(&self, path: &Path, found: &mut Leaf) {
        let mut kind = None;
        let mut command = None;
        for step in self.steps(path) {
            let name = self.step_name(step);
            let library = LIBRARIES
                .iter()
                .find(|(prefix, _)| name.starts_with(prefix));
            match library {
                Some((_, of)) => kind = Some(*of),
                None if !self.is_framework_step(step) => break,
                None => continue,
            }
            command = command.or_else(|| {
                let mut variables = self.captured(step).into_iter();
                variables.find_map(|v| Some((v, self.command_quotes(v)?)))
            });
        }
        let Some(kind) = kind.filter(|k| *k != found.kind) else {
            return;
        };
        let over = std::mem::take(&mut found.text);
        if let Some((command, quotes)) = command {
            let leaf = self.command_leaf(command, quotes);
            found.text = leaf.text;
            found.details.extend(leaf.details);
        } else {
            let first = self.steps(path).map(|s| self.step_name(s));
            let method = first.into_iter().find(|n| is_library(n));
            found.text = method
                .map(|m| format!("{m}, over {over}"))
                .unwrap_or_default();
        }
        found.details.insert("over".into(), json!(over));
        found.kind = kind;
    }

    fn command_quotes(&self, object: Addr) -> Option<bool> {
        let name = self.rt.object_type_name(object)?;
        let known = COMMANDS.iter().find(|(n, _)| *n == &*name);
        known.map(|(_, quotes)| *quotes)
    }

    /// A statement that a database carries out.
    fn command_leaf(&self, command: Addr, quotes: bool) -> Leaf {
        let rt = self.rt;
        let text = rt
            .field_text(command, "_commandText")
            .or_else(|| rt.field_text(command, "m_commandText"));
        let statement = text.map(|t| without_literals(&t, quotes));
        let server = self.server_of(command);
        let mut out = Leaf {
            kind: LeafKind::Database,
            text: format!(
                "{}: {}",
                server.as_deref().unwrap_or("a database"),
                statement.as_deref().unwrap_or("a statement")
            ),
            ..Leaf::default()
        };
        out.details
            .insert("command".into(), json!(command.to_string()));
        out.details.insert("statement".into(), json!(statement));
        out.details.insert(DEPENDENCY.into(), json!(server));
        if let Some(pid) = self.backend_process(command) {
            out.details.insert("backend_process".into(), json!(pid));
            out.text.push_str(&format!(" (server process {pid})"));
        }
        out
    }

    /// `database NAME on HOST` of a command's connection; connection strings are never read: they hold passwords.
    fn server_of(&self, command: Addr) -> Option<String> {
        let rt = self.rt;
        let field =
            |object: Addr, names: &[&str]| names.iter().find_map(|n| rt.reference(object, n));
        let text =
            |object: Addr, names: &[&str]| names.iter().find_map(|n| rt.field_text(object, n));
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
        let host = text(
            settings,
            &["_dataSource", "_host", "<HostName>k__BackingField"],
        )?;
        let database = text(
            settings,
            &["_initialCatalog", "_database", "<Database>k__BackingField"],
        );
        Some(match database {
            Some(database) => format!("database {database} on {host}"),
            None => format!("database server {host}"),
        })
    }

    /// The server's own process for a connection of Npgsql: what its administrators can look up.
    fn backend_process(&self, command: Addr) -> Option<i32> {
        let connection = self
            .rt
            .reference(command, "<InternalConnection>k__BackingField")?;
        let connector = self
            .rt
            .reference(connection, "<Connector>k__BackingField")?;
        let pid = self
            .rt
            .field_i32(connector, "<BackendProcessId>k__BackingField");
        pid.filter(|p| *p != 0)
    }

    /// A promise whose state is a connection of SqlClient: the connection is being opened.
    fn sql_connection_leaf(&self, state: Addr) -> Option<Leaf> {
        let name = self.rt.object_type_name(state)?;
        if !name.ends_with(".SqlClient.SqlConnection") {
            return None;
        }
        let options = self.rt.reference(state, "_userConnectionOptions");
        let server = options.and_then(|o| self.rt.field_text(o, "_dataSource"));
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

    /// A command of StackExchange.Redis: sent and unanswered, or not even sent.
    fn redis_leaf(&self, message: Addr) -> Leaf {
        let rt = self.rt;
        let member = |field: &str| rt.enum_text(message, field);
        let command = member("command").unwrap_or_else(|| "a command".into());
        let stage = match member("<Status>k__BackingField").as_deref() {
            Some("Sent") => "sent, no answer yet",
            Some("WaitingInBacklog") => {
                "not sent: it waits in the backlog, as the connection is not up"
            }
            Some("WaitingToBeSent") => "not sent yet",
            _ => "no answer yet",
        };
        let server = self.redis_server(message);
        let mut out = Leaf {
            kind: LeafKind::Cache,
            text: format!(
                "{}: {command}, {stage}",
                server.as_deref().unwrap_or("Redis")
            ),
            ..Leaf::default()
        };
        out.details
            .insert("message".into(), json!(message.to_string()));
        out.details.insert("command".into(), json!(command));
        out.details.insert(DEPENDENCY.into(), json!(server));
        out
    }

    /// The server whose connection has sent a message, or in whose backlog it stands.
    fn redis_server(&self, message: Addr) -> Option<String> {
        let rt = self.rt;
        let holds = |queue: Option<Addr>| {
            let items = queue.and_then(|q| rt.reference(q, "_array"));
            items.is_some_and(|a| {
                rt.vector_references(a, 0, u64::from(u16::MAX))
                    .any(|m| m == message)
            })
        };
        let bridges = self.graph.helpers(Helper::RedisBridge);
        let bridge = bridges.iter().copied().find(|b| {
            let sent = rt.reference(*b, "physical");
            holds(sent.and_then(|p| rt.reference(p, "_writtenAwaitingResponse")))
        });
        let only = || bridges.first().copied().filter(|_| bridges.len() == 1);
        let server = rt.reference(bridge.or_else(only)?, "<ServerEndPoint>k__BackingField")?;
        let end = rt.reference(server, "<EndPoint>k__BackingField")?;
        Some(format!("Redis {}", crate::sockets::endpoint_text(rt, end)?))
    }

    /// A call of Grpc.Net.Client.
    fn grpc_leaf(&self, call: Addr) -> Leaf {
        let rt = self.rt;
        let method = rt
            .reference(call, "<Method>k__BackingField")
            .and_then(|m| rt.field_text(m, "fullName"));
        let channel = rt.reference(call, "<Channel>k__BackingField");
        let address = channel
            .and_then(|c| rt.reference(c, "<Address>k__BackingField"))
            .and_then(|u| rt.field_text(u, "_string"))
            .and_then(|u| http::origin_text(&http::without_credentials(&u)));
        let server = format!("gRPC server {}", address.as_deref().unwrap_or("?"));
        let mut out = Leaf {
            kind: LeafKind::Grpc,
            text: format!("{server}: {}", method.as_deref().unwrap_or("a call")),
            ..Leaf::default()
        };
        out.details.insert("call".into(), json!(call.to_string()));
        out.details.insert("method".into(), json!(method));
        out.details.insert(DEPENDENCY.into(), json!(server));
        out
    }
}

/// What RabbitMQ.Client asks its server; the class says which request it is.
fn rabbit_leaf(class: &str) -> Leaf {
    let short = class.rsplit('.').next().unwrap_or(class);
    let short = short.split(['<', '`', '+']).next().unwrap_or(short);
    let request = short
        .strip_suffix("AsyncRpcContinuation")
        .or_else(|| short.strip_suffix("RpcContinuation"))
        .unwrap_or(short);
    let mut out = Leaf {
        kind: LeafKind::MessageBroker,
        text: format!("RabbitMQ: the answer to {request}"),
        ..Leaf::default()
    };
    out.details.insert("request".into(), json!(request));
    out.details.insert(DEPENDENCY.into(), json!("RabbitMQ"));
    out
}

/// A statement with a question mark for each text and number in it, without comments, on one line.
fn without_literals(sql: &str, quotes_are_names: bool) -> String {
    let mut out = String::new();
    let mut rest = sql.chars().peekable();
    let mut last = ' ';
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let shown = match c {
            '\'' | '"' if c == '\'' || !quotes_are_names => {
                if !skip_text(&mut rest, c) {
                    out.push('?');
                    break;
                }
                '?'
            }
            '-' if next == Some('-') => {
                while rest.next().is_some_and(|e| e != '\n') {}
                ' '
            }
            // a comment of MySQL, whose double quotes stand around texts
            '#' if !quotes_are_names => {
                while rest.next().is_some_and(|e| e != '\n') {}
                ' '
            }
            '/' if next == Some('*') => {
                skip_comment(&mut rest);
                ' '
            }
            '$' if !next.is_some_and(|n| n.is_ascii_digit()) => {
                // a dollar-quoted text; what follows its tag cannot be told from the text, so nothing more is shown
                out.push('?');
                break;
            }
            '0'..='9' if !last.is_alphanumeric() && last != '_' && last != '@' && last != '$' => {
                while rest
                    .peek()
                    .is_some_and(|n| n.is_ascii_alphanumeric() || *n == '.')
                {
                    rest.next();
                }
                '?'
            }
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if !matches!((shown, last), (' ', ' ') | ('?', '?')) {
            out.push(shown);
        }
        last = shown;
    }
    let out = out.trim();
    if out.chars().count() <= MAX_STATEMENT {
        return out.to_owned();
    }
    let cut: String = out.chars().take(MAX_STATEMENT).collect();
    format!("{cut}…")
}

/// Goes behind the end of a quoted text. `false` when a backslash stands in front of it: whether the text goes on then
/// depends on the server's settings, so nothing more can be shown.
fn skip_text(rest: &mut Peekable<Chars<'_>>, quote: char) -> bool {
    let mut last = ' ';
    while let Some(c) = rest.next().filter(|c| *c != quote) {
        last = c;
    }
    last != '\\'
}

/// Goes behind the end of a comment whose slash was read; comments nest in some of the languages.
fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    rest.next();
    let mut depth = 1_u32;
    while let Some(c) = rest.next() {
        let end = match (c, rest.peek()) {
            ('*', Some('/')) => depth.saturating_sub(1),
            ('/', Some('*')) => depth.saturating_add(1),
            _ => continue,
        };
        rest.next();
        depth = end;
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{rabbit_leaf, without_literals};

    #[test]
    fn statements_lose_what_users_typed() {
        let shown = |sql| without_literals(sql, true);
        assert_eq!(
            shown("SELECT  *\nFROM users WHERE name = 'O''Brien' AND id=42 -- 17"),
            "SELECT * FROM users WHERE name = ? AND id=?"
        );
        assert_eq!(
            shown("select /* secret */ @p1, $1, t2.a"),
            "select @p1, $1, t2.a"
        );
        assert_eq!(shown("select \"Name\" from x"), "select \"Name\" from x");
        assert_eq!(without_literals("select \"Bob\"", false), "select ?");
        assert_eq!(shown("select $tag$secret$tag$, 1"), "select ?");
        assert_eq!(shown("insert 0x1F, -1.5e3"), "insert ?, -?");
        assert!(without_literals(&"a ".repeat(200), true).ends_with('…'));
        assert_eq!(shown("select 'open"), "select ?");
        assert_eq!(shown(r"select E'O\'Brien', 'b'"), "select E?");
        assert_eq!(shown(r"select 'C:\dir', 'b'"), "select ?, ?");
        assert_eq!(shown("select /* a /* b */ secret */ x"), "select x");
        assert_eq!(shown("select x from #t"), "select x from #t");
        assert_eq!(
            without_literals("select x # secret\nfrom t", false),
            "select x from t"
        );
    }

    #[test]
    fn requests_to_the_broker_are_named_by_their_class() {
        let leaf = rabbit_leaf("RabbitMQ.Client.Impl.QueueDeclareAsyncRpcContinuation");
        assert_eq!(leaf.text, "RabbitMQ: the answer to QueueDeclare");
    }
}
