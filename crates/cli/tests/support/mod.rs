//! A process that speaks the diagnostic protocol, written apart from the client that it tests.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

/// How the process behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Streams until it is told to stop.
    Good,
    /// Ends the stream by itself.
    Ends,
    /// Never ends the stream by itself, and sends as much as anybody reads.
    Endless,
    /// Answers with other bytes.
    Garbage,
    /// Says that it is another process.
    Stranger,
}

#[derive(Default)]
struct State {
    sessions: HashMap<u64, UnixStream>,
    commands: Vec<String>,
}

pub(crate) struct FakeProcess {
    state: Arc<Mutex<State>>,
}

impl FakeProcess {
    /// Listens as the process of this test in `folder`.
    pub(crate) fn start(folder: &Path, version: &'static str, manner: Manner) -> Self {
        let pid = std::process::id();
        let listener = UnixListener::bind(socket(folder, pid)).expect("a short path");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.expect("a connection"), Arc::clone(&shared));
                thread::spawn(move || serve(stream, &shared, version, manner));
            }
        });
        Self { state }
    }

    /// The commands so far, a word each.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.state.lock().expect("no panic").commands.clone()
    }
}

fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("dotnet-diagnostic-{pid}-1-socket"))
}

fn serve(mut stream: UnixStream, state: &Mutex<State>, version: &str, manner: Manner) {
    let mut header = [0; 20];
    if stream.read_exact(&mut header).is_err() {
        return;
    }
    let mut payload = vec![0; usize::from(u16::from_le_bytes([header[14], header[15]])) - 20];
    stream.read_exact(&mut payload).expect("a whole command");
    let mut locked = state.lock().expect("no panic");
    match (header[16], header[17]) {
        _ if manner == Manner::Garbage => drop(stream.write_all(&[b'x'; 64])),
        (4, 4) => answer(&mut stream, &info(version, manner)),
        (2, 5) => {
            let id = locked.sessions.len() as u64 + 1;
            locked.commands.push(format!("collect {id}"));
            answer(&mut stream, &id.to_le_bytes());
            stream.write_all(b"head ").expect("read");
            if manner == Manner::Endless {
                drop(locked);
                while stream.write_all(&[b'.'; 65_536]).is_ok() {}
            } else if manner != Manner::Ends {
                locked.sessions.insert(id, stream);
            }
        }
        (2, 1) => {
            let id = u64::from_le_bytes(payload.try_into().expect("a number"));
            locked.commands.push(format!("stop {id}"));
            if let Some(mut session) = locked.sessions.get(&id) {
                session.write_all(b"tail").expect("read");
                session
                    .shutdown(std::net::Shutdown::Both)
                    .expect("connected");
            }
            answer(&mut stream, &id.to_le_bytes());
        }
        other => panic!("command {other:?} is not expected"),
    }
}

fn answer(stream: &mut UnixStream, payload: &[u8]) {
    let size = u16::try_from(20 + payload.len()).expect("small");
    let header = [
        &b"DOTNET_IPC_V1\0"[..],
        &size.to_le_bytes(),
        &[0xff, 0, 0, 0],
    ];
    // who asked may have gone
    let _ = stream.write_all(&[&header.concat()[..], payload].concat());
}

fn info(version: &str, manner: Manner) -> Vec<u8> {
    let stranger = u64::from(manner == Manner::Stranger);
    let mut payload = (u64::from(std::process::id()) + stranger)
        .to_le_bytes()
        .to_vec();
    payload.extend([9; 16]);
    for text in [
        "dotnet Shop.dll --password x",
        "Linux",
        "x64",
        "Shop",
        version,
    ] {
        payload.extend((text.len() as u32 + 1).to_le_bytes());
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    payload
}

/// The host of a real runtime, when this machine has one that can run [`program`]; the test is skipped otherwise.
pub(crate) fn dotnet() -> Option<PathBuf> {
    let named = std::env::var_os("ASYNCTRIAGE_DOTNET").map(PathBuf::from);
    let found = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("dotnet"))
            .find(|file| file.is_file())
    };
    let dotnet = named.or_else(found)?;
    let output = std::process::Command::new(&dotnet)
        .arg(program())
        .arg("1")
        .output();
    let runs = output.is_ok_and(|o| o.status.success());
    if !runs {
        println!("skipped: {} does not run .NET 10 or 11", dotnet.display());
    }
    runs.then_some(dotnet)
}

/// The program with the known answer.
pub(crate) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/awaits/Awaits.dll")
}
