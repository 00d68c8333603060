//! What a chain is for: the request, service or thread that waits for its end.

use crate::facts::{Purpose, ThreadId};
use crate::libraries::server;
use crate::libraries::{grpc, hosting};
use crate::paths::{Analysis, Path, Shape, Step, Traits};
use crate::process::context;
use crate::threads::{ThreadFacts, display_name};
use asynctriage_async_graph::Helper;
use asynctriage_clr::Thread;
use asynctriage_dump::Addr;

impl Analysis<'_, '_> {
    /// What a path is for. The most specific answer counts.
    pub(crate) fn purpose(&self, path: &Path, shape: &Shape) -> Option<Purpose> {
        let Traits {
            hub,
            request,
            background,
            service,
        } = shape.traits;
        let hub = hub.then(|| self.hub_root(path)).flatten();
        hub.or_else(|| request.then(|| self.request_root(path))?)
            .or_else(|| background.then(|| self.service_root(path))?)
            .or_else(|| service.then(|| self.library_root(path))?)
            .or_else(|| self.thread_request_root(path))
            .or_else(|| self.thread_service_root(path))
            .or_else(|| self.activity_root(path))
            .or_else(|| self.thread_root(path))
            .or_else(|| self.void_root(path))
    }

    /// The request whose loop the path ends in.
    fn request_root(&self, path: &Path) -> Option<Purpose> {
        let object = self
            .steps(path)
            .rev()
            .find_map(|s| self.request_of_frame(s))?;
        let mut steps = self.steps(path);
        Some(Purpose::Request {
            facts: server::read(self.rt, object, self.values)?,
            // a call of gRPC is a request to the path of its method
            is_grpc: steps.any(|s| self.step_name(s).starts_with(grpc::HANDLERS)),
            thread: None,
        })
    }

    /// The protocol object, when a frame is the request loop and waits for the application.
    pub(crate) fn request_of_frame(&self, step: Step<'_>) -> Option<Addr> {
        let name = self.step_name(step);
        let waiting = server::application_await(&name)?;
        let is_running = self.graph.running.contains_key(&step.node) && step.frame.is_none();
        if !is_running && self.step_await(step) != Some(waiting) {
            return None;
        }
        let servers = self.graph.helpers(Helper::ServerRequest);
        let object = self
            .captured(step)
            .into_iter()
            .find(|o| servers.contains(o))?;
        // a loop that runs may be between two requests
        (!is_running || server::in_application(self.rt, object)).then_some(object)
    }

    fn service_root(&self, path: &Path) -> Option<Purpose> {
        let step = self
            .steps(path)
            .rev()
            .find(|s| self.step_name(*s).starts_with(hosting::BACKGROUND))?;
        let is_service = |object: &Addr| {
            let ty = self.rt.type_of(*object);
            ty.is_some_and(|t| self.rt.is_a(t.mt, hosting::BACKGROUND_SERVICE))
        };
        let service = self.captured(step).into_iter().find(is_service);
        let class = service.and_then(|s| self.rt.type_of(s));
        let class = class.map(|t| self.rt.name(&t).to_string());
        Some(Purpose::Background {
            service,
            class: class.unwrap_or_default(),
        })
    }

    /// A thread that serves a request and blocks on the path's end.
    fn thread_request_root(&self, path: &Path) -> Option<Purpose> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let mut threads = self.threads.holding(wait);
        threads.find_map(|(thread, _)| {
            let of_thread = |t: &&ThreadFacts| t.thread.addr == thread.addr;
            let facts = self.hang().threads.iter().find(of_thread)?;
            Some(Purpose::Request {
                facts: facts.request.clone()?,
                is_grpc: false,
                thread: Some(thread_id(thread)),
            })
        })
    }

    fn activity_root(&self, path: &Path) -> Option<Purpose> {
        self.kinds().activities.then_some(())?;
        let found = self
            .steps(path)
            .rev()
            .find_map(|s| context::activity(self.rt, &self.step_locals(s)));
        let (object, name) = found?;
        Some(Purpose::Activity { object, name })
    }

    fn thread_root(&self, path: &Path) -> Option<Purpose> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let (thread, slot) = self.threads.holding(wait).next()?;
        let is_main = self
            .steps(path)
            .next_back()
            .is_some_and(|s| self.is_main(thread, s) || self.is_end_of_host(s));
        Some(Purpose::Thread {
            thread: thread_id(thread),
            managed_id: thread.managed_id,
            slot,
            is_main,
        })
    }

    /// Whether a frame is the program's main method, which the main thread waits for.
    pub(crate) fn is_main(&self, thread: &Thread, step: Step<'_>) -> bool {
        let name = self.step_name(step);
        thread.is_main && name.ends_with(".Main") && !self.is_framework_step(step)
    }

    /// Whether a frame waits for the end of the host.
    pub(crate) fn is_end_of_host(&self, step: Step<'_>) -> bool {
        hosting::is_end_of_host(&self.step_name(step), self.step_await(step))
    }

    fn void_root(&self, path: &Path) -> Option<Purpose> {
        self.is_void(*path.frames.last()?)
            .then_some(Purpose::AsyncVoid)
    }
}

pub(super) fn thread_id(thread: &Thread) -> ThreadId {
    ThreadId {
        name: display_name(thread),
        os_id: thread.os_id,
    }
}
