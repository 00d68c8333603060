//! The diagnostic protocol from the side of a process, written apart from the client that it tests.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Set, number and payload of a command; `None` when the connection ends.
pub(crate) fn read_command(stream: &mut UnixStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).ok()?;
    let mut payload = vec![0; usize::from(u16::from_le_bytes([header[14], header[15]])) - 20];
    stream.read_exact(&mut payload).ok()?;
    Some((header[16], header[17], payload))
}

/// Says that the command is done.
pub(crate) fn answer(stream: &mut UnixStream, payload: &[u8]) {
    let size = u16::try_from(20 + payload.len()).expect("small");
    let header = [
        &b"DOTNET_IPC_V1\0"[..],
        &size.to_le_bytes(),
        &[0xff, 0, 0, 0],
    ];
    // who asked may have gone
    let _ = stream.write_all(&[&header.concat()[..], payload].concat());
}

/// The payload of the answer to the question what the process is.
pub(crate) fn info(pid: u64, version: &str) -> Vec<u8> {
    let mut payload = pid.to_le_bytes().to_vec();
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
#[expect(clippy::print_stdout, reason = "says that a test is skipped")]
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
