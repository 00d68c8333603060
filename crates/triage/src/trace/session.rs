//! What a file says of its session: when it and others ended, and whether the process ran before.

use super::{Read, container};
use asynctriage_async_trace::Session;
use asynctriage_nettrace::Event;
use asynctriage_nettrace::runtime::{RUNDOWN, RuntimeEvent};

/// The provider whose event is written into every session when one of the process ends (measured on .NET 11.0.0).
const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";
/// That event: what process it is.
const PROCESS_INFO: u32 = 1;
/// Ends of sessions that are kept; a recording has few.
const MOST: usize = 10_000;

/// When sessions ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// In ticks, in the order of the file.
    sessions: Vec<u64>,
    /// The first event of the rundown.
    rundown: Option<u64>,
    /// Version of the class libraries.
    libraries: Option<[u16; 4]>,
}

/// The event by which the runtime tells what it is.
const RUNTIME_INFORMATION: u32 = 187;

impl Ends {
    /// The runtime's major version, when the recording tells it.
    pub(super) fn major(&self) -> Option<u16> {
        self.libraries.map(|[major, ..]| major)
    }

    pub(super) fn push(&mut self, event: &Event<'_>) {
        if event.kind.id == RUNTIME_INFORMATION
            && let Some(RuntimeEvent::Runtime(runtime)) = RuntimeEvent::decode(event)
        {
            self.libraries = Some(runtime.libraries);
        }
        if event.kind.provider == RUNDOWN {
            let first = self.rundown.unwrap_or(event.timestamp);
            self.rundown = Some(first.min(event.timestamp));
        } else if event.kind.is(EVENT_PIPE, PROCESS_INFO) && self.sessions.len() < MOST {
            self.sessions.push(event.timestamp);
        }
    }
}

pub(super) fn session(read: &Read) -> Session {
    let container = container(read);
    let mut others = read.ends.sessions.clone();
    others.sort_unstable();
    // a file that is whole ends with the end of its own session
    let own = if container.truncated {
        None
    } else {
        others.pop()
    };
    Session {
        frequency: read.header.frequency,
        start: read.header.start_ticks,
        end: own.or(read.ends.rundown).or(read.end),
        others,
        lost_since: read.summary.lost.since,
        truncated: container.truncated,
        damaged: container.damages > 0,
        attached: read.methods.methods().compiled_before().map(|n| n > 0),
    }
}
