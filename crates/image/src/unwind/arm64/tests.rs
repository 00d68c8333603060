use super::*;
use crate::test_memory::Pieces;
use proptest::prelude::*;

const BASE: u64 = 0x5000_0000;
const BEGIN: u32 = 0x1000;
const UNWIND: u32 = 0x8000;
const STACK: u64 = 0x7000_0000;
const RETURN: u64 = 0x5050_5050;

/// A stack whose words tell their own place, but for some.
fn stack(words: &[(u64, u64)]) -> Vec<u8> {
    let mut all: Vec<u64> = (0..0x400).map(|i| 0xaa00_0000 + i * 8).collect();
    for (at, value) in words {
        all[*at as usize / 8] = *value;
    }
    all.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// What stands at a place of the stack that nothing was put at.
fn on_stack(at: u64) -> Option<u64> {
    Some(0xaa00_0000 + at)
}

fn state(sp: u64, fp: u64, link: u64) -> Arm64State {
    let mut state = Arm64State::default();
    for register in 0..=28 {
        state.set(register, Some(u64::from(register)));
    }
    state.set(FP, Some(STACK + fp));
    state.set(LINK, Some(link));
    state.set(SP, Some(STACK + sp));
    state
}

/// A function with unwind information of its own.
fn unpacked(information: &[u8], words: &[(u64, u64)]) -> (Arm64Function, Pieces) {
    let memory = Pieces::default()
        .with(BASE + u64::from(UNWIND), information)
        .with(STACK, stack(words));
    let function = Arm64Function {
        base: Addr(BASE),
        begin: BEGIN,
        unwind: UNWIND,
    };
    (function, memory)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|b| char::from(b).to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Leaves a function at an instruction; `None` when that cannot be done.
fn leave(
    (function, memory): &(Arm64Function, Pieces),
    instruction: u32,
    is_interrupted: bool,
    mut state: Arm64State,
) -> Option<(u64, u64, Arm64State)> {
    let ip = Addr(BASE + u64::from(BEGIN + instruction * 4));
    let left = function
        .leave(memory, ip, is_interrupted, &mut state)
        .ok()?;
    Some((left.ip, state.get(SP)? - STACK, state))
}

// The information of these tests is that of functions of System.Private.CoreLib 10.0.15, linux-arm64.

/// 13 instructions; `stp x29, x30, [sp, -16]!`, `mov x29, sp`; from the 12th on `ldp x29, x30, [sp], 16`, `ret`.
const SMALL: &str = "0d005008 0b004000 e181e4e4";

#[test]
fn the_body_of_a_function_has_all_of_its_frame() {
    let function = unpacked(&hex(SMALL), &[(0x40, STACK + 0x100), (0x48, RETURN)]);
    // the stack pointer need not stand where the begin of the function left it
    let (ip, sp, state) = leave(&function, 5, false, state(0x20, 0x40, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x50));
    assert_eq!(state.get(FP), Some(STACK + 0x100));
    assert_eq!(state.get(19), Some(19));
    assert_eq!(state.get(LINK), None, "told by nothing any more");
    assert_eq!(state.get(0), None);
}

#[test]
fn what_the_begin_has_not_done_is_not_undone() {
    let function = unpacked(&hex(SMALL), &[(0x40, STACK + 0x100), (0x48, RETURN)]);
    let at = |instruction, sp| leave(&function, instruction, true, state(sp, 0x200, 7)).unwrap();
    let (ip, sp, _) = at(0, 0x40);
    assert_eq!((ip, sp), (7, 0x40));
    let (ip, sp, _) = at(1, 0x40);
    assert_eq!((ip, sp), (RETURN, 0x50), "x29 still is the caller's");
}

#[test]
fn what_the_end_has_done_is_not_undone() {
    let function = unpacked(&hex(SMALL), &[(0x40, STACK + 0x100), (0x48, RETURN)]);
    let (ip, sp, _) = leave(&function, 11, true, state(0x40, 0x40, 7)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x50));
    let (ip, sp, after) = leave(&function, 12, true, state(0x50, 0x100, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x50), "all is done");
    assert_eq!(after.get(FP), Some(STACK + 0x100));
    // a call that never returns may be the last instruction
    let (ip, sp, _) = leave(&function, 13, false, state(0x40, 0x40, 7)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x50));
    assert_eq!(leave(&function, 14, false, state(0x40, 0x40, 7)), None);
}

