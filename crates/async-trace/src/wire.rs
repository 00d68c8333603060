//! The words of the wire: record kinds, families and the table of payload boundaries.

use std::fmt;

/// Which generated form of async methods a record speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Methods compiled as runtime-async (.NET 11).
    RuntimeAsync,
    /// State machines of the compiler.
    StateMachine,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::RuntimeAsync, Self::StateMachine];

    /// `RA` or `SM`, as in the names of counts.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::RuntimeAsync => "RA",
            Self::StateMachine => "SM",
        }
    }

    /// Place in tables of two.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::RuntimeAsync => 0,
            Self::StateMachine => 1,
        }
    }
}

/// Declares the record kinds with their ids, names and the sizes of their length prefixes in .NET 11.0.0.
macro_rules! kinds {
    ($($(#[$attr:meta])* $variant:ident = $id:literal, $prefix:literal;)*) => {
        /// The 23 record kinds of .NET 11.0.0, by their ids on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$attr])* $variant = $id,)* }

        impl Kind {
            /// All of them, in the order of their ids.
            pub const ALL: [Self; 23] = [$(Self::$variant),*];

            /// The kind with an id of the wire.
            #[must_use]
            pub const fn from_id(id: u8) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }

            /// The name that the runtime gives it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// Bytes of the payload's length prefix: 0 (no payload), 1 or 2.
            #[must_use]
            pub const fn prefix(self) -> u8 {
                match self { $(Self::$variant => $prefix,)* }
            }
        }
    };
}

kinds! {
    /// A chain suspended for the first time.
    CreateRuntimeAsyncContext = 1, 1;
    /// A chain is being resumed on a thread.
    ResumeRuntimeAsyncContext = 2, 1;
    /// The innermost activation of the thread suspended.
    SuspendRuntimeAsyncContext = 3, 0;
    /// The innermost activation of the thread ran to its end.
    CompleteRuntimeAsyncContext = 4, 0;
    /// An exception left some frames.
    UnwindRuntimeAsyncException = 5, 1;
    /// Frames of a chain that suspended for the first time.
    CreateRuntimeAsyncCallstack = 6, 2;
    /// Frames of a chain that is being resumed.
    ResumeRuntimeAsyncCallstack = 7, 2;
    /// Frames of a chain that suspends again.
    SuspendRuntimeAsyncCallstack = 8, 2;
    /// A frame runs.
    ResumeRuntimeAsyncMethod = 9, 0;
    /// A frame ended.
    CompleteRuntimeAsyncMethod = 10, 0;
    /// A leaf method suspended for the first time.
    CreateStateMachineAsyncContext = 11, 1;
    /// A leaf method is being resumed.
    ResumeStateMachineAsyncContext = 12, 1;
    /// The same leaf suspended again.
    SuspendStateMachineAsyncContext = 13, 0;
    /// The segment ended; the method may have gone on.
    CompleteStateMachineAsyncContext = 14, 0;
    /// An exception left a frame.
    UnwindStateMachineAsyncException = 15, 1;
    /// Frames of a leaf that is being resumed.
    ResumeStateMachineAsyncCallstack = 16, 2;
    /// A frame runs.
    ResumeStateMachineAsyncMethod = 17, 0;
    /// A frame ended.
    CompleteStateMachineAsyncMethod = 18, 0;
    /// Frames that attached after the call stack was taken.
    AppendStateMachineAsyncCallstack = 19, 2;
    /// The first record of a thread in a session.
    ResetAsyncThreadContext = 20, 0;
    /// 32 frames of one activation have run.
    ResetAsyncContinuationWrapperIndex = 21, 0;
    /// Clock, buffer size and the table of record kinds.
    AsyncProfilerMetadata = 22, 2;
    /// The same instant on both clocks.
    AsyncProfilerSyncClock = 23, 1;
}

impl Kind {
    /// The id on the wire.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The family that it belongs to; none for what concerns the thread or the session.
    #[must_use]
    pub const fn family(self) -> Option<Family> {
        match self.id() {
            1..=10 => Some(Family::RuntimeAsync),
            11..=19 => Some(Family::StateMachine),
            _ => None,
        }
    }

    /// Whether it carries frames.
    #[must_use]
    pub const fn is_callstack(self) -> bool {
        matches!(self.id(), 6..=8 | 16 | 19)
    }

    /// Whether it says that frames run or ended.
    pub(crate) const fn is_method(self) -> bool {
        matches!(self.id(), 9 | 10 | 17 | 18)
    }

    /// Whether it begins an activation; such records come after all others of the same instant, because a chain is
    /// queued only after its suspension was recorded.
    pub(crate) const fn is_resume(self) -> bool {
        matches!(self.id(), 2 | 12)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the process says of its records: how long each kind's length prefix is, and which version its payload has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// By record id: prefix bytes and schema version; none for an id that the process does not have.
    entries: [Option<(u8, u8)>; 256],
}

impl Default for Manifest {
    /// That of .NET 11.0.0.
    fn default() -> Self {
        let mut entries = [None; 256];
        for kind in Kind::ALL {
            if let Some(entry) = entries.get_mut(usize::from(kind.id())) {
                *entry = Some((kind.prefix(), 1));
            }
        }
        Self { entries }
    }
}

impl Manifest {
    /// From the triples of a metadata record: id, schema version, prefix bytes.
    pub(crate) fn from_triples(triples: &[[u8; 3]]) -> Self {
        let mut entries = [None; 256];
        for [id, version, prefix] in triples {
            if let Some(entry) = entries.get_mut(usize::from(*id)) {
                *entry = Some((*prefix, *version));
            }
        }
        Self { entries }
    }

    /// Prefix bytes and schema version of an id.
    pub(crate) fn entry(&self, id: u8) -> Option<(u8, u8)> {
        self.entries.get(usize::from(id)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_dense_and_names_are_those_of_the_runtime() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.id()), index + 1);
            assert_eq!(Kind::from_id(kind.id()), Some(*kind));
        }
        assert_eq!(Kind::from_id(0), None);
        assert_eq!(Kind::from_id(24), None);
        assert_eq!(
            Kind::AppendStateMachineAsyncCallstack.to_string(),
            "AppendStateMachineAsyncCallstack"
        );
    }

    #[test]
    fn families_follow_the_names() {
        for kind in Kind::ALL {
            let expected = if kind.name().contains("RuntimeAsync") {
                Some(Family::RuntimeAsync)
            } else if kind.name().contains("StateMachine") {
                Some(Family::StateMachine)
            } else {
                None
            };
            assert_eq!(kind.family(), expected, "{kind}");
            assert_eq!(kind.is_callstack(), kind.name().contains("Callstack"));
            assert_eq!(kind.is_method(), kind.name().ends_with("Method"));
        }
    }
}
