//! Events of the runtime itself: methods, modules, IL maps.
//!
//! The runtime writes neither names nor fields for its own events, so their layouts stand here, by provider, id and
//! version. Higher versions only add fields at the end.

mod methods;

pub use methods::{Method, MethodRanges, Methods, Origin};

use crate::cursor::Cursor;
use crate::rows::Guid;
use crate::{Event, Text};

/// The provider of events that the runtime writes when something happens.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The provider of events that describe, at the end of a session, all that there is.
pub const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// What happened to a method or a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was loaded or compiled now.
    Load,
    /// It was unloaded now.
    Unload,
    /// It is there at the beginning or the end of the session.
    Rundown,
}

/// An event of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeEvent<'a> {
    /// Code of a method.
    Method(Phase, MethodLoad<'a>),
    /// A module.
    Module(Phase, Module<'a>),
    /// Which native code stands for which IL.
    IlMap(IlMap<'a>),
    /// The runtime.
    Runtime(RuntimeInformation<'a>),
}

/// Code of a method: MethodLoad, MethodLoadVerbose, and what rundown calls MethodDCEnd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodLoad<'a> {
    /// Address of the runtime's description of the method (MethodDesc).
    pub method: u64,
    /// Address of the runtime's description of its module.
    pub module: u64,
    /// First address of the code.
    pub start: u64,
    /// Its length in bytes.
    pub size: u32,
    /// Metadata token; 0 for code without one.
    pub token: u32,
    /// 1 dynamic, 2 generic, 4 shared generic code, 8 jitted; bits 7 to 9 tier, 28 to 31 hot or cold part.
    pub flags: u32,
    /// Namespace and type, nested ones behind `+`; empty in events that are not verbose.
    pub namespace: Text<'a>,
    /// Name of the method.
    pub name: Text<'a>,
    /// Signature in IL's words.
    pub signature: Text<'a>,
    /// Which of the method's versions by ReJIT; 0 is the first, and all that version 1 of the event knows.
    pub rejit: u64,
    /// Whether the event has names at all.
    pub verbose: bool,
}

/// A module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Module<'a> {
    /// Address of the runtime's description of it.
    pub module: u64,
    /// Address of the runtime's description of its assembly.
    pub assembly: u64,
    /// 1 domain neutral, 2 native, 4 dynamic, 8 manifest.
    pub flags: u32,
    /// Path of the file with IL; empty for what was never a file.
    pub path: Text<'a>,
    /// Path of a native image beside it; mostly empty.
    pub native_path: Text<'a>,
    /// Id of the portable PDB (version 2).
    pub pdb_id: Option<Guid>,
    /// Its age (version 2).
    pub pdb_age: u32,
    /// Its path at build time (version 2).
    pub pdb_path: Text<'a>,
}

/// Which native code of a method stands for which IL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IlMap<'a> {
    /// As in [`MethodLoad`].
    pub method: u64,
    /// As in [`MethodLoad`].
    pub rejit: u64,
    il: &'a [u8],
    native: &'a [u8],
}

impl IlMap<'_> {
    /// Pairs of IL offset and native offset. Of IL offsets, -1 is none, -2 the prolog, -3 the epilog.
    pub fn pairs(&self) -> impl Iterator<Item = (i32, u32)> + '_ {
        words(self.il).map(u32::cast_signed).zip(words(self.native))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes
        .chunks_exact(4)
        .filter_map(|word| word.first_chunk().map(|word| u32::from_le_bytes(*word)))
}

/// What the runtime says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeInformation<'a> {
    /// Version of the class libraries: major, minor, build, revision (10, 0, 15, 0).
    pub libraries: [u16; 4],
    /// Version of the runtime's own file.
    pub runtime: [u16; 4],
    /// Path of that file.
    pub path: Text<'a>,
}

