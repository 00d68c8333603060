//! Damaged dumps: whatever stands in a dump, the analysis ends soon and does not panic.

use asynctriage_dump::Dump;
use asynctriage_dump_synth::Process;
use asynctriage_triage::{Options, analyse};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Milliseconds would do: the rest is for busy machines.
const LIMIT: Duration = Duration::from_secs(10);

/// A small process with one of each shape.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    Process::new()
        .task("tcs")
        .lost_task("lost")
        .method("App.Client.SendAsync", 0, "tcs")
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1")
        .method("App.Handler.Run", 2, "tcs")
        .removed_waiters("tcs", 2)
        .method("App.Lost.Run", 0, "lost")
        .method("App.Ping.Run", 0, "App.Pong.Run#1")
        .method("App.Pong.Run", 0, "App.Ping.Run#1")
        .completed("App.Done.Run")
        .blocked_thread("worker", "App.Handler.Run#1")
        .build()
});

/// Opens and analyses; refusing is fine.
fn analyse_quickly(bytes: Vec<u8>) {
    let begun = Instant::now();
    if let Ok(dump) = Dump::from_bytes(bytes) {
        let report = analyse(&dump, &Options::default());
        drop(report);
    }
    let taken = begun.elapsed();
    assert!(taken < LIMIT, "it took {taken:?}");
}

/// Places in the dump that hold something; most of its bytes are zeros between them.
fn written() -> Vec<usize> {
    let bytes = WHOLE.iter().enumerate();
    bytes.filter(|(_, b)| **b != 0).map(|(i, _)| i).collect()
}

/// Values that break more than others do: near other fields, far away, all ones.
fn value() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x80), Just(8)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_bytes_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..40)
    ) {
        let written = written();
        let mut bytes = WHOLE.clone();
        for (place, value) in changes {
            bytes[written[place.index(written.len())]] = value;
        }
        analyse_quickly(bytes);
    }

    #[test]
    fn swapped_words_do_no_harm(
        swaps in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..10)
    ) {
        // pointers that lead to other structures than they should
        let is_written = |i: &usize| WHOLE[8 * i..8 * i + 8] != [0; 8];
        let words: Vec<usize> = (0..WHOLE.len() / 8).filter(is_written).collect();
        let mut bytes = WHOLE.clone();
        for (from, to) in swaps {
            let word = |i: prop::sample::Index| words[i.index(words.len())] * 8;
            bytes.copy_within(word(from)..word(from) + 8, word(to));
        }
        analyse_quickly(bytes);
    }

    #[test]
    fn a_dump_may_end_anywhere(end in any::<prop::sample::Index>()) {
        analyse_quickly(WHOLE[..end.index(WHOLE.len())].to_vec());
    }
}