#[test]
fn the_next_pairs_stand_behind_the_pair_that_follows_them() {
    // sub sp, 0xf0; stp x19, x20, [sp, 0x90] and four pairs more; stp x29, x30, [sp, 0xe0]; add x29, sp, 0xe0
    let function = unpacked(
        &hex("53005018 43000000 e21c5ce6 e6e6e6c8 120fe4e4"),
        &[(0x1e8, RETURN)],
    );
    let (ip, sp, state) = leave(&function, 0x20, false, state(0x80, 0x1e0, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x1f0));
    for (register, at) in (19..=28).zip((0x190..).step_by(8)) {
        assert_eq!(state.get(register), on_stack(at), "x{register}");
    }
    assert_eq!(state.get(FP), on_stack(0x1e0));
}

#[test]
fn large_frames_are_taken_in_parts() {
    // stp x19, x20, [sp, -80]!, four pairs, a loop that touches the pages, sub sp, 0x12a0, stp x29, x30, [sp], mov x29, sp
    let function = unpacked(
        &hex("30025030 44014003 e140c12a e3e6e6e6 e62ae3e3 e440e3c1 2ae6e6e6 e62ae4e4"),
        &[(8, RETURN)],
    );
    let (ip, sp, state) = leave(&function, 0x80, false, state(0, 0, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x12a0 + 80));
    assert_eq!(
        (state.get(19), state.get(28)),
        (on_stack(0x12a0), on_stack(0x12a0 + 72))
    );
}

#[test]
fn one_end_may_stand_in_the_header() {
    // E, the codes of the end begin with the second
    let function = unpacked(&hex("0d006008 e181e4e4"), &[(0x48, RETURN)]);
    let (ip, sp, _) = leave(&function, 12, true, state(0x50, 0x40, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x50));
}

#[test]
fn long_functions_have_a_second_word() {
    let function = unpacked(
        &hex("0d000000 01000100 0b004000 e181e4e4"),
        &[(0x48, RETURN)],
    );
    let (ip, sp, _) = leave(&function, 12, true, state(0x50, 0x40, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x50));
    let (ip, sp, _) = leave(&function, 6, false, state(0, 0x40, 7)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x50));
}

#[test]
fn a_part_that_stands_apart_undoes_the_begin_of_its_host() {
    // nothing of its own, then what the host did
    let function = unpacked(&hex("0d000010 e5e181e4 e4e4e4e4"), &[(0x48, RETURN)]);
    let (ip, sp, _) = leave(&function, 0, true, state(0x40, 0x40, 7)).unwrap();
    assert_eq!(
        (ip, sp),
        (RETURN, 0x50),
        "its first instruction begins nothing"
    );
}

#[test]
fn an_interrupted_caller_is_known_by_what_the_processor_pushed() {
    let function = unpacked(
        &hex("0d000008 e9e4e4e4"),
        &[(0, STACK + 0x300), (8, 0x1234)],
    );
    let mut registers = state(0, 0, 7);
    let ip = Addr(BASE + u64::from(BEGIN) + 16);
    let left = function
        .0
        .leave(&function.1, ip, false, &mut registers)
        .unwrap();
    assert_eq!((left.ip, left.is_interrupted), (0x1234, true));
    assert_eq!(registers.get(SP), Some(STACK + 0x300));
}

#[test]
fn what_a_dump_does_not_suffice_for_is_an_error() {
    let error = |information: &str, fp: Option<u64>| {
        let (function, memory) = unpacked(&hex(information), &[]);
        let mut state = state(0x40, 0, 7);
        state.set(FP, fp);
        let ip = Addr(BASE + u64::from(BEGIN) + 20);
        function.leave(&memory, ip, false, &mut state).unwrap_err()
    };
    // a size that depends on the processor
    assert_eq!(
        error("0d000008 df01e4e4", Some(STACK)),
        Arm64Error::BadEntry
    );
    assert_eq!(
        error("0d000008 e1e3e3e3", Some(STACK)),
        Arm64Error::BadEntry,
        "no end"
    );
    assert_eq!(
        error("0d000408 e181e4e4", Some(STACK)),
        Arm64Error::BadEntry,
        "version 1"
    );
    assert_eq!(error("0d000008 e181", Some(STACK)), Arm64Error::NoTable);
    assert_eq!(error(SMALL, None), Arm64Error::UnknownRegister);
    let beyond = STACK + 0x10_0000;
    assert_eq!(
        error(SMALL, Some(beyond)),
        Arm64Error::NoStack(Addr(beyond))
    );
    // a pair behind x30
    assert_eq!(
        error("0d000008 cb00e4e4", Some(STACK)),
        Arm64Error::BadEntry
    );
}

