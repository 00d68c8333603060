//! How much a recording can be relied on. There is no word for complete: batches have no numbers, so the last ones can be
//! missing without a trace.

use crate::account::AsyncTrace;
use crate::frames::cut_at;
use crate::horizon::{Horizons, Session};
use crate::wire::{Family, Kind};
use std::fmt;

/// The level of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No event of the async profiler.
    Empty,
    /// Its events hold nothing about chains.
    MetadataOnly,
    /// Something is missing, or cannot be read.
    Partial,
    /// Nothing is known to be missing up to the horizon.
    Bounded,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Empty,
        Self::MetadataOnly,
        Self::Partial,
        Self::Bounded,
    ];

    /// As in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "EMPTY",
            Self::MetadataOnly => "METADATA-ONLY",
            Self::Partial => "PARTIAL",
            Self::Bounded => "BOUNDED",
        }
    }

    /// What it means, and what to do.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Empty => {
                "no event of the async profiler: no chain suspended or went on while the session ran, the provider was not \
                 asked for with level 4 and keywords other than 0, or the runtime is older than .NET 11"
            }
            Self::MetadataOnly => {
                "the async profiler wrote nothing about chains: nothing suspended, the keywords are those of the other family, \
                 or the process ended before its buffers were flushed"
            }
            Self::Partial => "something is missing or cannot be read; what is shown was recorded",
            Self::Bounded => "nothing is known to be missing up to the horizon",
        }
    }

    /// What makes the next recording say more.
    #[must_use]
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Empty => Some(
                "a process that hangs as a whole records nothing: take a dump (runbook capture); else record with the provider \
                 System.Runtime.CompilerServices.AsyncProfilerEventSource:0x3FFFF:4",
            ),
            Self::MetadataOnly => Some(
                "record with the keywords 0x3FFFF, and flush the profiler or leave the process idle for 1.3 s before it ends",
            ),
            Self::Partial | Self::Bounded => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something about a recording that limits what may be concluded from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The file ends without the mark of its end.
    ContainerTruncated,
    /// Parts of the file make no sense and were skipped.
    ContainerDamaged,
    /// The file was packed, and fails the checks of its packing.
    PackedFault,
    /// Reading was ended before the end of the file.
    EndedEarly,
    /// Events are missing from the file.
    LostEvents,
    /// Batches of the async profiler were not believed.
    RejectedBatches,
    /// No metadata record: the table of record kinds is assumed.
    NoMetadata,
    /// Batches of an earlier session were delivered in this one.
    Leftovers,
    /// Chains were alive before the recording began.
    AttachedMidRun,
    /// Call stacks may be cut.
    CallstackCut,
    /// Chains lack pieces in the middle.
    ChainGap,
    /// More dispatchers than are followed.
    NotFollowed,
    /// Something was running when the recording ended.
    OpenAtEnd,
    /// The file names no methods of the code that was compiled before the session.
    NoRundown,
    /// No call stacks were recorded.
    NoCallstackRecords,
    /// No records of single methods.
    NoMethodRecords,
    /// State machines changed their ids.
    ClassicIdGaps,
}

impl Flag {
    /// All of them, those that make a recording partial first.
    pub const ALL: [Self; 17] = [
        Self::ContainerTruncated,
        Self::ContainerDamaged,
        Self::PackedFault,
        Self::EndedEarly,
        Self::LostEvents,
        Self::RejectedBatches,
        Self::NoMetadata,
        Self::Leftovers,
        Self::AttachedMidRun,
        Self::CallstackCut,
        Self::ChainGap,
        Self::NotFollowed,
        Self::OpenAtEnd,
        Self::NoRundown,
        Self::NoCallstackRecords,
        Self::NoMethodRecords,
        Self::ClassicIdGaps,
    ];

