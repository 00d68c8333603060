//! What is known of single libraries, one file each: what their clients wait for, what their servers call the program
//! for, what is their plumbing.
//!
//! Libraries are told by their own public names. A new one is a file here and a line in one of the two lists. Statements
//! are shown without their literals and keys not at all: both may hold what users have typed.

mod azure_functions;
pub(crate) mod channels;
pub(crate) mod database;
mod entity_framework;
mod frames;
pub(crate) mod grpc;
pub(crate) mod hangfire;
pub(crate) mod hosting;
pub(crate) mod http_client;
mod kafka;
mod mass_transit;
mod mongo_db;
mod mysql_connector;
mod npgsql;
mod owner;
mod quartz;
mod rabbit_mq;
mod redis;
pub(crate) mod server;
mod service_bus;
pub(crate) mod signalr;
mod sql_client;
pub(crate) mod trace_parent;

pub(crate) use frames::wait_of;
pub(crate) use owner::Owner;

use crate::facts::ClientWait;
use crate::process::private::{Dialect, without_secrets};
use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{LeafKind, RootKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// What libraries look at.
#[derive(Clone, Copy)]
pub(crate) struct Process<'a, 'd> {
    pub(crate) rt: &'a Runtime<'d>,
    pub(crate) graph: &'a AsyncGraph,
}

/// Whether a class is meant, by its full name; `List`1`, not `List<int>`. Those derived from it are meant, too.
type IsClass = fn(&str) -> bool;

/// Says what a call stands for, by its object and the name of its class.
type CallWait = fn(Process<'_, '_>, Addr, &str) -> Option<ClientWait>;

/// Says what a method of a library waits for, by one of the objects among its variables, the name of its class, and what
/// the method waits for as far as .NET knows it.
type ObjectWait = fn(Process<'_, '_>, Addr, &str, LeafKind) -> Option<ClientWait>;

impl<'a> Process<'a, '_> {
    /// The objects that a library wants to see besides calls.
    fn besides(self, client: &Client) -> &'a [Addr] {
        let number = client.number();
        number.map_or(&[], |n| self.graph.helpers(Helper::Wanted(n)))
    }
}

/// A library that asks others: a database, cache, message broker or server.
pub(crate) struct Client {
    /// How the names of its methods and classes begin.
    pub(crate) prefix: &'static str,
    /// What a wait inside its methods is.
    pub(crate) kind: LeafKind,
    /// The class of its commands, and how their language quotes.
    command: Option<(&'static str, Dialect)>,
    /// For calls that a TaskCompletionSource ends: the class of a call, and what it waits for.
    call: Option<(IsClass, CallWait)>,
    /// Objects that explain calls, such as connections, and are found by their class alone.
    besides: Option<IsClass>,
    /// For waits inside its methods.
    object: Option<ObjectWait>,
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.prefix == other.prefix
    }
}

impl Eq for Client {}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.prefix)
    }
}

impl Client {
    const fn new(prefix: &'static str, kind: LeafKind) -> Self {
        Self {
            prefix,
            kind,
            command: None,
            call: None,
            besides: None,
            object: None,
        }
    }
}

/// A frame of a library that calls the program for some purpose. The method that it calls stands inside.
pub(crate) struct Service {
    /// How the frame's name begins.
    pub(crate) frame: &'static str,
    pub(crate) kind: RootKind,
    /// What it is called.
    pub(crate) what: &'static str,
    /// The class of the object among the frame's variables that knows the name, or one derived from it.
    holder: &'static str,
    /// Fields that lead from there to the name.
    name: &'static [&'static str],
}

static CLIENTS: [Client; 11] = [
    npgsql::CLIENT,
    mysql_connector::CLIENT,
    sql_client::CLIENT,
    sql_client::FIRST,
    mongo_db::CLIENT,
    redis::CLIENT,
    rabbit_mq::CLIENT,
    kafka::CLIENT,
    service_bus::CLIENT,
    grpc::CLIENT,
    entity_framework::CLIENT,
];

const SERVICES: [Service; 7] = [
    quartz::JOB,
    mass_transit::CONSUMER,
    rabbit_mq::CONSUMER,
    service_bus::PROCESSOR,
    azure_functions::FUNCTION,
    hosting::STOP,
    hosting::START,
];

/// The number of calls among what the graph is asked for; those of what libraries want besides come after it.
const CALLS: u16 = 0;

/// Under which number the objects of a class are listed that libraries want to see.
pub(crate) fn wanted(class: &str) -> Option<u16> {
    if CLIENTS
        .iter()
        .any(|c| c.call.is_some_and(|(is, _)| is(class)))
    {
        return Some(CALLS);
    }
    let client = CLIENTS
        .iter()
        .find(|c| c.besides.is_some_and(|is| is(class)))?;
    client.number()
}

/// The library that a class or method belongs to, of those that only carry out what the program asked for.
pub(crate) fn client_of(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|c| name.starts_with(c.prefix))
}

/// The library whose frame a method is, of those that call the program.
pub(crate) fn service_of(method: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|s| method.starts_with(s.frame))
}

impl Client {
    /// That of what the library wants besides calls.
    fn number(&self) -> Option<u16> {
        let at = CLIENTS.iter().position(|c| c == self)?;
        u16::try_from(at).ok()?.checked_add(CALLS)?.checked_add(1)
    }

    /// What a method waits for, by the first of its variables that tells it.
    pub(crate) fn wait_among(
        &self,
        process: Process<'_, '_>,
        variables: &[Addr],
        over: LeafKind,
    ) -> Option<ClientWait> {
        let of = self.object?;
        variables.iter().find_map(|v| {
            let class = process.rt.object_type_name(*v)?;
            of(process, *v, &class, over)
        })
    }
}

impl Service {
    /// The object among the variables of the frame that knows what the service is called, and the name.
    pub(crate) fn name_among(
        &self,
        rt: &Runtime<'_>,
        variables: &[Addr],
    ) -> Option<(Addr, String)> {
        let (last, links) = self.name.split_last()?;
        variables.iter().find_map(|v| {
            let ty = rt.type_of(*v)?;
            rt.is_a(ty.mt, self.holder).then_some(())?;
            let mut links = links.iter();
            let end = links.try_fold(*v, |at, field| rt.reference(at, field))?;
            let name = rt.field_text(end, last)?;
            Some((*v, without_secrets(&name)))
        })
    }
}

/// Calls of client libraries by the TaskCompletionSource that ends them.
pub(crate) fn calls(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashMap<Addr, Addr> {
    let calls = graph.helpers(Helper::Wanted(CALLS));
    if calls.is_empty() {
        return FxHashMap::default();
    }
    let sources: FxHashSet<Addr> = graph.completion_sources.values().copied().collect();
    let mut out = FxHashMap::default();
    for call in calls {
        rt.for_each_reference(*call, &mut |_, target| {
            if sources.contains(&target) {
                out.insert(target, *call);
            }
        });
    }
    out
}

/// What a promise of a client library stands for: by the call that it ends, else by the state of its task.
pub(crate) fn promise(
    process: Process<'_, '_>,
    call: Option<Addr>,
    task: Addr,
) -> Option<ClientWait> {
    let rt = process.rt;
    let Some(call) = call else {
        let state = process.graph.task?.state_object(rt, task)?;
        return sql_client::connection_wait(rt, state);
    };
    let class = rt.object_type_name(call)?;
    let client = client_of(&class)?;
    let (_, wait) = client.call?;
    wait(process, call, &class)
}
