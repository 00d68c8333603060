//! Made-up code, as compilers write it.

use super::super::handlers::{Body, Handler, HandlerKind};
use super::{Entered, Form, Place, Root, Summary};
use crate::il::may_come_to;
use crate::metadata::Metadata;
use crate::table::{Coded, Table};
use crate::testing::{Builder, coded};
use crate::token::Token;
use proptest::prelude::*;
use std::rc::Rc;

mod t {
    pub(super) const STATE: u32 = 0x0400_0001;
    pub(super) const GATE: u32 = 0x0400_0002;
    pub(super) const OTHER: u32 = 0x0400_0003;
    pub(super) const WAIT_ASYNC: u32 = 0x0a00_0001;
    pub(super) const RELEASE: u32 = 0x0a00_0002;
    pub(super) const WAIT: u32 = 0x0a00_0003;
    pub(super) const GET_AWAITER: u32 = 0x0a00_0004;
    pub(super) const IS_COMPLETED: u32 = 0x0a00_0005;
    pub(super) const GET_RESULT: u32 = 0x0a00_0006;
    pub(super) const WORK: u32 = 0x0a00_0007;
    pub(super) const GET_VALUE: u32 = 0x0a00_0008;
    pub(super) const DISPOSE: u32 = 0x0a00_0009;
    pub(super) const TRY_ASYNC: u32 = 0x0a00_000a;
    pub(super) const TRY: u32 = 0x0a00_000b;
}

/// A state machine with two semaphores, what it calls of them and of tasks, and `Client.Work()`, which returns a task.
fn sample() -> Metadata<Vec<u8>> {
    let mut b = Builder::new();
    let [semaphore, threading, task, tasks, client] = [
        "SemaphoreSlim",
        "System.Threading",
        "Task",
        "System.Threading.Tasks",
        "Client",
    ]
    .map(|n| b.string(n));
    for (name, namespace) in [(semaphore, threading), (task, tasks), (client, 0)] {
        b.row(Table::TypeRef, &[0, name, namespace]);
    }
    let machine = b.string("<Run>d__0");
    b.row(Table::TypeDef, &[0, machine, 0, 0, 1, 1]);
    let int = b.blob(&[6, 8]);
    for name in ["<>1__state", "_gate", "_other"] {
        let name = b.string(name);
        b.row(Table::Field, &[6, name, int]);
    }
    let returns: &[u8] = &[0x20, 0, 0x12, 9];
    let members: [(&str, u32, &[u8]); 11] = [
        ("WaitAsync", 1, returns),
        ("Release", 1, &[0x20, 0, 0x08]),
        ("Wait", 1, &[0x20, 0, 0x01]),
        ("GetAwaiter", 2, returns),
        ("get_IsCompleted", 2, &[0x20, 0, 0x02]),
        ("GetResult", 2, &[0x20, 0, 0x01]),
        ("Work", 3, &[0x00, 0, 0x12, 9]),
        ("GetResult", 2, &[0x20, 0, 0x1c]),
        ("Dispose", 3, &[0x20, 0, 0x01]),
        ("WaitAsync", 1, &[0x20, 1, 0x15, 0x12, 9, 1, 0x02, 0x08]),
        ("Wait", 1, &[0x20, 1, 0x02, 0x08]),
    ];
    for (name, class, signature) in members {
        let (name, signature) = (b.string(name), b.blob(signature));
        let class = coded(Coded::MemberRefParent, Table::TypeRef, class);
        b.row(Table::MemberRef, &[class, name, signature]);
    }
    Metadata::parse(b.build()).expect("metadata")
}

/// Writes code.
#[derive(Default)]
struct Code {
    bytes: Vec<u8>,
    handlers: Vec<Handler>,
    /// Where the awaits stand.
    awaits: Vec<u32>,
}

