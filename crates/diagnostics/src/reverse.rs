//! A socket of our own that runtimes announce themselves on, before any managed code runs in them.
//!
//! A runtime that is started with `DOTNET_DiagnosticPorts=PATH,suspend` connects, sends 34 bytes (8 bytes `ADVR_V1` and a
//! zero, 16 bytes that no other run has, u64 number of the process, u16 zero), and waits for a command on the connection.
//! When the connection was used it makes the next one (seen with 10.0.15 and 11.0.0). Processes that such a process
//! starts inherit the variable and would wait for ever: all but the first to announce itself are told to go on.

use crate::Error;
use crate::client::Client;
use crate::stream::Stream;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an announcement, a further connection or an answer may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Further runtimes that are told to go on; the next ones wait.
#[cfg(unix)]
const MAX_OTHERS: usize = 10_000;

/// A runtime that waits to be talked to.
#[derive(Debug)]
pub struct Announced {
    /// The number of its process, as the process sees it.
    pub pid: u64,
    /// Commands to it; until it was told to go on it answers [`Client::process_info`], [`Client::record`] and
    /// [`Client::resume`].
    pub client: Client,
}

/// A socket that runtimes announce themselves on, the first of which is talked to. A thread takes connections until the
/// port is dropped.
#[derive(Debug)]
pub struct ReversePort {
    path: PathBuf,
    shared: Arc<Shared>,
    /// Connections of the first runtime.
    first: Connections,
    acceptor: Option<JoinHandle<()>>,
}

type Connections = Arc<Mutex<Receiver<Connection>>>;

#[derive(Debug, Default)]
struct Shared {
    closing: AtomicBool,
    others: AtomicU64,
}

/// A connection that was announced.
#[derive(Debug)]
struct Connection {
    /// The same in all connections of one runtime.
    #[cfg(unix)]
    cookie: [u8; 16],
    pid: u64,
    stream: Stream,
}

impl ReversePort {
    /// Makes the socket `FOLDER/socket`. The folder must exist; only this user should be able to reach it.
    ///
    /// # Errors
    /// The socket cannot be made, or its path would mean something else to a runtime.
    pub fn bind(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("socket");
        // separators in the value of the variable
        if path.to_str().is_none_or(|p| p.contains([',', ';'])) {
            let source = std::io::ErrorKind::InvalidInput.into();
            return Err(Error::Listen { path, source });
        }
        let shared = Arc::new(Shared::default());
        let (send, first) = channel();
        let acceptor = accept_on(&path, send, Arc::clone(&shared))?;
        Ok(Self {
            path,
            shared,
            first: Arc::new(Mutex::new(first)),
            acceptor: Some(acceptor),
        })
    }

    /// The variable that makes a .NET process announce itself here and wait, and its value.
    #[must_use]
    pub fn variable(&self) -> (&'static str, OsString) {
        let mut value = self.path.clone().into_os_string();
        value.push(",suspend");
        ("DOTNET_DiagnosticPorts", value)
    }

    /// Waits until the first runtime announces itself. The port must live as long as it is talked to.
    ///
    /// # Errors
    /// [`Error::Timeout`] when none does within `limit`.
    pub fn first(&self, limit: Duration) -> Result<Announced, Error> {
        let doing = "waiting for a .NET runtime to announce itself";
        let connection = next(&self.first, limit, doing)?;
        let pid = connection.pid;
        let (held, further) = (Mutex::new(Some(connection.stream)), Arc::clone(&self.first));
        let connect = move || {
            let held = held.lock().unwrap_or_else(PoisonError::into_inner).take();
            held.map_or_else(
                || {
                    let doing = "waiting for the runtime to connect again";
                    next(&further, LIMIT, doing).map(|c| c.stream)
                },
                Ok,
            )
        };
        Ok(Announced {
            pid,
            client: Client::new(connect, LIMIT),
        })
    }

    /// How many times another runtime announced itself and was told to go on.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.shared.others.load(Ordering::Relaxed)
    }
}

fn next(
    connections: &Connections,
    limit: Duration,
    doing: &'static str,
) -> Result<Connection, Error> {
    let connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    connections
        .recv_timeout(limit)
        .map_err(|_| Error::Timeout { doing, limit })
}

impl Drop for ReversePort {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        // the thread waits for a connection; when it cannot be woken it ends with the program
        if Stream::connect(&self.path, LIMIT).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            // what a thread that panicked has taken is lost anyway
            let _ = acceptor.join();
        }
    }
}

#[cfg(not(unix))]
fn accept_on(_: &Path, _: Sender<Connection>, _: Arc<Shared>) -> Result<JoinHandle<()>, Error> {
    Err(Error::NotSupported)
}

