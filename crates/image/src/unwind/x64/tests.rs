use super::*;
use crate::pe::{Covering, PeImage, PeLayout, tests as images};
use crate::test_memory::Pieces;
use images::{DATA, DIRECTORIES, TEXT, put};
use proptest::prelude::*;

const BASE: u64 = 0x7ffe_0000_0000;
const STACK: u64 = 0x20_0000;
/// Where the image of these tests has its table of functions, and what the entries lead to.
const TABLE: usize = 0x600;
const INFO: usize = 0x700;
/// Registers by their numbers.
const RBX: u8 = 3;
const RBP: u8 = 5;
/// Codes of `UNWIND_INFO`.
const PUSH: u8 = 0;
const ALLOC_LARGE: u8 = 1;
const ALLOC_SMALL: u8 = 2;
const SET_FRAME: u8 = 3;
const SAVE: u8 = 4;
const MACHINE_FRAME: u8 = 10;
const CHAINED: u8 = 4;

/// An image with these functions (begin, end and `UNWIND_INFO`), each with its instructions.
struct Image {
    text: Vec<u8>,
    functions: Vec<[u32; 3]>,
    info: usize,
}

impl Image {
    fn new() -> Self {
        Self {
            text: vec![0x90; 0x1000],
            functions: Vec::new(),
            info: INFO,
        }
    }

    fn info(&mut self, bytes: &[u8]) -> u32 {
        let at = self.info;
        self.text[at..][..bytes.len()].copy_from_slice(bytes);
        self.info += bytes.len().next_multiple_of(4);
        TEXT.0 + at as u32
    }

    fn function(mut self, begin: u32, end: u32, info: &[u8]) -> Self {
        let info = self.info(info);
        self.functions.push([TEXT.0 + begin, TEXT.0 + end, info]);
        self
    }

    fn code(mut self, at: u32, code: &[u8]) -> Self {
        self.text[at as usize..][..code.len()].copy_from_slice(code);
        self
    }

    fn memory(&self) -> Pieces {
        let mut header = images::header();
        let size = self.functions.len() as u32 * 12;
        put(
            &mut header,
            DIRECTORIES + 3 * 8,
            &[TEXT.0 + TABLE as u32, size],
        );
        let mut text = self.text.clone();
        put(&mut text, TABLE, &self.functions.concat());
        Pieces::default()
            .with(BASE, header)
            .with(BASE + u64::from(TEXT.0), text)
            .with(BASE + u64::from(DATA.0), images::data())
    }
}

