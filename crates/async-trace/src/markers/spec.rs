//! The contract of an application's markers: `PROVIDER[:EVENT=STAGE,...]`.

use std::str::FromStr;

use asynctriage_nettrace::EventKind;

use super::{Stage, usual_stage};

/// Where the stage of an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageOf {
    /// The event is this stage.
    Is(Stage),
    /// In the field of that name.
    Field(String),
    /// In the second field.
    SecondField,
}

/// What the events of a provider mean.
///
/// The first field of each names the operation. Without a list of events, an event that begins or ends something is
/// known by its opcode or its name (`OrderStart`, `Begin`, `RequestStop`); of the others the second field is the stage,
/// when it is a whole number, and else the number of the event. With a list, events are named by name or number, each
/// with a stage: `begin`, `end`, a number, or the name of the field that has it; other events are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerSpec {
    /// Name of the provider.
    pub provider: String,
    /// Events by name or number; empty: all, in the usual way.
    pub events: Vec<(String, StageOf)>,
    /// Which of them the recording has.
    met: Vec<bool>,
}

/// Why a contract is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Nothing before the colon.
    #[error("the name of the provider is missing; write PROVIDER or PROVIDER:EVENT=STAGE,...")]
    NoProvider,
    /// An entry without an event or without a stage.
    #[error("`{0}` is not EVENT=STAGE; a stage is begin, end, a number, or the name of a field")]
    BadEntry(String),
}

impl MarkerSpec {
    /// Where an event has its stage; `None` for an event that the list leaves out.
    pub(super) fn stage_of(&self, kind: &EventKind) -> Option<StageOf> {
        if self.events.is_empty() {
            return Some(usual_stage(kind));
        }
        let entry = self.events.iter().find(|(event, _)| is_meant(event, kind));
        entry.map(|(_, stage)| stage.clone())
    }

    /// The recording has an event of that kind.
    pub(super) fn note(&mut self, kind: &EventKind) {
        self.met.resize(self.events.len(), false);
        for ((event, _), met) in self.events.iter().zip(&mut self.met) {
            *met |= is_meant(event, kind);
        }
    }

    /// Events of the list that the recording has not.
    pub(super) fn absent(&self) -> Vec<String> {
        let met = self.met.iter().copied().chain(std::iter::repeat(false));
        let events = self.events.iter().zip(met);
        events
            .filter(|(_, met)| !met)
            .map(|((event, _), _)| event.clone())
            .collect()
    }
}

fn is_meant(event: &str, kind: &EventKind) -> bool {
    event == kind.name || event.parse() == Ok(kind.id)
}

impl FromStr for MarkerSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (provider, list) = text.split_once(':').unwrap_or((text, ""));
        if provider.is_empty() {
            return Err(SpecError::NoProvider);
        }
        let entries = list.split(',').filter(|entry| !entry.is_empty());
        Ok(Self {
            provider: provider.to_owned(),
            events: entries.map(entry).collect::<Result<_, _>>()?,
            met: Vec::new(),
        })
    }
}

fn entry(text: &str) -> Result<(String, StageOf), SpecError> {
    let bad = || SpecError::BadEntry(text.to_owned());
    let (event, stage) = text.split_once('=').ok_or_else(bad)?;
    if event.is_empty() || stage.is_empty() {
        return Err(bad());
    }
    let stage = match stage {
        "begin" => StageOf::Is(Stage::Begin),
        "end" => StageOf::Is(Stage::End),
        other => match other.parse() {
            Ok(number) => StageOf::Is(Stage::At(number)),
            Err(_) => StageOf::Field(other.to_owned()),
        },
    };
    Ok((event.to_owned(), stage))
}
