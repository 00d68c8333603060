//! Recordings: what is asked for, and the stream that comes back.

use crate::Provider;
use crate::message::{Command, Payload};
use crate::stream::Stream;
use std::io::{self, Read};
use std::time::Duration;

/// The format of `.nettrace` files.
const NETTRACE: u32 = 1;
/// What the runtime lists at the end so that addresses get names: loaded code, modules and the maps from IL to native
/// code; the set that dotnet-trace asks for.
const RUNDOWN_KEYWORDS: u64 = 0x8002_0139;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Buffer in the process, in mebibytes; what does not fit is lost and counted.
    pub buffer_mb: u32,
    /// Whether the process lists its methods at the end, so that addresses get names.
    pub rundown: bool,
    /// Whether a stack is taken with every event; costs much.
    pub stacks: bool,
    /// Which events.
    pub providers: Vec<Provider>,
}

/// A session that runs.
#[derive(Debug)]
pub struct Recording {
    /// Its number in the process, for [`Client::stop`](crate::Client::stop).
    pub id: u64,
    /// Stacks are taken although they were not asked for: the runtime knows no command without them.
    pub stacks_forced: bool,
    /// The events, in the format of `.nettrace` files.
    pub events: EventStream,
}

/// The events of a session. A read that has to wait longer than the pause fails with `WouldBlock` or `TimedOut` and may
/// be tried again; at the end of the session it gives nothing.
#[derive(Debug)]
pub struct EventStream(Stream);

impl EventStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// How long a read waits from now on.
    ///
    /// # Errors
    /// The system refuses; the pause must not be zero.
    pub fn pause(&self, pause: Duration) -> io::Result<()> {
        self.0.limit_reads(pause)
    }
}

impl Read for EventStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

/// A form of the command that begins a session.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) command: Command,
    /// 2 always takes stacks; 3 can do without; 4 also names the keywords of the rundown.
    version: u8,
}

/// Newest first: .NET 9 and later know the first, 8 the second, 5 and later the third. Later forms (10, 11) add nothing
/// that is asked for here.
pub(crate) const FORMS: [Form; 3] = [
    Form::new("CollectTracing4", 5, 4),
    Form::new("CollectTracing3", 4, 3),
    Form::new("CollectTracing2", 3, 2),
];

impl Form {
    const fn new(name: &'static str, id: u8, version: u8) -> Self {
        Self {
            command: Command::new(name, 2, id),
            version,
        }
    }

    pub(crate) fn forces_stacks(&self) -> bool {
        self.version < 3
    }

    pub(crate) fn payload(&self, config: &SessionConfig) -> Payload {
        let mut payload = Payload::default();
        payload.u32(config.buffer_mb);
        payload.u32(NETTRACE);
        if self.version < 4 {
            payload.u8(config.rundown.into());
        } else {
            payload.u64(if config.rundown { RUNDOWN_KEYWORDS } else { 0 });
        }
        if !self.forces_stacks() {
            payload.u8(config.stacks.into());
        }
        payload.u32(u32::try_from(config.providers.len()).unwrap_or(u32::MAX));
        for provider in &config.providers {
            payload.u64(provider.keywords);
            payload.u32(provider.level);
            payload.text(&provider.name);
            payload.text(&provider.arguments);
        }
        payload
    }
}
