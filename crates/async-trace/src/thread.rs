//! What runs on one thread context: a stack of activations for each family, told from the records in their order.

use crate::batch::Record;
use crate::books::Books;
use crate::dispatchers::{Dispatchers, Moment, State};
use crate::frames::FrameListId;
use crate::identities::{Breach, Identity};
use crate::spans::Span;
use crate::wire::{Family, Kind};

/// Activations that one thread may nest; deeper ones are not followed. A thread's own stack ends long before.
const DEEPEST: usize = 4_096;

/// From a resume to the next suspension or end at the same level.
#[derive(Clone, Debug)]
struct Activation {
    family: Family,
    dispatcher: u64,
    serial: u64,
    began: Moment,
    /// Stands directly behind a reset: a replay of what ran there before the session, or the first of a new thread.
    behind_reset: bool,
    frames: Option<FrameListId>,
    appended: u32,
    resumed: u32,
    completed: u32,
    unwound: u32,
    unwinds: u32,
    suspend_frames: Option<FrameListId>,
    expected: Option<Expected>,
    /// The last record of it was an unwind: an end now means that the exception left the chain.
    unwound_last: bool,
}

/// The rule that says what the frames of an activation must be, those frames, and when they were recorded.
type Expected = (Identity, Option<FrameListId>, u64);

impl Activation {
    /// Frames that have ended.
    fn ended_frames(&self) -> u32 {
        self.completed.saturating_add(self.unwound)
    }

    fn span(&self, state: State, ended: Option<Moment>, dispatchers: &mut Dispatchers) -> Span {
        let known = dispatchers.known(self.family, self.dispatcher);
        Span {
            family: self.family,
            dispatcher: self.dispatcher,
            created: known.as_ref().and_then(|d| d.created).map(|m| m.time),
            parent: known.map_or(0, |d| d.parent),
            frames: self.frames,
            began: self.began,
            ended,
            state,
        }
    }

    fn breach(&self, identity: Identity, at: Moment) -> Breach {
        Breach {
            identity,
            family: self.family,
            dispatcher: self.dispatcher,
            time: Some(at.time),
            record: Some(at.record),
        }
    }
}

/// A thread context.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    stacks: [Vec<Activation>; 2],
    /// Whether records say where they began.
    began_with_reset: bool,
    /// Only resumes have followed the last reset.
    behind_reset: bool,
    /// Whether it holds any record of a transition.
    pub(crate) has_transitions: bool,
    /// When its last record was written.
    last: u64,
}

impl Thread {
    /// Follows one record. Those of a thread must come in their order, those of different threads by their times.
    pub(crate) fn record(&mut self, record: &Record, at: Moment, books: &mut Books<'_>) {
        let Some(kind) = record.kind else { return };
        if let Some(id) = record.frames {
            books.frames.used(id);
        }
        let Some(family) = kind.family() else {
            if kind == Kind::ResetAsyncThreadContext {
                self.clear(at, books);
                self.began_with_reset = true;
                self.behind_reset = true;
            }
            self.last = at.time;
            return;
        };
        if !self.has_transitions {
            self.has_transitions = true;
            let breach = Breach {
                identity: Identity::ResetFirst,
                family,
                dispatcher: 0,
                time: Some(at.time),
                record: Some(at.record),
            };
            books.identities.check(self.began_with_reset, breach);
        }
        self.transition(kind, family, record, at, books);
        self.last = at.time;
    }

    fn transition(
        &mut self,
        kind: Kind,
        family: Family,
        record: &Record,
        at: Moment,
        books: &mut Books<'_>,
    ) {
        use Kind as K;
        let id = record.dispatcher;
        match kind {
            K::ResumeRuntimeAsyncContext | K::ResumeStateMachineAsyncContext => {
                return self.resume(family, id, at, books);
            }
            K::ResumeRuntimeAsyncCallstack | K::ResumeStateMachineAsyncCallstack => {
                return self.resume_frames(family, record, at, books);
            }
            _ => self.behind_reset = false,
        }
        match kind {
            K::CreateRuntimeAsyncContext | K::CreateStateMachineAsyncContext => {
                create(family, record, at, books);
            }
            K::CreateRuntimeAsyncCallstack => create_frames(record, at, books),
            K::SuspendRuntimeAsyncCallstack => self.suspend_frames(record, at, books),
            K::SuspendRuntimeAsyncContext | K::SuspendStateMachineAsyncContext => {
                self.end(family, State::Suspended, at, books);
            }
            K::CompleteRuntimeAsyncContext | K::CompleteStateMachineAsyncContext => {
                self.end(family, State::Completed, at, books);
            }
            _ => self.method(kind, family, record, at, books),
        }
    }

