//! Which instructions may run after another one.

use super::effect::{ends_block, is_branch};
use super::handlers::{Body, Handler};
use super::{Instruction, SWITCH, instructions};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of one method that are looked at.
const MAX_INSTRUCTIONS: usize = 1 << 16;

/// Where a method stands that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// At an instruction: a call that has not returned.
    At(u32),
    /// A state machine of C#, at an await that ends at or behind this offset: what suspends leaves the method, and behind
    /// that is what runs when it is resumed.
    Suspended(u32),
}

/// The offsets of the instructions that another call of the method may run without passing one of the places where calls of
/// it stand. `None` where that cannot be read.
#[must_use]
pub fn around(body: &Body, places: &[Stands]) -> Option<BTreeSet<u32>> {
    let all: Vec<Instruction<'_>> = instructions(&body.code).take(MAX_INSTRUCTIONS).collect();
    let mut barred = BTreeSet::new();
    for place in places {
        barred.insert(match place {
            Stands::At(at) => all.iter().find(|i| i.at <= *at && *at < i.next)?.at,
            // whoever suspends and whoever need not do so meet at the call that takes the result
            Stands::Suspended(at) => {
                let start = resumed_at(&all, *at)?;
                let calls = |i: &&Instruction<'_>| i.at >= start && matches!(i.opcode, 0x28 | 0x6f);
                all.iter().find(calls)?.at
            }
        });
    }
    Some(reached(body, &all, 0, &barred))
}

/// The offsets of the instructions that may run once a method goes on. Exceptions come from anywhere in a block; what
/// branches ask for is not looked at. `None` when the code is too long or cannot be read where it stands.
#[must_use]
pub fn behind(body: &Body, stands: Stands) -> Option<BTreeSet<u32>> {
    let all: Vec<Instruction<'_>> = instructions(&body.code).take(MAX_INSTRUCTIONS).collect();
    let start = match stands {
        Stands::At(at) => all.iter().find(|i| i.at <= at && at < i.next)?.next,
        Stands::Suspended(at) => resumed_at(&all, at)?,
    };
    Some(reached(body, &all, start, &BTreeSet::new()))
}

/// Where a state machine goes on that is suspended.
fn resumed_at(all: &[Instruction<'_>], at: u32) -> Option<u32> {
    let leaves = |i: &&Instruction<'_>| i.next > at && matches!(i.opcode, 0xdd | 0xde);
    Some(all.iter().find(leaves)?.next)
}

fn reached(
    body: &Body,
    all: &[Instruction<'_>],
    start: u32,
    barred: &BTreeSet<u32>,
) -> BTreeSet<u32> {
    let by_offset: BTreeMap<u32, usize> = all.iter().enumerate().map(|(n, i)| (i.at, n)).collect();
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut todo = vec![start];
    while let Some(at) = todo.pop() {
        let Some(i) = by_offset.get(&at).and_then(|n| all.get(*n)) else {
            continue;
        };
        if barred.contains(&at) || !seen.insert(at) {
            continue;
        }
        let inside = |h: &&Handler| h.block.0 <= at && at < h.block.1;
        todo.extend(body.handlers.iter().filter(inside).map(|h| h.code.0));
        if i.opcode == SWITCH {
            todo.extend(i.cases());
        } else if is_branch(i.opcode) {
            todo.extend(i.target());
        }
        if !ends_block(i.opcode) {
            todo.push(i.next);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::il::HandlerKind;
    use proptest::prelude::*;

    fn body(code: &[u8], handlers: Vec<Handler>) -> Body {
        Body {
            code: code.to_vec(),
            handlers,
        }
    }

    /// `if (x) A(); else B(); C()`, the calls at 3, 10 and 15.
    const BRANCHES: [u8; 21] = [
        0x02, 0x2c, 7, 0x28, 1, 0, 0, 6, 0x2b, 5, 0x28, 2, 0, 0, 6, 0x28, 3, 0, 0, 6, 0x2a,
    ];

    #[test]
    fn the_other_branch_does_not_run_behind_this_one() {
        let code = body(&BRANCHES, Vec::new());
        let found = behind(&code, Stands::At(3)).unwrap();
        assert!(!found.contains(&10) && found.contains(&15));
        assert!(!found.contains(&3));
        let found = behind(&code, Stands::At(0)).unwrap();
        assert!(found.contains(&3) && found.contains(&10));
        assert_eq!(behind(&code, Stands::At(21)), None);
    }

    #[test]
    fn another_call_may_go_round_a_place() {
        let code = body(&BRANCHES, Vec::new());
        let found = around(&code, &[Stands::At(3)]).unwrap();
        assert!(!found.contains(&3) && found.contains(&10) && found.contains(&15));
        let found = around(&code, &[Stands::At(3), Stands::At(10)]).unwrap();
        assert!(!found.contains(&15));
        // A() suspends, leave.s; B() takes the result; C()
        let code = [
            0x28, 1, 0, 0, 6, 0xde, 10, 0x28, 2, 0, 0, 6, 0x28, 3, 0, 0, 6, 0x2a,
        ];
        let code = body(&code, Vec::new());
        let found = around(&code, &[Stands::Suspended(0)]).unwrap();
        assert!(!found.contains(&12), "{found:?}");
    }

    #[test]
    fn a_loop_comes_back_and_a_handler_runs_from_inside_its_block() {
        // A(); B(); br.s to A
        let code = [0x28, 1, 0, 0, 6, 0x28, 2, 0, 0, 6, 0x2b, 0xf4];
        let found = behind(&body(&code, Vec::new()), Stands::At(5)).unwrap();
        assert!(found.contains(&0));
        // try { A() leave.s } finally { B() endfinally } ret
        let code = [0x28, 1, 0, 0, 6, 0xde, 6, 0x28, 2, 0, 0, 6, 0xdc, 0x2a];
        let finally = Handler {
            kind: HandlerKind::Finally,
            block: (0, 7),
            code: (7, 13),
        };
        let found = behind(&body(&code, vec![finally]), Stands::At(0)).unwrap();
        assert!(found.contains(&7) && found.contains(&13));
    }

    #[test]
    fn a_resumed_machine_goes_on_behind_what_suspends() {
        // A(), leave.s to the end, B(), ret: A hands the continuation over
        let code = [0x28, 1, 0, 0, 6, 0xde, 5, 0x28, 2, 0, 0, 6, 0x2a];
        let found = behind(&body(&code, Vec::new()), Stands::Suspended(0)).unwrap();
        assert!(found.contains(&7));
        let found = behind(&body(&code, Vec::new()), Stands::At(0)).unwrap();
        assert!(!found.contains(&7));
    }

    proptest! {
        /// Any bytes end.
        #[test]
        fn any_code_ends(code in proptest::collection::vec(any::<u8>(), 0..256), at in 0_u32..256) {
            let body = body(&code, Vec::new());
            for stands in [Stands::At(at), Stands::Suspended(at)] {
                prop_assert!(behind(&body, stands).is_none_or(|all| all.len() <= 256));
            }
        }
    }
}
