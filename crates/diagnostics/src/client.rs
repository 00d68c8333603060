//! Commands to one process.

use crate::info::ProcessInfo;
use crate::message::{Answer, Command, Payload, exchange};
use crate::session::{EventStream, FORMS, Recording, SessionConfig};
use crate::stream::Stream;
use crate::{Error, socket};
use std::fmt;
use std::time::Duration;

const STOP_TRACING: Command = Command::new("StopTracing", 2, 1);
pub(crate) const RESUME_RUNTIME: Command = Command::new("ResumeRuntime", 4, 1);
const WRITE_DUMP: Command = Command::new("GenerateCoreDump", 1, 1);
const PROCESS_INFO_2: Command = Command::new("ProcessInfo2", 4, 4);

/// How much of a process its runtime writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpKind {
    /// Threads only.
    Mini = 1,
    /// Threads and the heap of the garbage collector.
    Heap = 2,
    /// All memory.
    Full = 4,
}

/// Gives the next connection to the process; each carries one command.
type Connect = dyn Fn() -> Result<Stream, Error> + Send + Sync;

/// Commands to one process. Each opens a connection, and none waits longer than the limit.
pub struct Client {
    connect: Box<Connect>,
    limit: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Finds the socket of a process of this machine and asks the process what it is. Its number is the one that this
    /// program sees; the process may be in a container.
    ///
    /// # Errors
    /// No such process, no right to it, no socket, or no answer within `limit` that makes sense.
    pub fn of_process(pid: u32, limit: Duration) -> Result<(Self, ProcessInfo), Error> {
        let path = socket::find(pid)?;
        let connect = move || {
            Stream::connect(&path, limit).map_err(|source| Error::Connect {
                path: path.clone(),
                source,
            })
        };
        let client = Self::new(connect, limit);
        let info = client.process_info()?;
        let inner = u64::from(socket::inner_pid(pid));
        if info.pid == inner || info.pid == u64::from(pid) {
            return Ok((client, info));
        }
        Err(Error::WrongProcess {
            asked: pid,
            answered: info.pid,
        })
    }

    pub(crate) fn new(
        connect: impl Fn() -> Result<Stream, Error> + Send + Sync + 'static,
        limit: Duration,
    ) -> Self {
        Self {
            connect: Box::new(connect),
            limit,
        }
    }

