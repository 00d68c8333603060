//! What threads wait for that is neither a task nor a monitor: reader/writer locks, events, mutexes, semaphores, barriers,
//! other threads, sockets, files and the console.
//!
//! The managed frames say how a thread waits. The object stands on the stack between the innermost of those frames and
//! the method that called them: the first one of the right type there counts, when its own fields say that somebody
//! waits for it.

mod io;
mod runs;
mod rw;

use super::{StackMethod, Stacks, ThreadFacts, display_name};
use asynctriage_clr::FrameSource;
use asynctriage_dump::Addr;

pub(crate) use rw::RwLocks;

/// `ManualResetEventSlim.m_combinedState`: it has been set (8.0 to 11.0).
const IS_SET: u32 = 1 << 31;
/// Innermost frames among which a wait is looked for.
const MAX_FRAMES: usize = 40;
/// Bytes above the wait's own frames that may hold its object: the frame of its caller.
const CALLER: u64 = 512;
/// Handles of one WaitAny or WaitAll that are named.
const MAX_HANDLES: u64 = 64;
/// Waiters of one handle that are looked at.
const MAX_WAITERS: usize = 1 << 16;

/// What a thread waits for.
#[derive(Clone, Debug)]
pub(crate) struct ObjectWait {
    /// The object, where it was found.
    pub(crate) at: Option<Addr>,
    /// In words, what comes behind "waits for".
    pub(crate) text: String,
    /// Managed ids of the threads that must leave it, or end.
    pub(crate) owners: Vec<u32>,
    /// What kind of thing it is.
    pub(crate) on: WaitsOn,
    /// Whether the owners are those who write (reader/writer locks).
    pub(crate) writes: bool,
    /// How many of those who have entered have ended without leaving (reader/writer locks).
    pub(crate) ended: u32,
    /// How that is known.
    pub(crate) how: String,
    /// Whether it ends when somebody has work for the thread: an item of a queue, a client, input.
    pub(crate) brings_work: bool,
    /// Whether the frames that tell it may be left over from calls that have returned.
    pub(crate) is_possible: bool,
}

/// What kind of thing a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsOn {
    /// A reader/writer lock, to read.
    Read,
    /// A reader/writer lock, for more than reading.
    Write,
    /// A place of a SemaphoreSlim.
    Semaphore,
    /// An event to be set, or a CountdownEvent to be signalled.
    Event,
    /// The end of its owners.
    End,
    /// A class constructor that its owner runs: the class, where that is known.
    Class(Option<Addr>),
    /// A callback of a cancellation that its owner runs.
    Callback,
    /// Anything else.
    Other,
}

/// How a thread waits, by the frames of its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    RwSlim,
    RwOld,
    Barrier,
    Countdown,
    Semaphore,
    Event,
    Join,
    Collection,
    Process,
    Handle,
    Lock,
    Pulse,
    Class,
    Callback,
    Socket,
    File,
    Console,
}

/// Frames that tell the way, by the begin of their names. The outermost that fits counts: a barrier waits with an event.
const WAYS: [(&str, Way); 22] = [
    (
        "System.Threading.CancellationTokenSource.Registrations.WaitForCallbackToComplete",
        Way::Callback,
    ),
    ("System.Threading.ReaderWriterLockSlim.", Way::RwSlim),
    ("System.Threading.ReaderWriterLock.", Way::RwOld),
    ("System.Threading.Barrier.", Way::Barrier),
    ("System.Threading.CountdownEvent.", Way::Countdown),
    ("System.Threading.SemaphoreSlim.", Way::Semaphore),
    ("System.Threading.ManualResetEventSlim.", Way::Event),
    ("System.Threading.Thread.Join", Way::Join),
    (
        "System.Collections.Concurrent.BlockingCollection<",
        Way::Collection,
    ),
    ("System.Diagnostics.Process.", Way::Process),
    ("System.Diagnostics.ProcessWaitState.", Way::Process),
    ("System.Threading.WaitHandle.", Way::Handle),
    ("System.Threading.Lock.", Way::Lock),
    ("System.Threading.Monitor.Enter", Way::Lock),
    ("System.Threading.Monitor.Wait", Way::Pulse),
    ("System.Net.Sockets.", Way::Socket),
    ("System.Runtime.CompilerServices.InitHelpers.", Way::Class),
    ("System.IO.RandomAccess.", Way::File),
    ("System.IO.FileStream.", Way::File),
    ("System.IO.Strategies.", Way::File),
    ("System.ConsolePal.", Way::Console),
    ("System.Console.", Way::Console),
];