    /// As in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContainerTruncated => "container-truncated",
            Self::ContainerDamaged => "container-damaged",
            Self::PackedFault => "packed-fault",
            Self::EndedEarly => "ended-early",
            Self::LostEvents => "lost-events",
            Self::RejectedBatches => "rejected-batches",
            Self::NoMetadata => "no-metadata",
            Self::Leftovers => "leftovers",
            Self::AttachedMidRun => "attached-mid-run",
            Self::CallstackCut => "callstack-cut",
            Self::ChainGap => "chain-gap",
            Self::NotFollowed => "not-followed",
            Self::OpenAtEnd => "open-at-end",
            Self::NoRundown => "no-rundown",
            Self::NoCallstackRecords => "no-callstack-records",
            Self::NoMethodRecords => "no-method-records",
            Self::ClassicIdGaps => "classic-id-gaps",
        }
    }

    /// What it means.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ContainerTruncated => {
                "the file ends without the mark of its end: the process was killed or the file was cut; all whole blocks were read"
            }
            Self::ContainerDamaged => "parts of the file make no sense and were skipped",
            Self::PackedFault => {
                "the packed file has a wrong or missing checksum or length, or goes on behind its end: any part of it may be wrong"
            }
            Self::EndedEarly => {
                "reading was ended by a limit or by Ctrl-C before the end of the file: what it holds behind that is missing"
            }
            Self::LostEvents => "the process dropped events because the session's buffer was full",
            Self::RejectedBatches => {
                "batches contradict themselves or have a form that is not supported; none of their records was used"
            }
            Self::NoMetadata => {
                "the record that describes the format is missing; the format of .NET 11.0 was assumed, and every batch fits it"
            }
            Self::Leftovers => {
                "records of an earlier session came with this one; they are counted and not used"
            }
            Self::AttachedMidRun => {
                "the process ran before the recording began: when and by whom its chains were created is not in it, and those \
                 that have waited since are not in it at all"
            }
            Self::CallstackCut => {
                "call stacks reach the limit of 255 frames or of the profiler's buffer: outer frames may be missing"
            }
            Self::ChainGap => {
                "chains go on in another place than they stopped at, or without having stopped: records are missing between"
            }
            Self::NotFollowed => "more chains were alive than are followed",
            Self::OpenAtEnd => {
                "something was running when the recording ended, or the last buffer of its thread was not delivered"
            }
            Self::NoRundown => {
                "the file does not name the methods that were compiled before the session: such frames stay addresses"
            }
            Self::NoCallstackRecords => "no call stacks were recorded: chains have no frames",
            Self::NoMethodRecords => {
                "no records of single methods: which frame of a chain runs is not known"
            }
            Self::ClassicIdGaps => {
                "state machines have ids without a create record, or created twice: async iterators change their ids, and \
                 those alive before the recording have none"
            }
        }
    }

    /// What makes the next recording better.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::ContainerTruncated => {
                "stop the session before the process ends; with DOTNET_EventPipeOutputStreaming=1 a killed process leaves what was written"
            }
            Self::ContainerDamaged => "copy the file again and compare its size and hash",
            Self::PackedFault => {
                "test it with gzip -t or zstd -t where it was packed, and copy it again"
            }
            Self::EndedEarly => {
                "read it again with more --max-time and --max-memory, or 0 for no limit"
            }
            Self::LostEvents => {
                "record with a larger buffer (dotnet-trace --buffersize, DOTNET_EventPipeCircularMB) or fewer keywords"
            }
            Self::RejectedBatches => {
                "look at the reasons; a newer runtime needs a newer asynctriage"
            }
            Self::NoMetadata => "record from the start with a larger buffer",
            Self::Leftovers => "leave 30 s between two sessions of one process",
            Self::AttachedMidRun => {
                "record from the start (collect -- COMMAND), or take a dump as well: it has the chains that did nothing"
            }
            Self::CallstackCut => {
                "leave DOTNET_AsyncProfiler_EventBufferSize at its default; deeper chains than 255 need a dump"
            }
            Self::ChainGap => {
                "believe nothing behind the horizon; flush the profiler or leave the process idle for 1.3 s before the session stops"
            }
            Self::NotFollowed => "record for a shorter time",
            Self::OpenAtEnd => {
                "flush the profiler or leave the process idle for 1.3 s before the session stops; a chain that truly runs stays open"
            }
            Self::NoRundown => {
                "stop the session instead of killing the process, with rundown on; or record the methods as they are compiled \
                 (Microsoft-Windows-DotNETRuntime:0x10:5)"
            }
            Self::NoCallstackRecords => {
                "record with the keywords 0x3FFFF; state machines that were never resumed have no frames in any recording: take a dump"
            }
            Self::NoMethodRecords => "record with the keywords 0x3FFFF",
            Self::ClassicIdGaps => {
                "take counts of state machines as hints; chains with frames are as recorded"
            }
        }
    }

    /// Whether it makes a recording partial.
    #[must_use]
    pub const fn is_partial(self) -> bool {
        (self as u8) < (Self::OpenAtEnd as u8)
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the container says of its own completeness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The mark of the end is missing.
    pub truncated: bool,
    /// Parts that were skipped.
    pub damages: u64,
    /// The file was packed, and fails the checks of its packing.
    pub packed_fault: bool,
    /// Reading was ended before the end of the file.
    pub ended_early: bool,
    /// Events that are missing.
    pub lost: u64,
    /// Method events of the rundown.
    pub rundown: u64,
}

/// What may be concluded from a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The level.
    pub verdict: Verdict,
    /// What limits it, in the order of [`Flag::ALL`], with how often it was met.
    pub flags: Vec<(Flag, u64)>,
    /// Up to when it reaches.
    pub horizons: Horizons,
    /// Whether the process ran before the session began, so that chains from before may wait unseen; none when the
    /// recording does not show it.
    pub attached: Option<bool>,
}

