//! Method bodies: where the code is, which methods it calls, and where it awaits (ECMA-335 II.25.4 and III).

mod awaits;
mod effect;
mod entered;
mod flow;
mod handlers;
mod members;
mod reach;
mod receivers;
mod targets;
#[cfg(test)]
mod tests;

pub use awaits::AwaitSite;
pub use entered::{Elsewhere, Entered, Form, Place, PlacedCall, Root, Summaries, Summary};
pub use handlers::{Body, Handler, HandlerKind, handlers, has_sections, section_extent};
pub use reach::{Stands, around, behind};
pub use receivers::{CallSite, Receiver};
pub use targets::{Call, CallForm, Named, all_calls};

use flow::CallShape;

use crate::metadata::Metadata;
use crate::signature::{MethodSig, Primitive, SigType};
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::Token;

/// Bytes that [`body_extent`] needs.
pub const BODY_HEADER: usize = 12;
/// Low two bits of the first byte: a header of one byte, or one of at least twelve.
const TINY: u8 = 2;
const FAT: u8 = 3;
const CALL: u16 = 0x28;
const CALLVIRT: u16 = 0x6f;
const SWITCH: u16 = 0x45;
const TWO_BYTES: u16 = 0xfe;
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
    instructions(code).filter_map(|i| {
        let token = i.token()?;
        matches!(i.opcode, CALL | CALLVIRT).then_some((i.at, token))
    })
}

/// Whether code behind `from` can come to `to`: it stands further down, or a branch leads back to before it.
#[must_use]
pub fn may_come_to(code: &[u8], from: u32, to: u32) -> bool {
    let leads_back = |i: &Instruction<'_>| {
        effect::is_branch(i.opcode) && i.at >= from && i.target().is_some_and(|target| target <= to)
    };
    from < to || instructions(code).any(|i| leads_back(&i))
}

/// How a call changes the stack, by the signature of what is called.
fn call_shape(signature: &MethodSig) -> CallShape {
    let has_this = signature.has_this();
    CallShape {
        takes: signature.params.len().saturating_add(usize::from(has_this)),
        has_this,
        returns: signature.return_type != SigType::Primitive(Primitive::Void),
        passes_on: false,
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
struct Instruction<'c> {
    /// Its offset.
    at: u32,
    /// Offset of the one behind it.
    next: u32,
    /// Its opcode; those of two bytes begin with 0xfe.
    opcode: u16,
    operand: &'c [u8],
}

impl Instruction<'_> {
    /// The operand as a token.
    fn token(&self) -> Option<Token> {
        self.operand
            .first_chunk()
            .map(|bytes| Token(u32::from_le_bytes(*bytes)))
    }

    /// Where a branch with one target goes; short ones have an operand of one byte.
    fn target(&self) -> Option<u32> {
        let distance = match *self.operand {
            [short] => short.cast_signed().into(),
            _ => i32::from_le_bytes(*self.operand.first_chunk()?),
        };
        self.next.checked_add_signed(distance)
    }

    /// Where a switch goes, by case.
    fn cases(&self) -> impl Iterator<Item = u32> {
        let (words, _) = self.operand.as_chunks::<4>();
        let distances = words.iter().skip(1).map(|w| i32::from_le_bytes(*w));
        distances.filter_map(|d| self.next.checked_add_signed(d))
    }
}

/// The instructions of a method's code. Ends at the first that is cut off.
fn instructions(code: &[u8]) -> impl Iterator<Item = Instruction<'_>> {
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        let first = *code.get(at)?;
        let rest = code.get(at.checked_add(1)?..)?;
        let (opcode, prefix, size) = match u16::from(first) {
            TWO_BYTES => {
                let second = *rest.first()?;
                (TWO_BYTES << 8 | u16::from(second), 1, long_operand(second))
            }
            SWITCH => {
                let targets = u32::from_le_bytes(*rest.first_chunk()?);
                let bytes = usize::try_from(targets).ok()?.checked_mul(4)?;
                (SWITCH, 0, bytes.checked_add(4)?)
            }
            opcode => (opcode, 0, operand(first)),
        };
        let operand = rest.get(prefix..)?.get(..size)?;
        let start = u32::try_from(at).ok()?;
        at = at.checked_add(1)?.checked_add(prefix)?.checked_add(size)?;
        Some(Instruction {
            at: start,
            next: u32::try_from(at).ok()?,
            opcode,
            operand,
        })
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
