//! Reading the memory of the dumped process.

use crate::Addr;
use std::fmt;

/// Why some bytes of the process cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultReason {
    /// No mapping of the process is known at the address.
    Unmapped,
    /// The process had memory there, but whoever wrote the dump left it out.
    NotDumped,
    /// The dump says that it holds the bytes, but the file ends before them.
    Truncated,
}

/// A read that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// First address that could not be read.
    pub addr: Addr,
    /// How many bytes were wanted from there on.
    pub len: u64,
    /// Why.
    pub reason: FaultReason,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            FaultReason::Unmapped => "nothing is mapped there",
            FaultReason::NotDumped => "the dump was written without it",
            FaultReason::Truncated => "the dump file ends before it",
        };
        write!(f, "cannot read {} bytes at {}: {why}", self.len, self.addr)
    }
}

impl std::error::Error for Fault {}

/// Memory of a process: the dump itself, a dump with image files laid under it, or bytes made by a test.
///
/// All values are little endian; every supported .NET target is.
pub trait Memory: Sync {
    /// The bytes at `addr`, without copying, when they stand side by side in the dump file.
    ///
    /// `None` does not mean that they are unreadable: use [`Memory::read_into`] where a range may straddle two pieces.
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]>;

    /// The same for callers that look at few of the bytes and take those with [`Memory::slice`] as well: a trimmed dump
    /// has these, and blanks for the others.
    fn peek(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        self.slice(addr, len)
    }

    /// How many bytes can be taken with one [`Memory::slice`] from `addr` on; 0 when nothing is readable there.
    fn run(&self, addr: Addr) -> u64;

    /// Why a read of `len` bytes at `addr` fails, and where; `None` when it does not.
    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault>;

    /// Fills `out` from `addr` on, across pieces of the dump. On `false` the content of `out` is unspecified.
    fn read_into(&self, addr: Addr, out: &mut [u8]) -> bool {
        let (mut at, mut rest) = (addr, out);
        while !rest.is_empty() {
            let len = self.run(at).min(rest.len() as u64);
            let Some(piece) = self.slice(at, len).filter(|p| !p.is_empty()) else {
                return false;
            };
            let Some((head, tail)) = rest.split_at_mut_checked(piece.len()) else {
                return false;
            };
            head.copy_from_slice(piece);
            (at, rest) = (at + piece.len() as u64, tail);
        }
        true
    }
}

impl dyn Memory + '_ {
    fn array<const N: usize>(&self, addr: Addr) -> Option<[u8; N]> {
        if let Some(bytes) = self.slice(addr, N as u64) {
            return bytes.try_into().ok();
        }
        let mut out = [0; N];
        self.read_into(addr, &mut out).then_some(out)
    }

    /// The byte at `addr`.
    #[must_use]
    pub fn u8(&self, addr: Addr) -> Option<u8> {
        self.array(addr).map(u8::from_le_bytes)
    }

    /// The 16-bit number at `addr`.
    #[must_use]
    pub fn u16(&self, addr: Addr) -> Option<u16> {
        self.array(addr).map(u16::from_le_bytes)
    }

    /// The 32-bit number at `addr`.
    #[must_use]
    pub fn u32(&self, addr: Addr) -> Option<u32> {
        self.array(addr).map(u32::from_le_bytes)
    }

    /// The signed 32-bit number at `addr`.
    #[must_use]
    pub fn i32(&self, addr: Addr) -> Option<i32> {
        self.array(addr).map(i32::from_le_bytes)
    }

    /// The 64-bit number at `addr`.
    #[must_use]
    pub fn u64(&self, addr: Addr) -> Option<u64> {
        self.array(addr).map(u64::from_le_bytes)
    }

    /// The signed 64-bit number at `addr`.
    #[must_use]
    pub fn i64(&self, addr: Addr) -> Option<i64> {
        self.array(addr).map(i64::from_le_bytes)
    }

    /// The pointer at `addr`; targets are 64-bit.
    #[must_use]
    pub fn ptr(&self, addr: Addr) -> Option<Addr> {
        self.u64(addr).map(Addr)
    }

    /// Whether `len` bytes at `addr` can be read.
    #[must_use]
    pub fn readable(&self, addr: Addr, len: u64) -> bool {
        self.why_not(addr, len).is_none()
    }

    /// `len` bytes from `addr` on, copied; `None` when any is missing or `len` is above `cap`.
    #[must_use]
    pub fn bytes(&self, addr: Addr, len: u64, cap: u64) -> Option<Vec<u8>> {
        if len > cap || self.why_not(addr, len).is_some() {
            return None;
        }
        let mut out = vec![0; usize::try_from(len).ok()?];
        self.read_into(addr, &mut out).then_some(out)
    }

    /// The NUL-terminated UTF-8 text at `addr`, cut at `cap` bytes or where memory ends; `None` when nothing is readable.
    #[must_use]
    pub fn c_str(&self, addr: Addr, cap: u64) -> Option<String> {
        let (mut at, mut left, mut text) = (addr, cap, Vec::new());
        while left > 0 {
            // in small steps: most texts are short, and everything that is read counts as needed
            let step = self.run(at).min(left).min(C_STR_STEP);
            let Some(bytes) = self.slice(at, step).filter(|b| !b.is_empty()) else {
                break;
            };
            text.extend(bytes.iter().take_while(|b| **b != 0));
            if bytes.contains(&0) {
                return Some(String::from_utf8_lossy(&text).into_owned());
            }
            (at, left) = (at + step, left.saturating_sub(step));
        }
        (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
    }
}

/// Bytes of a text that are read at a time.
const C_STR_STEP: u64 = 128;
