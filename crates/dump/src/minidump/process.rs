//! Threads, modules, and what a minidump says of the process as a whole.

use ::minidump::format::{CONTEXT_AMD64, MINIDUMP_MODULE, VS_FFI_SIGNATURE};
use ::minidump::{
    MinidumpException, MinidumpMiscInfo, MinidumpModule, MinidumpModuleList, MinidumpRawContext,
    MinidumpStream, MinidumpSystemInfo, MinidumpThread, MinidumpThreadList, MinidumpThreadNames,
};

use super::File;
use crate::registers::{Arm64Registers, X64Registers};
use crate::{
    Addr, ExceptionFacts, ImageStamp, MappedFile, ProcessFacts, Registers, ThreadSnapshot,
};

/// A stream that may be missing or broken.
fn optional<'a, S: MinidumpStream<'a>>(dump: &'a File<'a>) -> Option<S> {
    let stream = dump.get_stream::<S>();
    if let Err(error) = &stream {
        tracing::debug!(%error, stream = S::STREAM_TYPE, "not read");
    }
    stream.ok()
}

/// The threads in the order that they were made: the main thread comes first.
pub(super) fn threads(dump: &File<'_>, system: &MinidumpSystemInfo) -> Vec<ThreadSnapshot> {
    let names: Option<MinidumpThreadNames> = optional(dump);
    let name = |id| {
        names
            .as_ref()?
            .get_name(id)
            .map(std::borrow::Cow::into_owned)
    };
    let list: Option<MinidumpThreadList<'_>> = optional(dump);
    let threads = list.iter().flat_map(|l| &l.threads);
    threads
        .map(|thread| ThreadSnapshot {
            id: thread.raw.thread_id,
            signal: None,
            registers: registers(thread, system),
            name: name(thread.raw.thread_id).filter(|n| !n.is_empty()),
            teb: Addr(thread.raw.teb).non_null(),
        })
        .collect()
}

/// The registers of a thread; zeros when the dump lacks them.
fn registers(thread: &MinidumpThread<'_>, system: &MinidumpSystemInfo) -> Registers {
    let context = thread.context(system, None);
    match context.as_ref().map(|c| &c.raw) {
        Some(MinidumpRawContext::Amd64(c)) => Registers::X64(x64(c)),
        Some(MinidumpRawContext::Arm64(c)) => arm64(&c.iregs, c.sp, c.pc, c.cpsr),
        Some(MinidumpRawContext::OldArm64(c)) => arm64(&c.iregs, c.sp, c.pc, c.cpsr),
        _ => Registers::X64(X64Registers::default()),
    }
}

fn x64(c: &CONTEXT_AMD64) -> X64Registers {
    X64Registers {
        general: [
            c.rax, c.rcx, c.rdx, c.rbx, c.rsp, c.rbp, c.rsi, c.rdi, c.r8, c.r9, c.r10, c.r11,
            c.r12, c.r13, c.r14, c.r15,
        ],
        rip: c.rip,
        rflags: c.eflags.into(),
        fs_base: 0,
    }
}

fn arm64(x: &[u64; 31], sp: u64, pc: u64, cpsr: u32) -> Registers {
    Registers::Arm64(Arm64Registers {
        x: *x,
        sp,
        pc,
        pstate: cpsr.into(),
        tpidr: None,
    })
}

/// The modules in the order of the dump: the program comes first. Managed assemblies are among them.
pub(super) fn modules(dump: &File<'_>) -> Vec<MappedFile> {
    let list: Option<MinidumpModuleList> = optional(dump);
    let modules = list.iter().flat_map(MinidumpModuleList::iter);
    modules.map(module).collect()
}

fn module(module: &MinidumpModule) -> MappedFile {
    let raw = &module.raw;
    let start = Addr(raw.base_of_image);
    MappedFile {
        path: module.name.clone(),
        start,
        end: start + u64::from(raw.size_of_image),
        file_offset: 0,
        stamp: Some(ImageStamp {
            time_date_stamp: raw.time_date_stamp,
            size_of_image: raw.size_of_image,
            version: version(raw),
        }),
    }
}

/// The four numbers of the version resource.
fn version(raw: &MINIDUMP_MODULE) -> Option<[u16; 4]> {
    let info = &raw.version_info;
    let halves = |n: u32| [(n >> 16) as u16, n as u16];
    let ([a, b], [c, d]) = (halves(info.file_version_hi), halves(info.file_version_lo));
    (info.signature == VS_FFI_SIGNATURE).then_some([a, b, c, d])
}

/// What the dump says of the process and the system.
pub(super) fn facts(dump: &File<'_>, system: &MinidumpSystemInfo) -> ProcessFacts {
    let misc: Option<MinidumpMiscInfo> = optional(dump);
    let raw = misc.as_ref().map(|m| &m.raw);
    let exception: Option<MinidumpException<'_>> = optional(dump);
    let info = &system.raw;
    let main =
        optional::<MinidumpModuleList>(dump).and_then(|l| l.main_module().map(|m| m.name.clone()));
    ProcessFacts {
        pid: raw.and_then(|m| m.process_id()).copied(),
        command: main
            .as_deref()
            .and_then(|n| n.rsplit(['\\', '/']).next())
            .map(str::to_owned),
        taken: Some(u64::from(dump.header.time_date_stamp)).filter(|t| *t != 0),
        started: raw
            .and_then(|m| m.process_create_time())
            .map(|t| u64::from(*t))
            .filter(|t| *t != 0),
        system: Some(format!(
            "Windows {}.{}.{}",
            info.major_version, info.minor_version, info.build_number
        )),
        exception: exception.map(|e| ExceptionFacts {
            thread: e.thread_id,
            code: e.raw.exception_record.exception_code,
            address: Addr(e.raw.exception_record.exception_address),
        }),
        ..ProcessFacts::default()
    }
}
