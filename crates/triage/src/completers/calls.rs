//! Which calls of a method complete what others wait for, by its IL.

use crate::holders::Standing;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{self, CallSite, Form, Place, PlacedCall, Receiver, may_come_to};
use asynctriage_metadata::names::hoisted_local;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// How a thing that is waited for is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A TaskCompletionSource, or the core of a value-task source.
    Result,
    /// A semaphore.
    Release,
    /// An event, or a CountdownEvent.
    Set,
    /// A channel that somebody reads: who writes to it, or closes it.
    Put,
    /// A bounded channel that somebody writes to: who reads from it.
    Take,
    /// A method that nothing known will resume: whoever keeps its continuation.
    Resume,
}

/// Methods that complete a source: of TaskCompletionSource and of ManualResetValueTaskSourceCore (8.0 to 11.0).
const RESULT: [&str; 8] = [
    "SetResult",
    "TrySetResult",
    "SetException",
    "TrySetException",
    "SetCanceled",
    "TrySetCanceled",
    "SetFromTask",
    "TrySetFromTask",
];
const RELEASE: &str = "Release";
const SEMAPHORE: &str = "System.Threading.SemaphoreSlim";
const SET: &str = "Set";
/// Classes whose `Set` ends waits.
const EVENTS: [&str; 4] = [
    "System.Threading.ManualResetEventSlim",
    "System.Threading.EventWaitHandle",
    "System.Threading.ManualResetEvent",
    "System.Threading.AutoResetEvent",
];
const WRITER: &str = "System.Threading.Channels.ChannelWriter`1";
/// Methods of a channel's writer after which who waits to read goes on.
const PUT: [&str; 4] = ["WriteAsync", "TryWrite", "Complete", "TryComplete"];
const READER: &str = "System.Threading.Channels.ChannelReader`1";
/// Methods of a channel's reader that make room.
const TAKE: [&str; 4] = ["ReadAsync", "TryRead", "WaitToReadAsync", "ReadAllAsync"];
/// What `await foreach` calls of `ReadAllAsync`.
const NEXT: (&str, &str) = (
    "MoveNextAsync",
    "System.Collections.Generic.IAsyncEnumerator`1",
);
const SIGNAL: &str = "Signal";
const COUNTDOWN: &str = "System.Threading.CountdownEvent";

impl By {
    fn is_done_by(self, site: &CallSite) -> bool {
        // every async method completes its own task, and every iterator its own source, through what only compilers name
        let is_own = matches!(&site.receiver, Receiver::Field(field)
            if hoisted_local(field).is_some_and(|local| local.source_name().is_none()));
        match self {
            _ if is_own => false,
            Self::Result => RESULT.contains(&site.name.as_str()),
            Self::Release => site.name == RELEASE && site.class == SEMAPHORE,
            Self::Resume => false,
            Self::Put => site.class == WRITER && PUT.contains(&site.name.as_str()),
            Self::Take if site.name == NEXT.0 => site.class == NEXT.1,
            Self::Take => site.class == READER && TAKE.contains(&site.name.as_str()),
            Self::Set if site.name == SIGNAL => site.class == COUNTDOWN,
            Self::Set => site.name == SET && EVENTS.contains(&site.class.as_str()),
        }
    }
}

impl By {
    /// Whether a call completes such a thing; who enters the semaphore that it leaves completes it only while inside.
    pub(super) fn may_be_done_by(self, site: &Site) -> bool {
        self.is_done_by(&site.call) && !site.is_entered
    }
}

/// A call that completes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The called method, the type that the call names, and what it is called on.
    pub(super) call: CallSite,
    /// Where the code takes the object from, as far as it tells.
    pub(super) place: Option<Place>,
    /// Where that variable was taken from, when it is a local one.
    pub(super) from: Option<Place>,
    /// Whether the method waits for the same semaphore: then only who is inside completes it.
    pub(super) is_entered: bool,
}

