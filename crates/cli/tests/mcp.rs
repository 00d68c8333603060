//! `asynctriage mcp`, asked by a client that follows a script.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const CHAIN: &str = "chain-10.0.15.dmp.gz";

fn testdumps() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    path.canonicalize().expect("the folder")
}

/// A client with its server.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn start(args: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
            .arg("mcp")
            .args(args)
            .current_dir(testdumps())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(server.stdout.take().expect("piped"));
        Self {
            input: server.stdin.take(),
            server,
            output,
            last: 0,
        }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(line.as_bytes()).expect("the server reads");
        input.write_all(b"\n").expect("the server reads");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        let reply = self.receive();
        assert_eq!(reply["jsonrpc"], "2.0");
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// The text of a tool's answer, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let reply = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        let result = &reply["result"];
        assert_eq!(result["content"][0]["type"], "text", "{reply}");
        let text = result["content"][0]["text"].as_str().expect("text");
        (text.to_owned(), result["isError"] == true)
    }

    fn end(mut self) {
        self.input = None;
        assert!(self.server.wait().expect("it ends").success());
    }
}

#[test]
fn an_agent_finds_out_why_a_process_waits() {
    let mut client = Client::start(&[]);
    let hello = client.ask(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
    );
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["serverInfo"]["name"], "asynctriage");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));

    let tools = client.ask("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["triage", "chains", "threads", "why", "show"]);
    assert!(
        tools
            .iter()
            .all(|t| t["inputSchema"]["required"][0] == "dump")
    );

    let reply = client.ask(
        "tools/call",
        &json!({ "name": "triage", "arguments": { "dump": CHAIN } }),
    );
    let brief = &reply["result"]["structuredContent"];
    assert_eq!(brief["kind"], "brief");
    assert!(
        brief["headline"]
            .as_str()
            .is_some_and(|h| h.starts_with("25 chains")),
        "{brief}"
    );

    let (chains, failed) = client.call("chains", &json!({ "dump": CHAIN, "method": "middle" }));
    assert!(
        !failed && chains.contains("Scenarios.Chain.Inner"),
        "{chains}"
    );
    let (none, _) = client.call("chains", &json!({ "dump": CHAIN, "leaf": "socket" }));
    assert!(!none.contains("Scenarios.Chain.Inner"), "{none}");
    let (one, _) = client.call("chains", &json!({ "dump": CHAIN, "id": "C1.1" }));
    assert!(one.contains("C1.1"), "{one}");
    let (why, failed) = client.call("why", &json!({ "dump": CHAIN, "subject": "C1" }));
    assert!(!failed && why.contains("waits"), "{why}");
    let (threads, failed) = client.call("threads", &json!({ "dump": CHAIN, "merged": true }));
    assert!(!failed && !threads.is_empty());
    let address = one
        .split_whitespace()
        .find(|w| w.starts_with("0x"))
        .expect("an address");
    let address = address.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
    let (object, failed) = client.call("show", &json!({ "dump": CHAIN, "target": address }));
    assert!(!failed && object.contains("Scenarios"), "{object}");
    client.end();
}

#[test]
fn errors_say_what_to_do() {
    let folder = testdumps().join("joined");
    let mut client = Client::start(&[
        "--root",
        folder.to_str().expect("UTF-8"),
        "--max-chars",
        "300",
    ]);
    let hello = client.ask("initialize", &json!({ "protocolVersion": "1999-01-01" }));
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    let (text, failed) = client.call("triage", &json!({ "dump": CHAIN }));
    assert!(failed && text.contains("--root"), "{text}");
    let (text, failed) = client.call("triage", &json!({ "dump": "joined/missing.dmp" }));
    assert!(failed && text.contains("cannot be opened"), "{text}");
    let dump = "joined/chain-11.0.0.dmp.gz";
    let (text, failed) = client.call("show", &json!({ "dump": dump, "target": "F99" }));
    assert!(failed && text.contains("no F99"), "{text}");
    let (text, failed) = client.call("chains", &json!({ "dump": dump }));
    assert!(
        !failed && text.len() < 400 && text.contains("more lines"),
        "{text}"
    );

    let codes = [
        ("tools/call", json!({ "name": "run" }), -32602),
        (
            "tools/call",
            json!({ "name": "show", "arguments": { "dump": dump } }),
            -32602,
        ),
        ("resources/list", json!({}), -32601),
    ];
    for (method, params, code) in codes {
        assert_eq!(
            client.ask(method, &params)["error"]["code"],
            code,
            "{method} {params}"
        );
    }
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
    ] {
        client.send(line);
        assert_eq!(client.receive()["error"]["code"], code, "{line}");
    }
    client.end();
}

/// What is hidden in reports is hidden from agents, and cannot be asked for.
#[test]
fn secrets_stay_hidden() {
    let mut client = Client::start(&[]);
    let dump = "canary-10.0.15.dmp.gz";
    let mut said = client.call("triage", &json!({ "dump": dump })).0;
    said += &client
        .call("chains", &json!({ "dump": dump, "limit": 100 }))
        .0;
    said += &client.call("threads", &json!({ "dump": dump })).0;
    assert!(
        said.contains("10.0.15") && !said.contains("CANARY"),
        "{said}"
    );
    let asked = json!({ "name": "triage", "arguments": { "dump": dump, "show_values": true } });
    assert_eq!(client.ask("tools/call", &asked)["error"]["code"], -32602);
    client.end();
}
