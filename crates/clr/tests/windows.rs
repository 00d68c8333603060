//! Stacks of x64 Windows, where no code keeps frame pointers.

use asynctriage_clr::{FrameSource, Runtime};
use asynctriage_dump::Dump;
use std::io::Read;
use std::path::Path;

fn unpacked() -> Vec<u8> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/locks-win-10.0.15.dmp.gz");
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The managed frames of every thread that has some, with how each was found.
fn stacks(dump: &Dump) -> Vec<Vec<(FrameSource, String)>> {
    let rt = Runtime::open(dump).unwrap();
    let (threads, _) = rt.threads();
    let all = threads.iter().map(|t| {
        let frames = rt.stack(t).frames.clone().into_iter();
        let named = frames.map(|f| (f.source, rt.method_name(&f.method).to_string()));
        named.collect()
    });
    all.filter(|stack: &Vec<_>| !stack.is_empty()).collect()
}

fn methods(stack: &[(FrameSource, String)]) -> Vec<&str> {
    stack.iter().map(|(_, method)| method.as_str()).collect()
}

/// Through native code, code of images and the JIT's, from the registers on.
#[test]
fn every_step_is_exact_down_to_the_first_method() {
    let stacks = stacks(&Dump::from_bytes(unpacked()).unwrap());
    // the finalizer and the thread of the JIT run native code only
    assert_eq!(stacks.len(), 7);
    for stack in &stacks {
        assert!(
            stack.iter().all(|(s, _)| *s == FrameSource::Unwound),
            "{stack:?}"
        );
        let first = stack.last().map(|(_, m)| m.as_str());
        assert!(
            first.is_some_and(
                |m| m.ends_with("Program.Main") || m == "System.Threading.Thread.StartCallback"
            ),
            "{stack:?}"
        );
    }
}

/// As in a heap dump whose system libraries are not at hand: the registers lead nowhere, and the runtime's own notes of
/// calls out of managed code lead to the same methods.
#[test]
fn the_notes_of_the_runtime_lead_to_the_same_methods() {
    let bytes = unpacked();
    let dump = Dump::from_bytes(bytes.clone()).unwrap();
    let mut lost = bytes;
    for thread in &dump.threads {
        let ip = thread.registers.pc().0.to_le_bytes();
        let places: Vec<usize> = lost
            .windows(8)
            .enumerate()
            .filter_map(|(at, word)| (word == ip).then_some(at))
            .collect();
        for at in places {
            lost[at..at + 8].fill(0);
        }
    }
    let whole = stacks(&dump);
    let noted = stacks(&Dump::from_bytes(lost).unwrap());
    let exact = noted
        .iter()
        .filter(|stack| stack[0].0 == FrameSource::Recorded);
    let mut count = 0;
    for stack in exact {
        count += 1;
        assert!(
            whole.iter().any(|w| methods(w) == methods(stack)),
            "{stack:?}"
        );
        let further = &stack[1..];
        assert!(further.iter().all(|(s, _)| *s == FrameSource::Unwound));
    }
    assert_eq!(count, whole.len());
}
