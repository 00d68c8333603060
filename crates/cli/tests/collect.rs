//! `collect` against a process that speaks the protocol, and against a real runtime where there is one.
#![cfg(unix)]

mod support;

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use support::{answer, info, read_command};

/// How the process behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
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

struct FakeProcess {
    state: Arc<Mutex<State>>,
}

impl FakeProcess {
    /// Listens as the process of this test in `folder`.
    fn start(folder: &Path, version: &'static str, manner: Manner) -> Self {
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
    fn commands(&self) -> Vec<String> {
        self.state.lock().expect("no panic").commands.clone()
    }
}

fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("dotnet-diagnostic-{pid}-1-socket"))
}

fn serve(mut stream: UnixStream, state: &Mutex<State>, version: &str, manner: Manner) {
    let Some((set, id, payload)) = read_command(&mut stream) else {
        return;
    };
    let mut locked = state.lock().expect("no panic");
    match (set, id) {
        _ if manner == Manner::Garbage => drop(stream.write_all(&[b'x'; 64])),
        (4, 4) => {
            let stranger = u64::from(manner == Manner::Stranger);
            let pid = u64::from(std::process::id()) + stranger;
            answer(&mut stream, &info(pid, version));
        }
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

/// A folder of its own for each test, emptied; its path is short enough for sockets.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("collect-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

fn collect(folder: &Path, pid: u32, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asynctriage"));
    command
        .args(["collect", "--pid", &pid.to_string(), "-o", "a.nettrace"])
        .args(args)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    collect(folder, std::process::id(), args)
        .output()
        .expect("the program starts")
}

/// What a user sees, without what differs from run to run.
fn shown(output: &Output) -> String {
    let text = format!(
        "exit {}\n--- out\n{}--- err\n{}",
        output.status.code().expect("no signal"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = text.replace(&std::process::id().to_string(), "PID");
    let lines = text.lines().map(|line| match line.split_once(" MiB in ") {
        Some((before, after)) => {
            let rest = after.split_once(" s; ").map_or("", |(_, rest)| rest);
            format!("{before} MiB in N s; {rest}")
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn recorded(folder: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(folder.join("a.nettrace")).unwrap_or_default())
        .into_owned()
}

#[test]
fn a_recording_ends_after_its_time() {
    let folder = folder("time");
    let process = FakeProcess::start(&folder, "11.0.0", Manner::Good);
    let output = run(&folder, &["--duration", "1"]);
    insta::assert_snapshot!("a_recording", shown(&output));
    assert_eq!(recorded(&folder), "head tail");
    // the begin and the end of other sessions make the threads hand over their buffers, and mark when they were asked
    let commands = process.commands();
    let (first, rest) = commands.split_first().expect("some");
    let (last, asked) = rest.split_last().expect("some");
    assert_eq!([first.as_str(), last.as_str()], ["collect 1", "stop 1"]);
    let marks: Vec<String> = (2..=4)
        .flat_map(|n| [format!("collect {n}"), format!("stop {n}")])
        .collect();
    assert_eq!(asked, marks);
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn a_signal_ends_a_recording_and_keeps_it() {
    let folder = folder("signal");
    let process = FakeProcess::start(&folder, "10.0.15", Manner::Good);
    let running = collect(&folder, std::process::id(), &["--tpl"])
        .spawn()
        .expect("the program starts");
    wait_until(|| recorded(&folder) == "head ");
    let signal = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(signal.expect("there is a kill").success());
    let output = running.wait_with_output().expect("it ends");
    insta::assert_snapshot!("a_signal", shown(&output));
    assert_eq!(recorded(&folder), "head tail");
    assert_eq!(process.commands(), ["collect 1", "stop 1"]);
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn a_recording_ends_with_the_process() {
    let folder = folder("ends");
    let process = FakeProcess::start(&folder, "11.0.0", Manner::Ends);
    insta::assert_snapshot!("a_process_that_ends", shown(&run(&folder, &[])));
    assert_eq!(recorded(&folder), "head ");
    assert_eq!(process.commands(), ["collect 1"]);
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn a_recording_ends_at_its_size() {
    let folder = folder("size");
    let _process = FakeProcess::start(&folder, "11.0.0", Manner::Endless);
    // this process streams on whatever it is told, in no blocks that could be understood
    let output = run(&folder, &["--max-mb", "1"]);
    let text = shown(&output);
    assert!(text.contains("limit (--max-mb)"), "{text}");
    assert!(
        text.contains("the end of the file may be missing"),
        "{text}"
    );
    assert_eq!(recorded_len(&folder), 1 << 20);
    std::fs::remove_dir_all(folder).expect("ours");
}

fn recorded_len(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("a.nettrace")).map_or(0, |m| m.len())
}

#[test]
fn what_cannot_be_recorded_is_refused_and_leaves_no_file() {
    let cases: [(&str, &'static str, Manner, &[&str]); 5] = [
        ("old", "7.0.20", Manner::Good, &["--tpl"]),
        ("no profiler", "10.0.15", Manner::Good, &[]),
        ("garbage", "11.0.0", Manner::Garbage, &[]),
        ("stranger", "11.0.0", Manner::Stranger, &[]),
        (
            "providers",
            "11.0.0",
            Manner::Good,
            &["--providers", "A:zz"],
        ),
    ];
    let mut all = Vec::new();
    for (name, version, manner, args) in cases {
        let folder = folder("refused");
        let _process = FakeProcess::start(&folder, version, manner);
        let text = shown(&run(&folder, args));
        let next = (u64::from(std::process::id()) + 1).to_string();
        all.push(format!("$ {name}\n{}", text.replace(&next, "ANOTHER")));
        assert!(!folder.join("a.nettrace").exists(), "{name}");
        std::fs::remove_dir_all(folder).expect("ours");
    }
    insta::assert_snapshot!("refused", all.join("\n\n"));
}

#[test]
fn a_process_without_a_socket_and_none_at_all() {
    let folder = folder("none");
    let output = run(&folder, &[]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("no diagnostic socket"), "{text}");
    // no system gives such a number
    let output = collect(&folder, u32::MAX, &[]).output();
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(!folder.join("a.nettrace").exists());
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn an_existing_file_is_kept() {
    let folder = folder("kept");
    std::fs::write(folder.join("a.nettrace"), "old").expect("writable");
    let process = FakeProcess::start(&folder, "11.0.0", Manner::Good);
    let output = run(&folder, &["--duration", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(recorded(&folder), "old");
    assert!(process.commands().is_empty());
    std::fs::remove_dir_all(folder).expect("ours");
}

/// A real process is recorded, when this machine has a runtime: `ASYNCTRIAGE_DOTNET` names its host, or PATH has it.
#[test]
fn a_real_process_is_recorded() {
    let Some(dotnet) = support::dotnet() else {
        return;
    };
    let folder = folder("real");
    let mut process = Ended(
        Command::new(dotnet)
            .arg(support::program())
            .arg("0")
            .stdout(Stdio::null())
            .spawn()
            .expect("the runtime starts"),
    );
    let pid = process.0.id();
    let args = [
        "--duration",
        "1",
        "--providers",
        "Awaits-Markers::4,System.Runtime.CompilerServices.AsyncProfilerEventSource:3FFFF:4",
    ];
    // the socket is there a moment after the start
    let mut output = None;
    wait_until(|| {
        let once = collect(&std::env::temp_dir(), pid, &args)
            .current_dir(&folder)
            .output()
            .expect("the program starts");
        let done = once.status.success();
        output = Some(once);
        done
    });
    process.0.kill().expect("it runs");
    let output = output.expect("tried");
    assert!(shown(&output).contains("asynctriage trace"));
    let bytes = std::fs::read(folder.join("a.nettrace")).expect("recorded");
    assert!(bytes.starts_with(b"Nettrace") && bytes.ends_with(&[1]));
    let name: Vec<u8> = "Awaits-Markers"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(bytes.windows(name.len()).any(|w| w == name));
    std::fs::remove_dir_all(folder).expect("ours");
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
