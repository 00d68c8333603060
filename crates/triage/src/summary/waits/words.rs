//! What nodes and edges of the wait-for graph are called.

use crate::threads::{Wait, WaitsOn};
use crate::waitfor::Node;
use asynctriage_report::{ChainGroup, LeafKind, WaitNodeKind};

/// The innermost method of the program, else the innermost at all.
pub(super) fn method_of(group: &ChainGroup) -> String {
    let own = group.frames.iter().find(|f| !f.is_framework);
    let frame = own.or_else(|| group.frames.first());
    frame.map_or_else(|| group.leaf.text.clone(), |f| f.method.clone())
}

/// What a thread waits for, as a kind of node.
pub(super) fn node_kind(wait: &Wait) -> WaitNodeKind {
    match wait {
        Wait::Lock(_) | Wait::Pulse(_) => WaitNodeKind::Lock,
        Wait::Task(_) => WaitNodeKind::Source,
        Wait::Object(object) => match object.on {
            WaitsOn::Read | WaitsOn::Write => WaitNodeKind::Lock,
            WaitsOn::Semaphore => WaitNodeKind::Semaphore,
            _ => WaitNodeKind::Other,
        },
        Wait::Inside(..) => WaitNodeKind::Other,
    }
}

pub(super) fn leaf_kind(kind: LeafKind) -> WaitNodeKind {
    use LeafKind as L;
    use WaitNodeKind as N;
    match kind {
        L::Semaphore => N::Semaphore,
        L::AsyncLock => N::Lock,
        L::Delay | L::PeriodicTimer | L::Timeout => N::Timer,
        L::ChannelRead | L::ChannelWrite | L::PipeRead | L::PipeWrite => N::Channel,
        L::SocketReceive
        | L::SocketSend
        | L::SocketAccept
        | L::SocketConnect
        | L::Dns
        | L::TlsHandshake
        | L::HttpConnectionPool
        | L::HttpResponse
        | L::HttpBody
        | L::HttpRequestBody
        | L::Database
        | L::DatabaseConnectionPool
        | L::Cache
        | L::MessageBroker
        | L::Grpc => N::Remote,
        L::TaskQueued | L::SyncContextPost | L::Ready => N::Queue,
        L::TaskCompletionSource | L::ValueTaskSource => N::Source,
        L::TaskRunning | L::ThreadBlocked => N::Thread,
        L::File | L::ProcessExit | L::Cycle | L::Unreachable | L::Unknown | L::Other => N::Other,
    }
}

pub(super) fn edge_text(from: Node, to: Node) -> &'static str {
    match (from, to) {
        (Node::Thread(_), Node::Thread(_)) => "waits for the end of",
        (Node::Thread(_), _) => "waits for",
        (Node::Async(_), Node::Thread(_)) => "runs on",
        (Node::Async(_), Node::Pump(_)) => "goes on in",
        (Node::Async(_), _) => "waits for",
        (Node::Pump(_) | Node::Class(_) | Node::Callback(_), _) => "run by",
        (Node::Event(_), _) => "to be set by",
        (Node::Semaphore(_), _) => "a place held by",
        (Node::Lock(_) | Node::ReaderWriter { .. }, _) => "held by",
    }
}
