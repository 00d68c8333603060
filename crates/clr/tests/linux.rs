//! Stacks of x64 Linux, where code of CoreLib keeps no frame pointers, and references of its heap.

use asynctriage_clr::{FrameSource, Gap, GapKind, Reference, Runtime};
use asynctriage_dump::Dump;
use std::io::Read;
use std::path::Path;

/// Of a program header: its type, the size in the file, and the type of notes.
const HEADER: usize = 56;
const SIZE: usize = 32;
const NOTES: u32 = 4;

fn unpacked() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/locks-10.0.15.dmp.gz");
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// Where the header of the notes stands, and where they begin and end.
fn notes(bytes: &[u8]) -> (usize, usize, usize) {
    let table = u64::from_le_bytes(number(bytes, 32)) as usize;
    let count = u16::from_le_bytes(number(bytes, 56)) as usize;
    let mut headers = (0..count).map(|i| table + i * HEADER);
    let header = headers.find(|h| u32::from_le_bytes(number(bytes, *h)) == NOTES);
    let header = header.expect("notes");
    let start = u64::from_le_bytes(number(bytes, header + 8)) as usize;
    let size = u64::from_le_bytes(number(bytes, header + SIZE)) as usize;
    (header, start, start + size)
}

fn gaps(bytes: Vec<u8>) -> Vec<Gap> {
    let dump = Dump::from_bytes(bytes).unwrap();
    let rt = Runtime::open(&dump).unwrap();
    let (threads, _) = rt.threads();
    rt.stack_gaps(threads)
}

#[test]
fn every_step_is_exact_down_to_the_first_method() {
    let dump = Dump::from_bytes(unpacked()).unwrap();
    let rt = Runtime::open(&dump).unwrap();
    let (threads, _) = rt.threads();
    let mut count = 0;
    for thread in threads {
        let stack = rt.stack(thread);
        assert_eq!(stack.breaks, [], "{stack:?}");
        let Some(first) = stack.frames.last() else {
            continue;
        };
        count += 1;
        let exact = |s| matches!(s, FrameSource::Unwound | FrameSource::Registers);
        assert!(stack.frames.iter().all(|f| exact(f.source)), "{stack:?}");
        let first = rt.method_name(&first.method);
        assert!(
            first.ends_with("Program.Main") || &*first == "System.Threading.Thread.StartCallback",
            "{first}"
        );
    }
    assert_eq!(
        count, 7,
        "the finalizer and the thread of the JIT run native code only"
    );
    assert_eq!(rt.stack_gaps(threads), []);
}

#[test]
fn threads_without_registers_are_a_gap() {
    let mut bytes = unpacked();
    let (header, ..) = notes(&bytes);
    bytes[header + SIZE..][..8].fill(0);
    let gaps = gaps(bytes);
    let gap = gaps
        .iter()
        .find(|g| g.why.contains("no registers for 9 of 9 threads"));
    assert_eq!(gap.map(|g| g.kind), Some(GapKind::Registers), "{gaps:?}");
}

#[test]
fn a_broken_note_is_a_gap_with_what_it_costs() {
    let mut bytes = unpacked();
    let (_, start, end) = notes(&bytes);
    // the second thread's note: lengths of name and content, type 1, `CORE`
    let head = [5_u32, 336, 1].map(u32::to_le_bytes).concat();
    let mut found = (start..end - 12)
        .step_by(4)
        .filter(|at| bytes[*at..].starts_with(&head));
    let second = found.nth(1).expect("threads");
    bytes[second..second + 4].fill(0x7f);
    let gaps = gaps(bytes);
    let said = |text: &str| gaps.iter().any(|g| g.why.contains(text));
    assert!(said("a note is broken in 1 of their lists"), "{gaps:?}");
    assert!(said("no registers for 8 of 9 threads"), "{gaps:?}");
}

#[test]
fn who_refers_to_an_object_is_the_reverse_of_what_objects_refer_to() {
    let dump = Dump::from_bytes(unpacked()).unwrap();
    let rt = Runtime::open(&dump).unwrap();
    let heap = rt.walk_heap(&|_| false);
    let mut all = Vec::new();
    for segment in 0..heap.shape.segments.len() {
        for holder in heap.objects_in(segment) {
            let mut found = |slot, target| {
                all.push(Reference {
                    target,
                    holder,
                    slot,
                });
            };
            rt.for_each_reference(holder, &mut found);
        }
    }
    all.retain(|r| heap.is_object(r.target));
    all.sort_unstable();
    // runs of references overlap in some types
    all.dedup();
    assert!(all.len() > 500, "{}", all.len());
    let targets = all.iter().map(|r| r.target);
    let found = rt.referrers(&heap, targets, usize::MAX);
    assert_eq!(found.references, all);

    // few among many
    let one = all[all.len() / 2].target;
    let to_one: Vec<Reference> = all.iter().copied().filter(|r| r.target == one).collect();
    let found = rt.referrers(&heap, [one], usize::MAX);
    assert_eq!(found.references, to_one);
    assert_eq!(found.of(one), to_one);
}
