//! The notes of a core: threads, mapped files, facts about the process, and who wrote it.

use object::elf::{NT_AUXV, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO, NoteType};
use object::read::elf::{Note, NoteIterator};

use super::{Header, LE, nt};
use crate::bytes::u64_at;
use crate::{Arch, BrokenNotes, MappedFile, ProcessFacts, Registers, ThreadSnapshot};

/// NT_ARM_TLS: `tpidr_el0` of the thread before.
const NT_ARM_TLS: NoteType = NoteType(0x401);
/// Most threads that are kept: the largest `pid_max` of Linux is four times this.
const MAX_THREADS: usize = 1 << 20;
/// The owner name that gdb gives to its target description.
const GDB: &[u8] = b"GDB";

/// Who wrote a core, by the notes and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The runtime's createdump.
    Createdump,
    /// gdb's gcore.
    Gdb,
    /// The kernel.
    Kernel,
    /// None of them.
    #[default]
    Unknown,
}

/// Everything the notes say.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) threads: Vec<ThreadSnapshot>,
    pub(crate) files: Vec<MappedFile>,
    pub(crate) process: ProcessFacts,
    /// What cannot be read of them.
    pub(crate) broken: BrokenNotes,
    /// The first two notes.
    order: Vec<NoteType>,
    of_gdb: bool,
}

impl Notes {
    /// Reads the notes of all `segments`. A broken note ends its segment.
    pub(crate) fn read<'a>(segments: impl Iterator<Item = &'a [u8]>, arch: Arch) -> Self {
        let mut out = Self::default();
        for segment in segments {
            // cores align to 4 whatever their header says: createdump writes 0, gdb 1, kernels 4
            let Ok(notes) = NoteIterator::<Header>::new(LE, 4, segment) else {
                out.broken.lists = out.broken.lists.saturating_add(1);
                continue;
            };
            for note in notes {
                match note {
                    Ok(note) => out.add(&note, arch),
                    Err(error) => {
                        tracing::debug!(%error, "a note is broken");
                        out.broken.lists = out.broken.lists.saturating_add(1);
                    }
                }
            }
        }
        out.process.signal = out.process.signal.or_else(|| out.signal_of_first_thread());
        out
    }

    fn add(&mut self, note: &Note<'_, Header>, arch: Arch) {
        let kind = note.n_type(LE);
        if self.order.len() < 2 {
            self.order.push(kind);
        }
        // note types are only unique within an owner
        match note.name() {
            b"CORE" => self.add_core(kind, note.desc(), arch),
            b"LINUX" if kind == NT_ARM_TLS => self.add_tls(note.desc()),
            name => self.of_gdb |= name == GDB,
        }
    }

    fn add_core(&mut self, kind: NoteType, desc: &[u8], arch: Arch) {
        let process = &mut self.process;
        match kind {
            NT_PRSTATUS if self.threads.len() < MAX_THREADS => {
                let thread = nt::thread(desc, arch);
                let is_broken = usize::from(thread.is_none());
                self.broken.threads = self.broken.threads.saturating_add(is_broken);
                self.threads.extend(thread);
            }
            NT_FILE if self.files.is_empty() => {
                let broken;
                (self.files, broken) = nt::files(desc);
                self.broken.files = self.broken.files.saturating_add(broken);
            }
            NT_AUXV if process.auxv.is_empty() => process.auxv = nt::auxv(desc),
            // gdb writes one for each thread, the first thread's first
            NT_SIGINFO => process.signal = process.signal.or_else(|| nt::signal(desc)),
            NT_PRPSINFO => {
                if let Some((pid, command, arguments)) = nt::process(desc) {
                    (process.pid, process.command, process.arguments) =
                        (Some(pid), command, arguments);
                }
            }
            kind if !nt::KINDS.contains(&kind.0) => {
                self.broken.kinds = self.broken.kinds.saturating_add(1);
            }
            _ => {}
        }
    }

    fn add_tls(&mut self, desc: &[u8]) {
        if let Some(Registers::Arm64(registers)) = self.threads.last_mut().map(|t| &mut t.registers)
        {
            registers.tpidr = u64_at(desc, 0);
        }
    }

    /// createdump states a signal for each thread that means nothing, so its threads are not asked.
    fn signal_of_first_thread(&self) -> Option<u32> {
        match self.writer() {
            Writer::Createdump => None,
            _ => self.threads.first().and_then(|t| t.signal),
        }
    }

    /// Who wrote the core. The order is as telling as a name: createdump lists the process, its auxiliary vector
    /// and its files before the threads (8 to 11), gdb the process and then the threads, the kernel one thread first.
    pub(crate) fn writer(&self) -> Writer {
        match *self.order {
            _ if self.of_gdb => Writer::Gdb,
            [NT_PRPSINFO, NT_AUXV] => Writer::Createdump,
            [NT_PRPSINFO, NT_PRSTATUS] => Writer::Gdb,
            [NT_PRSTATUS, NT_PRPSINFO] => Writer::Kernel,
            _ => Writer::Unknown,
        }
    }
}