    fn resume(&mut self, family: Family, id: u64, at: Moment, books: &mut Books<'_>) {
        let behind_reset = self.behind_reset;
        books.serial = books.serial.saturating_add(1);
        let serial = books.serial;
        let mut expected = None;
        if let Some(d) = books.dispatchers.get(family, id, &mut books.identities) {
            // what ran on when what the profiler is asked for changed is told once more
            let is_replay = behind_reset && d.state == State::Unknown;
            let identities = &mut books.identities;
            if d.resumes > 0 {
                let overlaps = d.open > 0;
                identities.check(!overlaps, d.breach(Identity::NoOverlap, at));
                let mut holds = !overlaps;
                if !overlaps && !behind_reset {
                    holds = d.state == State::Suspended;
                    identities.check(holds, d.breach(Identity::OnlySuspendedResumes, at));
                }
                if overlaps {
                    // one end that is missing is one fault, however often it is resumed since
                    (d.open, d.forgotten) = (0, serial.saturating_sub(1));
                }
                if !holds && family == Family::RuntimeAsync {
                    books.gaps.note(at.time, d.last);
                }
            } else if d.creates > 0 {
                identities.check(true, d.breach(Identity::CreateFirst, at));
            }
            if family == Family::RuntimeAsync {
                expected = match d.state {
                    State::SuspendedAtCreate if d.frames.is_some() => {
                        Some((Identity::FirstFrames, d.frames, d.last))
                    }
                    State::Suspended => Some((Identity::ResumeFrames, d.frames, d.last)),
                    _ => None,
                };
            }
            d.many_threads |= d.resumed.is_some_and(|last| last.os_thread != at.os_thread);
            if !is_replay {
                d.resumes = d.resumes.saturating_add(1);
                (d.resumed, d.last) = (Some(at), at.time);
            }
            d.first_resume = d.first_resume.or(Some(at.time));
            d.open = d.open.saturating_add(1);
            (d.serial, d.state) = (serial, State::Running);
            (d.frames, d.ended_frames) = (None, 0);
        }
        self.push(family, id, serial, at, expected);
    }

    fn push(
        &mut self,
        family: Family,
        dispatcher: u64,
        serial: u64,
        began: Moment,
        expected: Option<Expected>,
    ) {
        let behind_reset = self.behind_reset;
        let Some(stack) = self.stacks.get_mut(family.index()) else {
            return;
        };
        if stack.len() < DEEPEST {
            stack.push(Activation {
                family,
                dispatcher,
                serial,
                began,
                behind_reset,
                frames: None,
                appended: 0,
                resumed: 0,
                completed: 0,
                unwound: 0,
                unwinds: 0,
                suspend_frames: None,
                expected,
                unwound_last: false,
            });
        }
    }

    fn top(&mut self, family: Family) -> Option<&mut Activation> {
        self.stacks.get_mut(family.index())?.last_mut()
    }

    fn resume_frames(
        &mut self,
        family: Family,
        record: &Record,
        at: Moment,
        books: &mut Books<'_>,
    ) {
        let fits = |a: &Activation| a.dispatcher == record.dispatcher && a.frames.is_none();
        if !self.top(family).is_some_and(|a| fits(a)) {
            // its resume record is missing, or was not asked for
            self.resume(family, record.dispatcher, at, books);
        }
        if let Some(activation) = self.top(family) {
            activation.frames = record.frames;
        }
    }

    fn suspend_frames(&mut self, record: &Record, at: Moment, books: &mut Books<'_>) {
        let family = Family::RuntimeAsync;
        match self.top(family) {
            Some(activation) if activation.dispatcher == record.dispatcher => {
                activation.suspend_frames = record.frames;
                activation.unwound_last = false;
            }
            // its resume is missing; nothing of it runs here any more
            _ => books.orphan(family, at, self.last),
        }
    }

