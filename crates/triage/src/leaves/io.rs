//! Sockets, files and pipes of the system that chains wait for.
//!
//! On Unix pipes are sockets, and files are read by threads of the pool; on Windows both, as sockets there, are operations
//! that the system completes by itself (`Overlapped`), each with an object that is awaited.

use crate::facts::{Awaited, Socket, SystemPipe};
use crate::paths::Analysis;
use crate::process::sockets;
use asynctriage_async_graph::{Node, NodeId};
use asynctriage_dump::Addr;

/// `SocketAsyncEventArgs._operating`: an operation runs (8.0 to 11.0).
const IN_PROGRESS: i32 = 1;
/// How the names of what is awaited of a pipe of Windows begin: reads and writes, and connections.
const SYSTEM_PIPE: &str = "System.IO.Pipes.PipeStream+";
/// Characters of a pipe's name that are shown.
const MAX_NAME: usize = 200;

impl Analysis<'_, '_> {
    /// What a source of .NET's own input and output waits for; `None` for other sources.
    pub(super) fn io(&self, node: Node, definition: &str) -> Option<Awaited> {
        let at = node.addr;
        Some(match definition {
            "System.Net.Sockets.Socket+AwaitableSocketAsyncEventArgs" => self.socket(at),
            "Microsoft.Win32.SafeHandles.SafeFileHandle+ThreadPoolValueTaskSource"
            | "Microsoft.Win32.SafeHandles.SafeFileHandle+OverlappedValueTaskSource" => {
                self.file(at)
            }
            d if d.starts_with(SYSTEM_PIPE) => self.system_pipe(at),
            // Kestrel and others make what they await of the class that sockets take
            _ if self
                .rt
                .is_a(node.mt, "System.Net.Sockets.SocketAsyncEventArgs") =>
            {
                self.socket_operation(at)?
            }
            _ => return None,
        })
    }

    /// Whether the system completes what is awaited: no code holds it, and yet it is not lost.
    pub(crate) fn is_completed_by_system(&self, id: NodeId) -> bool {
        let ty = self.graph.object(id).and_then(|n| self.rt.ty(n.mt));
        ty.is_some_and(|t| self.rt.definition_name(&t).starts_with(SYSTEM_PIPE))
    }

    fn socket(&self, source: Addr) -> Awaited {
        let owner = self.rt.reference(source, "_owner");
        let listening = owner.and_then(|s| self.rt.field_u8(s, "_isListening")) == Some(1);
        let reads = self.rt.field_u8(source, "_isReadForCaching") == Some(1);
        let connected = owner.and_then(|s| self.rt.field_u8(s, "_isConnected")) != Some(0);
        let operation = match (listening, connected, reads) {
            (true, ..) => Socket::Accept,
            (_, _, true) => Socket::Receive,
            (_, false, _) => Socket::Connect,
            _ => Socket::Send,
        };
        self.of_socket(operation, owner)
    }

    /// An operation by what it says of itself; `None` when none runs.
    fn socket_operation(&self, source: Addr) -> Option<Awaited> {
        let runs = self.rt.field_i32(source, "_operating")? == IN_PROGRESS;
        let socket = self.rt.reference(source, "_currentSocket");
        // SocketAsyncOperation, set when the operation begins (8.0 to 11.0)
        let operation = match self.rt.field_i32(source, "_completedOperation")? {
            1 => Socket::Accept,
            2 => Socket::Connect,
            4..=6 => Socket::Receive,
            7..=9 => Socket::Send,
            _ => return None,
        };
        runs.then(|| self.of_socket(operation, socket))
    }

    fn of_socket(&self, operation: Socket, socket: Option<Addr>) -> Awaited {
        let listens = operation == Socket::Accept;
        Awaited::Socket {
            operation,
            socket,
            endpoint: socket.and_then(|s| sockets::endpoint(self.rt, s, listens)),
        }
    }

    fn file(&self, source: Addr) -> Awaited {
        let handle = self.rt.reference(source, "_fileHandle");
        Awaited::File {
            handle,
            path: handle.and_then(|h| self.rt.field_text(h, "_path")),
        }
    }

    /// A pipe of Windows. The name stands in the client's end only.
    fn system_pipe(&self, source: Addr) -> Awaited {
        let stream = self.rt.reference(source, "_pipeStream");
        let operation = match self.rt.field_u8(source, "_isWrite") {
            Some(1) => SystemPipe::Write,
            Some(_) => SystemPipe::Read,
            None => SystemPipe::Connect,
        };
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
        Awaited::SystemPipe {
            operation,
            stream,
            pipe,
        }
    }
}
