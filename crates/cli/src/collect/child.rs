//! A command that is recorded from its first instruction.

use super::refused;
use crate::errors::CliError;
use crate::exit::Exit;
use asynctriage_diagnostics::{Announced, Client, Error, ProcessInfo, ReversePort};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a runtime may take to announce itself.
const START: Duration = Duration::from_secs(30);
/// How long a process that was ended may take to be gone.
const GONE: Duration = Duration::from_secs(2);

/// The command; its runtime waits in its start until it is told to go on.
pub(super) struct Started {
    child: Child,
    /// The runtime connects to it for each command.
    _port: ReversePort,
}

impl Started {
    /// Starts the command with its input and output as they are here. Gives what can be asked of its runtime.
    pub(super) fn new(
        command: &[OsString],
        folder: &Path,
    ) -> Result<(Self, Client, ProcessInfo), CliError> {
        let (program, args) = command.split_first().ok_or_else(|| {
            CliError::new(Exit::Usage, "there is no command", "name one behind --")
        })?;
        let port = ReversePort::bind(folder).map_err(refused)?;
        let (name, value) = port.variable();
        let child = Command::new(program).args(args).env(name, value).spawn();
        let mut child = child.map_err(|e| {
            let message = format!("cannot start {}", program.display());
            CliError::new(Exit::Usage, message, "check the command behind --").because(e)
        })?;
        match announced(&port, &mut child) {
            Ok((client, info)) => Ok((Self { child, _port: port }, client, info)),
            Err(error) => {
                // a runtime that waits for nobody would wait for ever
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Number of the process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends a command whose recording could not begin.
    pub(super) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it still runs, after the time that an end takes.
    pub(super) fn goes_on(&mut self, has_ended: bool) -> bool {
        let deadline = Instant::now() + if has_ended { GONE } else { Duration::ZERO };
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(None) => return true,
                _ => return false,
            }
        }
    }
}

fn announced(port: &ReversePort, child: &mut Child) -> Result<(Client, ProcessInfo), CliError> {
    let deadline = Instant::now() + START;
    let failed =
        |what: &str| CliError::new(Exit::Input, what, "see that the command works by itself");
    loop {
        match port.first(Duration::from_millis(50)) {
            Ok(Announced { client, .. }) => {
                let info = client.process_info().map_err(refused)?;
                return Ok((client, info));
            }
            Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(refused(error)),
        }
        if let Ok(Some(status)) = child.try_wait() {
            let what = format!("the command ended with {status} before a .NET runtime started");
            return Err(failed(&what));
        }
        if Instant::now() > deadline {
            return Err(failed("no .NET runtime started within 30 s"));
        }
    }
}