/// Frames below and between those.
const INSIDE: [&str; 13] = [
    "System.Threading.SpinWait.",
    "System.Threading.Thread.Sleep",
    "System.Threading.Monitor.",
    "System.Threading.Lock.",
    "System.Threading.Condition.",
    "System.Threading.WaitSubsystem.",
    "System.Threading.LowLevel",
    "System.Threading.NamedMutex",
    "System.Threading.Thread.Join",
    "System.Runtime.CompilerServices.StaticsHelpers.",
    "System.IO.",
    "Interop.",
    "Microsoft.Win32.SafeHandles.",
];

/// A way with the part of the stack that its frames take.
struct Found {
    way: Way,
    /// The outermost frame of the way, by name.
    method: String,
    start: Addr,
    end: Addr,
    /// Whether that frame may be left over.
    is_possible: bool,
}

impl Stacks<'_, '_> {
    /// What a thread waits for. Only threads that run a method of the program: .NET's own threads wait for work.
    pub(crate) fn object_wait(&self, facts: &ThreadFacts, locks: &RwLocks) -> Option<ObjectWait> {
        facts.own_method()?;
        let found = find_way(facts)?;
        let mut wait = self.wait_in(facts, &found, locks)?;
        wait.owners.retain(|id| *id != facts.thread.managed_id);
        Some(wait)
    }

    fn wait_in(&self, facts: &ThreadFacts, found: &Found, locks: &RwLocks) -> Option<ObjectWait> {
        match found.way {
            Way::RwSlim | Way::RwOld => self.rw_wait(facts, found, locks),
            Way::Barrier => self.barrier_wait(facts, found),
            Way::Countdown => self.countdown_wait(facts, found),
            Way::Semaphore => self.semaphore_wait(facts, found),
            Way::Event => self.event_wait(facts, found),
            Way::Join => self.join_wait(facts, found),
            Way::Collection => self.collection_wait(facts, found),
            Way::Process => self.process_wait(facts, found),
            // `Monitor.Wait` of 11.0 ends in a handle of its own
            Way::Handle if facts.block.is_some() => None,
            Way::Handle => self.handle_wait(facts, found),
            // what the dump of a whole heap would have told before this is asked
            Way::Lock => self.unseen("a lock", found),
            Way::Pulse => self.unseen("a pulse of an object", found),
            Way::Class => Some(self.class_wait(facts, found)),
            Way::Callback => self.callback_wait(facts, found),
            Way::Socket => self.socket_wait(facts, found),
            Way::File => self.file_wait(facts, found),
            // output is written at once, unless whoever takes it has stopped: the stack does not tell which
            Way::Console => reads(facts).then(|| ObjectWait {
                brings_work: true,
                ..plain("input of the console", found)
            }),
        }
    }

    /// The first object on the part of the stack that a wait takes which is of a type and fits.
    fn object_on_stack(
        &self,
        facts: &ThreadFacts,
        found: &Found,
        type_name: &str,
        mut fits: impl FnMut(Addr) -> bool,
    ) -> Option<Addr> {
        let words = self.rt.stack_words(&facts.thread);
        let near = words
            .filter(|(slot, _)| slot.is_some_and(|s| found.start <= s && s < found.end))
            .map(|(_, word)| word);
        let mut is_one = |object: &Addr| {
            self.graph.heap.is_object(*object)
                && self
                    .rt
                    .type_of(*object)
                    .is_some_and(|t| self.rt.is_a(t.mt, type_name))
                && fits(*object)
        };
        near.into_iter().find(|object| is_one(object))
    }

