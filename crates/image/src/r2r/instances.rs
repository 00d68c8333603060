//! Methods that an image has code for outside its table of methods.

use super::native::Reader;

/// Flags in front of a method's signature.
mod flags {
    pub(super) const INSTANTIATION: u32 = 0x4;
    pub(super) const SLOT: u32 = 0x8;
    pub(super) const MEMBER_REF: u32 = 0x10;
    pub(super) const CONSTRAINED: u32 = 0x20;
    pub(super) const OWNER: u32 = 0x40;
    pub(super) const OTHER_MODULE: u32 = 0x80;
}
const MAX_DEPTH: u32 = 32;
const MAX_ARGS: u32 = 256;

/// A method that an image has code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceMethod {
    /// Index of its first function.
    pub function: u32,
    /// Row of its definition in the image's own metadata; `None` for methods of other modules.
    pub rid: Option<u32>,
}

/// All entries of the table at `rva`; what cannot be understood is left out.
pub(super) fn read(reader: Reader<'_>, rva: u32) -> Option<Vec<InstanceMethod>> {
    let payloads = reader.table_entries(rva)?;
    Some(payloads.iter().filter_map(|p| method(reader, *p)).collect())
}

fn method(reader: Reader<'_>, rva: u32) -> Option<InstanceMethod> {
    let mut signature = Signature {
        reader,
        at: rva,
        foreign: false,
    };
    let flags = signature.number()?;
    if flags & flags::SLOT != 0 {
        return None;
    }
    if flags & flags::OTHER_MODULE != 0 {
        signature.number()?;
        signature.foreign = true;
    }
    if flags & flags::OWNER != 0 {
        signature.ty(MAX_DEPTH)?;
    }
    let rid = signature.number()?;
    let own = !signature.foreign && flags & flags::MEMBER_REF == 0;
    if flags & flags::INSTANTIATION != 0 {
        for _ in 0..signature.number()?.min(MAX_ARGS) {
            signature.ty(MAX_DEPTH)?;
        }
    }
    if flags & flags::CONSTRAINED != 0 {
        signature.ty(MAX_DEPTH)?;
    }
    // bit 0 tells whether fixups stand elsewhere, bit 1 whether at a distance
    let (id, _) = reader.unsigned(signature.at)?;
    Some(InstanceMethod {
        function: if id & 1 == 0 { id >> 1 } else { id >> 2 },
        rid: own.then_some(rid),
    })
}

/// Signatures in the format of ECMA-335, with a few elements of the runtime's own.
struct Signature<'i> {
    reader: Reader<'i>,
    at: u32,
    /// Whether the method's own token belongs to another module.
    foreign: bool,
}

impl Signature<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.reader.byte(self.at)?;
        self.at = self.at.checked_add(1)?;
        Some(byte)
    }

    /// A compressed number of ECMA-335 II.23.2.
    fn number(&mut self) -> Option<u32> {
        let first = u32::from(self.byte()?);
        let (mut value, more) = match first {
            0..=0x7f => (first, 0),
            0x80..=0xbf => (first & 0x3f, 1),
            _ => (first & 0x1f, 3),
        };
        for _ in 0..more {
            value = value << 8 | u32::from(self.byte()?);
        }
        Some(value)
    }

    /// Passes over a type.
    fn ty(&mut self, depth: u32) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match self.byte()? {
            0x01..=0x0e | 0x16 | 0x18 | 0x19 | 0x1c | 0x3e => Some(()),
            // token, variable number
            0x11..=0x13 | 0x1e => self.number().map(|_| ()),
            0x0f | 0x10 | 0x1d | 0x3d | 0x41 | 0x45 => self.ty(deeper),
            0x14 => self.array(deeper),
            0x15 => {
                self.ty(deeper)?;
                let count = self.number()?.min(MAX_ARGS);
                (0..count).try_for_each(|_| self.ty(deeper))
            }
            0x1f | 0x20 => {
                self.number()?;
                self.ty(deeper)
            }
            // a type of another module
            0x3f => {
                self.number()?;
                self.ty(deeper)
            }
            _ => None,
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.ty(depth)?;
        self.number()?;
        for _ in 0..2 {
            for _ in 0..self.number()?.min(MAX_ARGS) {
                self.number()?;
            }
        }
        Some(())
    }
}
