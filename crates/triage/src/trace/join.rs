//! A dump of the recorded process: which of its chains the recording knows, and since when they wait.
//!
//! Operations are joined by the numbers that the runtime itself gave them and nothing else: `Task.Id` for runtime-async,
//! the number in the box for state machines (11.0.0). Equal frames confirm a join, they never make one.

use super::names;
use super::time::Times;
use super::{Read, chains};
use crate::chains::Wanted;
use crate::options::Options;
use crate::paths::{Analysis, Dispatcher, DispatcherFamily, DispatcherFrame};
use crate::process::clock::{Clock, waiting};
use asynctriage_async_trace::{AsyncTrace, Dispatcher as Recorded, Family, State};
use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::{Dump, Os};
use asynctriage_report as report;
use asynctriage_report::{Address, FrameKind, FrameMatch};
use rustc_hash::{FxHashMap, FxHashSet};

/// Frames of a call stack record at most; a longer chain is cut there.
const RECORDED_FRAMES: usize = 255;
/// Contradictions that are listed.
const MAX_CONTRADICTIONS: usize = 100;
/// Ticks of a recording in a millisecond where its clock is the one that the dump tells.
const TICKS_PER_MS: u64 = 1_000_000;
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// What of a dump a recording can be joined with.
#[derive(Debug)]
pub struct DumpSide {
    pid: Option<u32>,
    chains: Vec<report::ChainGroup>,
    operations: Vec<Dispatcher>,
    unnumbered: u64,
    clock: Clock,
    /// Whether ticks of a recording and tick counts of the dump are one clock.
    one_clock: bool,
}

impl DumpSide {
    /// Analyses the dump.
    ///
    /// # Errors
    /// When the dump has no .NET runtime that can be read.
    pub fn read(dump: &Dump, options: &Options) -> Result<Self, RuntimeError> {
        let rt = Runtime::open(dump)?;
        let analysis = Analysis::new(&rt).with_symbols(options.symbols.clone());
        let groups = analysis.groups(Wanted {
            idle_too: options.idle_too,
            members: usize::MAX,
            locals: false,
        });
        let operations = analysis.dispatchers();
        let of_tasks = operations
            .iter()
            .filter(|o| o.family == DispatcherFamily::RuntimeAsync);
        let all_tasks = analysis.graph().operations.len();
        Ok(Self {
            pid: dump.process.pid,
            unnumbered: all_tasks.saturating_sub(of_tasks.count()) as u64,
            one_clock: dump.target.os != Os::Windows,
            clock: analysis.clock.clone(),
            chains: groups.groups,
            operations,
        })
    }
}

/// A recording and a dump, put together.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) report: report::TraceJoin,
    /// What the dump calls the methods at recorded addresses. Code may move and its place be used again: only
    /// operations that have the same frames in both count.
    pub(super) names: FxHashMap<u64, DispatcherFrame>,
}

impl Joined {
    fn refused(why: String) -> Self {
        let report = report::TraceJoin {
            refused: Some(why),
            ..report::TraceJoin::default()
        };
        Self {
            report,
            ..Self::default()
        }
    }
}

/// Puts a recording and a dump together.
pub(super) fn join(
    side: &DumpSide,
    read: &Read,
    trace: &AsyncTrace<'_>,
    times: &Times,
    members: usize,
) -> Joined {
    if let Some(why) = refused(side, read) {
        return Joined::refused(why);
    }
    let mut join = Join {
        side,
        read,
        trace,
        times,
        found: FxHashMap::default(),
        names: FxHashMap::default(),
        out: report::TraceJoin {
            unnumbered: side.unnumbered,
            ..report::TraceJoin::default()
        },
    };
    join.date();
    join.match_operations();
    if join.out.frames_equal == 0 && join.out.frames_differ > 0 {
        return Joined::refused(format!(
            "{} operations have the same numbers in both and none has the same frames: the dump is of another run",
            join.out.frames_differ
        ));
    }
    join.count_the_rest();
    join.chains(members);
    Joined {
        report: join.out,
        names: join.names,
    }
}

