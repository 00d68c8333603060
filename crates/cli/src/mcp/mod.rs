//! `mcp`: answers for agents and editors over the Model Context Protocol, on the standard input and output.
//!
//! A message is one line of JSON-RPC. There is one client and one thread: questions are answered in their order.

mod protocol;
mod tools;

use crate::args::McpArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use protocol::{Reply, Request};
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use tools::Tools;

/// The longest message that is read.
const MAX_MESSAGE: u64 = 1 << 20;

/// Versions of the protocol that are spoken; the first is what a client is offered that speaks none of them.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Answers what a .NET process waited for when a dump of it was taken. Begin with `triage`; \
its findings and chains have ids (F1, C1) for `show`, `why` and `chains`. Words like certain, likely and possible say how \
sure a statement is. Texts of the process are left out; what a dump could not show is listed as gaps.";

/// Answers until the client closes the input.
pub(crate) fn mcp(args: &McpArgs) -> Result<Exit, CliError> {
    args.files.check(&args.symbols)?;
    let mut tools = Tools::new(args)?;
    serve(
        &mut io::stdin().lock(),
        &mut io::stdout().lock(),
        &mut tools,
    )
    .map_err(|e| CliError::new(Exit::Output, "the client cannot be reached", "").because(e))?;
    Ok(Exit::Written)
}

fn serve(
    input: &mut impl BufRead,
    output: &mut impl Write,
    tools: &mut Tools<'_>,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let length = input
            .by_ref()
            .take(MAX_MESSAGE)
            .read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        let is_cut = length as u64 == MAX_MESSAGE && !line.ends_with(b"\n");
        let reply = match Request::parse(&line) {
            _ if line.trim_ascii().is_empty() => None,
            _ if is_cut => Some(Reply::error(
                &Value::Null,
                protocol::PARSE,
                "the message is too long",
            )),
            Ok(request) => answer(request, tools),
            Err(reply) => Some(reply),
        };
        if let Some(reply) = reply {
            output.write_all(reply.line().as_bytes())?;
            output.flush()?;
        }
        if is_cut {
            // the rest of that line would be taken for a message
            return Ok(());
        }
    }
}

/// `None` for notifications, which nobody waits for.
fn answer(request: Request, tools: &mut Tools<'_>) -> Option<Reply> {
    let id = &request.id?;
    Some(match request.method.as_str() {
        "initialize" => Reply::result(id, &welcome(&request.params)),
        "ping" => Reply::result(id, &json!({})),
        "tools/list" => Reply::result(id, &json!({ "tools": tools::definitions() })),
        "tools/call" => match tools.call(&request.params) {
            Ok(result) => Reply::result(id, &result),
            Err(message) => Reply::error(id, protocol::PARAMS, &message),
        },
        method => Reply::error(
            id,
            protocol::METHOD,
            &format!("there is no method {method}"),
        ),
    })
}

fn welcome(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str();
    let version = VERSIONS.into_iter().find(|v| Some(*v) == asked);
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": {
            "name": "asynctriage",
            "title": "asynctriage: why a .NET process hangs",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": INSTRUCTIONS,
    })
}
