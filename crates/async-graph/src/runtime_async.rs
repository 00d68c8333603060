//! Chains of runtime-async methods (.NET 11): continuations inside one task.
//!
//! The task of such a chain keeps its innermost continuation as state object. That one is either a hand-made
//! continuation, which names what is awaited, or already a frame; from there each `Next` leads one frame outwards.
//! Continuations that have run keep their contents until they are collected, and may point into chains that live: only
//! what a task leads to counts.

use asynctriage_clr::{AwaitNumber, Gap, GapKind, NamedBy, ResumePoint, Runtime};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Frames of one task; recursion without end stops at the stack's end, far below.
const MAX_FRAMES: usize = 1 << 20;
const TASK_CONTINUATION: &str = "System.Runtime.CompilerServices.RuntimeAsyncTaskContinuation";
const SOURCE_CONTINUATION: &str =
    "System.Runtime.CompilerServices.AsyncHelpers+ValueTaskSourceContinuation";

/// Bits of Continuation.Flags (11.0.0).
mod flags {
    pub(super) const ON_SYNC_CONTEXT: u32 = 2;
    pub(super) const ON_SCHEDULER: u32 = 4;
    /// Where the number of the ExecutionContext's slot begins, and how wide it is.
    pub(super) const EXECUTION_CONTEXT: (u32, u32) = (4, 2);
    /// Likewise for the SynchronizationContext or TaskScheduler.
    pub(super) const CONTINUATION_CONTEXT: (u32, u32) = (6, 2);
    /// Likewise for the exception that the await may end with.
    pub(super) const EXCEPTION: (u32, u32) = (8, 3);
    /// Likewise for the result of the await.
    pub(super) const RESULT: (u32, u32) = (11, 21);
}

/// A suspended method.
#[derive(Clone, Debug)]
pub struct AsyncFrame {
    /// Its continuation.
    pub continuation: Addr,
    /// What it is called, with exact generic arguments where the continuation tells them.
    pub name: Arc<str>,
    /// Where it stands.
    pub point: Arc<ResumePoint>,
    /// Continuation.Flags.
    pub flags: u32,
    /// Where slot 0 of the continuation would be; the first in use is 1.
    pub slots: Addr,
    /// The ExecutionContext that it goes on with; `None` for the default one.
    pub execution_context: Option<Addr>,
    /// The await that the frame below tells, where the code names another one.
    pub by_callee: Option<u32>,
}

impl AsyncFrame {
    /// Whether the method is declared async. Methods that only pass a task on have no frame in the source's terms.
    #[must_use]
    pub fn is_async(&self) -> bool {
        self.point.is_async != Some(false)
    }

    /// Which await it stands at.
    #[must_use]
    pub fn await_number(&self) -> Option<AwaitNumber> {
        let by_callee = self.by_callee.map(AwaitNumber::Exact);
        by_callee.or(self.point.await_index)
    }

    /// The number of a slot of the continuation, as its flags count slots; `None` for another address.
    #[must_use]
    pub fn slot_number(&self, slot: Addr) -> Option<u64> {
        let from = slot.since(self.slots)?;
        from.checked_div(8).filter(|n| *n > 0)
    }

    /// Whether a slot of the continuation holds what the runtime needs to go on rather than a variable of the method.
    #[must_use]
    pub fn is_plumbing(&self, slot: Addr) -> bool {
        let Some(number) = self.slot_number(slot) else {
            return true;
        };
        let plumbing = [
            flags::EXECUTION_CONTEXT,
            flags::CONTINUATION_CONTEXT,
            flags::EXCEPTION,
            flags::RESULT,
        ];
        plumbing
            .iter()
            .any(|place| slot_index(self.flags, *place).map(u64::from) == Some(number))
    }
}

/// Where a resumption goes that is handed over and has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostedTo {
    /// To this SynchronizationContext.
    SyncContext(Addr),
    /// To this TaskScheduler.
    Scheduler(Addr),
}

/// What the chain of one task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A task: the slot that names it, and the task.
    Task(Addr, Addr),
    /// An IValueTaskSource: the slot that names it, and the source.
    Source(Addr, Addr),
    /// Nothing that the runtime knows: it was handed over to be resumed, or waits for an awaiter of another kind.
    Other,
}

impl Head {
    /// The slot that names what is awaited, and what that is.
    pub(crate) fn awaited(self) -> Option<(Addr, Addr)> {
        match self {
            Self::Task(slot, object) | Self::Source(slot, object) => Some((slot, object)),
            Self::Other => None,
        }
    }
}

/// The chain inside one task.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it waits for.
    pub head: Head,
    /// Its frames, innermost first, with those of methods that are not declared async.
    pub frames: Vec<AsyncFrame>,
    /// The context that its resumption goes to, as the innermost continuation says.
    pub goes_to: Option<PostedTo>,
    /// Where it should go on and names no continuation.
    pub(crate) breaks_at: Option<Addr>,
}

impl Operation {
    /// The frames of async methods, innermost first.
    pub fn async_frames(&self) -> impl DoubleEndedIterator<Item = &AsyncFrame> {
        self.frames.iter().filter(|f| f.is_async())
    }
}

