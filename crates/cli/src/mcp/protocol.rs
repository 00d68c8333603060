//! JSON-RPC 2.0, as far as the protocol needs it: one message a line, no batches.

use serde_json::{Value, json};

/// The message is no JSON.
pub(super) const PARSE: i64 = -32_700;
/// The message is no request.
const REQUEST: i64 = -32_600;
/// There is no such method.
pub(super) const METHOD: i64 = -32_601;
/// The parameters do not fit the method.
pub(super) const PARAMS: i64 = -32_602;

/// What the client wants.
#[derive(Debug)]
pub(super) struct Request {
    /// `None` for notifications.
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Request {
    /// # Errors
    /// The reply that says what is wrong with the message.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Reply> {
        let mut message: Value = serde_json::from_slice(line)
            .map_err(|e| Reply::error(&Value::Null, PARSE, &format!("this is no JSON: {e}")))?;
        let id = message.get("id").cloned();
        let known = id.clone().filter(|i| i.is_string() || i.is_number());
        let wrong = |what| Reply::error(known.as_ref().unwrap_or(&Value::Null), REQUEST, what);
        if message["jsonrpc"] != "2.0" {
            return Err(wrong("this is no request of JSON-RPC 2.0"));
        }
        if id.is_some() && known.is_none() {
            return Err(wrong("the id is neither text nor number"));
        }
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            return Err(wrong("the request has no method"));
        };
        Ok(Self {
            id,
            method,
            params: message["params"].take(),
        })
    }
}

/// What the client gets.
#[derive(Debug)]
pub(super) struct Reply(Value);

impl Reply {
    pub(super) fn result(id: &Value, result: &Value) -> Self {
        Self(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    pub(super) fn error(id: &Value, code: i64, message: &str) -> Self {
        Self(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
    }

    pub(super) fn line(&self) -> String {
        format!("{}\n", self.0)
    }
}