    fn method(
        &mut self,
        kind: Kind,
        family: Family,
        record: &Record,
        at: Moment,
        books: &mut Books<'_>,
    ) {
        let last = self.last;
        let Some(activation) = self.top(family) else {
            return books.orphan(family, at, last);
        };
        activation.unwound_last = false;
        let more = |n: &mut u32, by: u32| *n = n.saturating_add(by);
        match kind {
            Kind::ResumeRuntimeAsyncMethod | Kind::ResumeStateMachineAsyncMethod => {
                more(&mut activation.resumed, 1);
            }
            Kind::CompleteRuntimeAsyncMethod | Kind::CompleteStateMachineAsyncMethod => {
                more(&mut activation.completed, 1);
            }
            Kind::UnwindRuntimeAsyncException | Kind::UnwindStateMachineAsyncException => {
                more(&mut activation.unwound, record.unwound);
                more(&mut activation.unwinds, 1);
                activation.unwound_last = true;
            }
            _ => {
                let count = record.frames.map_or(0, |id| books.frames.frames(id).len());
                more(
                    &mut activation.appended,
                    u32::try_from(count).unwrap_or(u32::MAX),
                );
                if activation.dispatcher != record.dispatcher {
                    books.orphan(family, at, last);
                }
            }
        }
    }

    /// The innermost activation ends.
    fn end(&mut self, family: Family, how: State, at: Moment, books: &mut Books<'_>) {
        let popped = self.stacks.get_mut(family.index()).and_then(Vec::pop);
        let Some(activation) = popped else {
            return books.orphan(family, at, self.last);
        };
        books.activations.add(family, how);
        check(&activation, how, at, books);
        let escaped =
            how == State::Completed && family == Family::RuntimeAsync && activation.unwound_last;
        let state = if escaped { State::Faulted } else { how };
        let dispatchers = &mut books.dispatchers;
        books
            .spans
            .add(|| activation.span(state, Some(at), dispatchers));
        close(&activation, state, at, books);
    }

    /// Activations that have not ended.
    pub(crate) fn open(&self) -> u64 {
        self.stacks
            .iter()
            .fold(0, |sum, stack| sum.saturating_add(stack.len() as u64))
    }

    /// All activations end without anyone knowing how.
    pub(crate) fn clear(&mut self, at: Moment, books: &mut Books<'_>) {
        for family in Family::ALL {
            while self.top(family).is_some() {
                self.end(family, State::Unknown, at, books);
            }
        }
    }

    /// The recording ends; what runs goes on running.
    pub(crate) fn finish(&mut self, books: &mut Books<'_>) {
        for activation in self.stacks.iter_mut().flat_map(std::mem::take) {
            let family = activation.family;
            books.activations.add(family, State::Running);
            check(&activation, State::Running, activation.began, books);
            overlapped(&activation, State::Running, activation.began, books);
            let dispatchers = &mut books.dispatchers;
            let span = || activation.span(State::Running, None, dispatchers);
            books.spans.add(span);
            let known = books.dispatchers.known(family, activation.dispatcher);
            if let Some(d) = known.filter(|d| d.serial == activation.serial) {
                d.frames = activation.frames;
                d.ended_frames = activation.ended_frames();
            }
        }
    }
}

fn create(family: Family, record: &Record, at: Moment, books: &mut Books<'_>) {
    let id = record.dispatcher;
    let depth = books.dispatchers.depth_below(record.parent, (family, id));
    let Some(d) = books.dispatchers.get(family, id, &mut books.identities) else {
        return;
    };
    if d.creates == 0 {
        if d.resumes > 0 {
            let breach = d.breach(Identity::CreateFirst, at);
            books.identities.check(false, breach);
        }
        (d.created, d.parent, d.depth) = (Some(at), record.parent, depth);
        d.last = d.last.max(at.time);
    }
    d.creates = d.creates.saturating_add(1);
    books.lowest_created = Some(books.lowest_created.map_or(id, |lowest| lowest.min(id)));
    if family == Family::RuntimeAsync {
        books.highest_created = books.highest_created.max(id);
    }
}

