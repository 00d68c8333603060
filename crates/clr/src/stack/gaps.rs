//! What is missing of the stacks of the process's threads.

use super::StackBreak;
use crate::gap::{Gap, GapKind};
use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::Addr;
use asynctriage_image::unwind::Break;
use std::collections::BTreeMap;

/// Threads that break off for one reason.
struct Broken<'t> {
    count: usize,
    first: &'t Thread,
    at: StackBreak,
}

impl Runtime<'_> {
    /// Threads without registers, and stacks whose frames are not all proved.
    #[must_use]
    pub fn stack_gaps(&self, threads: &[Thread]) -> Vec<Gap> {
        let living = |t: &&Thread| !t.is_dead() && !t.is_unstarted() && t.os_id != 0;
        let living: Vec<&Thread> = threads.iter().filter(living).collect();
        let notes = self.notes_gap();
        let registers = self.registers_gap(&living);
        let code = self.code_gap(&living);
        let breaks = self.break_gaps(&living);
        let first = [notes, registers, code].into_iter().flatten();
        first.chain(breaks).collect()
    }

    fn notes_gap(&self) -> Option<Gap> {
        let broken = self.dump.broken_notes;
        let mut parts = Vec::new();
        if broken.lists > 0 {
            parts.push(format!(
                "a note is broken in {} of their lists: what stands behind it is lost",
                broken.lists
            ));
        }
        if broken.threads > 0 {
            parts.push(format!("{} notes of threads are too short", broken.threads));
        }
        if broken.kinds > 0 {
            parts.push(format!(
                "{} notes are of no kind that a system writes",
                broken.kinds
            ));
        }
        if broken.files > 0 {
            parts.push(format!(
                "the list of mapped files is wrong in {} entries",
                broken.files
            ));
        }
        (!parts.is_empty()).then(|| Gap {
            kind: GapKind::ThreadNotes,
            place: "the notes of the core".into(),
            why: format!(
                "{}; threads and mapped files may be missing",
                parts.join(", ")
            ),
            remedy: "the file is damaged: compare it with the original, or take another dump"
                .into(),
        })
    }

    fn registers_gap(&self, living: &[&Thread]) -> Option<Gap> {
        let lacks = |t: &&&Thread| self.snapshot(t.os_id).is_none();
        let missing: Vec<&&Thread> = living.iter().filter(lacks).collect();
        let first = missing.first()?;
        Some(Gap {
            kind: GapKind::Registers,
            place: match missing.len() {
                1 => format!("thread {}", first.os_id),
                n => format!("{n} threads, such as {}", first.os_id),
            },
            why: format!(
                "no registers for {} of {} threads: their stacks, and what they block on, are not known",
                missing.len(),
                living.len()
            ),
            remedy: "the notes of the threads are lost or damaged: compare the file with the original, or take another dump"
                .into(),
        })
    }

    fn code_gap(&self, living: &[&Thread]) -> Option<Gap> {
        let calls = living
            .iter()
            .filter_map(|t| Some((t.os_id, self.call_from_nowhere(t)?)));
        let calls: Vec<(u32, Addr)> = calls.collect();
        let (first, at) = calls.first()?;
        Some(Gap {
            kind: GapKind::UnknownCode,
            place: match calls.len() {
                1 => format!("the stack of thread {first}"),
                n => format!("the stacks of {n} threads, such as that of {first}"),
            },
            why: format!(
                "the runtime notes a call out of managed code at {at}, and no method is known there: managed frames are missing"
            ),
            remedy:
                "the tables of compiled code are damaged, or not in the dump: take another dump"
                    .into(),
        })
    }

    fn break_gaps(&self, living: &[&Thread]) -> Vec<Gap> {
        let mut all: BTreeMap<String, Broken<'_>> = BTreeMap::new();
        for thread in living {
            let stack = self.stack(thread);
            let mut breaks = stack
                .breaks
                .iter()
                .map(|b| (b.why.to_string(), *b))
                .collect::<Vec<_>>();
            breaks.dedup_by(|a, b| a.0 == b.0);
            for (why, at) in breaks {
                let broken = all.entry(why).or_insert(Broken {
                    count: 0,
                    first: thread,
                    at,
                });
                broken.count = broken.count.saturating_add(1);
            }
        }
        let gap = |(why, broken): (String, Broken<'_>)| {
            let of = broken.first.os_id;
            Gap {
                kind: GapKind::Stack,
                place: match broken.count {
                    1 => format!("the stack of thread {of}, at {}", self.code_text(broken.at)),
                    n => format!(
                        "the stacks of {n} threads, such as that of {of} at {}",
                        self.code_text(broken.at)
                    ),
                },
                why: format!("{why}: frames further out are not proved, and some may be missing"),
                remedy: remedy(broken.at.why).into(),
            }
        };
        all.into_iter().map(gap).collect()
    }

    /// The code that a stack breaks off in.
    fn code_text(&self, at: StackBreak) -> String {
        match self.method_at(at.ip.back(1)) {
            Some(method) => self.method_name(&method).to_string(),
            None => {
                let frame = self.native_name(at.ip);
                match frame.image {
                    Some(_) => frame.to_string(),
                    None => format!("{} ({frame})", at.ip),
                }
            }
        }
    }
}

fn remedy(why: Break) -> &'static str {
    match why {
        Break::NoTable | Break::NoCode | Break::NotCode => {
            "read the dump on a machine that has the program's files, or take a full dump"
        }
        Break::NoStack(_) => "take a full dump",
        Break::TooLong => "the innermost frames are listed",
        Break::NoEntry | Break::BadEntry | Break::UnknownRegister | Break::NotUpwards => {
            "frames that are called chained or possible are to be checked with another tool"
        }
    }
}