#[test]
fn every_code_is_known() {
    let undone = |code: &str| {
        let mut bytes = hex(code);
        bytes.push(0xe4);
        let sequence = codes::read(&bytes).unwrap();
        assert_eq!(sequence.instructions(), 1, "{code}");
        sequence.codes[0]
    };
    let load = |registers, at, then| Undo::Load {
        registers,
        at,
        then,
    };
    let (x19, x21, d) = (Some(19), Some(21), [None; 2]);
    assert_eq!(undone("1f"), Undo::Free(0x1f0));
    assert_eq!(undone("2a"), load([x19, Some(20)], 0, 80));
    assert_eq!(undone("5c"), load([Some(29), Some(30)], 0xe0, 0));
    assert_eq!(undone("81"), load([Some(29), Some(30)], 0, 16));
    assert_eq!(undone("c12a"), Undo::Free(0x12a0));
    assert_eq!(undone("c812"), load([x19, Some(20)], 0x90, 0));
    assert_eq!(undone("cc83"), load([x21, Some(22)], 0, 32));
    assert_eq!(undone("d003"), load([x19, None], 24, 0));
    assert_eq!(undone("d443"), load([x21, None], 0, 32));
    assert_eq!(undone("d642"), load([x21, Some(30)], 16, 0));
    assert_eq!(undone("d804"), load(d, 32, 0));
    assert_eq!(undone("da09"), load(d, 0, 80));
    assert_eq!(undone("dc03"), load(d, 24, 0));
    assert_eq!(undone("de03"), load(d, 0, 32));
    assert_eq!(undone("df01"), Undo::Unknown);
    assert_eq!(undone("e0010203"), Undo::Free(0x10_2030));
    assert_eq!(undone("e1"), Undo::FromFrame(0));
    assert_eq!(undone("e21c"), Undo::FromFrame(0xe0));
    assert_eq!(undone("e3"), Undo::Nothing);
    assert_eq!(undone("e6"), Undo::Unknown, "next to nothing");
    assert_eq!(undone("e70a03"), load([Some(10), None], 24, 0));
    assert_eq!(undone("e74a03"), load([Some(10), Some(11)], 48, 0));
    assert_eq!(undone("e76a03"), load([Some(10), Some(11)], 0, 64));
    assert_eq!(undone("e70a43"), load(d, 24, 0));
    assert_eq!(undone("e75e03"), Undo::Unknown, "x30 and x31");
    assert_eq!(undone("e9"), Undo::MachineFrame);
    assert_eq!(undone("ea"), Undo::Unknown);
    assert_eq!(undone("ec"), Undo::Interrupted);
    assert_eq!(undone("fc"), Undo::Nothing);
    for (reserved, bytes) in [
        ("f0", 1),
        ("f8", 2),
        ("f9", 3),
        ("fa", 4),
        ("fb", 5),
        ("fd", 1),
    ] {
        let code = format!("{reserved}{}", "00".repeat(bytes - 1));
        assert_eq!(undone(&code), Undo::Unknown, "{code}");
    }
}

/// The word of a packed entry.
#[derive(Clone, Copy, Default)]
struct Word {
    floats: u32,
    integers: u32,
    homes: u32,
    chain: u32,
    frame: u32,
}

impl Word {
    fn function(self, form: u32, words: &[(u64, u64)]) -> (Arm64Function, Pieces) {
        let unwind = form
            | 40 << 2
            | self.floats << 13
            | self.integers << 16
            | self.homes << 20
            | self.chain << 21
            | (self.frame / 16) << 23;
        let (function, memory) = unpacked(&[], words);
        (Arm64Function { unwind, ..function }, memory)
    }
}

#[test]
fn packed_entries_stand_for_the_usual_instructions() {
    // stp x19, x20, [sp, -48]!; stp x21, x22, [sp, 16]; str d8, d9 behind; stp x29, x30, [sp, -32]!; mov x29, sp
    let word = Word {
        floats: 1,
        integers: 4,
        chain: 3,
        frame: 80,
        ..Word::default()
    };
    let function = word.function(1, &[(0x100, STACK + 0x200), (0x108, RETURN)]);
    assert_eq!(function.0.length(&function.1), Some(160));
    let (ip, sp, after) = leave(&function, 20, false, state(0xf0, 0x100, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x150));
    assert_eq!(
        (after.get(19), after.get(22)),
        (on_stack(0x120), on_stack(0x138))
    );
    assert_eq!(after.get(FP), Some(STACK + 0x200));
    // before the last two instructions of the begin
    let (ip, sp, after) = leave(&function, 3, true, state(0x120, 0, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x150));
    assert_eq!(after.get(22), on_stack(0x138));
    // 40 instructions: four of the end and the return
    let (ip, sp, after) = leave(&function, 36, true, state(0x120, 0, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x150), "x29 and x30 are back");
    assert_eq!(after.get(20), on_stack(0x128));
    let (ip, sp, _) = leave(&function, 39, true, state(0x150, 0, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0x150));
}