fn refused(side: &DumpSide, read: &Read) -> Option<String> {
    let (of_dump, of_trace) = (side.pid?, read.header.pid?);
    (of_dump != of_trace).then(|| {
        format!(
            "the dump is of process {of_dump}, the recording of process {of_trace}: numbers of their operations mean \
             nothing to each other"
        )
    })
}

struct Join<'a, 't> {
    side: &'a DumpSide,
    read: &'a Read,
    trace: &'a AsyncTrace<'t>,
    times: &'a Times,
    /// What the recording knows, by the object in the dump that a chain lists for the operation.
    found: FxHashMap<Address, (usize, report::OperationHistory)>,
    names: FxHashMap<u64, DispatcherFrame>,
    out: report::TraceJoin,
}

impl Join<'_, '_> {
    fn date(&mut self) {
        let end = self.trace.span.map(|(_, end)| end);
        self.out.seconds_after_recording = end.and_then(|end| self.seconds_to_dump(end));
        if self.out.seconds_after_recording.is_some() {
            self.out.clock = self.side.clock.how.to_owned();
        }
    }

    /// Seconds from a tick of the recording to the dump, below 0 when the dump is older.
    fn seconds_to_dump(&self, ticks: u64) -> Option<f64> {
        let same = self.side.one_clock && self.read.header.frequency == TICKS_PER_SECOND;
        let until = self
            .side
            .clock
            .until_ticks(ticks.checked_div(TICKS_PER_MS)?);
        until.filter(|_| same).map(|s| -s)
    }

    /// Whether the dump was taken before the recording ended, as far as the dump's clock tells.
    fn is_within_recording(&self) -> bool {
        !self.side.clock.is_floor && self.out.seconds_after_recording.is_some_and(|s| s < 0.0)
    }

    fn match_operations(&mut self) {
        let mut seen = FxHashSet::default();
        for (index, operation) in self.side.operations.iter().enumerate() {
            let family = family(operation);
            let id = u64::from(operation.id);
            if !seen.insert((family, id)) {
                self.contradict(operation, "another object of the dump has the same number");
                continue;
            }
            let recorded = self.trace.find(family, id);
            match recorded.filter(|d| !d.state.is_end()) {
                Some(recorded) => self.matched(index, operation, recorded),
                None => self.not_waiting(operation, self.trace.ended(family, id)),
            }
        }
    }

    fn matched(&mut self, index: usize, operation: &Dispatcher, recorded: &Recorded) {
        let frames = match operation.family {
            DispatcherFamily::RuntimeAsync => self.compare_addresses(operation, recorded),
            DispatcherFamily::StateMachine => self.compare_names(operation, recorded),
        };
        self.out.joined = self.out.joined.saturating_add(1);
        let counter = match frames {
            FrameMatch::Equal => Some(&mut self.out.frames_equal),
            FrameMatch::Differ => Some(&mut self.out.frames_differ),
            FrameMatch::NotRecorded | FrameMatch::NotCompared => None,
        };
        if let Some(counter) = counter {
            *counter = counter.saturating_add(1);
        }
        if frames == FrameMatch::Equal {
            let with_address = operation.frames.iter();
            let named = with_address.filter_map(|f| Some((f.ip?.0, f.clone())));
            self.names.extend(named);
        }
        if frames == FrameMatch::Differ {
            self.contradict(
                operation,
                "its frames in the recording are not those of the dump: it went on after what was recorded last, or \
                 records are missing",
            );
        }
        let history = self.history(operation, recorded, frames);
        let keys = match operation.family {
            DispatcherFamily::RuntimeAsync => operation.frames.iter().map(|f| f.object.0).collect(),
            DispatcherFamily::StateMachine => vec![operation.holder.0],
        };
        for key in keys {
            self.found.insert(Address(key), (index, history.clone()));
        }
    }