    /// Whether an event inside a primitive is the one whose lock the thread blocks on.
    fn blocks_on(&self, facts: &ThreadFacts, event: Option<Addr>) -> bool {
        let lock = event.and_then(|e| self.rt.reference(e, "m_lock"));
        match (&facts.block, lock) {
            (Some(block), Some(lock)) => block.lock.at == lock || block.lock.object == Some(lock),
            // without either nothing speaks against it
            _ => true,
        }
    }

    /// What only the frames tell: a dump without the heap does not show which object it is.
    fn unseen(&self, what: &str, found: &Found) -> Option<ObjectWait> {
        self.graph
            .task
            .is_none()
            .then(|| plain(format!("{what} that is not in the dump"), found))
    }

    fn barrier_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let rt = self.rt;
        let fits = |b: Addr| {
            ["_oddEvent", "_evenEvent"]
                .iter()
                .any(|f| self.blocks_on(facts, rt.reference(b, f)))
        };
        let at = self.object_on_stack(facts, found, "System.Threading.Barrier", fits)?;
        // 15 bits of participants, 15 of those that have arrived, the phase (8.0 to 11.0)
        let counts = rt.field_u32(at, "_currentTotalCount")?;
        let text = format!(
            "the other participants of Barrier {at}: {} of {} have arrived",
            counts >> 16 & 0x7fff,
            counts & 0x7fff
        );
        Some(object(at, text, found))
    }

    fn countdown_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let rt = self.rt;
        let fits = |c: Addr| self.blocks_on(facts, rt.reference(c, "_event"));
        let at = self.object_on_stack(facts, found, "System.Threading.CountdownEvent", fits)?;
        let text = format!(
            "CountdownEvent {at}: {} of {} signals are missing",
            rt.field_i32(at, "_currentCount")?,
            rt.field_i32(at, "_initialCount")?
        );
        Some(ObjectWait {
            on: WaitsOn::Event,
            ..object(at, text, found)
        })
    }

    fn semaphore_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let at = self.semaphore_on_stack(facts, found)?;
        Some(ObjectWait {
            on: WaitsOn::Semaphore,
            ..object(
                at,
                format!("a place of SemaphoreSlim {at}, 0 are free"),
                found,
            )
        })
    }

    fn semaphore_on_stack(&self, facts: &ThreadFacts, found: &Found) -> Option<Addr> {
        let waits = |s: Addr| {
            self.rt.field_i32(s, "m_currentCount") == Some(0)
                && self.rt.field_u32(s, "m_waitCount").is_some_and(|n| n > 0)
        };
        self.object_on_stack(facts, found, "System.Threading.SemaphoreSlim", waits)
    }

    fn event_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let pending = |e: Addr| {
            self.rt
                .field_u32(e, "m_combinedState")
                .is_some_and(|s| s & IS_SET == 0)
                && self.blocks_on(facts, Some(e))
        };
        let at = self.object_on_stack(
            facts,
            found,
            "System.Threading.ManualResetEventSlim",
            pending,
        )?;
        let text = format!("ManualResetEventSlim {at} to be set");
        Some(ObjectWait {
            on: WaitsOn::Event,
            ..object(at, text, found)
        })
    }

    fn join_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let other = |t: Addr| Some(t) != facts.thread.object;
        let thread = self.object_on_stack(facts, found, "System.Threading.Thread", other);
        let at = thread.or_else(|| self.joined_by_event(facts, found))?;
        let joined = self.threads.all.iter().find(|t| t.object == Some(at))?;
        if joined.is_dead() {
            return None;
        }
        Some(ObjectWait {
            owners: vec![joined.managed_id],
            on: WaitsOn::End,
            ..object(
                at,
                format!(
                    "the end of thread '{}' (os id {})",
                    display_name(joined),
                    joined.os_id
                ),
                found,
            )
        })
    }

    /// The thread whose event of its end is waited for (11.0 on Unix).
    fn joined_by_event(&self, facts: &ThreadFacts, found: &Found) -> Option<Addr> {
        let class = "Microsoft.Win32.SafeHandles.SafeWaitHandle";
        let safe = self.object_on_stack(facts, found, class, |_| true)?;
        let objects = self.threads.all.iter().filter_map(|t| t.object);
        let of = |thread: &Addr| {
            let event = self.rt.reference(*thread, "_joinEvent")?;
            self.rt.reference(event, "_waitHandle")
        };
        objects.into_iter().find(|t| of(t) == Some(safe))
    }

    fn collection_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let semaphore = self.semaphore_on_stack(facts, found)?;
        let holds = |c: Addr| {
            ["_occupiedNodes", "_freeNodes"]
                .iter()
                .any(|f| self.rt.reference(c, f) == Some(semaphore))
        };
        let type_name = "System.Collections.Concurrent.BlockingCollection`1";
        let at = self.object_on_stack(facts, found, type_name, holds)?;
        let is_full = self.rt.reference(at, "_freeNodes") == Some(semaphore);
        let what = if is_full { "space in" } else { "an item of" };
        Some(ObjectWait {
            brings_work: !is_full,
            ..object(at, format!("{what} BlockingCollection {at}"), found)
        })
    }

    fn process_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let at = self.object_on_stack(facts, found, "System.Diagnostics.Process", |_| true)?;
        let id = self.rt.field_i32(at, "_processId")?;
        Some(object(at, format!("the end of process {id}"), found))
    }
}

