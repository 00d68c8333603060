//! Who is inside a semaphore: nobody notes that, but the code of a method tells what it has entered and not left where it
//! stands.
//!
//! Suspended methods stand at an await, methods on a thread's stack at a call. What the code names, a field of `this` or a
//! variable, is asked of the method's own object. Only who leaves the semaphore again in the same method counts: a
//! semaphore that one method waits for and another releases is a signal.

mod locals;
pub(crate) mod standing;
mod summaries;

pub(crate) use standing::{Standing, Who};

use crate::paths::Analysis;
use crate::threads::Hang;
use asynctriage_async_graph::Helper;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{Entered, Form};
use asynctriage_report::Confidence;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;
use summaries::Summaries;

/// `SemaphoreSlim.m_maxCount` of one without a limit.
const NO_LIMIT: i32 = i32::MAX;
/// More threads than any process has: the word is no count.
const MAX_THREADS: u32 = 1 << 20;

/// One that has entered a semaphore.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) who: Who,
    /// What the method is called.
    pub(crate) method: Arc<str>,
    /// The object of the method, or the frame's place on the stack.
    pub(crate) slot: Option<Addr>,
    /// How that is known.
    pub(crate) how: String,
    pub(crate) confidence: Confidence,
}

/// Who is inside the semaphores that others wait for.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    inside: FxHashMap<Addr, Vec<Holder>>,
}

/// By module, row of the method and place in it.
type Known = FxHashMap<(Addr, u32, u32), Rc<[Entered]>>;

impl Holders {
    pub(crate) fn find(a: &Analysis<'_, '_>, hang: &Hang) -> Self {
        let mut search = Search {
            a,
            wanted: FxHashMap::default(),
            known: Known::default(),
            summaries: Summaries::new(a.rt),
        };
        for semaphore in a.graph.helpers(Helper::Semaphore) {
            if is_wanted(a, *semaphore) {
                search.wanted.insert(*semaphore, Vec::new());
            }
        }
        if !search.wanted.is_empty() {
            standing::each(a, hang, &mut |method| search.look_at(method));
        }
        for all in search.wanted.values_mut() {
            all.sort_by_key(|h| (h.who, h.slot));
            all.dedup_by_key(|h| h.who);
        }
        Self {
            inside: search.wanted,
        }
    }

    /// Who is inside a semaphore.
    pub(crate) fn of(&self, semaphore: Addr) -> &[Holder] {
        self.inside.get(&semaphore).map_or(&[], Vec::as_slice)
    }

    /// The semaphores that are looked at, by address.
    pub(crate) fn semaphores(&self) -> impl Iterator<Item = Addr> {
        let mut all: Vec<Addr> = self.inside.keys().copied().collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Whether others than those that are known may be inside: the semaphore has given away more places.
    pub(crate) fn may_hold_more(&self, rt: &Runtime<'_>, semaphore: Addr) -> bool {
        let inside = self.of(semaphore).len();
        match rt.field_i32(semaphore, "m_maxCount") {
            Some(NO_LIMIT) | None => inside == 0,
            Some(limit) => usize::try_from(limit).map_or(true, |limit| inside < limit),
        }
    }
}

/// Whether a semaphore has no place left and somebody waits for one.
fn is_wanted(a: &Analysis<'_, '_>, semaphore: Addr) -> bool {
    let rt = a.rt;
    let threads = rt.field_u32(semaphore, "m_waitCount");
    rt.field_i32(semaphore, "m_currentCount") == Some(0)
        && (rt.reference(semaphore, "m_asyncHead").is_some()
            || threads.is_some_and(|n| n > 0 && n < MAX_THREADS))
}

struct Search<'a, 'r, 'd> {
    a: &'a Analysis<'r, 'd>,
    wanted: FxHashMap<Addr, Vec<Holder>>,
    known: Known,
    summaries: Summaries<'a, 'd>,
}

impl Search<'_, '_, '_> {
    fn look_at(&mut self, method: &Standing<'_>) {
        let all = self.entered(method.module, method.rid, method.form, method.at);
        for entered in all.iter().filter(|e| e.leaves) {
            let wanted = &self.wanted;
            let is_wanted = |at: Addr| wanted.contains_key(&at);
            let activation = &method.activation;
            let from = entered.from.as_ref();
            let found = activation.object_at(self.a, &entered.place, from, &is_wanted);
            let described = found.filter(|held| !held.is_guess);
            let handed = || {
                let handed = entered.handed.as_ref()?;
                activation.led_to(self.a, handed, &is_wanted)
            };
            let found = described.or_else(handed).or(found);
            if let Some(all) = found.and_then(|held| self.wanted.get_mut(&held.object)) {
                all.push(Holder {
                    who: method.who,
                    method: Arc::clone(&method.name),
                    slot: method.slot,
                    how: format!(
                        "{} is behind its wait for the semaphore, {}",
                        method.place(self.a),
                        left(entered)
                    ),
                    confidence: sure(entered),
                });
            }
        }
    }

    fn entered(&mut self, module: Addr, rid: u32, form: Form, at: u32) -> Rc<[Entered]> {
        let rt = self.a.rt;
        let find = || -> Vec<Entered> {
            let known = rt.module(module);
            let body = rt.method_body(module, rid);
            let summaries = |method| self.summaries.of(module, method);
            let found = body
                .zip(known.metadata.as_ref())
                .map(|(body, metadata)| metadata.entered_at(&body, form, at, &summaries));
            found.unwrap_or_default()
        };
        let known = self.known.entry((module, rid, at));
        Rc::clone(known.or_insert_with(|| find().into()))
    }
}

/// Code that may have gone another way tells less.
fn sure(entered: &Entered) -> Confidence {
    if entered.always {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

fn left(entered: &Entered) -> &'static str {
    if entered.always {
        "which it has not left, by its code"
    } else {
        "which it has not left if it entered, by its code"
    }
}