    fn not_waiting(&mut self, operation: &Dispatcher, ended: Option<State>) {
        let Some(state) = ended else {
            self.out.only_in_dump = self.out.only_in_dump.saturating_add(1);
            return;
        };
        // a state machine's number is that of one suspension, which may be recorded as ended before the box changes
        if !self.is_within_recording() && operation.family == DispatcherFamily::RuntimeAsync {
            let text = format!(
                "the recording says that it is {}, the dump that it waits: the dump is older than the end of the recording",
                state.as_str()
            );
            self.contradict(operation, &text);
        }
    }

    fn contradict(&mut self, operation: &Dispatcher, text: &str) {
        if self.out.contradictions.len() >= MAX_CONTRADICTIONS {
            let more = &mut self.out.contradictions_left_out;
            *more = more.saturating_add(1);
            return;
        }
        self.out.contradictions.push(report::JoinContradiction {
            dispatcher: operation.id.into(),
            object: Address(operation.holder.0),
            text: text.to_owned(),
        });
    }

    /// The addresses one by one, without the awaited task in front, which has no frame in the dump.
    fn compare_addresses(&self, operation: &Dispatcher, recorded: &Recorded) -> FrameMatch {
        let Some(list) = recorded.frames else {
            return FrameMatch::NotRecorded;
        };
        let all = self.trace.frames.frames(list);
        let is_cut = all.len() >= RECORDED_FRAMES;
        let frames: Vec<u64> = all
            .iter()
            .map(|f| f.address)
            .skip_while(|a| *a == 0)
            .collect();
        let known = operation.frames.iter().filter(|f| f.ip.is_some()).count();
        if recorded.state == State::Running || known == 0 {
            return FrameMatch::NotCompared;
        }
        let same_length = frames.len() == operation.frames.len()
            || is_cut && frames.len() < operation.frames.len();
        let pairs = frames.iter().zip(&operation.frames);
        let same = pairs
            .into_iter()
            .all(|(a, f)| f.ip.is_none_or(|ip| ip.0 == *a));
        matched(same_length && same)
    }

    /// The methods one by one: state machines are recorded by the beginning of their code. Outer ones may have been
    /// attached after the record was written.
    fn compare_names(&self, operation: &Dispatcher, recorded: &Recorded) -> FrameMatch {
        let Some(list) = recorded.frames else {
            return FrameMatch::NotRecorded;
        };
        if recorded.state == State::Running {
            return FrameMatch::NotCompared;
        }
        let frames = self.trace.frames.frames(list);
        let named: Vec<report::TraceFrame> = frames
            .iter()
            .map(|f| names::frame(&self.read.methods, *f))
            .collect();
        if named.iter().any(|f| f.unresolved.is_some()) {
            return FrameMatch::NotCompared;
        }
        let pairs = named.iter().zip(&operation.frames);
        let same = pairs
            .into_iter()
            .all(|(a, b)| without_arguments(&a.method) == without_arguments(&b.name));
        matched(named.len() <= operation.frames.len() && same)
    }

    fn history(
        &self,
        operation: &Dispatcher,
        recorded: &Recorded,
        frames: FrameMatch,
    ) -> report::OperationHistory {
        let since = recorded.since().map(|m| m.time);
        report::OperationHistory {
            kind: match operation.family {
                DispatcherFamily::RuntimeAsync => FrameKind::RuntimeAsync,
                DispatcherFamily::StateMachine => FrameKind::StateMachine,
            },
            object: Address(operation.holder.0),
            state: recorded.state.as_str().to_owned(),
            recorded: chains::member(recorded, self.times),
            waiting_seconds: since
                .filter(|_| recorded.state != State::Running)
                .and_then(|ticks| self.waited(ticks)),
            frames,
        }
    }