impl Code {
    fn at(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn op(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn token(self, opcode: u8, token: u32) -> Self {
        self.op(&[opcode]).op(&token.to_le_bytes())
    }

    /// `ldarg.0; ldfld` and a call on what the field holds.
    fn call_on(self, field: u32, method: u32) -> Self {
        self.op(&[0x02]).token(0x7b, field).token(0x6f, method)
    }

    /// The await of the task on the stack.
    fn wait(self) -> Self {
        self.wait_for(t::GET_RESULT)
    }

    fn wait_for(self, result: u32) -> Self {
        let number = self.awaits.len() as u8;
        let mut code = self
            .token(0x6f, t::GET_AWAITER)
            .op(&[0x0d, 0x12, 3]) // stloc.3, ldloca.s 3
            .token(0x28, t::IS_COMPLETED)
            .op(&[0x2d, 15]) // brtrue.s to GetResult
            .op(&[0x02, 0x1f, number, 0x25, 0x0a]) // this, number, dup, stloc.0
            .token(0x7d, t::STATE);
        let at = code.at();
        code.awaits.push(at);
        code.op(&[0xdd, 0, 0, 1, 0]) // leave
            .op(&[0x12, 3])
            .token(0x28, result)
    }

    fn enter(self, field: u32) -> Self {
        self.call_on(field, t::WAIT_ASYNC).wait()
    }

    fn work(self) -> Self {
        self.token(0x28, t::WORK).wait()
    }

    fn release(self, field: u32) -> Self {
        self.call_on(field, t::RELEASE).op(&[0x26])
    }

    /// A block with `if (state < 0) Release()` in its `finally`; both ends leave to what follows.
    fn released_at_end(self, inside: fn(Self) -> Self, field: u32) -> Self {
        let start = self.at();
        let mut code = inside(self).op(&[0xde, 17]); // leave.s behind the finally
        let block = (start, code.at());
        code = code.op(&[0x06, 0x16, 0x2f, 12]); // ldloc.0, ldc.i4.0, bge.s endfinally
        code = code.release(field).op(&[0xdc]);
        code.handlers.push(Handler {
            kind: HandlerKind::Finally,
            block,
            code: (block.1, code.at()),
        });
        code
    }

    /// The entered fields at one of the awaits, with whether on every way.
    fn held(&self, number: usize) -> Vec<(String, bool)> {
        let found = self.entered(self.awaits[number], MACHINE);
        let names = found.into_iter().map(|e| {
            assert_eq!(e.place.root, Root::Argument(0));
            (e.place.fields.join("."), e.always && e.leaves)
        });
        names.collect()
    }

    fn entered(&self, at: u32, form: Form) -> Vec<Entered> {
        sample().entered_at(&self.body(), form, at, &|_| None)
    }

    fn body(&self) -> Body {
        Body {
            code: self.bytes.clone(),
            handlers: self.handlers.clone(),
        }
    }

    /// What is entered where `Work` is a lock's method that does what is told.
    fn entered_by_work(&self, number: usize, does: &Summary) -> Vec<Entered> {
        let does = Rc::new(does.clone());
        let work = Token(t::WORK);
        let summaries = |of| (of == work).then(|| Rc::clone(&does));
        sample().entered_at(&self.body(), MACHINE, self.awaits[number], &summaries)
    }
}

const MACHINE: Form = Form::Machine { iterator: false };

/// `num = state`, and the jump to the await that it goes on at, which leads nowhere here.
fn machine() -> Code {
    let code = Code::default()
        .op(&[0x02])
        .token(0x7b, t::STATE)
        .op(&[0x0a, 0x06]);
    code.op(&[0x45, 1, 0, 0, 0, 0xff, 0, 0, 0])
}

fn gate() -> Vec<(String, bool)> {
    vec![("_gate".to_owned(), true)]
}

#[test]
fn whoever_waits_to_enter_is_not_inside_and_whoever_is_behind_the_wait_is() {
    let code = machine().enter(t::GATE).work().release(t::GATE).work();
    assert_eq!(code.held(0), []);
    assert_eq!(code.held(1), gate());
    assert_eq!(code.held(2), []);
}

#[test]
fn calls_tell_the_variable_that_they_are_made_on() {
    let code = machine()
        .enter(t::GATE)
        .release(t::OTHER)
        .work()
        .release(t::GATE);
    let body = Body {
        code: code.bytes.clone(),
        handlers: Vec::new(),
    };
    let metadata = sample();
    let found = metadata.placed_calls(&body, MACHINE, &|name| name == "Release");
    let places: Vec<_> = found
        .iter()
        .map(|c| c.place.as_ref().map(|p| p.fields.join(".")))
        .collect();
    assert_eq!(places, [Some("_other".into()), Some("_gate".into())]);
    let [other, gate] = [found[0].il_offset, found[1].il_offset];
    assert!(may_come_to(&body.code, code.awaits[0], other));
    assert!(!may_come_to(&body.code, code.awaits[1], other));
    assert!(may_come_to(&body.code, code.awaits[1], gate));
    // br back to the begin of the machine
    let distance = -i32::try_from(body.code.len() + 5).unwrap();
    let looping = code.op(&[0x38]).op(&distance.to_le_bytes());
    assert!(may_come_to(&looping.bytes, looping.awaits[1], other));
}

#[test]
fn one_that_is_left_in_the_end_of_a_block_is_not_held_behind_it() {
    let code = machine()
        .enter(t::GATE)
        .released_at_end(|c| c.enter(t::OTHER).work(), t::GATE)
        .work();
    assert_eq!(code.held(1), gate());
    // `_other` is never left: whoever reads this decides
    assert_eq!(
        code.held(2),
        [("_gate".to_owned(), true), ("_other".to_owned(), false)]
    );
    assert_eq!(code.held(3), [("_other".to_owned(), false)]);
}

#[test]
fn one_entered_twice_is_held_at_the_second_wait() {
    let code = machine().enter(t::GATE).enter(t::GATE).release(t::GATE);
    assert_eq!(code.held(1), gate());
}

#[test]
fn one_entered_on_one_way_only_may_be_held() {
    // ldarg.1; brfalse.s over what enters
    let entering = Code::default().enter(t::GATE).at() as u8;
    let code = machine().op(&[0x03, 0x2c, entering]);
    let code = code.enter(t::GATE).work().release(t::GATE);
    assert_eq!(code.held(1), [("_gate".to_owned(), false)]);
}

#[test]
fn what_is_asked_for_null_is_what_was_entered() {
    // `if (_gate != null) await _gate.WaitAsync()`
    let entering = Code::default().enter(t::GATE).at() as u8;
    let code = machine().op(&[0x02]).token(0x7b, t::GATE);
    let code = code
        .op(&[0x2c, entering])
        .enter(t::GATE)
        .work()
        .release(t::GATE);
    assert_eq!(code.held(1), gate());
}

#[test]
fn plain_methods_hold_what_their_variables_hold() {
    // `var gate = this._gate; gate.Wait(); Work(); gate.Release()`
    let code = Code::default()
        .op(&[0x02])
        .token(0x7b, t::GATE)
        .op(&[0x0a, 0x06])
        .token(0x6f, t::WAIT);
    let at = code.at();
    let code = code.token(0x28, t::WORK).op(&[0x26, 0x06]);
    let code = code.token(0x6f, t::RELEASE).op(&[0x26, 0x2a]);
    let found = code.entered(at, Form::Plain);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place.root, Root::Local(0));
    assert_eq!(found[0].from.as_ref().unwrap().fields, ["_gate"]);
    assert!(found[0].always && found[0].leaves);
    assert!(code.entered(0, Form::Plain).is_empty());
}

fn lock() -> Summary {
    Summary {
        enters: vec![(None, true)],
        leaves: Vec::new(),
        is_awaited: true,
    }
}

#[test]
fn what_a_lock_hands_out_holds_it_until_it_is_disposed_of() {
    // `this._other = await Work(); await Work2(); this._other.Dispose(); await Work2()`, where `Work` enters a lock
    let code = machine().op(&[0x02]).token(0x28, t::WORK);
    let code = code.wait_for(t::GET_VALUE).token(0x7d, t::OTHER);
    let code = code.enter(t::GATE).call_on(t::OTHER, t::DISPOSE);
    let code = code.enter(t::GATE);
    assert!(code.entered_by_work(0, &lock()).is_empty());
    let found = code.entered_by_work(1, &lock());
    assert_eq!(found.len(), 1);
    assert!(matches!(found[0].place.root, Root::Call(_)));
    assert_eq!(found[0].handed.as_ref().unwrap().fields, ["_other"]);
    assert!(found[0].always && found[0].leaves);
    let behind = code.entered_by_work(2, &lock());
    assert!(behind.iter().all(|e| e.place.fields == ["_gate"]));
    // a method that has to do with no semaphore hands out nothing
    assert!(code.entered(code.awaits[1], MACHINE).is_empty());
}

#[test]
fn what_a_method_enters_and_leaves_is_told_in_its_arguments() {
    let told = |code: &Code| sample().summary(1, &code.body(), MACHINE, &|_| None);
    // nothing tells when a state machine without a builder ends
    let code = machine().enter(t::GATE);
    assert_eq!(told(&code).enters, []);
    let code = machine().release(t::GATE);
    assert_eq!(told(&code).leaves.len(), 1);
    let plain = Code::default().op(&[0x02]).token(0x7b, t::GATE);
    let summary = |code: &Code| sample().summary(1, &code.body(), Form::Plain, &|_| None);
    let gate = || {
        Some(Place {
            root: Root::Argument(0),
            fields: vec!["_gate".to_owned()],
        })
    };
    // `return _gate.WaitAsync()`, `_gate.Wait()`, `_gate.Release()`
    let task = plain.token(0x6f, t::WAIT_ASYNC).op(&[0x2a]);
    let expected = Summary {
        enters: vec![(gate(), true)],
        leaves: Vec::new(),
        is_awaited: true,
    };
    assert_eq!(summary(&task), expected);
    let at_once = Code::default().call_on(t::GATE, t::WAIT).op(&[0x2a]);
    let expected = Summary {
        is_awaited: false,
        ..expected
    };
    assert_eq!(summary(&at_once), expected);
    let exit = Code::default().release(t::GATE).op(&[0x2a]);
    let expected = Summary {
        enters: Vec::new(),
        leaves: vec![gate()],
        is_awaited: false,
    };
    assert_eq!(summary(&exit), expected);
}

#[test]
fn who_tries_to_enter_is_inside_where_the_code_goes_on_for_that() {
    // `if (await _gate.WaitAsync(10)) { await Work(); _gate.Release(); } else await Work()`
    let inside = |c: Code| c.work().release(t::GATE);
    let length = inside(Code::default()).at() as u8 + 2;
    let code = machine().op(&[0x02]).token(0x7b, t::GATE).op(&[0x1f, 10]);
    let code = code.token(0x6f, t::TRY_ASYNC).wait_for(t::GET_VALUE);
    let code = inside(code.op(&[0x2c, length]));
    let code = code.op(&[0x2b, Code::default().work().at() as u8]).work();
    assert_eq!(code.held(1), gate());
    assert_eq!(code.held(2), []);
    // `_gate.Wait(10); await Work(); _gate.Release()` does not ask
    let code = machine().op(&[0x02]).token(0x7b, t::GATE).op(&[0x1f, 10]);
    let code = code.token(0x6f, t::TRY).op(&[0x26]).work();
    assert_eq!(code.release(t::GATE).held(0), gate());
}

#[test]
fn a_range_of_awaits_is_asked_for_by_a_difference() {
    // `if ((uint)(num - 1) <= 1) goto` behind what enters: a method that runs does not jump there
    let entering = Code::default().enter(t::GATE).at() as u8;
    let code = machine().op(&[0x06, 0x17, 0x59, 0x17, 0x36, entering]);
    let code = code.enter(t::GATE).work().release(t::GATE);
    assert_eq!(code.held(1), gate());
}

proptest! {
    /// Any bytes end, with any handlers.
    #[test]
    fn any_code_ends(
        code in proptest::collection::vec(any::<u8>(), 0..256),
        ranges in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>()), 0..6),
        at in 0_u32..256,
    ) {
        let handler = |(a, b, c, d): (u8, u8, u8, u8)| Handler {
            kind: if a & 1 == 0 { HandlerKind::Finally } else { HandlerKind::Catch },
            block: (a.into(), b.into()),
            code: (c.into(), d.into()),
        };
        let body = Body { code, handlers: ranges.into_iter().map(handler).collect() };
        let held = sample().entered_at(&body, MACHINE, at, &|_| None);
        prop_assert!(held.len() <= 64);
        let held = sample().entered_at(&body, Form::Plain, at, &|_| None);
        prop_assert!(held.len() <= 64);
    }
}