impl<'a> RuntimeEvent<'a> {
    /// `None` for events of other providers, for those that this crate has no layout of, and for payloads that are
    /// too short.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let payload = Cursor::new(event.payload, event.payload_offset);
        let version = event.kind.version;
        match event.kind.provider.as_str() {
            RUNTIME => match event.kind.id {
                141 => method(payload, false, version).map(|m| Self::Method(Phase::Load, m)),
                142 => method(payload, false, version).map(|m| Self::Method(Phase::Unload, m)),
                143 => method(payload, true, version).map(|m| Self::Method(Phase::Load, m)),
                144 => method(payload, true, version).map(|m| Self::Method(Phase::Unload, m)),
                152 => module(payload, version).map(|m| Self::Module(Phase::Load, m)),
                153 => module(payload, version).map(|m| Self::Module(Phase::Unload, m)),
                187 => information(payload).map(Self::Runtime),
                190 => il_map(payload).map(Self::IlMap),
                _ => None,
            },
            // the odd ids of methods and modules are of the beginning of a session, the even ones of its end
            RUNDOWN => match event.kind.id {
                141 | 142 => {
                    method(payload, false, version).map(|m| Self::Method(Phase::Rundown, m))
                }
                143 | 144 => {
                    method(payload, true, version).map(|m| Self::Method(Phase::Rundown, m))
                }
                149 | 150 => il_map(payload).map(Self::IlMap),
                153 | 154 => module(payload, version).map(|m| Self::Module(Phase::Rundown, m)),
                187 => information(payload).map(Self::Runtime),
                _ => None,
            },
            _ => None,
        }
    }
}

fn method<'a>(mut payload: Cursor<'a>, verbose: bool, version: u32) -> Option<MethodLoad<'a>> {
    let mut load = MethodLoad {
        method: payload.u64()?,
        module: payload.u64()?,
        start: payload.u64()?,
        size: payload.u32()?,
        token: payload.u32()?,
        flags: payload.u32()?,
        verbose,
        ..MethodLoad::default()
    };
    if verbose {
        load.namespace = payload.text()?;
        load.name = payload.text()?;
        load.signature = payload.text()?;
    }
    if version >= 1 {
        payload.u16()?;
    }
    if version >= 2 {
        load.rejit = payload.u64()?;
    }
    Some(load)
}

fn module(mut payload: Cursor<'_>, version: u32) -> Option<Module<'_>> {
    let mut module = Module {
        module: payload.u64()?,
        assembly: payload.u64()?,
        flags: payload.u32()?,
        ..Module::default()
    };
    payload.u32()?;
    module.path = payload.text()?;
    module.native_path = payload.text()?;
    if version >= 1 {
        payload.u16()?;
    }
    if version >= 2 {
        module.pdb_id = Some(payload.array()?).filter(|id| *id != Guid::default());
        module.pdb_age = payload.u32()?;
        module.pdb_path = payload.text()?;
    }
    Some(module)
}

fn il_map(mut payload: Cursor<'_>) -> Option<IlMap<'_>> {
    let (method, rejit) = (payload.u64()?, payload.u64()?);
    payload.u8()?;
    let len = usize::from(payload.u16()?).checked_mul(4)?;
    Some(IlMap {
        method,
        rejit,
        il: payload.take(len)?,
        native: payload.take(len)?,
    })
}

fn information(mut payload: Cursor<'_>) -> Option<RuntimeInformation<'_>> {
    // instance and edition of the runtime
    payload.u32()?;
    let libraries = [
        payload.u16()?,
        payload.u16()?,
        payload.u16()?,
        payload.u16()?,
    ];
    let runtime = [
        payload.u16()?,
        payload.u16()?,
        payload.u16()?,
        payload.u16()?,
    ];
    // flags and mode of its start, command line, a GUID for COM
    payload.u32()?;
    payload.u8()?;
    payload.text()?;
    payload.array::<16>()?;
    let path = payload.text()?;
    Some(RuntimeInformation {
        libraries,
        runtime,
        path,
    })
}

#[cfg(test)]
mod tests;
