//! Address spaces by name.
//!
//! | type | space |
//! | --- | --- |
//! | [`Addr`] | a virtual address of the dumped process, as its pointers hold it |
//! | `u64` named `offset` | a byte position in the dump file; never leaves this crate |
//! | `u32` named `rva` | a distance from the load address of an image; lives in the image crate |

use std::fmt;
use std::ops::Add;

/// A virtual address of the dumped process.
///
/// Arithmetic wraps: the values come from an untrusted dump, and an address that wrapped around is caught by the read
/// that follows, which says that nothing is mapped there.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u64);

impl Addr {
    /// The null pointer.
    pub const NULL: Self = Self(0);

    /// Whether this is the null pointer.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// `None` for the null pointer.
    #[must_use]
    pub fn non_null(self) -> Option<Self> {
        (self.0 != 0).then_some(self)
    }

    /// The address `bytes` further up, or down when negative.
    #[must_use]
    pub const fn offset(self, bytes: i64) -> Self {
        Self(self.0.wrapping_add_signed(bytes))
    }

    /// The address `bytes` further down.
    #[must_use]
    pub const fn back(self, bytes: u64) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    /// Bytes from `base` up to this address; `None` when it lies below.
    #[must_use]
    pub const fn since(self, base: Self) -> Option<u64> {
        self.0.checked_sub(base.0)
    }

    /// The address of element `index` of an array of `stride`-byte elements that begins here.
    #[must_use]
    pub const fn element(self, index: u64, stride: u64) -> Self {
        Self(self.0.wrapping_add(index.wrapping_mul(stride)))
    }

    /// The address without the bits of `mask`: runtimes keep flags in the low bits of pointers.
    #[must_use]
    pub const fn without(self, mask: u64) -> Self {
        Self(self.0 & !mask)
    }
}

impl Add<u64> for Addr {
    type Output = Self;
    fn add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
