//! Code of others that threads wait for: class constructors and callbacks of cancellations.

use super::{Found, ObjectWait, WaitsOn, object, plain};
use crate::threads::{Stacks, ThreadFacts};
use asynctriage_clr::FrameSource;
use asynctriage_dump::Addr;
use std::sync::Arc;

/// The callbacks that a CancellationTokenSource calls, and which of them runs (8.0 to 11.0).
const REGISTRATIONS: &str = "System.Threading.CancellationTokenSource+Registrations";
/// Words of a stack among which the class stands whose constructor is waited for.
const MAX_WORDS: usize = 1 << 12;

/// A class constructor that a thread runs.
struct Running {
    thread: u32,
    class: Addr,
    name: Arc<str>,
    source: FrameSource,
}

impl Stacks<'_, '_> {
    /// A class constructor that another thread runs: the one whose class stands on the waiting thread's stack, else the
    /// only one that runs.
    pub(super) fn class_wait(&self, facts: &ThreadFacts, found: &Found) -> ObjectWait {
        let running = self.running_constructors(facts);
        let words = self.rt.stack_words(&facts.thread);
        let words: Vec<Addr> = words.map(|(_, word)| word).take(MAX_WORDS).collect();
        let mut named = running.iter().filter(|r| words.contains(&r.class));
        let (run, is_named) = match (named.next(), named.next(), running.as_slice()) {
            (Some(one), None, _) => (one, true),
            (None, _, [only]) => (only, false),
            _ => {
                return ObjectWait {
                    on: WaitsOn::Class(None),
                    ..plain("a class constructor that another thread runs", found)
                };
            }
        };
        let is_left_over = run.source == FrameSource::StackScan;
        let possibly = if is_left_over || !is_named {
            ", possibly"
        } else {
            ""
        };
        let mut wait = plain(
            format!("the class constructor{possibly} {}", run.name),
            found,
        );
        if is_named {
            wait.how.push_str("; the class stands on its stack");
        }
        ObjectWait {
            owners: vec![run.thread],
            on: WaitsOn::Class(Some(run.class)),
            is_possible: found.is_possible || is_left_over,
            ..wait
        }
    }

    fn running_constructors(&self, waiting: &ThreadFacts) -> Vec<Running> {
        let threads = self.threads.all.iter();
        let others = threads.filter(|t| t.addr != waiting.thread.addr && !t.is_dead());
        let constructors = others.flat_map(|t| {
            let stack = self.rt.stack(t);
            let running = stack.frames.iter().filter_map(|f| {
                let name = self.rt.method_name(&f.method);
                name.ends_with("..cctor").then_some(Running {
                    thread: t.managed_id,
                    class: f.method.owner,
                    name,
                    source: f.source,
                })
            });
            running.collect::<Vec<_>>()
        });
        constructors.collect()
    }

    /// A callback of a cancellation that another thread runs.
    pub(super) fn callback_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let rt = self.rt;
        let own = facts.thread.managed_id;
        let runs_on = |r: Addr| {
            rt.field_u64(r, "ExecutingCallbackId")
                .filter(|id| *id != 0)?;
            rt.field_u32(r, "ThreadIDExecutingCallbacks")
                .filter(|id| *id != 0 && *id != own)
        };
        let at = self.object_on_stack(facts, found, REGISTRATIONS, |r| runs_on(r).is_some())?;
        let mut wait = object(
            at,
            "a callback of a cancellation to return".to_owned(),
            found,
        );
        wait.how
            .push_str("; ThreadIDExecutingCallbacks of the source's registrations");
        Some(ObjectWait {
            owners: runs_on(at).into_iter().collect(),
            on: WaitsOn::Callback,
            ..wait
        })
    }
}