/// A method of a module, by the row of its definition.
pub(super) type Method = (Addr, u32);

type Behind = FxHashMap<(Method, u32), Rc<[Site]>>;

/// Calls of methods that complete things, each method looked at once.
#[derive(Default)]
pub(super) struct Calls {
    known: RefCell<FxHashMap<Method, Rc<[Site]>>>,
    /// By method and offset.
    behind: RefCell<Behind>,
    completes: RefCell<FxHashMap<Method, bool>>,
}

impl Calls {
    /// The completing calls of a method, in the order of its code; empty when its IL is not in the dump.
    pub(super) fn of(&self, rt: &Runtime<'_>, method: Method, form: Form) -> Rc<[Site]> {
        if let Some(known) = self.known.borrow().get(&method) {
            return Rc::clone(known);
        }
        let sites: Rc<[Site]> = read(rt, method, form).unwrap_or_default().into();
        let mut known = self.known.borrow_mut();
        known.insert(method, Rc::clone(&sites));
        sites
    }

    /// Whether a method completes a source, itself or through one that it calls.
    pub(super) fn completes(&self, rt: &Runtime<'_>, method: Method) -> bool {
        self.completes_within(rt, method, MAX_DEPTH)
    }

    fn completes_within(&self, rt: &Runtime<'_>, method: Method, depth: u32) -> bool {
        if let Some(known) = self.completes.borrow().get(&method) {
            return *known;
        }
        // one that calls itself adds nothing to what it does
        self.completes.borrow_mut().insert(method, false);
        let found = read_completes(rt, method, |callee| {
            depth > 0 && self.completes_within(rt, callee, depth.saturating_sub(1))
        });
        let found = found.unwrap_or_default();
        self.completes.borrow_mut().insert(method, found);
        found
    }

    /// The same of what may run behind the place where a method stands.
    pub(super) fn behind(&self, rt: &Runtime<'_>, standing: &Standing<'_>) -> Rc<[Site]> {
        let method = (standing.module, standing.rid);
        let at = standing.at;
        if let Some(known) = self.behind.borrow().get(&(method, at)) {
            return Rc::clone(known);
        }
        let all = self.of(rt, method, standing.form);
        let body = (!all.is_empty())
            .then(|| rt.method_body(method.0, method.1))
            .flatten()
            .unwrap_or_default();
        let reached = standing.behind(rt, &body);
        let runs = |site: &Site| match &reached {
            Some(all) => all.contains(&site.call.il_offset),
            None => may_come_to(&body.code, at, site.call.il_offset),
        };
        let behind: Rc<[Site]> = all.iter().filter(|s| runs(s)).cloned().collect();
        let mut known = self.behind.borrow_mut();
        known.insert((method, at), Rc::clone(&behind));
        behind
    }
}

/// Calls inside calls that are followed to what completes a source.
const MAX_DEPTH: u32 = 2;
/// Longest code of a method that is read for what its callers complete, in bytes.
const MAX_CODE: usize = 1 << 11;

fn read_completes(
    rt: &Runtime<'_>,
    (module, rid): Method,
    mut inner: impl FnMut(Method) -> bool,
) -> Option<bool> {
    let of = rt.module(module);
    let metadata = of.metadata.as_ref().filter(|_| !of.ships_with_dotnet)?;
    let code = rt.method_il(module, rid).filter(|c| c.len() <= MAX_CODE)?;
    let sites = metadata.call_sites(&code, |name| RESULT.contains(&name));
    if sites.iter().any(|s| By::Result.is_done_by(s)) {
        return Some(true);
    }
    let mut callees = il::calls(&code).filter_map(|(_, token)| metadata.callee_definition(token));
    Some(callees.any(|callee| inner((module, callee))))
}

/// How methods enter semaphores.
const ENTER: [&str; 2] = ["Wait", "WaitAsync"];