#[cfg(unix)]
fn accept_on(
    path: &Path,
    first: Sender<Connection>,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>, Error> {
    use std::os::unix::net::UnixListener;
    let listener = UnixListener::bind(path).map_err(|source| Error::Listen {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(std::thread::spawn(move || {
        let mut visitors = Visitors {
            first,
            first_cookie: None,
            others: Vec::new(),
        };
        for stream in listener.incoming() {
            if shared.closing.load(Ordering::Relaxed) {
                return;
            }
            // who does not announce himself as a runtime does is not talked to
            if let Ok(connection) = stream.and_then(|s| announcement(Stream::new(s, LIMIT)?)) {
                visitors.take(connection);
                let others = u64::try_from(visitors.others.len()).unwrap_or(u64::MAX);
                shared.others.store(others, Ordering::Relaxed);
            }
        }
    }))
}

/// Who has announced himself so far.
#[cfg(unix)]
#[derive(Debug)]
struct Visitors {
    first: Sender<Connection>,
    first_cookie: Option<[u8; 16]>,
    /// Runtimes that were told to go on, and the connection that each made thereafter: a closed one would be made again
    /// and again.
    others: Vec<([u8; 16], Option<Stream>)>,
}

#[cfg(unix)]
impl Visitors {
    fn take(&mut self, connection: Connection) {
        let cookie = connection.cookie;
        if *self.first_cookie.get_or_insert(cookie) == cookie {
            // when nobody talks to it any more, the connection is closed
            let _ = self.first.send(connection);
        } else if let Some((_, held)) = self.others.iter_mut().find(|(c, _)| *c == cookie) {
            *held = Some(connection.stream);
        } else if self.others.len() < MAX_OTHERS {
            self.others.push((cookie, None));
            std::thread::spawn(move || go_on(connection.stream));
        }
    }
}

#[cfg(unix)]
fn go_on(mut stream: Stream) {
    use crate::client::RESUME_RUNTIME;
    use crate::message::{Payload, exchange};
    // it may have ended already
    let _ = exchange(&mut stream, RESUME_RUNTIME, Payload::default(), LIMIT);
}

#[cfg(unix)]
fn announcement(mut stream: Stream) -> std::io::Result<Connection> {
    use crate::message::Answer;
    use std::io::{ErrorKind, Read};
    let mut bytes = [0; 34];
    stream.read_exact(&mut bytes)?;
    let mut fields = Answer::new(bytes.to_vec());
    let mut read = || Ok::<_, Error>((fields.array::<8>()?, fields.array()?, fields.u64()?));
    match read() {
        Ok((magic, cookie, pid)) if magic == *b"ADVR_V1\0" => Ok(Connection {
            cookie,
            pid,
            stream,
        }),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::fake::{done, folder, read_command};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// A runtime that announces itself.
    fn announce(port: &ReversePort, cookie: u8, pid: u64) -> UnixStream {
        let mut stream = UnixStream::connect(&port.path).expect("the port listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("not zero");
        let bytes = [
            &b"ADVR_V1\0"[..],
            &[cookie; 16],
            &pid.to_le_bytes(),
            &[0, 0],
        ];
        stream.write_all(&bytes.concat()).expect("the port reads");
        stream
    }

    #[test]
    fn the_first_runtime_is_talked_to_and_others_go_on() {
        let folder = folder("reverse");
        let port = ReversePort::bind(&folder).expect("a short path");
        assert_eq!(port.variable().0, "DOTNET_DiagnosticPorts");
        let mut first = announce(&port, 1, 77);
        let announced = port.first(Duration::from_secs(5)).expect("it announced");
        assert_eq!(announced.pid, 77);
        let runtime = std::thread::spawn(move || {
            let command = read_command(&mut first);
            first.write_all(&done(&[])).expect("open");
            command
        });
        announced.client.resume().expect("an answer");
        let (set, id, _) = runtime.join().expect("no panic").expect("a command");
        assert_eq!((set, id), (4, 1));

        let mut other = announce(&port, 2, 78);
        let (set, id, _) = read_command(&mut other).expect("told to go on");
        assert_eq!((set, id), (4, 1));
        assert_eq!(port.others(), 1);
        // it announces itself again, and its connection is neither answered nor closed
        let mut again = announce(&port, 2, 78);
        again
            .set_read_timeout(Some(Duration::from_millis(100)))
            .expect("not zero");
        let error = again.read(&mut [0]).expect_err("nothing to read");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(port.others(), 1);
        drop(port);
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn who_is_no_runtime_is_not_talked_to() {
        let folder = folder("stranger");
        let port = ReversePort::bind(&folder).expect("a short path");
        let mut stranger = UnixStream::connect(&port.path).expect("the port listens");
        stranger.write_all(&[b'x'; 34]).expect("the port reads");
        let error = port.first(Duration::from_millis(200)).expect_err("nobody");
        assert!(matches!(error, Error::Timeout { .. }));
        assert_eq!(stranger.read(&mut [0]).expect("closed"), 0);
        drop(port);
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_path_with_a_separator_is_refused() {
        let error = ReversePort::bind(Path::new("/tmp/a;b")).expect_err("a separator");
        assert!(matches!(error, Error::Listen { .. }));
    }
}
