//! A process that gives the answers of a test, one for each connection.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

type Received = (u8, u8, Vec<u8>);

pub(crate) struct Fake {
    path: PathBuf,
    received: Arc<Mutex<Vec<Received>>>,
    keeps_open: Arc<AtomicBool>,
}

/// A folder of its own for each test, emptied.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fake-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

impl Fake {
    pub(crate) fn start(test: &str, answers: Vec<Vec<u8>>) -> Self {
        let path = folder(test).join("socket");
        let listener = UnixListener::bind(&path).expect("a short path");
        let fake = Self {
            path,
            received: Arc::default(),
            keeps_open: Arc::default(),
        };
        let (received, keeps_open) = (Arc::clone(&fake.received), Arc::clone(&fake.keeps_open));
        thread::spawn(move || {
            let mut open = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().expect("listening");
                let Some(command) = read_command(&mut stream) else {
                    continue;
                };
                received.lock().expect("no panic").push(command);
                // the client may have gone
                let _ = stream.write_all(&answer);
                if keeps_open.load(Ordering::Relaxed) {
                    open.push(stream);
                }
            }
            // until the test is over
            thread::park();
            drop(open);
        });
        fake
    }

    /// Connections stay open after the answer.
    pub(crate) fn keep_open(&self) {
        self.keeps_open.store(true, Ordering::Relaxed);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets and numbers of the commands that came.
    pub(crate) fn commands(&self) -> Vec<(u8, u8)> {
        let received = self.received.lock().expect("no panic");
        received.iter().map(|(set, id, _)| (*set, *id)).collect()
    }

    pub(crate) fn payload(&self, index: usize) -> Vec<u8> {
        self.received.lock().expect("no panic")[index].2.clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let folder = self.path.parent().expect("in a folder");
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Set, number and payload of a command; `None` when the connection ends.
pub(crate) fn read_command(stream: &mut UnixStream) -> Option<Received> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).ok()?;
    assert_eq!(&header[..14], b"DOTNET_IPC_V1\0");
    let size = usize::from(u16::from_le_bytes([header[14], header[15]]));
    let mut payload = vec![0; size - 20];
    stream.read_exact(&mut payload).ok()?;
    Some((header[16], header[17], payload))
}

fn message(id: u8, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).expect("small");
    [
        &b"DOTNET_IPC_V1\0"[..],
        &size.to_le_bytes(),
        &[0xff, id, 0, 0],
        payload,
    ]
    .concat()
}

pub(crate) fn done(payload: &[u8]) -> Vec<u8> {
    message(0, payload)
}

pub(crate) fn refused(code: u32) -> Vec<u8> {
    message(0xff, &code.to_le_bytes())
}

/// The payload of the answer to `ProcessInfo2`.
pub(crate) fn info(pid: u64, version: &str) -> Vec<u8> {
    let text = |text: &str| {
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        let len = u32::try_from(units.len()).expect("small");
        let units = units.into_iter().flat_map(u16::to_le_bytes);
        len.to_le_bytes().into_iter().chain(units).collect()
    };
    let texts: [Vec<u8>; 5] = ["dotnet App.dll", "Linux", "x64", "App", version].map(text);
    [&pid.to_le_bytes()[..], &[7; 16], &texts.concat()].concat()
}
