//! Awaits in made-up code, as compilers write it.

use super::*;
use crate::table::{Coded, Table};
use crate::testing::{Builder, coded};
use proptest::prelude::*;

/// Tokens of the sample.
mod t {
    pub(super) const STATE: u32 = 0x0400_0001;
    pub(super) const AWAITER: u32 = 0x0400_0002;
    pub(super) const BUILDER: u32 = 0x0400_0003;
    pub(super) const GATE: u32 = 0x0400_0004;
    pub(super) const SEND: u32 = 0x0a00_0001;
    pub(super) const GET_AWAITER: u32 = 0x0a00_0002;
    pub(super) const IS_COMPLETED: u32 = 0x0a00_0003;
    pub(super) const SUSPEND: u32 = 0x2b00_0001;
    pub(super) const DELAY: u32 = 0x0a00_0005;
    pub(super) const CONFIGURE: u32 = 0x0a00_0006;
    pub(super) const AWAIT: u32 = 0x0a00_0007;
    pub(super) const FILL: u32 = 0x0a00_0008;
}

/// A state machine, and the methods that it calls. `Client.SendAsync(x)` and `Task.Delay()` are static and return
/// tasks, `Client.Fill(ref x)` returns nothing.
fn sample() -> Metadata<Vec<u8>> {
    let mut b = Builder::new();
    let [client, task, helpers, tasks, services] = [
        "Client",
        "Task",
        "AsyncHelpers",
        "System.Threading.Tasks",
        "System.Runtime.CompilerServices",
    ]
    .map(|n| b.string(n));
    for (name, namespace) in [(client, 0), (task, tasks), (helpers, services)] {
        b.row(Table::TypeRef, &[0, name, namespace]);
    }
    let machine = b.string("<Run>d__0");
    b.row(Table::TypeDef, &[0, machine, 0, 0, 1, 1]);
    let int = b.blob(&[6, 8]);
    for name in ["<>1__state", "<>u__1", "<>t__builder", "_gate"] {
        let name = b.string(name);
        b.row(Table::Field, &[6, name, int]);
    }
    // 0x12 9 is the class Task
    let signatures: [&[u8]; 8] = [
        &[0x00, 1, 0x12, 9, 0x1c],
        &[0x20, 0, 0x12, 9],
        &[0x20, 0, 0x02],
        &[0x30, 2, 2, 0x01, 0x10, 0x1e, 0, 0x10, 0x1e, 1],
        &[0x00, 0, 0x12, 9],
        &[0x20, 1, 0x12, 9, 0x02],
        &[0x00, 1, 0x01, 0x12, 9],
        &[0x00, 1, 0x01, 0x10, 0x12, 9],
    ];
    let members = [
        ("SendAsync", 1),
        ("GetAwaiter", 2),
        ("get_IsCompleted", 2),
        ("AwaitUnsafeOnCompleted", 2),
        ("Delay", 2),
        ("ConfigureAwait", 2),
        ("Await", 3),
        ("Fill", 1),
    ];
    for ((name, class), signature) in members.into_iter().zip(signatures) {
        let (name, signature) = (b.string(name), b.blob(signature));
        let class = coded(Coded::MemberRefParent, Table::TypeRef, class);
        b.row(Table::MemberRef, &[class, name, signature]);
    }
    let generic = coded(Coded::MethodDefOrRef, Table::MemberRef, 4);
    b.row(Table::MethodSpec, &[generic, 0]);
    let (run, signature, id) = (b.string("Run"), b.blob(&[0, 1, 1, 8]), b.string("id"));
    b.row(Table::MethodDef, &[0, 0, 0x10, run, signature, 1]);
    b.row(Table::Param, &[0, 1, id]);
    Metadata::parse(b.build()).expect("metadata")
}

/// Writes code.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn op(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn token(self, opcode: u8, token: u32) -> Self {
        self.op(&[opcode]).op(&token.to_le_bytes())
    }

    /// The part of an await behind the awaited value: `ldc` loads the number. Answers where the number has been stored.
    fn suspend(self, ldc: &[u8]) -> (Self, u32) {
        let code = self
            .token(0x6f, t::GET_AWAITER)
            .op(&[0x0d, 0x12, 3]) // stloc.3, ldloca.s 3
            .token(0x28, t::IS_COMPLETED)
            .op(&[0x2d, 34 + ldc.len() as u8]) // brtrue.s to the end
            .op(&[0x02])
            .op(ldc)
            .op(&[0x25, 0x0a]) // dup, stloc.0
            .token(0x7d, t::STATE);
        let at = code.0.len() as u32;
        let code = code
            .op(&[0x02, 0x09])
            .token(0x7d, t::AWAITER)
            .op(&[0x02])
            .token(0x7c, t::BUILDER)
            .op(&[0x12, 3, 0x02])
            .token(0x28, t::SUSPEND)
            .op(&[0xdd, 0, 0, 1, 0]); // leave
        (code, at)
    }
}