/// Judges a recording; `trace` is none when the provider has no event.
#[must_use]
pub fn judge(trace: Option<&AsyncTrace<'_>>, container: Container, session: &Session) -> Judgement {
    let attached = |flag| u64::from(flag == Flag::AttachedMidRun && session.attached == Some(true));
    let flags: Vec<(Flag, u64)> = Flag::ALL
        .into_iter()
        .map(|flag| (flag, count(flag, trace, container).max(attached(flag))))
        .filter(|(_, count)| *count > 0)
        .collect();
    let verdict = match trace {
        None => Verdict::Empty,
        Some(trace) if !trace.has_transitions() && trace.rejected == 0 => Verdict::MetadataOnly,
        Some(_) if flags.iter().any(|(flag, _)| flag.is_partial()) => Verdict::Partial,
        Some(_) => Verdict::Bounded,
    };
    let horizons = trace.map_or_else(Horizons::default, |trace| Horizons::of(trace, session));
    Judgement {
        verdict,
        flags,
        attached: match session.attached {
            Some(known) => Some(known),
            None => seen_before(trace, &horizons).then_some(true),
        },
        horizons,
    }
}

/// Whether chains went on before the horizon that were not created in the recording: nothing is missing up to there.
fn seen_before(trace: Option<&AsyncTrace<'_>>, horizons: &Horizons) -> bool {
    let Some((trace, horizon)) = trace.zip(horizons.proved) else {
        return false;
    };
    let lowest = trace.lowest_created.unwrap_or(u64::MAX);
    trace.dispatchers.iter().any(|d| {
        // async iterators of state machines change their ids to higher ones
        let is_older = d.family == Family::RuntimeAsync || d.id < lowest;
        d.creates == 0 && is_older && d.first_resume.is_some_and(|t| t <= horizon.time)
    })
}

/// How often a flag was met; 0 is not at all.
fn count(flag: Flag, trace: Option<&AsyncTrace<'_>>, container: Container) -> u64 {
    match (flag, trace) {
        // where reading was ended, nothing is known of the file's end
        (Flag::ContainerTruncated, _) => (container.truncated && !container.ended_early).into(),
        (Flag::ContainerDamaged, _) => container.damages,
        (Flag::PackedFault, _) => container.packed_fault.into(),
        (Flag::EndedEarly, _) => container.ended_early.into(),
        (Flag::LostEvents, _) => container.lost,
        (_, None) => 0,
        (Flag::NoRundown, Some(_)) => (container.rundown == 0).into(),
        (Flag::RejectedBatches, Some(trace)) => trace.rejected,
        (Flag::Leftovers, Some(trace)) => trace.leftover_batches,
        (Flag::NotFollowed, Some(trace)) => trace.not_followed,
        (Flag::NoMetadata, Some(trace)) => (trace.metadata.is_empty() && trace.batches > 0).into(),
        (_, Some(trace)) => of_chains(flag, trace, container),
    }
}

fn of_chains(flag: Flag, trace: &AsyncTrace<'_>, container: Container) -> u64 {
    use crate::identities::Identity as I;
    let [runtime_async, _] = &trace.totals;
    let broken = |family, rules: &[I]| {
        let counts = rules
            .iter()
            .map(|rule| trace.identities.broken(family, *rule));
        counts.fold(0, u64::saturating_add)
    };
    match flag {
        Flag::AttachedMidRun => {
            // a create record can also be missing for these reasons, which have their own flags
            let explained = container.truncated
                || container.lost > 0
                || container.damages > 0
                || trace.rejected > 0;
            let without = runtime_async.total.saturating_sub(runtime_async.created);
            // ids come from a counter: who has a higher one than any that was created, was created later, in a buffer
            // that was not handed over
            let later = trace.dispatchers.iter().filter(|d| {
                d.family == Family::RuntimeAsync && d.creates == 0 && d.id > trace.highest_created
            });
            let lost = if trace.highest_created == 0 {
                0
            } else {
                later.count() as u64
            };
            if explained {
                0
            } else {
                without.saturating_sub(lost)
            }
        }
        Flag::CallstackCut => cut_callstacks(trace),
        Flag::ChainGap => {
            let rules = [
                I::NoOverlap,
                I::OnlySuspendedResumes,
                I::ResumeFrames,
                I::FirstFrames,
            ];
            let [orphans, _] = trace.orphans;
            broken(Family::RuntimeAsync, &rules).saturating_add(orphans)
        }
        Flag::OpenAtEnd => trace
            .contexts
            .values()
            .map(|c| c.open)
            .fold(0, u64::saturating_add),
        Flag::NoCallstackRecords => {
            (trace.has_transitions() && !trace.has(Kind::is_callstack)).into()
        }
        Flag::NoMethodRecords => (trace.has(Kind::is_resume) && !trace.has(Kind::is_method)).into(),
        _ => broken(Family::StateMachine, &[I::OneCreate, I::CreateFirst]),
    }
}

/// Call stack records that have as many frames as fit, so that there may have been more.
fn cut_callstacks(trace: &AsyncTrace<'_>) -> u64 {
    let limit = cut_at(trace.metadata.iter().map(|m| m.buffer_size).min());
    trace
        .frames
        .iter()
        .filter(|list| list.frames.len() >= limit)
        .map(|list| list.uses)
        .fold(0, u64::saturating_add)
}