/// `UNWIND_INFO` of version 1: flags, bytes of the first instructions, frame register with its distance in units of 16,
/// and codes, each the place behind its instruction, what it does, and with which register.
fn info(flags: u8, prologue: u8, frame: (u8, u8), codes: &[[u8; 2]]) -> Vec<u8> {
    let head = [
        1 | flags << 3,
        prologue,
        codes.len() as u8,
        frame.0 | frame.1 << 4,
    ];
    let mut out = [&head[..], &codes.concat()].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn code(behind: u8, operation: u8, operand: u8) -> [u8; 2] {
    [behind, operation | operand << 4]
}

fn with_chain(mut info: Vec<u8>, function: [u32; 3]) -> Vec<u8> {
    info.extend(function.iter().flat_map(|n| n.to_le_bytes()));
    info
}

fn at(rva: u32) -> u64 {
    BASE + u64::from(TEXT.0 + rva)
}

/// Frames as distances from the begin of the code, with the words of the stack below each.
fn walk(memory: Pieces, ip: u32, stack: &[u64], set: &[(u8, u64)]) -> (Vec<(u64, u64)>, bool) {
    let (frames, end) = frames(memory, ip, stack, set);
    let place = |f: &Frame| (f.ip.0.wrapping_sub(at(0)), (f.sp.0 - STACK) / 8);
    (frames.iter().map(place).collect(), end == Some(Ok(())))
}

type End = Option<Result<(), Break>>;

fn frames(memory: Pieces, ip: u32, stack: &[u64], set: &[(u8, u64)]) -> (Vec<Frame>, End) {
    let bytes: Vec<u8> = stack.iter().flat_map(|w| w.to_le_bytes()).collect();
    let memory = memory.with(STACK, bytes);
    let mut registers = X64Registers {
        rip: at(ip),
        ..X64Registers::default()
    };
    registers.general[RSP] = STACK;
    for (register, value) in set {
        registers.general[usize::from(*register)] = *value;
    }
    let image = PeImage::parse(&memory, Addr(BASE), PeLayout::Loaded).unwrap();
    let covering = |ip: Addr| {
        let rva = u32::try_from(ip.since(image.base)?).ok()?;
        let table = image.functions().filter(|_| image.may_execute(ip))?;
        table.covering(&memory, rva)
    };
    let rules = |ip: Addr| match covering(ip) {
        Some(Covering::Function(function)) => Ok(Rules::Codes(function)),
        Some(Covering::Nothing) => Ok(Rules::Return),
        None => Err(Break::NotCode),
    };
    let unwinder = Unwinder::new(&memory, false, u64::MAX, std::iter::empty());
    let mut frames = X64Frames::new(&unwinder, &registers, rules);
    let mut all = Vec::new();
    while let Some(frame) = frames.next().filter(|_| all.len() < 100) {
        all.push(frame);
    }
    (all, frames.end())
}

/// A function that pushes rbx and takes 0x20 bytes.
fn plain() -> Vec<u8> {
    info(0, 5, (0, 0), &[code(5, ALLOC_SMALL, 3), code(1, PUSH, RBX)])
}

#[test]
fn codes_are_undone_and_a_null_is_the_root() {
    let image = Image::new()
        .function(0x100, 0x140, &plain())
        .function(0x140, 0x180, &plain());
    // four words of the function's own, rbx, where it returns to
    let stack = [0, 0, 0, 0, 7, at(0x150), 0, 0, 0, 0, 8, 0, 0];
    let (frames, root) = walk(image.memory(), 0x120, &stack, &[]);
    assert_eq!(frames, [(0x120, 0), (0x150, 6)]);
    assert!(root);
}

#[test]
fn a_function_without_an_entry_has_no_frame_and_calls_nothing() {
    let image = Image::new().function(0x100, 0x140, &plain());
    let stack = [at(0x120), 0, 0, 0, 0, 0, at(0x200), 0];
    let (frames, root) = walk(image.memory(), 0x80, &stack, &[]);
    assert_eq!(frames, [(0x80, 0), (0x120, 1), (0x200, 7)]);
    assert!(!root, "code that no entry covers has not called");
}

#[test]
fn what_was_not_executed_yet_is_not_undone() {
    let image = Image::new().function(0x100, 0x140, &plain());
    let stack = [7, 0, 0];
    assert_eq!(walk(image.memory(), 0x100, &stack[1..], &[]).0.len(), 1);
    assert!(walk(image.memory(), 0x100, &stack[1..], &[]).1);
    // behind `push rbx`
    assert!(walk(image.memory(), 0x101, &stack, &[]).1);
}

#[test]
fn the_end_of_a_function_is_executed() {
    // add rsp, 0x20; pop rbx; ret
    let end = [0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3];
    let image = || {
        let image = Image::new().function(0x100, 0x140, &plain());
        image.code(0x13a, &end).memory()
    };
    assert!(walk(image(), 0x13a, &[1, 1, 1, 1, 7, 0], &[]).1);
    assert!(walk(image(), 0x13e, &[7, 0], &[]).1);
    assert!(walk(image(), 0x13f, &[0], &[]).1);
}

#[test]
fn a_jump_leaves_only_for_another_function() {
    let away = Image::new()
        .function(0x100, 0x140, &plain())
        .function(0x200, 0x240, &plain())
        // jmp 0x200
        .code(0x13b, &[0xe9, 0xc0, 0, 0, 0]);
    assert!(walk(away.memory(), 0x13b, &[0], &[]).1);
    let primary = [TEXT.0 + 0x100, TEXT.0 + 0x140, TEXT.0 + INFO as u32];
    let far_part = with_chain(info(CHAINED, 0, (0, 0), &[]), primary);
    let inside = Image::new()
        .function(0x100, 0x140, &plain())
        .function(0x200, 0x240, &far_part)
        .code(0x13b, &[0xe9, 0xc0, 0, 0, 0]);
    let stack = [1, 1, 1, 1, 7, 0];
    assert!(walk(inside.memory(), 0x13b, &stack, &[]).1);
}

#[test]
fn frames_with_a_register_of_their_own_are_found_by_it() {
    // push rbp; sub rsp, 0x1000; lea rbp, [rsp + 0x20]; mov [rsp + 0x10], rbx
    let codes = [
        code(0x15, SAVE, RBX),
        [2, 0],
        code(0x10, SET_FRAME, 0),
        code(8, ALLOC_LARGE, 0),
        [0, 2],
        code(1, PUSH, RBP),
    ];
    let image = Image::new()
        .function(0x100, 0x140, &info(0, 0x15, (RBP, 2), &codes))
        .function(0x140, 0x180, &plain());
    let mut stack = vec![0; 0x400];
    let bottom = 40;
    stack[bottom + 2] = 9; // rbx
    let top = bottom + 0x200;
    (stack[top], stack[top + 1]) = (5, at(0x150));
    let rbp = STACK + 8 * bottom as u64 + 0x20;
    // the stack pointer lies below: the function has taken more since
    let (frames, root) = walk(image.memory(), 0x130, &stack, &[(RBP, rbp)]);
    assert_eq!(frames, [(0x130, 0), (0x150, top as u64 + 2)]);
    assert!(root);
}

#[test]
fn parts_of_a_function_lead_to_its_begin() {
    let primary = [TEXT.0 + 0x100, TEXT.0 + 0x140, TEXT.0 + INFO as u32];
    // an odd number of codes, and one for alignment
    let part = with_chain(info(CHAINED, 0, (0, 0), &[code(0, PUSH, RBP)]), primary);
    let image = Image::new()
        .function(0x100, 0x140, &plain())
        .function(0x200, 0x240, &part);
    let stack = [5, 0, 0, 0, 0, 7, 0];
    assert!(walk(image.memory(), 0x220, &stack, &[]).1);
}

#[test]
fn an_entry_may_stand_for_another() {
    let mut image = Image::new().function(0x100, 0x140, &plain());
    let indirect = (TEXT.0 + TABLE as u32) | 1;
    image
        .functions
        .push([TEXT.0 + 0x200, TEXT.0 + 0x240, indirect]);
    let stack = [0, 0, 0, 0, 7, 0];
    assert!(walk(image.memory(), 0x220, &stack, &[]).1);
}

#[test]
fn an_interrupted_function_goes_on_where_it_was() {
    let machine = info(0, 0, (0, 0), &[code(0, MACHINE_FRAME, 1)]);
    let image = Image::new()
        .function(0x100, 0x140, &machine)
        .function(0x140, 0x180, &plain());
    // error code, ip, cs, flags, sp, ss
    let mut stack = vec![0, at(0x140), 0x33, 0, STACK + 8 * 9, 0x2b];
    stack.resize(10, 0);
    let (frames, root) = walk(image.memory(), 0x120, &stack, &[]);
    assert_eq!(frames, [(0x120, 0), (0x140, 9)]);
    assert!(root, "nothing of the second function had been executed");
}

#[test]
fn a_frame_register_that_leads_back_ends_the_walk() {
    // push rbp; mov rbp, rsp
    let codes = [code(4, SET_FRAME, 0), code(1, PUSH, RBP)];
    let image = Image::new().function(0x100, 0x140, &info(0, 4, (RBP, 0), &codes));
    // the function's caller has the same frame again
    let stack = [STACK, at(0x120), 0, 0];
    let (frames, root) = walk(image.memory(), 0x120, &stack, &[(RBP, STACK)]);
    assert_eq!(frames, [(0x120, 0), (0x120, 2)]);
    assert!(!root);
}

#[test]
fn parts_that_lead_to_each_other_end_the_walk() {
    let other = |info: u32| [TEXT.0 + 0x100, TEXT.0 + 0x140, TEXT.0 + info];
    let looping = with_chain(info(CHAINED, 0, (0, 0), &[]), other(INFO as u32));
    let image = Image::new().function(0x100, 0x140, &looping);
    assert_eq!(walk(image.memory(), 0x120, &[0; 8], &[]).0.len(), 1);
    let mut image = Image::new();
    let itself = (TEXT.0 + TABLE as u32) | 1;
    image
        .functions
        .push([TEXT.0 + 0x100, TEXT.0 + 0x140, itself]);
    assert_eq!(walk(image.memory(), 0x120, &[0; 8], &[]).0.len(), 1);
}

#[test]
fn what_cannot_be_read_ends_the_walk() {
    let lone = |info: &[u8]| {
        let image = Image::new().function(0x100, 0x140, info);
        let (frames, root) = walk(image.memory(), 0x130, &[0; 8], &[]);
        assert_eq!((frames.len(), root), (1, false), "{info:x?}");
    };
    // a version that is not known, codes that are none, codes cut in their middle
    lone(&[3, 0, 0, 0]);
    lone(&info(0, 0, (0, 0), &[code(0, 15, 0)]));
    lone(&info(0, 0, (0, 0), &[code(0, ALLOC_LARGE, 0)]));
    lone(&info(0, 0, (0, 0), &[code(0, ALLOC_LARGE, 2), [0, 0]]));
    // more codes than the image has bytes for
    let mut image = Image::new();
    image.info = 0xffc;
    let image = image.function(0x100, 0x140, &[1, 0, 255, 0]);
    assert_eq!(walk(image.memory(), 0x130, &[0; 8], &[]).0.len(), 1);
    // a stack that ends
    let image = Image::new().function(0x100, 0x140, &plain());
    assert_eq!(walk(image.memory(), 0x130, &[0; 5], &[]).0.len(), 1);
}

#[test]
fn a_function_that_ends_before_it_begins_covers_nothing() {
    let mut image = Image::new();
    image.functions.push([TEXT.0 + 0x100, TEXT.0 + 0x80, 0]);
    assert!(walk(image.memory(), 0x120, &[0], &[]).1);
    assert!(walk(image.memory(), 0x90, &[0], &[]).1);
}

proptest! {
    #[test]
    fn damage_does_no_harm(
        ip in 0_u32..0x1000,
        place in 0_usize..0x200,
        bytes in prop::collection::vec(any::<u8>(), 1..64),
        stack in prop::collection::vec(prop_oneof![Just(0), Just(at(0x110)), Just(at(0x150)), any::<u64>()], 0..40),
        rbp in prop_oneof![Just(STACK + 64), any::<u64>()],
    ) {
        let chained = with_chain(
            info(CHAINED, 4, (RBP, 1), &[code(4, SET_FRAME, 0), code(1, PUSH, RBP)]),
            [TEXT.0 + 0x100, TEXT.0 + 0x140, TEXT.0 + INFO as u32],
        );
        let mut image = Image::new()
            .function(0x100, 0x140, &plain())
            .function(0x140, 0x180, &chained);
        let memory = {
            put(&mut image.text, TABLE, &image.functions.clone().concat());
            let text = &mut image.text[TABLE + place..];
            let len = bytes.len().min(text.len());
            text[..len].copy_from_slice(&bytes[..len]);
            image.memory()
        };
        let (frames, _) = frames(memory, ip, &stack, &[(RBP, rbp)]);
        let first = Frame { ip: Addr(at(ip)), sp: Addr(STACK), fp: Some(Addr(rbp)), is_proved: true,
            is_interrupted: true };
        prop_assert_eq!(frames.first(), Some(&first));
        // so a walk ends where the stack does, whatever leads it
        for step in frames.windows(2) {
            prop_assert!(step[0].sp < step[1].sp, "{step:x?}");
            prop_assert_eq!(step[1].sp.0 % 8, 0);
        }
    }
}