fn create_frames(record: &Record, at: Moment, books: &mut Books<'_>) {
    let family = Family::RuntimeAsync;
    let known = books.dispatchers.known(family, record.dispatcher);
    if known.is_none_or(|d| d.creates == 0) {
        // its context record is missing, or was not asked for; this one says the same
        create(family, record, at, books);
    }
    let known = books.dispatchers.known(family, record.dispatcher);
    if let Some(d) = known.filter(|d| d.resumes == 0) {
        d.frames = record.frames;
    }
}

/// What the end of an activation says of its dispatcher.
fn close(activation: &Activation, state: State, at: Moment, books: &mut Books<'_>) {
    let (family, id) = (activation.family, activation.dispatcher);
    overlapped(activation, state, at, books);
    let Some(d) = books.dispatchers.known(family, id) else {
        return;
    };
    if activation.serial > d.forgotten {
        d.open = d.open.saturating_sub(1);
    }
    // an older activation of the same dispatcher may end after the next began (state machines)
    if d.serial == activation.serial {
        d.state = state;
        d.stopped = Some(at);
        if state != State::Unknown {
            d.last = at.time;
        }
        d.ended_frames = activation.ended_frames();
        d.frames = match (family, state) {
            (Family::RuntimeAsync, State::Suspended) => activation.suspend_frames,
            _ => activation.frames,
        };
    }
    if state.is_end() {
        books.dispatchers.fold(family, id, &mut books.identities);
    }
}

/// An activation ends after its dispatcher was resumed again: that was right when it suspended, and its end only came
/// late.
fn overlapped(activation: &Activation, how: State, at: Moment, books: &mut Books<'_>) {
    let known = books
        .dispatchers
        .known(activation.family, activation.dispatcher);
    if known.is_none_or(|d| activation.serial <= d.forgotten) {
        let breach = activation.breach(Identity::OnlySuspendedResumes, at);
        books.identities.check(how == State::Suspended, breach);
    }
}

/// Whether an activation runs the frames that its dispatcher had suspended with.
fn check_frames(activation: &Activation, books: &mut Books<'_>) {
    let Some((rule, expected, since)) = activation.expected else {
        return;
    };
    let at = activation.began;
    let cut_at = books.cut_at;
    let holds = match (activation.frames, expected) {
        (Some(frames), Some(expected)) => {
            frames == expected || books.frames.may_be_same(frames, expected, cut_at)
        }
        (frames, expected) => frames == expected,
    };
    books.identities.check(holds, activation.breach(rule, at));
    if !holds {
        books.gaps.note(at.time, since);
    }
}

/// The rules about one activation.
fn check(activation: &Activation, how: State, at: Moment, books: &mut Books<'_>) {
    check_frames(activation, books);
    let Some(list) = activation.frames.and_then(|id| books.frames.get(id)) else {
        return;
    };
    let ended = activation.ended_frames();
    let frames = list.frames.as_slice();
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let cut_at = books.cut_at;
    let identities = &mut books.identities;
    let mut rule = |identity, holds| identities.check(holds, activation.breach(identity, at));
    rule(
        Identity::FramesSuffice,
        ended <= count.saturating_add(activation.appended),
    );
    if activation.family == Family::StateMachine {
        if how == State::Completed && !activation.behind_reset {
            rule(Identity::MethodBalance, activation.resumed >= ended);
        }
        return;
    }
    rule(Identity::ZeroFirst, !list.has_inner_zero());
    let rest = activation
        .resumed
        .checked_sub(activation.completed.saturating_add(activation.unwinds));
    match how {
        State::Suspended | State::Running if !activation.behind_reset => {
            rule(Identity::MethodBalance, matches!(rest, Some(0 | 1)));
        }
        State::Completed if !activation.behind_reset => {
            rule(Identity::MethodBalance, rest == Some(0));
        }
        _ => {}
    }
    if how == State::Completed {
        rule(Identity::AllConsumed, ended == count);
    }
    let suspended = activation
        .suspend_frames
        .and_then(|id| books.frames.get(id));
    if let (State::Suspended, Some(suspended)) = (how, suspended) {
        // the frame that ran is replaced by what it awaits now
        let ran = ended.saturating_add(u32::from(rest.is_some_and(|n| n > 0)));
        let waiting = frames.get(ran as usize..).unwrap_or_default();
        let cut = frames.len().max(suspended.frames.len()) >= cut_at;
        rule(
            Identity::SuspendTail,
            cut || suspended.frames.ends_with(waiting),
        );
    }
}