/// The outermost of the innermost frames that tell how the thread waits.
fn find_way(facts: &ThreadFacts) -> Option<Found> {
    let mut found: Option<(usize, Way)> = None;
    for (index, method) in facts.frames.iter().take(MAX_FRAMES).enumerate() {
        let name = &method.name;
        if let Some((_, way)) = WAYS.iter().find(|(start, _)| name.starts_with(start)) {
            found = Some((index, *way));
        } else if !INSIDE.iter().any(|start| name.starts_with(start)) {
            break;
        }
    }
    let (index, way) = found?;
    let slot = |i: usize| facts.frames.get(i).map(|f| f.frame.slot);
    let (start, base) = facts.thread.stack?;
    // a frame's own part of the stack ends where the next one's return address stands
    let caller = slot(index.saturating_add(1)).unwrap_or(start);
    let beyond = slot(index.saturating_add(2)).filter(|s| *s > caller);
    let end = beyond.unwrap_or(caller + CALLER).min(caller + CALLER);
    Some(Found {
        way,
        method: facts.frames.get(index).map(|f| f.name.to_string())?,
        is_possible: facts
            .frames
            .get(index)
            .is_some_and(|f| f.frame.source == FrameSource::StackScan),
        // the frames below a join hold the thread's own object
        start: match way {
            Way::Join => joins(facts).unwrap_or(start),
            _ => start,
        },
        end: end.min(base),
    })
}

/// Whether a thread in the console's code reads from it.
fn reads(facts: &ThreadFacts) -> bool {
    let called = |method: &StackMethod| {
        let name = &method.name;
        let method = name.rsplit('.').next().unwrap_or_default();
        (name.starts_with("System.Console") || name.starts_with("System.IO."))
            && method.starts_with("Read")
    };
    facts.frames.iter().take(MAX_FRAMES).any(called)
}

/// Where the stack of the innermost frame of a join begins.
fn joins(facts: &ThreadFacts) -> Option<Addr> {
    let mut frames = facts.frames.iter();
    let join = frames.find(|f| f.name.starts_with("System.Threading.Thread.Join"))?;
    join.frame.slot.non_null()
}

fn object(at: Addr, text: String, found: &Found) -> ObjectWait {
    ObjectWait {
        at: Some(at),
        ..plain(text, found)
    }
}

fn plain(text: impl Into<String>, found: &Found) -> ObjectWait {
    ObjectWait {
        at: None,
        text: text.into(),
        owners: Vec::new(),
        on: WaitsOn::Other,
        writes: false,
        ended: 0,
        brings_work: false,
        how: if found.is_possible {
            format!(
                "{} on its stack, possibly left over from a call that has returned",
                found.method
            )
        } else {
            format!("{} on its stack", found.method)
        },
        is_possible: found.is_possible,
    }
}