    /// Seconds that something has waited: up to the dump when it tells its time, else up to the last record.
    fn waited(&self, ticks: u64) -> Option<f64> {
        let at_end = self.times.until_end(ticks);
        let at_dump = self.seconds_to_dump(ticks).filter(|s| *s >= 0.0);
        match (at_dump, at_end) {
            // a dump that only knows an older time is no older than what it shows
            (Some(dump), Some(end)) if self.side.clock.is_floor => Some(dump.max(end)),
            (dump, end) => dump.or(end),
        }
    }

    fn count_the_rest(&mut self) {
        let of_dump: FxHashSet<(Family, u64)> = self
            .side
            .operations
            .iter()
            .map(|o| (family(o), o.id.into()))
            .collect();
        let waits = |d: &&Recorded| matches!(d.state, State::Suspended | State::SuspendedAtCreate);
        let only = self.trace.dispatchers.iter().filter(waits);
        let only = only.filter(|d| !of_dump.contains(&(d.family, d.id)));
        self.out.only_in_recording = only.count() as u64;
    }

    fn chains(&mut self, members: usize) {
        let chains: Vec<_> = self
            .side
            .chains
            .iter()
            .map(|g| self.chain(g, members))
            .collect();
        self.out.chains = chains;
    }

    fn chain(&self, group: &report::ChainGroup, members: usize) -> report::JoinedChain {
        let mut histories: Vec<report::ChainHistory> = group
            .members
            .iter()
            .map(|m| self.operations_of(m))
            .filter(|h| !h.operations.is_empty())
            .collect();
        histories.sort_by(|a, b| innermost(b).total_cmp(&innermost(a)));
        let seconds = histories.iter().map(innermost).filter(|s| s.is_finite());
        let how = if self.out.seconds_after_recording.is_some() {
            format!("from its last record to {}", self.side.clock.how)
        } else {
            "from its last record to the last record of the recording, which is no later than the dump".to_owned()
        };
        let joined = histories.len();
        let mut group = group.clone();
        let hidden = group.members.len().saturating_sub(members);
        group.members.truncate(members);
        group.members_left_out = group.members_left_out.saturating_add(hidden as u64);
        report::JoinedChain {
            joined: joined as u64,
            waiting_seconds: waiting(seconds.collect(), &how),
            histories_left_out: joined.saturating_sub(members) as u64,
            histories: histories.into_iter().take(members).collect(),
            group,
        }
    }

    /// What the recording knows of the operations of one chain, innermost first.
    fn operations_of(&self, member: &report::Member) -> report::ChainHistory {
        let mut seen = FxHashSet::default();
        let known = member.boxes.iter().filter_map(|b| self.found.get(b));
        let once = known.filter(|(index, _)| seen.insert(*index));
        report::ChainHistory {
            operations: once.map(|(_, history)| history.clone()).collect(),
        }
    }
}

fn matched(same: bool) -> FrameMatch {
    if same {
        FrameMatch::Equal
    } else {
        FrameMatch::Differ
    }
}

fn family(operation: &Dispatcher) -> Family {
    match operation.family {
        DispatcherFamily::RuntimeAsync => Family::RuntimeAsync,
        DispatcherFamily::StateMachine => Family::StateMachine,
    }
}

/// For how long the innermost operation has waited; below all times when that is not known.
fn innermost(history: &report::ChainHistory) -> f64 {
    let first = history.operations.first();
    first
        .and_then(|o| o.waiting_seconds)
        .unwrap_or(f64::NEG_INFINITY)
}

/// Without generic arguments: shared code has others than objects.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_u32;
    let outside = name.chars().filter(|c| {
        let before = depth;
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before == 0 && depth == 0
    });
    outside.collect()
}

#[cfg(test)]
mod tests {
    use super::without_arguments;

    #[test]
    fn names_are_compared_without_their_arguments() {
        assert_eq!(without_arguments("A<B<C>,D>.Run<__Canon>"), "A.Run");
        assert_eq!(without_arguments("A.Run"), "A.Run");
    }
}
