//! What chains are for besides web requests: hub invocations, hosted services, jobs and consumers of libraries.
//!
//! Libraries are told by their own public names. The method that a library calls stands inside the frame that is looked
//! for here.

use super::roots::thread_id;
use crate::facts::{Callback, Purpose};
use crate::libraries::{self, hangfire, signalr};
use crate::paths::{Analysis, Path};
use crate::threads::OnStack;
use asynctriage_clr::{StackFrame, Thread};
use asynctriage_dump::Addr;
use std::sync::Arc;

/// The frame in which the queue of timers calls the program.
const TIMER_FRAME: &str = "System.Threading.TimerQueueTimer.";

impl Analysis<'_, '_> {
    /// The invocation of a hub's method that a path is part of: `Hub.Method`.
    pub(crate) fn hub_root(&self, path: &Path) -> Option<Purpose> {
        let frames = self
            .steps(path)
            .filter(|s| self.step_name(*s).starts_with(signalr::HUB_DISPATCHER));
        let variables: Vec<Addr> = frames.flat_map(|s| self.captured(s)).collect();
        let (message, method) = signalr::invocation_among(self.rt, &variables)?;
        Some(Purpose::Hub { message, method })
    }

    /// The job, consumer or step of the host that a path is part of.
    pub(crate) fn library_root(&self, path: &Path) -> Option<Purpose> {
        self.steps(path).rev().find_map(|step| {
            let name = self.step_name(step);
            let service = libraries::service_of(&name)?;
            Some(Purpose::Service {
                kind: service.kind,
                what: service.what,
                named: service.name_among(self.rt, &self.captured(step)),
            })
        })
    }

    /// What the thread that a path ends at works for: a job of Hangfire, or a timer.
    pub(crate) fn thread_service_root(&self, path: &Path) -> Option<Purpose> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let (thread, _) = self.threads.holding(wait).next()?;
        self.hangfire_root(thread)
            .or_else(|| self.timer_root(thread))
    }

    fn hangfire_root(&self, thread: &Thread) -> Option<Purpose> {
        let on_stack = self.rt.stack_words(thread).map(|(_, word)| word);
        let objects = on_stack.filter(|o| self.graph.heap.is_object(*o));
        let (job, id) = hangfire::job_among(self.rt, objects)?;
        Some(Purpose::Job {
            job,
            id,
            thread: thread_id(thread),
        })
    }

    /// The callback is the method that the timer's frame has called.
    fn timer_root(&self, thread: &Thread) -> Option<Purpose> {
        let stack = self.rt.stack(thread);
        let named = stack
            .frames
            .iter()
            .map(|f| (f, self.rt.method_name(&f.method)));
        let mut named: Vec<_> = named.collect();
        let timer = named.iter().position(|(_, n)| n.starts_with(TIMER_FRAME))?;
        let (frame, name) = named.get(timer)?;
        let is_possible = OnStack::new(frame, name).is_possible;
        named.truncate(timer);
        // the queue of timers and what flows with the callback are of the core library
        let own = |n: &&(&StackFrame, Arc<str>)| n.0.method.module != self.rt.globals.core_lib;
        // what resumes a method that has awaited a delay is no callback of the program
        let resumes = |n: &(&StackFrame, Arc<str>)| {
            n.1.starts_with("System.Threading.Tasks.Task.RunContinuations")
        };
        let mut inside = named.iter().rev().take_while(|n| !own(n));
        if inside.any(resumes) {
            return None;
        }
        let callback = named.iter().rev().find(own);
        let callback = callback.map(|(frame, name)| OnStack::new(frame, name));
        Some(Purpose::Timer {
            callback: Callback {
                is_method_possible: callback.is_some_and(|m| m.is_possible),
                method: callback.map(|m| m.name.to_string()),
                is_timer_possible: is_possible,
            },
            thread: thread_id(thread),
        })
    }
}
