//! What chains are for besides web requests: hub invocations, hosted services, jobs and consumers of libraries.
//!
//! Libraries are told by their own public names. The method that a library calls stands inside the frame that is looked
//! for here.

use crate::analysis::Analysis;
use crate::hang::OnStack;
use crate::paths::Path;
use crate::roots::root;
use crate::steps::Step;
use crate::threads::display_name;
use asynctriage_clr::{StackFrame, Thread};
use asynctriage_dump::Addr;
use asynctriage_report::{Root, RootKind};
use serde_json::json;
use std::sync::Arc;

/// A frame that calls the program for some purpose.
struct Service {
    /// How the frame's name begins.
    frame: &'static str,
    kind: RootKind,
    /// What it is called.
    what: &'static str,
    /// The class of the object among the frame's variables that knows the name, or one derived from it.
    holder: &'static str,
    /// Fields that lead from there to the name.
    name: &'static [&'static str],
}

const SERVICES: [Service; 7] = [
    Service {
        frame: "Quartz.Core.JobRunShell.Run",
        kind: RootKind::Job,
        what: "Quartz job",
        holder: "Quartz.Core.JobRunShell",
        name: &["context", "jobDetail", "name"],
    },
    Service {
        frame: "MassTransit.Transports.ReceivePipeDispatcher.Dispatch",
        kind: RootKind::QueueConsumer,
        what: "MassTransit consumer of",
        holder: "MassTransit.Context.BaseReceiveContext",
        name: &["<InputAddress>k__BackingField", "_string"],
    },
    Service {
        frame: "RabbitMQ.Client.ConsumerDispatching.AsyncConsumerDispatcher.ProcessChannelAsync",
        kind: RootKind::QueueConsumer,
        what: "RabbitMQ consumer",
        holder: "",
        name: &[],
    },
    Service {
        frame: "Azure.Messaging.ServiceBus.ReceiverManager.ProcessOneMessage",
        kind: RootKind::QueueConsumer,
        what: "Service Bus processor of",
        holder: "Azure.Messaging.ServiceBus.ReceiverManager",
        name: &["Processor", "<EntityPath>k__BackingField"],
    },
    Service {
        frame: "Microsoft.Azure.Functions.Worker.FunctionsApplication.InvokeFunctionAsync",
        kind: RootKind::Job,
        what: "Azure function",
        holder: "Microsoft.Azure.Functions.Worker.DefaultFunctionContext",
        name: &[
            "<FunctionDefinition>k__BackingField",
            "<Name>k__BackingField",
        ],
    },
    Service {
        frame: "Microsoft.Extensions.Hosting.Internal.Host.StopAsync",
        kind: RootKind::HostedService,
        what: "shutdown of the host",
        holder: "",
        name: &[],
    },
    Service {
        frame: "Microsoft.Extensions.Hosting.Internal.Host.StartAsync",
        kind: RootKind::HostedService,
        what: "start of the host",
        holder: "",
        name: &[],
    },
];

/// How the frames begin in which SignalR calls a method of a hub.
const HUB_DISPATCHER: &str = "Microsoft.AspNetCore.SignalR.Internal.DefaultHubDispatcher";
const HUB: &str = "Microsoft.AspNetCore.SignalR.Hub";
const INVOCATIONS: [&str; 2] = [
    "Microsoft.AspNetCore.SignalR.Protocol.InvocationMessage",
    "Microsoft.AspNetCore.SignalR.Protocol.StreamInvocationMessage",
];
/// What Hangfire keeps on the stack of a worker that runs a job.
const HANGFIRE_JOB: &str = "Hangfire.Server.PerformContext";
/// The frame in which the queue of timers calls the program.
const TIMER_FRAME: &str = "System.Threading.TimerQueueTimer.";

impl Analysis<'_, '_> {
    /// The invocation of a hub's method that a path is part of: `Hub.Method`.
    pub(crate) fn hub_root(&self, path: &Path) -> Option<Root> {
        let mut message = None;
        let mut hub = None;
        for step in self.steps(path) {
            if !self.step_name(step).starts_with(HUB_DISPATCHER) {
                continue;
            }
            for object in self.captured(step) {
                let Some(ty) = self.rt.type_of(object) else {
                    continue;
                };
                if INVOCATIONS.contains(&&*self.rt.definition_name(&ty)) {
                    message = message.or(Some(object));
                } else if self.rt.is_a(ty.mt, HUB) {
                    hub = hub.or_else(|| Some(self.rt.name(&ty)));
                }
            }
        }
        let message = message?;
        let target = self.rt.field_text(message, "<Target>k__BackingField")?;
        let text = match hub {
            Some(hub) => format!("{hub}.{target}"),
            None => target,
        };
        let mut root = root(RootKind::SignalrInvocation, text);
        root.details
            .insert("message".into(), json!(message.to_string()));
        Some(root)
    }

