//! Whose code something is.
//!
//! What comes with .NET is told by its module; a known library by its public names, as it may be merged into the program.

use super::{Client, client_of};
use asynctriage_clr::Module;

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// .NET's or ASP.NET Core's.
    Framework,
    /// That of a library which only carries out what the program asked for.
    Library(&'static Client),
    /// The program's, or that of a library that is not known.
    Program,
}

impl Owner {
    /// By the module that a method or type lies in, and its full name.
    pub(crate) fn of(module: &Module<'_>, name: &str) -> Self {
        if module.ships_with_dotnet {
            return Self::Framework;
        }
        client_of(name).map_or(Self::Program, Self::Library)
    }

    pub(crate) fn is_framework(self) -> bool {
        self == Self::Framework
    }
}