    /// What the process says of itself; .NET 6 to 11 answer.
    ///
    /// # Errors
    /// The process does not answer in time, or not in a way that makes sense.
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        let (mut answer, _) = self.ask(PROCESS_INFO_2, Payload::default())?;
        ProcessInfo::read(&mut answer)
    }

    /// Lets a process go on that waits in its start; one that does not wait takes no harm.
    ///
    /// # Errors
    /// As of [`Client::process_info`].
    pub fn resume(&self) -> Result<(), Error> {
        self.ask(RESUME_RUNTIME, Payload::default()).map(drop)
    }

    /// Begins to record. Events come from the [`Recording`] until the session is stopped or the process ends; when
    /// nobody reads them, the process keeps as many as its buffer holds.
    ///
    /// The newest form of the command that the runtime knows is used; [`Recording::stacks_forced`] says when that one
    /// cannot do without stacks.
    ///
    /// # Errors
    /// As of [`Client::process_info`], or the runtime refuses what is asked for.
    pub fn record(&self, config: &SessionConfig) -> Result<Recording, Error> {
        let mut last = None;
        for form in FORMS {
            match self.ask(form.command, form.payload(config)) {
                Ok((mut answer, stream)) => {
                    return Ok(Recording {
                        id: answer.u64()?,
                        stacks_forced: form.forces_stacks() && !config.stacks,
                        events: EventStream::new(stream),
                    });
                }
                Err(error) if error.is_unknown_command() => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::Protocol("no form of the command was tried".into())))
    }

    /// Ends a session. The process first writes out what it has, so that somebody must read the events meanwhile; with
    /// a rundown this may take seconds, and `limit` is for that.
    ///
    /// # Errors
    /// As of [`Client::process_info`], or there is no such session any more.
    pub fn stop(&self, session: u64, limit: Duration) -> Result<(), Error> {
        let mut payload = Payload::default();
        payload.u64(session);
        self.ask_within(STOP_TRACING, payload, limit).map(drop)
    }

    /// Has the runtime write a dump of its process into a new file; its `createdump` does it, as the user of the process and
    /// under the path as the process sees it. The process stands still meanwhile.
    ///
    /// # Errors
    /// As of [`Client::process_info`], or the runtime says that it could not write it.
    pub fn write_dump(&self, path: &str, kind: DumpKind, limit: Duration) -> Result<(), Error> {
        let mut payload = Payload::default();
        payload.text(path);
        payload.u32(kind as u32);
        // no messages of createdump: they would go to the output of the program
        payload.u32(0);
        let (mut answer, _) = self.ask_within(WRITE_DUMP, payload, limit)?;
        match answer.u32()? {
            0 => Ok(()),
            code => Err(Error::DumpFailed(code)),
        }
    }

    fn ask(&self, command: Command, payload: Payload) -> Result<(Answer, Stream), Error> {
        self.ask_within(command, payload, self.limit)
    }

    fn ask_within(
        &self,
        command: Command,
        payload: Payload,
        limit: Duration,
    ) -> Result<(Answer, Stream), Error> {
        let mut stream = (self.connect)()?;
        let io = |e| Error::from_io("setting a limit", limit, e);
        stream.limit_reads(limit).map_err(io)?;
        let answer = exchange(&mut stream, command, payload, limit)?;
        Ok((answer, stream))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::fake::{Fake, done, info, refused};
    use crate::{ErrorCode, Provider};
    use std::io::Read;
    use std::time::Instant;

    const LIMIT: Duration = Duration::from_millis(300);

    fn client(fake: &Fake) -> Client {
        let path = fake.path().to_owned();
        Client::new(
            move || {
                Stream::connect(&path, LIMIT).map_err(|source| Error::Connect {
                    path: path.clone(),
                    source,
                })
            },
            LIMIT,
        )
    }

    fn config() -> SessionConfig {
        SessionConfig {
            buffer_mb: 16,
            rundown: true,
            stacks: false,
            providers: vec![Provider::new("P", 0x10, 4)],
        }
    }

    #[test]
    fn a_process_says_what_it_is() {
        let fake = Fake::start("info", vec![done(&info(42, "11.0.0"))]);
        let info = client(&fake).process_info().expect("an answer");
        assert_eq!((info.pid, info.major()), (42, Some(11)));
        assert_eq!(info.command_line, "dotnet App.dll");
        assert_eq!(fake.commands(), [(4, 4)]);
    }

    #[test]
    fn a_new_runtime_gets_the_new_form_and_streams() {
        let fake = Fake::start(
            "new",
            vec![[done(&9_u64.to_le_bytes()), b"Nettrace".to_vec()].concat()],
        );
        let mut recording = client(&fake).record(&config()).expect("a session");
        assert_eq!((recording.id, recording.stacks_forced), (9, false));
        let mut text = String::new();
        recording
            .events
            .read_to_string(&mut text)
            .expect("to the end");
        assert_eq!(text, "Nettrace");
        let sent = fake.payload(0);
        // buffer, format, keywords of the rundown, no stacks, one provider
        let expected = [
            &16_u32.to_le_bytes()[..],
            &1_u32.to_le_bytes(),
            &0x8002_0139_u64.to_le_bytes(),
            &[0],
            &1_u32.to_le_bytes(),
            &0x10_u64.to_le_bytes(),
            &4_u32.to_le_bytes(),
            &[2, 0, 0, 0, b'P', 0, 0, 0],
            &[0, 0, 0, 0],
        ];
        assert_eq!(sent, expected.concat());
    }

    #[test]
    fn a_runtime_writes_a_dump_or_says_that_it_did_not() {
        let answers = vec![
            done(&0_u32.to_le_bytes()),
            done(&0x8000_4005_u32.to_le_bytes()),
        ];
        let client_of = Fake::start("dump", answers);
        let client = client(&client_of);
        let write = || client.write_dump("/d/x", DumpKind::Heap, LIMIT);
        write().expect("written");
        assert!(matches!(write(), Err(Error::DumpFailed(0x8000_4005))));
        assert_eq!(client_of.commands(), [(1, 1), (1, 1)]);
        let text = [5, 0, 0, 0, b'/', 0, b'd', 0, b'/', 0, b'x', 0, 0, 0];
        assert_eq!(
            client_of.payload(0),
            [&text[..], &[2, 0, 0, 0], &[0; 4]].concat()
        );
    }

    #[test]
    fn an_old_runtime_gets_the_old_form() {
        let unknown = refused(0x8013_1385);
        let answers = vec![unknown.clone(), unknown, done(&9_u64.to_le_bytes())];
        let fake = Fake::start("old", answers);
        let recording = client(&fake).record(&config()).expect("a session");
        assert!(recording.stacks_forced);
        assert_eq!(fake.commands(), [(2, 5), (2, 4), (2, 3)]);
    }

    #[test]
    fn a_refusal_is_not_tried_again() {
        let fake = Fake::start("refused", vec![refused(0x8013_1515)]);
        let error = client(&fake).record(&config()).expect_err("refused");
        assert!(matches!(
            error,
            Error::Refused {
                command: "CollectTracing4",
                code: ErrorCode::NotSupported
            }
        ));
    }

    #[test]
    fn a_silent_process_costs_no_more_than_the_limit() {
        let fake = Fake::start("silent", vec![Vec::new()]);
        fake.keep_open();
        let start = Instant::now();
        let error = client(&fake).resume().expect_err("no answer");
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn half_an_answer_is_an_error() {
        let fake = Fake::start(
            "half",
            vec![done(&[1, 2, 3]), done(&info(1, "x"))[..40].to_vec()],
        );
        let client = client(&fake);
        assert!(matches!(client.record(&config()), Err(Error::Protocol(_))));
        assert!(matches!(client.process_info(), Err(Error::Io { .. })));
    }

    #[test]
    fn nobody_listens() {
        let client = Client::new(
            || {
                let path = std::path::PathBuf::from("/nonexistent/socket");
                Stream::connect(&path, LIMIT).map_err(|source| Error::Connect { path, source })
            },
            LIMIT,
        );
        assert!(matches!(client.resume(), Err(Error::Connect { .. })));
    }
}
