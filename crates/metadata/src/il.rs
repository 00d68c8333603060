//! Method bodies: where the code is, which methods it calls, and where it awaits (ECMA-335 II.25.4 and III).

use crate::metadata::Metadata;
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::Token;

/// Bytes that [`body_extent`] needs.
pub const BODY_HEADER: usize = 12;
/// Low two bits of the first byte: a header of one byte, or one of at least twelve.
const TINY: u8 = 2;
const FAT: u8 = 3;
const CALL: u8 = 0x28;
const CALLVIRT: u8 = 0x6f;
const SWITCH: u8 = 0x45;
const TWO_BYTES: u8 = 0xfe;
/// The class whose methods suspend a runtime-async method (.NET 11).
const ASYNC_HELPERS: (&str, &str) = ("System.Runtime.CompilerServices", "AsyncHelpers");

/// Length of the header of a method body and of its code, from the first bytes of the body. `None` when they are no
/// header.
#[must_use]
pub fn body_extent(head: &[u8]) -> Option<(u32, u32)> {
    let first = *head.first()?;
    match first & 3 {
        TINY => Some((1, u32::from(first >> 2))),
        FAT => {
            let words = head.get(1)? >> 4;
            let size = head.get(4..)?.first_chunk().copied()?;
            Some((u32::from(words).checked_mul(4)?, u32::from_le_bytes(size)))
        }
        _ => None,
    }
}

/// The calls in a method's code: offset of the instruction and token of the method.
pub fn calls(code: &[u8]) -> impl Iterator<Item = (u32, Token)> {
    instructions(code).filter_map(|(at, opcode, operand)| {
        let token = operand.first_chunk().copied()?;
        matches!(opcode, CALL | CALLVIRT).then_some((at, Token(u32::from_le_bytes(token))))
    })
}

/// Offset, opcode (of long ones the first byte) and operand of each instruction. Ends at the first that is cut off.
fn instructions(code: &[u8]) -> impl Iterator<Item = (u32, u8, &[u8])> {
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        let opcode = *code.get(at)?;
        let rest = code.get(at.checked_add(1)?..)?;
        let (prefix, size) = match opcode {
            TWO_BYTES => (1, long_operand(*rest.first()?)),
            SWITCH => {
                let targets = u32::from_le_bytes(*rest.first_chunk()?);
                (
                    0,
                    usize::try_from(targets)
                        .ok()?
                        .checked_mul(4)?
                        .checked_add(4)?,
                )
            }
            _ => (0, operand(opcode)),
        };
        let operand = rest.get(prefix..)?.get(..size)?;
        let start = u32::try_from(at).ok()?;
        at = at.checked_add(1)?.checked_add(prefix)?.checked_add(size)?;
        Some((start, opcode, operand))
    })
}

/// Bytes of operand behind an opcode of one byte.
const fn operand(opcode: u8) -> usize {
    match opcode {
        0x0e..=0x13 | 0x1f | 0x2b..=0x37 | 0xde => 1,
        0x20
        | 0x22
        | 0x27..=0x29
        | 0x38..=0x44
        | 0x6f..=0x75
        | 0x79
        | 0x7b..=0x81
        | 0x8c
        | 0x8d
        | 0x8f
        | 0xa3..=0xa5
        | 0xc2
        | 0xc6
        | 0xd0
        | 0xdd => 4,
        0x21 | 0x23 => 8,
        _ => 0,
    }
}

/// Bytes of operand behind `0xfe` and this byte.
const fn long_operand(opcode: u8) -> usize {
    match opcode {
        0x06 | 0x07 | 0x15 | 0x16 | 0x1c => 4,
        0x09..=0x0e => 2,
        0x12 | 0x19 => 1,
        _ => 0,
    }
}

impl<S: Source> Metadata<S> {
    /// Offsets of the awaits in the code of a runtime-async method, ascending: their order is that of the awaits in the
    /// source, so that a place in it is what the state number is for a state machine.
    #[must_use]
    pub fn await_sites(&self, code: &[u8]) -> Vec<u32> {
        let mut known: Vec<(Token, bool)> = Vec::new();
        let mut is_await = |token: Token| match known.iter().find(|(t, _)| *t == token) {
            Some((_, is)) => *is,
            None => {
                let is = self.suspends(token) == Some(true);
                known.push((token, is));
                is
            }
        };
        calls(code)
            .filter(|(_, token)| is_await(*token))
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether a method is one of `AsyncHelpers` that suspend: `Await`, `AwaitAwaiter`, `UnsafeAwaitAwaiter`.
    fn suspends(&self, method: Token) -> Option<bool> {
        let method = match method.table()? {
            Table::MethodSpec => self
                .row(Table::MethodSpec, method.rid())?
                .coded(0, Coded::MethodDefOrRef),
            _ => method,
        };
        let (name, namespace, class) = match method.table()? {
            Table::MemberRef => {
                let member = self.member_ref(method.rid())?;
                if member.class.table() != Some(Table::TypeRef) {
                    return Some(false);
                }
                let class = self.type_ref(member.class.rid())?;
                (member.name, class.namespace, class.name)
            }
            Table::MethodDef => {
                let class = self.type_def(self.method_owner(method.rid())?)?;
                (self.method(method.rid())?.name, class.namespace, class.name)
            }
            _ => return None,
        };
        Some((namespace.as_str(), class.as_str()) == ASYNC_HELPERS && name.contains("Await"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_where_the_code_is() {
        assert_eq!(body_extent(&[0x1e]), Some((1, 7)));
        let fat = [0x13, 0x30, 8, 0, 0x34, 0x12, 0, 0, 1, 0, 0, 0x11];
        assert_eq!(body_extent(&fat), Some((12, 0x1234)));
        assert_eq!(body_extent(&fat[..7]), None);
        assert_eq!(body_extent(&[0]), None);
    }

    #[test]
    fn calls_are_found_behind_operands_that_look_like_them() {
        let code = [
            0x20, 0x28, 0x28, 0x28, 0x28, // ldc.i4
            0x45, 1, 0, 0, 0, 0x28, 0, 0, 0, // switch with one target
            0xfe, 0x06, 0x28, 0, 0, 6, // ldftn
            0x28, 1, 0, 0, 0x0a, // call
            0x6f, 2, 0, 0, 6, // callvirt
            0x28, 3, 0, // cut off
        ];
        let found: Vec<_> = calls(&code).collect();
        assert_eq!(found, [(20, Token(0x0a00_0001)), (25, Token(0x0600_0002))]);
    }

    #[test]
    fn a_switch_longer_than_the_code_ends_it() {
        assert_eq!(calls(&[0x45, 0xff, 0xff, 0xff, 0xff, 0]).count(), 0);
    }
}
