//! What a chain is for: the request, service or thread that waits for its end.

use crate::libraries::server::{self, RequestFacts};
use crate::libraries::{grpc, hosting};
use crate::paths::{Analysis, Path, Shape, Step, Traits};
use crate::process::context;
use crate::threads::{ThreadFacts, display_name};
use asynctriage_async_graph::Helper;
use asynctriage_clr::Thread;
use asynctriage_dump::Addr;
use asynctriage_report::{Details, Root, RootKind};
use serde_json::json;

impl Analysis<'_, '_> {
    /// What a path is for. The most specific answer counts.
    pub(crate) fn root(&self, path: &Path, shape: &Shape) -> Option<Root> {
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
    fn request_root(&self, path: &Path) -> Option<Root> {
        let object = self
            .steps(path)
            .rev()
            .find_map(|s| self.request_of_frame(s))?;
        let mut root = request_root(&server::read(self.rt, object, self.values)?);
        // a call of gRPC is a request to the path of its method
        if self
            .steps(path)
            .any(|s| self.step_name(s).starts_with(grpc::HANDLERS))
        {
            root.kind = RootKind::GrpcCall;
        }
        Some(root)
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

    fn service_root(&self, path: &Path) -> Option<Root> {
        let step = self
            .steps(path)
            .rev()
            .find(|s| self.step_name(*s).starts_with(hosting::BACKGROUND))?;
        let is_service = |object: &Addr| {
            let ty = self.rt.type_of(*object);
            ty.is_some_and(|t| self.rt.is_a(t.mt, hosting::BACKGROUND_SERVICE))
        };
        let service = self.captured(step).into_iter().find(is_service);
        let name = service
            .and_then(|s| self.rt.type_of(s))
            .map(|t| self.rt.name(&t).to_string())
            .unwrap_or_default();
        let mut root = root(
            RootKind::HostedService,
            format!("BackgroundService {name}").trim_end().to_owned(),
        );
        if let Some(service) = service {
            root.details
                .insert("service".into(), json!(service.to_string()));
        }
        Some(root)
    }

    /// A thread that serves a request and blocks on the path's end.
    fn thread_request_root(&self, path: &Path) -> Option<Root> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let mut threads = self.threads.holding(wait);
        threads.find_map(|(thread, _)| {
            let of_thread = |t: &&ThreadFacts| t.thread.addr == thread.addr;
            let facts = self.hang().threads.iter().find(of_thread)?;
            let mut root = request_root(facts.request.as_ref()?);
            root.details
                .insert("thread".into(), json!(display_name(thread)));
            root.details
                .insert("thread_os_id".into(), json!(thread.os_id));
            Some(root)
        })
    }

    fn activity_root(&self, path: &Path) -> Option<Root> {
        self.kinds().activities.then_some(())?;
        let found = self
            .steps(path)
            .rev()
            .find_map(|s| context::activity(self.rt, &self.step_locals(s)));
        let (object, name) = found?;
        let mut root = root(RootKind::Activity, format!("Activity '{name}'"));
        root.details
            .insert("activity".into(), json!(object.to_string()));
        Some(root)
    }

    fn thread_root(&self, path: &Path) -> Option<Root> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let (thread, slot) = self.threads.holding(wait).next()?;
        let is_main = self
            .steps(path)
            .next_back()
            .is_some_and(|s| self.is_main(thread, s) || self.is_end_of_host(s));
        let kind = if is_main {
            RootKind::Main
        } else {
            RootKind::Thread
        };
        let mut root = root(
            kind,
            format!("thread '{}' blocks on it", display_name(thread)),
        );
        root.details.insert("os_id".into(), json!(thread.os_id));
        root.details
            .insert("managed_id".into(), json!(thread.managed_id));
        if let Some(slot) = slot {
            root.details
                .insert("stack_slot".into(), json!(slot.to_string()));
        }
        Some(root)
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

    fn void_root(&self, path: &Path) -> Option<Root> {
        self.is_void(*path.frames.last()?).then(|| {
            root(
                RootKind::AsyncVoid,
                "async void: nobody waits for its end".into(),
            )
        })
    }
}

fn request_root(facts: &RequestFacts) -> Root {
    let mut root = root(RootKind::HttpRequest, facts.title());
    root.details.insert("path".into(), json!(facts.path));
    root.details
        .insert("request".into(), json!(facts.object.to_string()));
    if let Some(connection) = &facts.connection {
        root.details.insert("connection".into(), json!(connection));
    }
    root
}

pub(crate) fn root(kind: RootKind, text: String) -> Root {
    Root {
        kind,
        text,
        details: Details::new(),
    }
}