fn found(code: &Code) -> Vec<(u32, u32, Option<String>)> {
    let sites = sample().state_machine_awaits(&code.0);
    assert!(
        sites
            .iter()
            .all(|s| s.awaiter_field.as_deref() == Some("<>u__1"))
    );
    sites
        .into_iter()
        .map(|s| (s.number, s.il_offset, s.awaits))
        .collect()
}

#[test]
fn a_number_leads_to_the_awaited_call() {
    let (code, first) = Code::default()
        .op(&[0x02])
        .token(0x28, t::SEND)
        .suspend(&[0x16]);
    let (code, second) = code.token(0x28, t::DELAY).suspend(&[0x1f, 9]);
    assert_eq!(
        found(&code),
        [
            (0, first, Some("Client.SendAsync".into())),
            (9, second, Some("Task.Delay".into())),
        ]
    );
}

#[test]
fn what_only_changes_how_is_awaited_is_seen_through() {
    let (code, at) = Code::default()
        .token(0x28, t::DELAY)
        .op(&[0x16])
        .token(0x6f, t::CONFIGURE)
        .suspend(&[0x16]);
    assert_eq!(found(&code), [(0, at, Some("Task.Delay".into()))]);
}

#[test]
fn a_field_is_named() {
    let (code, at) = Code::default()
        .op(&[0x02])
        .token(0x7b, t::GATE)
        .suspend(&[0x16]);
    assert_eq!(found(&code), [(0, at, Some("_gate".into()))]);
}

#[test]
fn one_of_two_is_named_as_such() {
    // brtrue.s over `SendAsync(null); br.s`
    let (code, at) = Code::default()
        .op(&[0x02, 0x2d, 8, 0x14])
        .token(0x28, t::SEND)
        .op(&[0x2b, 5])
        .token(0x28, t::DELAY)
        .suspend(&[0x16]);
    let text = Some("Task.Delay or Client.SendAsync".into());
    assert_eq!(found(&code), [(0, at, text)]);
}

#[test]
fn a_local_that_others_may_have_set_is_not_named() {
    let set = Code::default().token(0x28, t::DELAY).op(&[0x0b]); // stloc.1
    let (plain, at) = Code(set.0.clone()).op(&[0x07]).suspend(&[0x16]);
    assert_eq!(found(&plain), [(0, at, Some("Task.Delay".into()))]);
    let (by_reference, at) = Code(set.0.clone())
        .op(&[0x12, 1])
        .token(0x28, t::FILL)
        .op(&[0x07])
        .suspend(&[0x16]);
    assert_eq!(found(&by_reference), [(0, at, None)]);
    // brtrue.s jumps over the store
    let (joined, at) = Code::default()
        .op(&[0x02, 0x2d, 6])
        .op(&set.0)
        .op(&[0x07])
        .suspend(&[0x16]);
    assert_eq!(found(&joined), [(0, at, None)]);
}

#[test]
fn a_number_that_stands_twice_says_nothing() {
    let (code, _) = Code::default().token(0x28, t::DELAY).suspend(&[0x16]);
    let (code, _) = code.op(&[0x14]).token(0x28, t::SEND).suspend(&[0x16]);
    let (code, last) = code.token(0x28, t::DELAY).suspend(&[0x17]);
    assert_eq!(found(&code), [(1, last, Some("Task.Delay".into()))]);
}

#[test]
fn runtime_async_methods_are_counted_by_their_calls() {
    let code = Code::default()
        .token(0x28, t::DELAY)
        .token(0x28, t::AWAIT)
        .op(&[0x02])
        .token(0x28, t::AWAIT);
    let sites = sample().runtime_async_awaits(1, &code.0);
    let seen: Vec<_> = sites
        .iter()
        .map(|s| (s.number, s.il_offset, s.awaits.as_deref()))
        .collect();
    assert_eq!(seen, [(0, 5, Some("Task.Delay")), (1, 11, Some("id"))]);
    assert_eq!(sample().await_sites(&code.0), [5, 11]);
}

proptest! {
    #[test]
    fn damaged_code_is_survived(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10)
    ) {
        let (code, _) = Code::default().op(&[0x02, 0x2d, 6]).token(0x28, t::SEND).suspend(&[0x16]);
        let (code, _) = code.token(0x28, t::DELAY).suspend(&[0x17]);
        let mut bytes = code.0;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let sites = sample().state_machine_awaits(&bytes);
        prop_assert!(sites.is_sorted_by_key(|s| s.number));
        let _ = sample().runtime_async_awaits(1, &bytes);
    }

    #[test]
    fn any_code_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = sample().state_machine_awaits(&bytes);
        let _ = sample().runtime_async_awaits(1, &bytes);
    }
}
