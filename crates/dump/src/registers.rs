//! The registers of a stopped thread.

use crate::Addr;

/// Registers of a thread at the moment of the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registers {
    /// AMD64.
    X64(X64Registers),
    /// AArch64.
    Arm64(Arm64Registers),
}

/// AMD64 registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct X64Registers {
    /// In machine encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// Instruction pointer.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
    /// Base of the thread-local storage on Linux.
    pub fs_base: u64,
}

/// AArch64 registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm64Registers {
    /// x0 to x30; x29 is the frame pointer, x30 the return address.
    pub x: [u64; 31],
    /// Stack pointer.
    pub sp: u64,
    /// Instruction pointer.
    pub pc: u64,
    /// Processor state.
    pub pstate: u64,
    /// Base of the thread-local storage, where the dump has it: only kernels and gdb write it.
    pub tpidr: Option<u64>,
}

/// Position of rsp in [`X64Registers::general`].
const RSP: usize = 4;
/// Position of rbp in [`X64Registers::general`].
const RBP: usize = 5;

impl Registers {
    /// The instruction pointer.
    #[must_use]
    pub fn pc(&self) -> Addr {
        Addr(match self {
            Self::X64(r) => r.rip,
            Self::Arm64(r) => r.pc,
        })
    }

    /// The stack pointer.
    #[must_use]
    pub fn sp(&self) -> Addr {
        Addr(match self {
            Self::X64(r) => r.general.get(RSP).copied().unwrap_or_default(),
            Self::Arm64(r) => r.sp,
        })
    }

    /// The frame pointer: rbp or x29. Code compiled without frame pointers uses it for anything else.
    #[must_use]
    pub fn fp(&self) -> Addr {
        Addr(match self {
            Self::X64(r) => r.general.get(RBP).copied().unwrap_or_default(),
            Self::Arm64(r) => r.x.get(29).copied().unwrap_or_default(),
        })
    }

    /// The base of the thread-local storage, where the dump tells it.
    #[must_use]
    pub fn thread_pointer(&self) -> Option<Addr> {
        match self {
            Self::X64(r) => Addr(r.fs_base).non_null(),
            Self::Arm64(r) => r.tpidr.map(Addr).and_then(Addr::non_null),
        }
    }

    /// Every general purpose value, the stack pointer included and the instruction pointer left out: what can hold
    /// a reference.
    pub fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let (general, sp) = match self {
            Self::X64(r) => (r.general.as_slice(), None),
            Self::Arm64(r) => (r.x.as_slice(), Some(r.sp)),
        };
        general.iter().copied().chain(sp)
    }
}
