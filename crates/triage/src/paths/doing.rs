//! What a thread does, in words.

use super::Analysis;
use crate::threads::{Hang, ThreadFacts, Wait, WaitsOn};
use crate::words::listed;
use asynctriage_clr::{FrameSource, Lock};

/// Whether a thread goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It waits, or sleeps.
    Blocks,
    /// It runs managed code.
    Computes,
    /// It is in code that is not managed.
    Native,
}

impl Analysis<'_, '_> {
    /// All threads that live, with what each does.
    pub(crate) fn hang(&self) -> &Hang {
        self.hang.get_or_init(|| {
            let mut hang = Hang::find(self.stacks());
            self.add_requests(&mut hang);
            hang
        })
    }

    /// What a thread does, behind "which": `sleeps, in Program.Nap`.
    pub(crate) fn doing(&self, thread: &ThreadFacts) -> (Doing, String) {
        let caller = thread.caller().filter(|c| !c.is_possible);
        let caller = caller.map(|c| &**c.name).unwrap_or_default();
        let (doing, what) = if thread.wait.is_some() {
            (
                Doing::Blocks,
                format!("waits for {}", self.wait_text(thread)),
            )
        } else if caller.starts_with("System.Threading.Thread.Sleep") {
            (Doing::Blocks, "sleeps".to_owned())
        } else if thread.thread.in_wait() {
            (Doing::Blocks, format!("waits{}", inside(caller)))
        } else if thread.is_guessed() || thread.frames.is_empty() {
            (
                Doing::Native,
                "does what its stack does not tell".to_owned(),
            )
        } else if is_in_managed_code(thread) {
            (Doing::Computes, "computes".to_owned())
        } else {
            (Doing::Native, self.native_call(thread))
        };
        let own = thread.own_method().map(|(method, _)| method.place("in"));
        let own = own.filter(|o| !what.ends_with(o.as_str()));
        let place = own.map(|o| format!(", {o}")).unwrap_or_default();
        (doing, format!("{what}{place}"))
    }

    /// `is in native code (libX11.so.6!XOpenDisplay)`.
    fn native_call(&self, thread: &ThreadFacts) -> String {
        // those below the innermost managed frame
        let native = self.rt.native_frames(&thread.thread).into_iter();
        let native = native.take_while(|(managed, _)| *managed == 0);
        let native: Vec<_> = native.map(|(_, frame)| frame).collect();
        let function = |f: &asynctriage_clr::NativeFrame| {
            let (name, _) = f.function.clone()?;
            Some(format!("{}!{name}", f.image.as_deref()?))
        };
        let named = native.iter().find_map(function);
        let image = native.iter().find_map(|f| f.image.clone());
        match named.or(image) {
            Some(name) => format!("is in native code ({name})"),
            None => "is in native code".to_owned(),
        }
    }

    /// What a thread waits for, behind "waits for".
    pub(crate) fn wait_text(&self, thread: &ThreadFacts) -> String {
        let hang = self.hang();
        let owner_names = |ids: &[u32]| -> Vec<String> {
            let owners = ids.iter().filter_map(|id| hang.by_managed_id(*id));
            let owners = owners.filter_map(|i| hang.threads.get(i));
            owners.map(|o| format!("'{}'", o.name())).collect()
        };
        match &thread.wait {
            Some(Wait::Lock(lock)) => {
                let owner = owner_names(lock.owner.as_slice());
                let held = owner.first().map(|o| format!(", held by {o}"));
                format!("{}{}", self.lock_text(lock), held.unwrap_or_default())
            }
            Some(Wait::Task(wait)) => match self.awaited_names(*wait).as_slice() {
                [] => "a task, synchronously".into(),
                names => format!("the task of {}, synchronously", listed(names)),
            },
            Some(Wait::Pulse(lock)) => format!("a pulse of {}", self.lock_text(lock)),
            Some(Wait::Inside(method, _)) => format!("{method} to return"),
            Some(Wait::Object(object)) if object.on == WaitsOn::End => object.text.clone(),
            Some(Wait::Object(object)) => match owner_names(&object.owners).as_slice() {
                [] => object.text.clone(),
                names => format!("{}, held by {}", object.text, listed(names)),
            },
            None => "nothing that is known".into(),
        }
    }

    /// What a lock is called: the type of the object and its address.
    pub(crate) fn lock_text(&self, lock: &Lock) -> String {
        let object = lock.object.unwrap_or(lock.at);
        let ty = lock.object.and_then(|o| self.rt.type_of(o));
        match ty.map(|t| self.rt.name(&t)) {
            Some(name) => format!("the lock of {name} {object}"),
            None => format!("the lock {object}"),
        }
    }
}

/// Whether the thread's own instruction pointer stands in managed code.
fn is_in_managed_code(thread: &ThreadFacts) -> bool {
    let top = thread.frames.first();
    top.is_some_and(|f| f.frame.source == FrameSource::Registers)
}

fn inside(caller: &str) -> String {
    if caller.is_empty() {
        String::new()
    } else {
        format!(" in {caller}")
    }
}
