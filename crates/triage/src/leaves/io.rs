//! Sockets, files and pipes of the system that chains wait for.
//!
//! On Unix pipes are sockets, and files are read by threads of the pool; on Windows both, as sockets there, are operations
//! that the system completes by itself (`Overlapped`), each with an object that is awaited.

use super::leaf;
use crate::paths::Analysis;
use crate::process::sockets;
use asynctriage_async_graph::{Node, NodeId};
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind};
use serde_json::json;

/// `SocketAsyncEventArgs._operating`: an operation runs (8.0 to 11.0).
const IN_PROGRESS: i32 = 1;
/// How the names of what is awaited of a pipe of Windows begin: reads and writes, and connections.
const SYSTEM_PIPE: &str = "System.IO.Pipes.PipeStream+";
/// Characters of a pipe's name that are shown.
const MAX_NAME: usize = 200;

impl Analysis<'_, '_> {
    /// What a source of .NET's own input and output waits for; `None` for other sources.
    pub(super) fn io_leaf(&self, node: Node, definition: &str) -> Option<Leaf> {
        let at = node.addr;
        Some(match definition {
            "System.Net.Sockets.Socket+AwaitableSocketAsyncEventArgs" => self.socket_leaf(at),
            "Microsoft.Win32.SafeHandles.SafeFileHandle+ThreadPoolValueTaskSource"
            | "Microsoft.Win32.SafeHandles.SafeFileHandle+OverlappedValueTaskSource" => {
                self.file_leaf(at)
            }
            d if d.starts_with(SYSTEM_PIPE) => self.system_pipe_leaf(at),
            // Kestrel and others make what they await of the class that sockets take
            _ if self
                .rt
                .is_a(node.mt, "System.Net.Sockets.SocketAsyncEventArgs") =>
            {
                self.socket_operation_leaf(at)?
            }
            _ => return None,
        })
    }

    /// Whether the system completes what is awaited: no code holds it, and yet it is not lost.
    pub(crate) fn is_completed_by_system(&self, id: NodeId) -> bool {
        let ty = self.graph.object(id).and_then(|n| self.rt.ty(n.mt));
        ty.is_some_and(|t| self.rt.definition_name(&t).starts_with(SYSTEM_PIPE))
    }

    fn socket_leaf(&self, source: Addr) -> Leaf {
        let owner = self.rt.reference(source, "_owner");
        let listening = owner.and_then(|s| self.rt.field_u8(s, "_isListening")) == Some(1);
        let reads = self.rt.field_u8(source, "_isReadForCaching") == Some(1);
        let connected = owner.and_then(|s| self.rt.field_u8(s, "_isConnected")) != Some(0);
        let kind = match (listening, connected, reads) {
            (true, ..) => LeafKind::SocketAccept,
            (_, _, true) => LeafKind::SocketReceive,
            (_, false, _) => LeafKind::SocketConnect,
            _ => LeafKind::SocketSend,
        };
        self.of_socket(kind, owner)
    }

    /// An operation by what it says of itself; `None` when none runs.
    fn socket_operation_leaf(&self, source: Addr) -> Option<Leaf> {
        let runs = self.rt.field_i32(source, "_operating")? == IN_PROGRESS;
        let socket = self.rt.reference(source, "_currentSocket");
        // SocketAsyncOperation, set when the operation begins (8.0 to 11.0)
        let kind = match self.rt.field_i32(source, "_completedOperation")? {
            1 => LeafKind::SocketAccept,
            2 => LeafKind::SocketConnect,
            4..=6 => LeafKind::SocketReceive,
            7..=9 => LeafKind::SocketSend,
            _ => return None,
        };
        runs.then(|| self.of_socket(kind, socket))
    }

    fn of_socket(&self, kind: LeafKind, socket: Option<Addr>) -> Leaf {
        let (text, how) = match kind {
            LeafKind::SocketAccept => ("Socket accept", "on"),
            LeafKind::SocketConnect => ("Socket connect", "with"),
            LeafKind::SocketReceive => ("Socket receive", "with"),
            _ => ("Socket send", "with"),
        };
        let mut out = leaf(kind, text.into());
        if let Some(socket) = socket {
            out.details
                .insert("socket".into(), json!(socket.to_string()));
            let listens = kind == LeafKind::SocketAccept;
            if let Some(end) = sockets::endpoint(self.rt, socket, listens) {
                out.text = format!("{text} {how} {end}");
                out.details.insert("endpoint".into(), json!(end));
            }
        }
        out
    }

    fn file_leaf(&self, source: Addr) -> Leaf {
        let handle = self.rt.reference(source, "_fileHandle");
        let path = handle.and_then(|h| self.rt.field_text(h, "_path"));
        let text = path.map_or_else(|| "file".into(), |p| format!("file {p}"));
        let mut out = leaf(LeafKind::File, text);
        if let Some(handle) = handle {
            out.details
                .insert("handle".into(), json!(handle.to_string()));
        }
        out
    }

    /// A pipe of Windows. The name stands in the client's end only.
    fn system_pipe_leaf(&self, source: Addr) -> Leaf {
        let stream = self.rt.reference(source, "_pipeStream");
        let writes = self.rt.field_u8(source, "_isWrite");
        let name = stream
            .and_then(|s| self.rt.field_text(s, "_normalizedPipePath"))
            .map(|n| n.chars().take(MAX_NAME).collect::<String>());
        let class = stream.and_then(|s| self.rt.object_type_name(s));
        let pipe = match (name, class.as_deref()) {
            (Some(name), _) => format!("named pipe {name}"),
            (_, Some(c)) if c.starts_with("System.IO.Pipes.Anonymous") => {
                "an anonymous pipe".into()
            }
            _ => "a named pipe".to_owned(),
        };
        let (kind, text) = match writes {
            Some(1) => (LeafKind::PipeWrite, format!("space in {pipe}")),
            Some(_) => (LeafKind::PipeRead, format!("data of {pipe}")),
            None => (LeafKind::SocketAccept, format!("the next client of {pipe}")),
        };
        let mut out = leaf(kind, text);
        if let Some(stream) = stream {
            out.details
                .insert("stream".into(), json!(stream.to_string()));
        }
        out
    }
}
