//! What a chain is for: the request, service or thread that waits for its end.

use crate::libraries::server::{self, RequestFacts};
use crate::libraries::{grpc, hosting};
use crate::paths::{Analysis, Path, Shape, Step, Traits};
use crate::process::context;
use crate::threads::display_name;
use asynctriage_async_graph::Helper;
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
        if self.step_await(step) != Some(server::application_await(&name)?) {
            return None;
        }
        let servers = self.graph.helpers(Helper::ServerRequest);
        self.captured(step)
            .into_iter()
            .find(|o| servers.contains(o))
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
        let servers = self.graph.helpers(Helper::ServerRequest);
        for (thread, _) in self.threads.holding(wait) {
            let mut on_stack = self
                .threads
                .on_stack_of(thread)
                .into_iter()
                .filter(|o| servers.contains(o));
            if let Some(facts) = on_stack
                .find(|o| server::in_application(self.rt, *o))
                .and_then(|o| server::read(self.rt, o, self.values))
            {
                let mut root = request_root(&facts);
                root.details
                    .insert("thread".into(), json!(display_name(thread)));
                root.details
                    .insert("thread_os_id".into(), json!(thread.os_id));
                return Some(root);
            }
        }
        None
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
            .is_some_and(|s| self.step_name(s).ends_with("Program.Main"));
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

    fn void_root(&self, path: &Path) -> Option<Root> {
        let last = path
            .frames
            .last()
            .and_then(|f| self.graph.machines.get(f))?;
        last.is_void.then(|| {
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
