//! A recording as a time line.

mod gather;

use super::session::session;
use super::{Read, TraceError, TraceOptions, chains, container, names, scan};
use asynctriage_async_trace::markers::Key;
use asynctriage_async_trace::{
    AsyncTrace, Dispatcher, Family, FrameListId, Horizons, Recording, State, judge,
};
use asynctriage_report::timeline::{
    Timeline, TimelineMarker, TimelineOperation, TimelineSpan, TimelineState, TimelineThread,
};
use gather::{Gathered, Operation};
use rustc_hash::FxHashMap;

/// Operations that a page lists; those that have not ended come first.
const MAX_OPERATIONS: usize = 200_000;
/// Markers that a page shows.
const MAX_MARKERS: usize = 20_000;

/// The time line of a `.nettrace` file that is in memory, unpacked; with the application's markers when the options say
/// which these are.
///
/// # Errors
/// Those of [`trace()`](super::trace()).
pub fn timeline(file: &[u8], options: &TraceOptions) -> Result<Timeline, TraceError> {
    let (read, recording) = scan(file, options, Recording::new())?;
    let mut gathered = Gathered::new(read.header.frequency);
    let trace = (!recording.is_empty()).then(|| recording.finish_with(&mut gathered));
    let judgement = judge(trace.as_ref(), container(&read), &session(&read));
    let verdict = super::verdict(&judgement);
    let mut line = Timeline {
        verdict: format!("{}: {}", verdict.as_str(), super::words(&judgement)),
        ..Timeline::default()
    };
    if let Some(trace) = &trace {
        let mut draw = Draw {
            read: &read,
            trace,
            horizons: &judgement.horizons,
            line: &mut line,
            names: FxHashMap::default(),
            stacks: FxHashMap::default(),
        };
        gathered.finish();
        draw.all(gathered);
    }
    Ok(line)
}

struct Draw<'a, 't> {
    read: &'a Read,
    trace: &'a AsyncTrace<'t>,
    horizons: &'a Horizons,
    line: &'a mut Timeline,
    names: FxHashMap<String, u32>,
    stacks: FxHashMap<FrameListId, u32>,
}

impl<'a> Draw<'a, '_> {
    fn all(&mut self, mut gathered: Gathered) {
        for d in self.trace.dispatchers.iter().filter(|d| !d.state.is_end()) {
            gathered.not_ended(d);
        }
        let at = |ticks| gathered.nanos(ticks);
        self.line.end = gathered.end();
        self.line.horizon = self.horizons.proved.map(|h| at(h.time));
        self.line.likely_horizon = self.horizons.likely.map(|h| at(h.time));
        let lost = self.read.summary.lost_between.iter();
        self.line.lost = lost.map(|(from, to)| (at(*from), at(*to))).collect();
        let places = self.operations(&gathered);
        self.line.added_up = gathered.added_up;
        self.line.shortest = gathered.shortest;
        let place = |operation: Option<u32>| *places.get(usize::try_from(operation?).ok()?)?;
        self.line.spans = gathered
            .spans
            .iter()
            .map(|span| TimelineSpan {
                thread: span.thread,
                operation: place(span.operation),
                from: span.from,
                to: span.to,
                outcome: state(span.state),
                batch: span.batch,
                index: span.index,
            })
            .collect();
        self.markers(&gathered);
        let threads = gathered.into_threads();
        self.line.threads = threads
            .map(|(os_thread, busy)| TimelineThread { os_thread, busy })
            .collect();
    }

    /// Lists the operations; gives the place of each in the list.
    fn operations(&mut self, gathered: &Gathered) -> Vec<Option<u32>> {
        let all = &gathered.operations;
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|i| {
            all.get(*i).map(|o| {
                let d = self.open(o);
                let standing = d.map(|d| self.horizons.standing(d));
                (standing.is_none(), standing, o.from, o.key)
            })
        });
        let mut places = vec![None; all.len()];
        for (place, index) in order.iter().take(MAX_OPERATIONS).enumerate() {
            if let Some(slot) = places.get_mut(*index) {
                *slot = u32::try_from(place).ok();
            }
        }
        let parents = gathered.parents();
        for index in order.iter().take(MAX_OPERATIONS) {
            let Some(operation) = all.get(*index) else {
                continue;
            };
            let parent = parents.get(*index).copied().flatten();
            let parent = parent.and_then(|p| *places.get(p)?);
            let listed = self.operation(operation, parent);
            self.line.operations.push(listed);
        }
        let left = order.len().saturating_sub(MAX_OPERATIONS) as u64;
        self.line.operations_left_out = left.saturating_add(gathered.more_operations);
        places
    }

    fn open(&self, operation: &Operation) -> Option<&'a Dispatcher> {
        let (family, id) = operation.key;
        self.trace.find(family, id).filter(|d| !d.state.is_end())
    }

    fn operation(&mut self, o: &Operation, parent: Option<u32>) -> TimelineOperation {
        let (family, id) = o.key;
        let open = self.open(o);
        let frames = open.and_then(|d| d.frames).or(o.frames);
        let last = open.map_or(o.state, |d| d.state);
        let standing = open.map(|d| chains::standing(self.horizons.standing(d)));
        TimelineOperation {
            id,
            state_machine: family == Family::StateMachine,
            stack: frames.and_then(|list| self.stack(list)),
            state: state(last),
            standing: standing.unwrap_or_default(),
            from: o.from,
            is_created: o.is_created,
            ended: if open.is_some() { None } else { Some(o.to) },
            parent,
            activations: o.activations,
            busy: o.busy,
        }
    }

    fn stack(&mut self, list: FrameListId) -> Option<u32> {
        if let Some(known) = self.stacks.get(&list) {
            return Some(*known);
        }
        let frames = self.trace.frames.frames(list);
        let named = frames
            .iter()
            .map(|f| names::frame(&self.read.methods, *f).method);
        let numbers: Vec<u32> = named.filter_map(|name| self.name(name)).collect();
        let number = u32::try_from(self.line.stacks.len()).ok()?;
        self.line.stacks.push(numbers);
        self.stacks.insert(list, number);
        Some(number)
    }

    fn name(&mut self, name: String) -> Option<u32> {
        if let Some(known) = self.names.get(&name) {
            return Some(*known);
        }
        let number = u32::try_from(self.line.names.len()).ok()?;
        self.line.names.push(name.clone());
        self.names.insert(name, number);
        Some(number)
    }

    fn markers(&mut self, gathered: &Gathered) {
        for (key, marker) in &self.read.marked {
            if self.line.markers.len() >= MAX_MARKERS {
                self.line.markers_left_out = self.line.markers_left_out.saturating_add(1);
                continue;
            }
            let key = match key {
                Key::Text(text) => format!("a text of {} characters", text.chars().count()),
                other => other.to_string(),
            };
            self.line.markers.push(TimelineMarker {
                at: gathered.nanos(marker.time),
                thread: gathered.thread(marker.thread),
                text: format!("operation {key}, {}", marker.stage),
            });
        }
    }
}

fn state(state: State) -> TimelineState {
    match state {
        State::SuspendedAtCreate => TimelineState::SuspendedAtCreate,
        State::Suspended => TimelineState::Suspended,
        State::Running => TimelineState::Running,
        State::Completed => TimelineState::Completed,
        State::Faulted => TimelineState::Faulted,
        State::Unknown => TimelineState::Unknown,
    }
}
