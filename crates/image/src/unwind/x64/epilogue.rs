//! The last instructions of a function on x64 Windows, which no table describes: they are recognised by themselves.
//!
//! `add rsp, n` or `lea rsp, [frame - n]`, then any number of `pop`, then `ret` or a jump out of the function.

/// More instructions than any end of a function has: one for the stack pointer, eight registers that are kept.
const MAX_PARTS: usize = 12;
/// Position of rsp among the registers.
const RSP: u8 = 4;
/// REX.W: the operand has 64 bits.
const WIDE: u8 = 8;

/// What is still to be done before the function is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The stack pointer grows.
    Add(i64),
    /// The stack pointer is put at a distance from the frame register.
    FromFrame(i64),
    /// A register is taken from the stack.
    Pop(u8),
}

/// Where the last instruction goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Back to the caller, or through a pointer to another function.
    Away,
    /// To this many bytes behind the first of the instructions that were given.
    Jump(i64),
}

/// What the instructions from here on do, when they are nothing but the end of a function.
pub(super) fn read(code: &[u8], frame_register: u8) -> Option<(Vec<Part>, Exit)> {
    let mut parts = Vec::new();
    let mut rest = code;
    while parts.len() < MAX_PARTS {
        let (rex, body) = match rest {
            [rex @ 0x40..=0x4f, tail @ ..] => (*rex, tail),
            _ => (0, rest),
        };
        if let Some(exit) = exit(code, rex, body) {
            return Some((parts, exit));
        }
        let moved = || moved(rex, body, frame_register).filter(|_| parts.is_empty());
        let (part, tail) = popped(rex, body).or_else(moved)?;
        parts.push(part);
        rest = tail;
    }
    None
}

fn popped(rex: u8, body: &[u8]) -> Option<(Part, &[u8])> {
    let (low, tail) = match body {
        [op @ 0x58..=0x5f, tail @ ..] => (*op, tail),
        [0x8f, target @ 0xc0..=0xc7, tail @ ..] => (*target, tail),
        _ => return None,
    };
    Some((Part::Pop(low & 7 | (rex & 1) << 3), tail))
}

fn moved(rex: u8, body: &[u8], frame_register: u8) -> Option<(Part, &[u8])> {
    if rex & WIDE == 0 {
        return None;
    }
    let far = |bytes: &[u8; 4]| i64::from(i32::from_le_bytes(*bytes));
    match body {
        [0x83, 0xc4, near, tail @ ..] => Some((Part::Add(i64::from(near.cast_signed())), tail)),
        [0x81, 0xc4, tail @ ..] => {
            let (distance, tail) = tail.split_first_chunk()?;
            Some((Part::Add(far(distance)), tail))
        }
        [0x8d, operand, tail @ ..] => {
            let base = operand & 7 | (rex & 1) << 3;
            // r12 needs a further byte, and no compiler takes it
            if operand >> 3 & 7 != RSP || base != frame_register || base & 7 == RSP {
                return None;
            }
            let (distance, tail) = match operand >> 6 {
                0 if base & 7 != 5 => (0, tail),
                1 => {
                    let (near, tail) = tail.split_first()?;
                    (i64::from(near.cast_signed()), tail)
                }
                2 => {
                    let (distance, tail) = tail.split_first_chunk()?;
                    (far(distance), tail)
                }
                _ => return None,
            };
            Some((Part::FromFrame(distance), tail))
        }
        _ => None,
    }
}

fn exit(code: &[u8], rex: u8, body: &[u8]) -> Option<Exit> {
    let jump = |distance: i64, tail: &[u8]| {
        let behind = i64::try_from(code.len().checked_sub(tail.len())?).ok()?;
        Some(Exit::Jump(behind.wrapping_add(distance)))
    };
    match body {
        [0xc3, ..] | [0xf3, 0xc3, ..] | [0xc2, _, _, ..] | [0xff, 0x25, ..] => Some(Exit::Away),
        [0xff, 0xe0..=0xe7, ..] if rex & WIDE != 0 => Some(Exit::Away),
        [0xeb, near, tail @ ..] => jump(i64::from(near.cast_signed()), tail),
        [0xe9, tail @ ..] => {
            let (distance, tail) = tail.split_first_chunk()?;
            jump(i64::from(i32::from_le_bytes(*distance)), tail)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RBP: u8 = 5;

    #[test]
    fn what_is_left_to_do_is_read_from_the_instructions() {
        // add rsp, 0x28; pop rbx; pop r14; ret
        let code = [0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5e, 0xc3];
        let parts = vec![Part::Add(0x28), Part::Pop(3), Part::Pop(14)];
        assert_eq!(read(&code, 0), Some((parts.clone(), Exit::Away)));
        assert_eq!(read(&code[4..], 0), Some((parts[1..].to_vec(), Exit::Away)));
        assert_eq!(read(&code[7..], 0), Some((Vec::new(), Exit::Away)));
    }

    #[test]
    fn the_stack_pointer_may_stand_below_the_frame_register() {
        // lea rsp, [rbp - 8]; pop rsi; pop rbp; ret
        let code = [0x48, 0x8d, 0x65, 0xf8, 0x5e, 0x5d, 0xc3];
        let parts = vec![Part::FromFrame(-8), Part::Pop(6), Part::Pop(RBP)];
        assert_eq!(read(&code, RBP), Some((parts, Exit::Away)));
        assert_eq!(read(&code, 0), None);
    }

    #[test]
    fn jumps_tell_where_they_go() {
        // pop rbp; jmp +0x10
        let near = [0x5d, 0xeb, 0x10];
        assert_eq!(
            read(&near, 0),
            Some((vec![Part::Pop(RBP)], Exit::Jump(0x13)))
        );
        // jmp -5: to itself
        let far = [0xe9, 0xfb, 0xff, 0xff, 0xff];
        assert_eq!(read(&far, 0), Some((Vec::new(), Exit::Jump(0))));
    }

    #[test]
    fn other_instructions_are_no_end() {
        for code in [
            &[0x90, 0xc3][..],                         // nop
            &[0x5b, 0x48, 0x83, 0xc4, 0x28, 0xc3][..], // pop before add
            &[0x83, 0xc4, 0x28, 0xc3][..],             // add esp
            &[0xff, 0xe0][..],                         // jmp rax of a switch
            &[0x48, 0x81, 0xc4, 1, 2][..],             // cut
            &[0x5b; 40][..],
            &[0x48][..],
            &[][..],
        ] {
            assert_eq!(read(code, RBP), None, "{code:x?}");
        }
    }
}