#[test]
fn packed_entries_without_a_chain_keep_the_link_beside_the_others() {
    let word = Word {
        integers: 3,
        chain: 1,
        frame: 0x1f00,
        ..Word::default()
    };
    // savings of 32 bytes: x19, x20, x21, x30
    let saved = 0x1f00 - 32;
    let function = word.function(1, &[(saved + 24, RETURN)]);
    let (ip, sp, after) = leave(&function, 20, false, state(0, 0, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x1f00));
    assert_eq!(after.get(21), on_stack(saved + 16));
    // two instructions for the savings, two to make room
    let (_, sp, _) = leave(&function, 3, true, state(0x800, 0, 1)).unwrap();
    assert_eq!(sp, 0x800 + 4080 + 32);
    let even = Word {
        integers: 2,
        ..word
    };
    let function = even.function(1, &[(saved + 16, RETURN)]);
    let (ip, sp, _) = leave(&function, 20, false, state(0, 0, 1)).unwrap();
    assert_eq!((ip, sp), (RETURN, 0x1f00));
}

#[test]
fn arguments_that_are_put_on_the_stack_take_four_instructions() {
    let word = Word {
        homes: 1,
        frame: 64,
        ..Word::default()
    };
    let function = word.function(1, &[]);
    let (ip, sp, _) = leave(&function, 0, true, state(0, 0, 7)).unwrap();
    assert_eq!((ip, sp), (7, 0));
    for instruction in [1, 4, 20] {
        let (ip, sp, _) = leave(&function, instruction, true, state(0, 0, 7)).unwrap();
        assert_eq!((ip, sp), (7, 64), "{instruction}");
    }
    let (_, sp, _) = leave(&function, 39, true, state(64, 0, 7)).unwrap();
    assert_eq!(sp, 64);
    // a part that stands apart has no begin of its own
    let part = word.function(2, &[]);
    let (_, sp, _) = leave(&part, 0, true, state(0, 0, 7)).unwrap();
    assert_eq!(sp, 64);
}

#[test]
fn a_frame_smaller_than_what_is_saved_is_no_function() {
    let word = Word {
        integers: 4,
        frame: 16,
        ..Word::default()
    };
    assert_eq!(
        leave(&word.function(1, &[]), 20, false, state(0, 0, 7)),
        None
    );
    assert_eq!(
        leave(&word.function(3, &[]), 20, false, state(0, 0, 7)),
        None
    );
}

proptest! {
    #[test]
    fn no_information_does_harm(
        information in prop::collection::vec(any::<u8>(), 0..200),
        unwind in any::<u32>(),
        is_packed in any::<bool>(),
        instruction in 0_u32..100,
        is_interrupted in any::<bool>(),
    ) {
        let (mut function, memory) = unpacked(&information, &[]);
        if is_packed {
            function.unwind = unwind | 1;
        }
        leave(&(function, memory), instruction, is_interrupted, state(0x100, 0x200, 7));
    }

    #[test]
    fn begin_and_end_of_packed_entries_agree(
        floats in 0_u32..8,
        integers in 0_u32..=10,
        homes in 0_u32..2,
        chain in 0_u32..4,
        frame in 0_u32..0x1ff,
    ) {
        let word = Word { floats, integers, homes, chain, frame: frame * 16 };
        let function = word.function(1, &[]);
        // the same frame wherever it is whole: in the body and at the first instruction of the end
        let body = leave(&function, 20, true, state(0, 0, 7));
        let Some((_, sp, _)) = body else { return Ok(()) };
        prop_assert_eq!(sp, u64::from(word.frame));
        let packed = Packed::new(function.0.unwind).ends().unwrap();
        let last = u32::try_from(packed.epilogue.unwrap().len()).unwrap();
        prop_assert_eq!(leave(&function, 39 - last, true, state(0, 0, 7)), body);
    }
}