    /// The job, consumer or step of the host that a path is part of.
    pub(crate) fn library_root(&self, path: &Path) -> Option<Root> {
        self.steps(path).rev().find_map(|step| {
            let name = self.step_name(step);
            let service = SERVICES.iter().find(|s| name.starts_with(s.frame))?;
            let named = self.service_name(step, service);
            let text = match &named {
                Some((_, name)) => format!("{} {name}", service.what),
                None => service.what.trim_end_matches(" of").to_owned(),
            };
            let mut root = root(service.kind, text);
            if let Some((holder, _)) = named {
                root.details
                    .insert("object".into(), json!(holder.to_string()));
            }
            Some(root)
        })
    }

    fn service_name(&self, step: Step<'_>, service: &Service) -> Option<(Addr, String)> {
        let (last, links) = service.name.split_last()?;
        let mut variables = self.captured(step).into_iter();
        variables.find_map(|v| {
            let ty = self.rt.type_of(v)?;
            self.rt.is_a(ty.mt, service.holder).then_some(())?;
            let mut links = links.iter();
            let end = links.try_fold(v, |at, field| self.rt.reference(at, field))?;
            let name = self.rt.field_text(end, last)?;
            Some((v, crate::http::without_credentials(&name)))
        })
    }

    /// What the thread that a path ends at works for: a job of Hangfire, or a timer.
    pub(crate) fn thread_service_root(&self, path: &Path) -> Option<Root> {
        let wait = self.graph.object(path.blocked?)?.addr;
        let (thread, _) = self.threads.holding(wait).next()?;
        let mut root = self
            .hangfire_root(thread)
            .or_else(|| self.timer_root(thread))?;
        root.details
            .insert("thread".into(), json!(display_name(thread)));
        root.details
            .insert("thread_os_id".into(), json!(thread.os_id));
        Some(root)
    }

    fn hangfire_root(&self, thread: &Thread) -> Option<Root> {
        let rt = self.rt;
        let on_stack = rt.stack_words(thread).map(|(_, word)| word);
        let context = on_stack
            .filter(|o| self.graph.heap.is_object(*o))
            .find(|o| rt.object_type_name(*o).as_deref() == Some(HANGFIRE_JOB))?;
        let job = rt.reference(context, "<BackgroundJob>k__BackingField")?;
        let id = rt.field_text(job, "<Id>k__BackingField");
        let mut root = root(
            RootKind::Job,
            format!("Hangfire job {}", id.as_deref().unwrap_or("without id")),
        );
        root.details.insert("job".into(), json!(job.to_string()));
        Some(root)
    }

    /// The callback is the method that the timer's frame has called.
    fn timer_root(&self, thread: &Thread) -> Option<Root> {
        let frames = self.rt.stack_frames(thread);
        let named = frames.iter().map(|f| (f, self.rt.method_name(&f.method)));
        let mut named: Vec<_> = named.collect();
        let timer = named.iter().position(|(_, n)| n.starts_with(TIMER_FRAME))?;
        let (frame, name) = named.get(timer)?;
        let is_possible = OnStack::new(frame, name).is_possible;
        named.truncate(timer);
        let own = |n: &&(&StackFrame, Arc<str>)| !n.1.starts_with("System.");
        let callback = named.iter().rev().find(own);
        let callback = callback.map(|(frame, name)| OnStack::new(frame, name));
        let possibly = if is_possible { "possibly " } else { "" };
        Some(root(
            RootKind::TimerCallback,
            match callback {
                // where the timer's own frame is a doubt, so is all that follows
                Some(method) if method.is_possible && !is_possible => {
                    format!("timer callback, possibly {}", method.name)
                }
                Some(method) => format!("{possibly}timer callback {}", method.name),
                None => format!("{possibly}timer callback"),
            },
        ))
    }
}
