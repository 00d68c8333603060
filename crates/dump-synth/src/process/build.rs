//! Lays a process out in memory and writes its dump.

use super::*;

/// Where an item is, and what awaits it or runs on it.
#[derive(Debug)]
struct Placed {
    /// The task, box, or wait.
    at: u64,
    method: Option<Method>,
    waiters: Vec<u64>,
}

struct ThreadPlace {
    object: u64,
    wait: u64,
}

pub(super) struct Build<'a> {
    process: &'a Process,
    world: World,
    placed: Vec<Placed>,
    threads: Vec<ThreadPlace>,
}

impl<'a> Build<'a> {
    /// The bytes of a core of the process.
    pub(super) fn core(process: &'a Process, space: Space) -> Vec<u8> {
        let mut build = Self {
            process,
            world: World::new(space),
            placed: Vec::new(),
            threads: Vec::new(),
        };
        build.place();
        build.fill();
        build.link();
        build.finish()
    }

    fn address(&self, label: &str) -> u64 {
        self.placed[self.index(label)].at
    }

    fn index(&self, label: &str) -> usize {
        let index = self.process.labels.get(label);
        *index.unwrap_or_else(|| panic!("nothing is called {label}"))
    }

    /// Gives every item its place on the heap.
    fn place(&mut self) {
        let mut statics = Vec::new();
        for item in &self.process.items {
            let mut method = None;
            let at = match item {
                Item::Source { rooted } => {
                    let (task, owner) = self.place_source();
                    statics.extend(rooted.then_some(owner));
                    task
                }
                Item::Method { name, .. } | Item::Completed { name } | Item::Copy { name, .. } => {
                    let called = self.world.method(name);
                    let at = self.world.object(&called.boxed);
                    method = Some(called);
                    at
                }
                Item::Thread { name, .. } => {
                    let ty = self.world.core.blocking_wait.clone();
                    let wait = self.world.object(&ty);
                    self.place_thread(name, wait);
                    wait
                }
                Item::Torn { bytes } => self.place_torn(*bytes),
            };
            self.placed.push(Placed {
                at,
                method,
                waiters: Vec::new(),
            });
        }
        self.world.pinned_array(&statics);
    }

    fn place_source(&mut self) -> (u64, u64) {
        let (task_type, source) = (self.world.core.task.clone(), self.world.core.source.clone());
        let (at, owner) = (self.world.object(&task_type), self.world.object(&source));
        self.world.set(owner, &source, "_task", at);
        let flags = task::WAITING_FOR_ACTIVATION | task::PROMISE;
        self.world.set_u32(at, &task_type, "m_stateFlags", flags);
        (at, owner)
    }

    fn place_thread(&mut self, name: &str, wait: u64) {
        let ty = self.world.core.thread.clone();
        let (name, object) = (self.world.text(name), self.world.object(&ty));
        self.world.set(object, &ty, "_name", name);
        self.threads.push(ThreadPlace { object, wait });
    }

    fn place_torn(&mut self, bytes: u64) -> u64 {
        let at = self.world.heap.take(&mut self.world.space, bytes);
        for word in 0..bytes / 8 {
            self.world
                .space
                .put_u64(at + 8 * word, 0x4141_4141_4141_4141);
        }
        at
    }

    /// Writes the state machines, and notes who awaits what.
    fn fill(&mut self) {
        for (index, item) in self.process.items.iter().enumerate() {
            let at = self.placed[index].at;
            let method = self.placed[index].method.clone();
            match (item, method) {
                (Item::Method { state, awaits, .. }, Some(m)) => {
                    // a method that runs has emptied its awaiter and waits in no list
                    let target = if *state == -1 {
                        0
                    } else {
                        self.address(awaits)
                    };
                    self.write_machine(at, &m, *state, at, target);
                    if target != 0 && !self.is_unlisted(index) {
                        let target = self.index(awaits);
                        self.placed[target].waiters.push(at);
                    }
                }
                (
                    Item::Copy {
                        original, awaits, ..
                    },
                    Some(m),
                ) => {
                    let (names, target) = (self.address(original), self.address(awaits));
                    self.write_machine(at, &m, 0, names, target);
                }
                (Item::Completed { .. }, Some(m)) => {
                    let flags = task::RAN_TO_COMPLETION | task::PROMISE;
                    self.world.set_u32(at, &m.boxed, "m_stateFlags", flags);
                }
                (Item::Thread { awaits, .. }, _) => {
                    let target = self.index(awaits);
                    self.placed[target].waiters.push(at);
                }
                _ => {}
            }
        }
    }

    fn is_unlisted(&self, index: usize) -> bool {
        let mut unlisted = self.process.unlisted.iter();
        unlisted.any(|call| self.index(call) == index)
    }

    fn write_machine(&mut self, at: u64, method: &Method, state: i32, names: u64, awaits: u64) {
        let Method { machine, boxed } = method;
        let flags = task::WAITING_FOR_ACTIVATION | task::PROMISE;
        self.world.set_u32(at, boxed, "m_stateFlags", flags);
        let inside = at + boxed.in_object("StateMachine");
        let space = &mut self.world.space;
        space.put_u32(
            inside + machine.in_value("<>1__state"),
            state.cast_unsigned(),
        );
        space.put_u64(inside + machine.in_value("<>t__builder"), names);
        space.put_u64(inside + machine.in_value("<>u__1"), awaits);
    }

