//! Events of the application's own, put in order per operation.
//!
//! An operation is what the application calls one: it is named by a field of its events, its [`Key`]. That number or text
//! has nothing to do with any id of the runtime; nothing here joins the two.

mod spec;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use asynctriage_nettrace::{Event, EventKind, Value};
use rustc_hash::FxHashSet;

pub use spec::{MarkerSpec, SpecError, StageOf};

/// What the application names an operation by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A whole number.
    Number(i128),
    /// Text.
    Text(String),
    /// A GUID as it is written.
    Guid(String),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) | Self::Guid(text) => text.fmt(f),
        }
    }
}

/// How far an operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// It began.
    Begin,
    /// A number that grows.
    At(i64),
    /// It ended.
    End,
}

impl std::str::FromStr for Stage {
    type Err = std::num::ParseIntError;

    /// `begin`, `end` or a number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "begin" => Ok(Self::Begin),
            "end" => Ok(Self::End),
            number => number.parse().map(Self::At),
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Begin => f.write_str("begin"),
            Self::At(number) => number.fmt(f),
            Self::End => f.write_str("end"),
        }
    }
}

/// A marker of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marker {
    /// Time in ticks.
    pub time: u64,
    /// Where it stands in the file.
    pub offset: u64,
    /// How far the operation had come.
    pub stage: Stage,
    /// Operating system's id of the thread.
    pub thread: u64,
}

/// An operation whose markers are not in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// Which operation.
    pub key: Key,
    /// Its first markers, in the order of time.
    pub markers: Vec<Marker>,
    /// What is wrong.
    pub why: Disorder,
}

/// Why markers of an operation are not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disorder {
    /// A stage does not come behind the one before.
    Backwards,
    /// The beginning is missing, although other operations have one.
    NoBegin,
    /// The end is missing, although other operations have one: it had not ended when the recording did, or was lost.
    NoEnd,
    /// A stage that was expected next is missing.
    Missing(Stage),
    /// A stage comes where it is not expected.
    Unexpected(Stage),
}

impl std::fmt::Display for Disorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Backwards => f.write_str("a stage does not come behind the one before"),
            Self::NoBegin => f.write_str("it does not begin with the first stage"),
            Self::NoEnd => f.write_str("it does not end with the last stage"),
            Self::Missing(stage) => write!(f, "{stage} is missing"),
            Self::Unexpected(stage) => write!(f, "{stage} is not expected there"),
        }
    }
}

/// The application's operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markers {
    /// Events of the provider.
    pub events: u64,
    /// Those without a field that names an operation.
    pub without_key: u64,
    /// Operations.
    pub groups: u64,
    /// Operations all of whose markers are in order, from the beginning to the end.
    pub ordered: u64,
    /// Operations with markers on more than one thread.
    pub more_than_one_thread: u64,
    /// The first operations that are not in order.
    pub out_of_order: Vec<OutOfOrder>,
    /// Events beyond the bound of what is kept.
    pub dropped: u64,
    /// The sequences of stages that operations have, and how many have each, the most frequent first.
    pub sequences: Vec<(Vec<Stage>, u64)>,
    /// All events of the provider by name, or by number where the metadata has no name.
    pub seen: BTreeMap<String, u64>,
    /// Events that the contract names and the recording has not.
    pub absent: Vec<String>,
}

/// Markers that are kept.
const MAX_MARKERS: u64 = 1 << 26;
/// Operations out of order that are told, and markers of each.
const MAX_TOLD: usize = 10;
const MAX_TOLD_MARKERS: usize = 32;
/// Sequences that are told, and stages of each.
const MAX_SEQUENCES: usize = 10;
/// Sequences that are counted one by one.
const MAX_COUNTED: usize = 10_000;
/// Events of the provider that are told by name.
const MAX_SEEN: usize = 1_000;

/// Collects the events of one provider.
#[derive(Clone, Debug)]
pub struct MarkerRecording {
    spec: MarkerSpec,
    expected: Option<Vec<Stage>>,
    groups: BTreeMap<Key, Vec<Marker>>,
    markers: Markers,
}

impl MarkerRecording {
    /// Nothing yet.
    pub fn new(spec: MarkerSpec) -> Self {
        Self {
            spec,
            expected: None,
            groups: BTreeMap::new(),
            markers: Markers::default(),
        }
    }

    /// Operations are in order when they have exactly these stages.
    #[must_use]
    pub fn expecting(mut self, stages: Option<Vec<Stage>>) -> Self {
        self.expected = stages;
        self
    }

