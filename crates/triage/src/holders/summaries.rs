//! What methods of the program do to semaphores, each read once.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::Token;
use asynctriage_metadata::il::{Form, Summary};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Calls inside calls that are followed.
const MAX_DEPTH: u32 = 4;
/// Methods that are read.
const MAX_METHODS: usize = 20_000;
/// Longest code of a method that is read for what its callers need, in bytes: locks are short.
const MAX_CODE: usize = 1 << 12;

type Method = (Addr, u32);

pub(super) struct Summaries<'a, 'd> {
    rt: &'a Runtime<'d>,
    known: RefCell<FxHashMap<Method, Option<Rc<Summary>>>>,
    depth: Cell<u32>,
}

impl<'a, 'd> Summaries<'a, 'd> {
    pub(super) fn new(rt: &'a Runtime<'d>) -> Self {
        Self {
            rt,
            known: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// What a method does that code of a module calls; `None` where that is not known or has to do with no semaphore.
    pub(super) fn of(&self, module: Addr, callee: Token) -> Option<Rc<Summary>> {
        let method = self.method(module, callee)?;
        if let Some(known) = self.known.borrow().get(&method) {
            return known.clone();
        }
        if self.depth.get() >= MAX_DEPTH || self.known.borrow().len() >= MAX_METHODS {
            return None;
        }
        // one that calls itself adds nothing to what it does
        self.known.borrow_mut().insert(method, None);
        self.depth.set(self.depth.get().saturating_add(1));
        let found = self.read(method);
        self.depth.set(self.depth.get().saturating_sub(1));
        let found = found.filter(|s| !s.enters.is_empty() || !s.leaves.is_empty());
        let found = found.map(Rc::new);
        self.known.borrow_mut().insert(method, found.clone());
        found
    }

    fn method(&self, module: Addr, callee: Token) -> Option<Method> {
        let of = self.rt.module(module);
        let metadata = of.metadata.as_ref()?;
        if let Some(rid) = metadata.callee_definition(callee) {
            return Some((module, rid));
        }
        let wanted = metadata.callee_elsewhere(callee)?;
        let mut all = self.rt.modules_seen().into_iter();
        let found = all.find(|m| m.name == wanted.assembly && !m.ships_with_dotnet)?;
        let rid = found.metadata.as_ref()?.method_named(&wanted)?;
        Some((found.addr, rid))
    }

    fn read(&self, (module, rid): Method) -> Option<Summary> {
        let of = self.rt.module(module);
        let metadata = of.metadata.as_ref().filter(|_| !of.ships_with_dotnet)?;
        let body = self.rt.method_body(module, rid)?;
        let machine = metadata.machine_started_by(&body.code);
        let (body, form) = match machine {
            Some(machine) => {
                let code = self.rt.move_next(module, machine)?;
                let form = Form::Machine { iterator: false };
                (self.rt.method_body(module, code)?, form)
            }
            None => (body, Form::Plain),
        };
        if body.code.len() > MAX_CODE {
            return None;
        }
        let summaries = |callee| self.of(module, callee);
        Some(metadata.summary(rid, &body, form, &summaries))
    }
}