    /// Writes the continuations: the waiter itself when there is one, else a list.
    fn link(&mut self) {
        let by_index: HashMap<usize, Scars> = self
            .process
            .scars
            .iter()
            .map(|(label, scars)| (self.index(label), scars.clone()))
            .collect();
        for (awaited, call) in &self.process.strangers {
            let (awaited, call) = (self.index(awaited), self.address(call));
            self.placed[awaited].waiters.push(call);
        }
        let task_type = self.world.core.task.clone();
        for index in 0..self.placed.len() {
            let at = self.placed[index].at;
            let waiters = std::mem::take(&mut self.placed[index].waiters);
            let continuation = match (waiters.as_slice(), by_index.get(&index)) {
                ([], None) => continue,
                ([one], None) => *one,
                (all, scars) => self.waiter_list(all, scars.unwrap_or(&Scars::default())),
            };
            self.world
                .set(at, &task_type, "m_continuationObject", continuation);
        }
    }

    /// A list with the removed entries behind the first waiter, and the leftovers behind its end.
    fn waiter_list(&mut self, waiters: &[u64], scars: &Scars) -> u64 {
        let mut items = waiters.to_vec();
        let nulls = std::iter::repeat_n(0, scars.nulls);
        items.splice(waiters.len().min(1)..waiters.len().min(1), nulls);
        let size = items.len();
        items.extend(scars.leftovers.iter().map(|l| self.address(l)));
        items.resize(items.len().next_power_of_two().max(4), 0);
        let array = self.world.array(&items);
        let ty: Type = self.world.core.list.clone();
        let list = self.world.object(&ty);
        self.world.set(list, &ty, "_items", array);
        self.world.set_u32(list, &ty, "_size", size as u32);
        list
    }

    fn finish(mut self) -> Vec<u8> {
        let reserved = self.world.heap.take(&mut self.world.space, RESERVED);
        self.place_thread("main", 0);
        let threads = self.write_threads(reserved);
        let World {
            mut space,
            native,
            heap,
            core_lib,
            app,
            core,
            ..
        } = self.world;
        if self.process.collection == Some(Collection::Marking) {
            let calls = self.placed.iter();
            let calls = calls.filter_map(|p| Some((p.at, p.method.as_ref()?.boxed.mt)));
            calls.for_each(|(at, mt)| space.put_u64(at, mt | MARK));
        }
        let moving = self.process.collection == Some(Collection::Moving);
        let gc = heap.write(&mut space, native, moving.into());
        let domain = space.take(native, 64);
        let first = threads.first;
        let store = space.take(native, thread::STORE_SIZE);
        space.put_u64(store + thread::STORE_FIRST, first);
        space.put_u32(store + thread::STORE_COUNT, threads.status.len() as u32);
        // who collects has stopped all others
        let stopper = self.process.collection.map_or(0, |_| store);
        let variables = [
            (dac::THREAD_STORE, store),
            (dac::SUSPENSION_THREAD, stopper),
            (dac::GC_DAC_VARS, gc),
            (dac::APP_DOMAIN, domain),
            (dac::OBJECT, core.object.mt),
            (dac::STRING, core.string),
            (dac::FREE, core.free),
        ];
        for (index, value) in variables {
            library::set(&mut space, index, value);
        }
        let mut files: Vec<Mapped> = vec![(
            library::BASE,
            library::BASE + library::SIZE,
            library::PATH.to_owned(),
        )];
        for (module, path) in [(&core_lib, library::CORE_LIB_PATH), (&app, "/app/App.dll")] {
            let (start, end) = module.write(&mut space);
            files.push((start, end, path.to_owned()));
        }
        core_file::write(&space, PROCESS_ID, &threads.status, &files)
    }

    /// Writes the native threads, linked through the middle of each, the main one first.
    fn write_threads(&mut self, reserved: u64) -> Written {
        let space = &mut self.world.space;
        let native = self.world.native;
        let count = self.threads.len();
        let at: Vec<u64> = (0..count)
            .map(|_| space.take(native, thread::SIZE))
            .collect();
        let mut status = Vec::new();
        for (i, place) in self.threads.iter().rev().enumerate() {
            let stack = STACKS + STACK_DISTANCE * i as u64;
            let pointer = stack + STACK_UNUSED;
            space.filled(stack, vec![0; STACK as usize], 6);
            space.put_u64(pointer + STACK_WAIT, place.wait);
            let id = PROCESS_ID + i as u32;
            let handle = space.take(native, 8);
            space.put_u64(handle, place.object);
            let locals = space.take(native, 64);
            if i == 0 {
                let context = locals + thread::ALLOC_CONTEXT;
                space.put_u64(context, reserved);
                space.put_u64(context + 8, reserved + RESERVED - RESERVED_TAIL);
            }
            let this = at[i];
            let next = at.get(i + 1).map_or(0, |n| n + thread::LINK);
            space.put_u32(this + thread::STATE, 0x0200_0000);
            space.put_u32(this + thread::ID, i as u32 + 1);
            space.put_u64(this + thread::LOCALS, locals);
            space.put_u64(this + thread::LINK, next);
            space.put_u64(this + thread::STACK_BASE, stack + STACK);
            space.put_u32(this + thread::OS_ID, id);
            space.put_u64(this + thread::EXPOSED, handle);
            status.push(Status {
                id,
                rip: library::BASE + 0x800,
                rsp: pointer,
            });
        }
        Written {
            first: at[0] + thread::LINK,
            status,
        }
    }
}

/// The threads as they were written.
struct Written {
    /// Link of the first one.
    first: u64,
    status: Vec<Status>,
}
