//! Frames of .NET's own libraries that stand for a wait of a kind of its own.

use asynctriage_report::LeafKind;

/// By how their names begin. Of those in a chain the innermost counts: what matters is that a response is
/// awaited, not which socket it comes over.
const BY_FRAME: [(&str, LeafKind); 19] = [
    (
        "System.Net.Http.HttpConnection.SendAsync",
        LeafKind::HttpResponse,
    ),
    (
        "System.Net.Http.Http2Connection.SendAsync",
        LeafKind::HttpResponse,
    ),
    (
        "System.Net.Http.Http3Connection.SendAsync",
        LeafKind::HttpResponse,
    ),
    (
        "System.Net.Http.HttpConnection.SendRequestContentAsync",
        LeafKind::HttpRequestBody,
    ),
    (
        "System.Net.Http.HttpConnection.ContentLengthReadStream.",
        LeafKind::HttpBody,
    ),
    (
        "System.Net.Http.HttpConnection.ChunkedEncodingReadStream.",
        LeafKind::HttpBody,
    ),
    (
        "System.Net.Http.HttpConnection.ConnectionCloseReadStream.",
        LeafKind::HttpBody,
    ),
    (
        "System.Net.Http.Http2Connection.Http2Stream.ReadDataAsync",
        LeafKind::HttpBody,
    ),
    (
        "System.Net.Http.Http2Connection.Http2Stream.SendRequestBodyAsync",
        LeafKind::HttpRequestBody,
    ),
    (
        "System.Net.Http.Http2Connection.SendStreamDataAsync",
        LeafKind::HttpRequestBody,
    ),
    (
        "System.Net.Http.Http3RequestStream.SendContentAsync",
        LeafKind::HttpRequestBody,
    ),
    (
        "System.Net.Http.Http3RequestStream.ReadResponseContentAsync",
        LeafKind::HttpBody,
    ),
    (
        "System.Net.Http.Http3RequestStream.SendAsync",
        LeafKind::HttpResponse,
    ),
    (
        "System.Net.Security.SslStream.ForceAuthenticationAsync",
        LeafKind::TlsHandshake,
    ),
    ("System.Net.Dns.", LeafKind::Dns),
    (
        "System.Net.Sockets.Socket.ConnectAsync",
        LeafKind::SocketConnect,
    ),
    (
        "System.Net.Sockets.SocketAsyncEventArgs.DnsConnectAsync",
        LeafKind::SocketConnect,
    ),
    (
        "System.Diagnostics.Process.WaitForExitAsync",
        LeafKind::ProcessExit,
    ),
    ("System.IO.Strategies.", LeafKind::File),
];

/// The kind of wait that a method stands for.
pub(crate) fn wait_of(method: &str) -> Option<LeafKind> {
    let found = BY_FRAME.iter().find(|(begin, _)| method.starts_with(begin));
    found.map(|(_, kind)| *kind)
}
