//! A recording in the forms of other tools.

mod chrome;
mod folded;
mod speedscope;

use super::session::session;
use super::{Read, TraceError, TraceOptions, container, names, scan};
use asynctriage_async_trace::{
    Dispatcher, Family, FrameListId, FrameLists, Horizons, Recording, Span, SpanSink, judge,
};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::str::FromStr;

/// What a recording is exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Chrome's trace events as JSON, which Perfetto opens: threads, operations, and arrows from suspensions to resumes.
    Chrome,
    /// Speedscope's evented profile: what ran on each thread, as stacks of methods.
    Speedscope,
    /// Folded stacks with microseconds: how long each stack of methods ran and waited.
    Folded,
}

impl ExportFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chrome, Self::Speedscope, Self::Folded];

    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chrome => "chrome",
            Self::Speedscope => "speedscope",
            Self::Folded => "folded",
        }
    }
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|f| f.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is none of chrome, speedscope, folded"))
    }
}

/// Writes a `.nettrace` file that is in memory, unpacked, in another form.
///
/// # Errors
/// Those of [`trace()`](super::trace()); inside, those of `out`.
pub fn export(
    file: &[u8],
    format: ExportFormat,
    options: &TraceOptions,
    out: &mut dyn Write,
) -> Result<io::Result<()>, TraceError> {
    let (read, recording) = scan(file, options, Recording::new())?;
    Ok(match format {
        ExportFormat::Chrome => chrome::write(&read, recording, out),
        ExportFormat::Speedscope => speedscope::write(&read, recording, out),
        ExportFormat::Folded => folded::write(&read, recording, out),
    })
}

/// Names of frame lists, each looked up once.
struct Stacks<'r> {
    read: &'r Read,
    known: FxHashMap<FrameListId, Stack>,
}

/// A list of frames by name.
#[derive(Clone, Debug, Default)]
struct Stack {
    /// Innermost first.
    names: Vec<String>,
    /// The outermost one of the program's own, or else the outermost.
    title: String,
}

impl<'r> Stacks<'r> {
    fn new(read: &'r Read) -> Self {
        Self {
            read,
            known: FxHashMap::default(),
        }
    }

    fn get(&mut self, list: Option<FrameListId>, frames: &FrameLists<'_>) -> &Stack {
        // lists are numbered from 0; none has a place of its own
        static NONE: Stack = Stack {
            names: Vec::new(),
            title: String::new(),
        };
        let Some(id) = list else {
            return &NONE;
        };
        let read = self.read;
        self.known.entry(id).or_insert_with(|| {
            let frames = frames.frames(id).iter();
            let names: Vec<String> = frames
                .map(|f| names::frame(&read.methods, *f).method)
                .collect();
            let is_framework = |n: &&String| {
                n.starts_with("System.") || n.starts_with("Microsoft.") || n.starts_with("0x")
            };
            let own = names.iter().rev().find(|n| !is_framework(n));
            let title = own.or(names.last()).cloned().unwrap_or_default();
            Stack { names, title }
        })
    }
}

/// What an operation is called: by its method, else by its kind; with its number.
fn title(stack: &Stack, family: Family, id: u64) -> String {
    let kind = match family {
        Family::RuntimeAsync => "runtime-async",
        Family::StateMachine => "state machine",
    };
    let name = if stack.title.is_empty() {
        kind
    } else {
        &stack.title
    };
    format!("{name} #{id}")
}

/// Ticks as nanoseconds since the first record.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    frequency: u64,
    first: u64,
    last: u64,
}

impl Ticks {
    fn nanos(self, ticks: u64) -> u64 {
        let ticks = ticks.clamp(self.first, self.last.max(self.first));
        let elapsed = u128::from(ticks.saturating_sub(self.first)).saturating_mul(1_000_000_000);
        let nanos = elapsed.checked_div(self.frequency.into());
        nanos.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX))
    }

    /// Microseconds, as decimal text that loses nothing.
    fn micros(self, ticks: u64) -> String {
        let nanos = self.nanos(ticks);
        format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
    }
}

/// Chains that had not ended, and how sure that is, once a recording was followed.
fn open<'t>(
    read: &Read,
    trace: &'t asynctriage_async_trace::AsyncTrace<'_>,
) -> (Horizons, impl Iterator<Item = &'t Dispatcher>) {
    let judgement = judge(Some(trace), container(read), &session(read));
    let open = trace.dispatchers.iter().filter(|d| !d.state.is_end());
    (judgement.horizons, open)
}