/// What a task of runtime-async methods turned out to be.
#[derive(Clone, Debug)]
pub(crate) enum TaskState {
    Suspended(Operation),
    /// No continuation: its methods run now.
    Running,
    Rejected(&'static str),
}

/// Decodes a task that has not ended, from its state object.
pub(crate) fn decode(rt: &Runtime<'_>, task: Addr, state_object: Option<Addr>) -> TaskState {
    let Some(innermost) = state_object else {
        return TaskState::Running;
    };
    let Some(ty) = rt.type_of(innermost) else {
        return TaskState::Rejected("its continuation cannot be read");
    };
    let awaited = |field| {
        let slot = rt.field_addr(innermost, field)?;
        Some((slot, rt.memory().ptr(slot)?.non_null()?))
    };
    let head = match &*rt.definition_name(&ty) {
        TASK_CONTINUATION if rt.reference(innermost, "RuntimeAsyncTask") != Some(task) => {
            return TaskState::Rejected("its continuation belongs to another task");
        }
        TASK_CONTINUATION => awaited("Task").map(|(slot, task)| Head::Task(slot, task)),
        SOURCE_CONTINUATION => awaited("Source").map(|(slot, source)| Head::Source(slot, source)),
        _ if rt.is_dynamic_continuation(ty.mt) => Some(Head::Other),
        _ => None,
    };
    let Some(head) = head else {
        return TaskState::Rejected("its state object is no continuation in use");
    };
    let first = if head == Head::Other {
        Some(innermost)
    } else {
        rt.reference(innermost, "Next")
    };
    let frames = frames(rt, first);
    TaskState::Suspended(Operation {
        head,
        breaks_at: frames
            .last()
            .map_or(Some(innermost), |f| Some(f.continuation))
            .and_then(|c| broken_next(rt, c)),
        frames,
        goes_to: goes_to(rt, innermost),
    })
}

pub(crate) fn frames(rt: &Runtime<'_>, innermost: Option<Addr>) -> Vec<AsyncFrame> {
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    let mut next = innermost;
    while let Some(at) = next.filter(|a| out.len() < MAX_FRAMES && seen.insert(*a)) {
        out.extend(frame(rt, at));
        next = rt.reference(at, "Next");
    }
    out
}

/// The `Next` of a continuation when it names something that is none.
fn broken_next(rt: &Runtime<'_>, continuation: Addr) -> Option<Addr> {
    let slot = rt.field_addr(continuation, "Next")?;
    let next = rt.memory().ptr(slot)?.non_null()?;
    (!rt.is_continuation(next)).then_some(slot)
}

/// `None` for a continuation without a method: one that only ends the chain.
fn frame(rt: &Runtime<'_>, continuation: Addr) -> Option<AsyncFrame> {
    let info = rt.reference(continuation, "ResumeInfo")?;
    let flags = rt.field_u32(continuation, "Flags")?;
    let point = rt.resume_point(info);
    Some(AsyncFrame {
        continuation,
        name: rt.suspended_method_name(&point, continuation),
        point,
        flags,
        slots: rt.field_addr(continuation, "Flags")?,
        execution_context: slot(rt, continuation, flags, flags::EXECUTION_CONTEXT),
        by_callee: None,
    })
}

/// The reference in a slot whose number stands in the flags. Slots count from the flags on; 0 means that there is none.
fn slot(rt: &Runtime<'_>, continuation: Addr, flags: u32, place: (u32, u32)) -> Option<Addr> {
    let index = slot_index(flags, place)?;
    let base = rt.field_addr(continuation, "Flags")?;
    rt.memory().ptr(base.element(index.into(), 8))?.non_null()
}

/// The number of a slot that the flags name; `None` when there is no such slot.
fn slot_index(flags: u32, (from, bits): (u32, u32)) -> Option<u32> {
    let mask = !(u32::MAX.checked_shl(bits)?);
    Some(flags.checked_shr(from)? & mask).filter(|index| *index != 0)
}

fn goes_to(rt: &Runtime<'_>, innermost: Addr) -> Option<PostedTo> {
    let flags = rt.field_u32(innermost, "Flags")?;
    let context = rt
        .reference(innermost, "ContinuationContext")
        .or_else(|| slot(rt, innermost, flags, flags::CONTINUATION_CONTEXT))?;
    match flags {
        f if f & flags::ON_SYNC_CONTEXT != 0 => Some(PostedTo::SyncContext(context)),
        f if f & flags::ON_SCHEDULER != 0 => Some(PostedTo::Scheduler(context)),
        _ => None,
    }
}

/// Says which images lack what names their methods: one gap for each.
pub(crate) fn unnamed<'f>(all: impl Iterator<Item = &'f AsyncFrame>) -> Vec<Gap> {
    let mut frames: BTreeMap<&str, u64> = BTreeMap::new();
    for frame in all {
        if frame.point.named_by == NamedBy::Nothing {
            let image = frame.point.name.split('+').next().unwrap_or_default();
            let count = frames.entry(image).or_default();
            *count = count.saturating_add(1);
        }
    }
    let gap = |(image, count): (&str, u64)| {
        Gap {
        kind: GapKind::UnnamedFrames,
        place: image.to_owned(),
        why: format!(
            "{count} suspended runtime-async methods have no name: the data of the image is not in the dump, and no list of suspension points knows this build of it"
        ),
        remedy:
            "run `asynctriage symbols add DIR` with the folder of the runtime's assemblies, bring the image with --module-path, or take a full dump (`dotnet-dump collect --type Full`)"
                .into(),
    }
    };
    frames.into_iter().map(gap).collect()
}