fn is_completing(name: &str) -> bool {
    RESULT.contains(&name)
        || [RELEASE, SET, SIGNAL, NEXT.0].contains(&name)
        || PUT.contains(&name)
        || TAKE.contains(&name)
}

fn read(rt: &Runtime<'_>, (module, rid): Method, form: Form) -> Option<Vec<Site>> {
    let of = rt.module(module);
    let metadata = of.metadata.as_ref()?;
    let code = rt.method_il(module, rid)?;
    let is_wanted = |name: &str| is_completing(name) || ENTER.contains(&name);
    let calls = metadata.call_sites(&code, is_wanted);
    if !calls.iter().any(|c| is_completing(&c.name)) {
        return None;
    }
    let body = rt.method_body(module, rid)?;
    let placed = metadata.placed_calls(&body, form, &is_wanted);
    let place = |call: &CallSite| placed.iter().find(|p| p.il_offset == call.il_offset);
    let (enters, completes): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .partition(|c| ENTER.contains(&c.name.as_str()));
    let enters: Vec<_> = enters.iter().filter(|c| c.class == SEMAPHORE).collect();
    let is_entered = |call: &CallSite| {
        call.name == RELEASE && enters.iter().any(|e| may_be_one(e, call, &place))
    };
    let site = |call: CallSite| Site {
        place: place(&call).and_then(|p| p.place.clone()),
        from: place(&call).and_then(|p| p.from.clone()),
        is_entered: is_entered(&call),
        call,
    };
    Some(completes.into_iter().map(site).collect())
}

/// Whether two calls may be made on the same object: the code takes them from one place, or does not tell.
fn may_be_one<'p>(
    a: &CallSite,
    b: &CallSite,
    place: &impl Fn(&CallSite) -> Option<&'p PlacedCall>,
) -> bool {
    let known = |c: &CallSite| place(c).and_then(|p| p.place.as_ref());
    match (known(a), known(b)) {
        (Some(a), Some(b)) => a == b,
        _ => match (&a.receiver, &b.receiver) {
            (Receiver::Field(a), Receiver::Field(b)) => a == b,
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_semaphores_are_released() {
        let site = |name: &str, class: &str| CallSite {
            il_offset: 1,
            name: name.into(),
            class: class.into(),
            receiver: Receiver::Unknown,
        };
        assert!(By::Release.is_done_by(&site("Release", SEMAPHORE)));
        assert!(!By::Release.is_done_by(&site("Release", "Contoso.Buffer")));
        assert!(!By::Result.is_done_by(&site("Release", SEMAPHORE)));
        assert!(By::Set.is_done_by(&site("Set", "System.Threading.EventWaitHandle")));
        assert!(By::Set.is_done_by(&site("Signal", COUNTDOWN)));
        assert!(!By::Set.is_done_by(&site("Set", "Contoso.Bag")));
        assert!(!By::Set.is_done_by(&site("Signal", "Contoso.Lamp")));
        assert!(By::Result.is_done_by(&site("TrySetResult", "Contoso.Job")));
        assert!(By::Put.is_done_by(&site("TryWrite", WRITER)));
        assert!(!By::Put.is_done_by(&site("TryWrite", "Contoso.Pen")));
        assert!(By::Take.is_done_by(&site("ReadAsync", READER)));
        assert!(By::Take.is_done_by(&site(NEXT.0, NEXT.1)));
        assert!(!By::Take.is_done_by(&site("ReadAsync", "Contoso.Stream")));
        let builder = CallSite {
            receiver: Receiver::Field("<>t__builder".into()),
            ..site("SetResult", "Contoso.Builder")
        };
        assert!(!By::Result.is_done_by(&builder));
        let promise = CallSite {
            receiver: Receiver::Field("<>v__promiseOfValueOrEnd".into()),
            ..builder
        };
        assert!(!By::Result.is_done_by(&promise));
    }
}
