//! What a chain is for: the request, service or thread that waits for its end.

use crate::analysis::Analysis;
use crate::context;
use crate::paths::Path;
use crate::requests::{self, RequestFacts};
use crate::threads::display_name;
use asynctriage_async_graph::{Helper, NodeId};
use asynctriage_dump::Addr;
use asynctriage_report::{Details, Root, RootKind};
use serde_json::json;

/// The await of Kestrel's request loop that waits for the application (8.0 to 11.0); the others wait for the client.
const AWAIT_APPLICATION: i32 = 1;

impl Analysis<'_, '_> {
    /// What a path is for. The most specific answer counts.
    pub(crate) fn root(&self, path: &Path) -> Option<Root> {
        self.request_root(path)
            .or_else(|| self.service_root(path))
            .or_else(|| self.thread_request_root(path))
            .or_else(|| self.activity_root(path))
            .or_else(|| self.thread_root(path))
            .or_else(|| self.void_root(path))
    }

    /// The request whose loop the path ends in.
    fn request_root(&self, path: &Path) -> Option<Root> {
        let object = path
            .frames
            .iter()
            .rev()
            .find_map(|f| self.request_of_frame(*f))?;
        Some(request_root(&requests::read(self.rt, object)?))
    }

    /// The protocol object, when a frame is the request loop and waits for the application.
    pub(crate) fn request_of_frame(&self, frame: NodeId) -> Option<Addr> {
        let machine = self
            .graph
            .machines
            .get(&frame)
            .filter(|m| m.state == AWAIT_APPLICATION)?;
        let method = self.frame_name(frame);
        let in_loop = method.starts_with(
            "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests",
        );
        in_loop
            .then(|| machine.place.reference(self.rt, "<>4__this"))
            .flatten()
    }

    fn service_root(&self, path: &Path) -> Option<Root> {
        let hosts = "Microsoft.Extensions.Hosting.Internal.Host.TryExecuteBackgroundServiceAsync";
        let frame = path
            .frames
            .iter()
            .rev()
            .find(|f| self.frame_name(**f).starts_with(hosts))?;
        let machine = self.graph.machines.get(frame)?;
        let service = machine.place.reference(self.rt, "backgroundService");
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
                .find(|o| requests::in_application(self.rt, *o))
                .and_then(|o| requests::read(self.rt, o))
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
        let boxes = path
            .frames
            .iter()
            .filter(|f| self.graph.machines.contains_key(f))
            .filter_map(|f| self.graph.object(*f));
        let found = boxes.rev().find_map(|node| {
            context::activity(self.rt, &context::async_locals(self.rt, &self.graph, node))
        });
        let (object, name) = found?;
        let mut root = root(RootKind::Activity, format!("Activity '{name}'"));
        root.details
            .insert("activity".into(), json!(object.to_string()));
        Some(root)
    }

    fn thread_root(&self, path: &Path) -> Option<Root> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let (thread, slot) = self.threads.holding(wait).next()?;
        let is_main = path
            .frames
            .last()
            .is_some_and(|f| self.frame_name(*f).ends_with("Program.Main"));
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

fn root(kind: RootKind, text: String) -> Root {
    Root {
        kind,
        text,
        details: Details::new(),
    }
}