    /// All markers so far, those of an operation together.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Marker)> {
        self.groups
            .iter()
            .flat_map(|(key, markers)| markers.iter().map(move |marker| (key, marker)))
    }

    /// Takes the next event; `false` when it is of another provider, or of those that the contract does not name.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        if event.kind.provider != self.spec.provider {
            return false;
        }
        self.see(&event.kind);
        let Some(stage_of) = self.spec.stage_of(&event.kind) else {
            return false;
        };
        let markers = &mut self.markers;
        markers.events = markers.events.saturating_add(1);
        if markers.events > MAX_MARKERS {
            markers.dropped = markers.dropped.saturating_add(1);
            return true;
        }
        let marker = |stage| Marker {
            time: event.timestamp,
            offset: event.offset,
            stage,
            thread: event.thread,
        };
        match key(event).zip(stage(event, &stage_of)) {
            Some((key, stage)) => match self.groups.entry(key) {
                Entry::Occupied(group) => group.into_mut().push(marker(stage)),
                Entry::Vacant(group) => drop(group.insert(vec![marker(stage)])),
            },
            None => markers.without_key = markers.without_key.saturating_add(1),
        }
        true
    }

    fn see(&mut self, kind: &EventKind) {
        let seen = &mut self.markers.seen;
        if let Some(count) = seen.get_mut(&kind.name) {
            *count = count.saturating_add(1);
        } else if seen.len() < MAX_SEEN {
            let name = match kind.name.as_str() {
                "" => kind.id.to_string(),
                name => name.to_owned(),
            };
            let count = seen.entry(name).or_default();
            *count = count.saturating_add(1);
            self.spec.note(kind);
        }
    }

    /// The operations when there are no more events.
    pub fn finish(mut self) -> Markers {
        let mut markers = self.markers;
        markers.absent = self.spec.absent();
        let mut sequences: BTreeMap<Vec<Stage>, u64> = BTreeMap::new();
        for group in self.groups.values_mut() {
            group.sort_unstable();
        }
        let any = |stage| move |group: &Vec<Marker>| group.iter().any(|m| m.stage == stage);
        let begins = self.groups.values().any(any(Stage::Begin));
        let ends = self.groups.values().any(any(Stage::End));
        for (key, group) in self.groups {
            for operation in split(&group) {
                markers.groups = markers.groups.saturating_add(1);
                let threads: FxHashSet<_> = operation.iter().map(|m| m.thread).collect();
                if threads.len() > 1 {
                    markers.more_than_one_thread = markers.more_than_one_thread.saturating_add(1);
                }
                let stages: Vec<Stage> = operation.iter().map(|m| m.stage).collect();
                let why = match &self.expected {
                    Some(expected) => unlike(&stages, expected),
                    None => disorder(operation, begins, ends),
                };
                if sequences.len() < MAX_COUNTED || sequences.contains_key(&stages) {
                    let count = sequences.entry(stages).or_default();
                    *count = count.saturating_add(1);
                }
                match why {
                    None => markers.ordered = markers.ordered.saturating_add(1),
                    Some(why) if markers.out_of_order.len() < MAX_TOLD => {
                        markers.out_of_order.push(OutOfOrder {
                            key: key.clone(),
                            markers: operation.iter().take(MAX_TOLD_MARKERS).copied().collect(),
                            why,
                        });
                    }
                    Some(_) => {}
                }
            }
        }
        let mut sequences: Vec<_> = sequences.into_iter().collect();
        sequences.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        sequences.truncate(MAX_SEQUENCES);
        for (stages, _) in &mut sequences {
            stages.truncate(MAX_TOLD_MARKERS);
        }
        markers.sequences = sequences;
        markers
    }
}

/// A key that is used again behind an end is another operation.
fn split(group: &[Marker]) -> impl Iterator<Item = &[Marker]> {
    group.chunk_by(|before, next| !(before.stage == Stage::End && next.stage == Stage::Begin))
}

/// The first difference from what is expected.
fn unlike(stages: &[Stage], expected: &[Stage]) -> Option<Disorder> {
    let common = stages
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    let (is, should) = (stages.get(common), expected.get(common));
    match (is, should) {
        (None, None) => None,
        (None, Some(stage)) => Some(Disorder::Missing(*stage)),
        // what is expected next and comes nowhere is missing; else this one is out of place
        (Some(_), Some(stage)) if !stages.contains(stage) => Some(Disorder::Missing(*stage)),
        (Some(stage), _) => Some(Disorder::Unexpected(*stage)),
    }
}

fn disorder(operation: &[Marker], begins: bool, ends: bool) -> Option<Disorder> {
    let stages = || operation.iter().map(|m| m.stage);
    if begins && stages().next() != Some(Stage::Begin) {
        return Some(Disorder::NoBegin);
    }
    if !stages().zip(stages().skip(1)).all(|(a, b)| a < b) {
        return Some(Disorder::Backwards);
    }
    (ends && stages().next_back() != Some(Stage::End)).then_some(Disorder::NoEnd)
}

/// The first field, when it is of a kind that can name something.
fn key(event: &Event<'_>) -> Option<Key> {
    let (_, value) = event.values().next()?;
    Some(match value {
        Value::Signed(number) => Key::Number(number.into()),
        Value::Unsigned(number) => Key::Number(number.into()),
        Value::Text(text) => Key::Text(text.to_string()),
        Value::Guid(_) => Key::Guid(value.to_string()),
        _ => return None,
    })
}

fn stage(event: &Event<'_>, stage_of: &StageOf) -> Option<Stage> {
    Some(match stage_of {
        StageOf::Is(stage) => *stage,
        StageOf::Field(name) => Stage::At(event.value(name)?.as_i64()?),
        StageOf::SecondField => {
            let (_, value) = event.values().nth(1)?;
            Stage::At(value.as_i64()?)
        }
    })
}

/// What an event stands for when nobody has said it: by its opcode, its name, its second field, its number.
fn usual_stage(kind: &EventKind) -> StageOf {
    let is = |opcode: u8, words: &[&str]| {
        kind.opcode == Some(opcode) || words.iter().any(|word| kind.name.ends_with(word))
    };
    if is(1, &["Begin", "Start", "Started"]) {
        return StageOf::Is(Stage::Begin);
    }
    if is(2, &["End", "Stop", "Stopped", "Finished"]) {
        return StageOf::Is(Stage::End);
    }
    use asynctriage_nettrace::FieldType::{Signed, Unsigned};
    match kind.fields.get(1).map(|field| &field.kind) {
        Some(Signed(_) | Unsigned(_)) => StageOf::SecondField,
        _ => StageOf::Is(Stage::At(kind.id.into())),
    }
}

#[cfg(test)]
mod tests;
