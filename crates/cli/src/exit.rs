//! The exit status.

use std::process::ExitCode;

/// What the exit status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The report was written.
    Written = 0,
    /// A finding is as severe as `--fail-on` says, or something that `verify` checks does not hold.
    Finding = 1,
    /// The command line is wrong, or what it asks for cannot be done.
    Usage = 2,
    /// The input cannot be read or is not a dump.
    Input = 3,
    /// The dump holds no .NET runtime that is supported.
    NoRuntime = 4,
    /// The report is incomplete and `--strict` was given.
    Incomplete = 5,
    /// The report could not be written.
    Output = 6,
    /// A limit ended the analysis: the report is partial, and says so.
    Partial = 7,
    /// An error in the program itself.
    Internal = 70,
    /// Interrupted; the shell's own word for it, which it also says of a program that does not listen.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
