//! Arbitrary bytes, cut files, files with wrong bytes.

use proptest::prelude::*;

use super::real::{killed, live_methods, tpl};
use super::version6::six;
use super::{Headers, Nettrace, Row, four, rows};
use crate::runtime::Methods;
use crate::tpl::TplEvent;
use crate::{Event, Summary, Trace};

/// Reads all that there is and checks what must hold of any bytes.
fn exhaust(file: &[u8]) -> Option<(u64, Summary)> {
    let mut events = Trace::open(file).ok()?.events();
    let mut methods = Methods::default();
    let mut count = 0;
    let mut behind = 0;
    while let Some(event) = events.next() {
        count += 1;
        look_at(&event, file);
        assert!(event.offset >= behind, "events do not overlap");
        behind = event.payload_offset + event.payload.len() as u64;
        events
            .stack(event.stack)
            .map(|stack| stack.addresses().count());
        methods.add(&event);
    }
    let ranges = methods.into_ranges();
    for method in ranges.methods().ranges().iter().take(64) {
        let found = ranges.candidates(method.start).any(|m| m == method);
        assert!(found || method.start == 0 || ranges.candidates(method.start).count() == 32);
    }
    let summary = events.summary();
    assert_eq!(summary.events, count);
    assert_eq!(summary.events_by_provider.values().sum::<u64>(), count);
    Some((count, summary))
}

fn look_at(event: &Event<'_>, file: &[u8]) {
    let at = usize::try_from(event.payload_offset).unwrap();
    assert_eq!(&file[at..at + event.payload.len()], event.payload);
    event
        .values()
        .for_each(|(name, value)| drop(format!("{name}{value}")));
    TplEvent::decode(event);
}

fn samples() -> Vec<Vec<u8>> {
    vec![
        killed(),
        live_methods(),
        tpl(),
        four(Headers::Fixed).end(),
        six().events(Headers::Compressed, &rows()).end(),
    ]
}

#[test]
fn cut_files_keep_the_events_of_all_whole_blocks() {
    for file in [killed(), live_methods(), tpl()] {
        let mut before = 0;
        for cut in (102..file.len()).step_by(512) {
            let (count, summary) = exhaust(&file[..cut]).unwrap();
            let truncation = summary.truncation().unwrap();
            assert_eq!(truncation.offset + truncation.bytes, cut as u64);
            assert_eq!((summary.damages.count, summary.without_metadata), (0, 0));
            assert!(count >= before, "a longer piece has no fewer events");
            before = count;
        }
        let (all, _) = exhaust(&file).unwrap();
        assert!(all >= before);
    }
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// A file with one to four wrong places, small enough that many can be tried.
fn mutate(file: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=numbers.next(4) {
        let at = numbers.next(bytes.len());
        match numbers.next(6) {
            0 => bytes[at] ^= 1 << numbers.next(8),
            1 => bytes[at] = numbers.next(256) as u8,
            2 => bytes[at] = 0xff,
            3 => drop(bytes.drain(at..(at + numbers.next(9)).min(bytes.len()))),
            4 => drop(bytes.splice(at..at, [0, 0xff, 5, 5, 1].into_iter().take(numbers.next(6)))),
            _ => bytes.truncate(at.max(8)),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// A smaller real trace: the first blocks of one, then the end.
fn first_blocks(file: &[u8], at_most: usize) -> Vec<u8> {
    let (_, summary) = exhaust(&file[..at_most]).unwrap();
    let whole = usize::try_from(summary.truncation().unwrap().offset).unwrap();
    [&file[..whole], &[1]].concat()
}

fn mutations(rounds: usize) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut files = samples();
    let smaller: Vec<_> = files
        .iter()
        .take(3)
        .map(|file| first_blocks(file, 26_000))
        .collect();
    files.splice(..3, smaller);
    let (mut opened, mut complete) = (0_usize, 0_usize);
    for round in 0..rounds {
        let file = mutate(&files[round % files.len()], &mut numbers);
        if let Some((_, summary)) = exhaust(&file) {
            opened += 1;
            complete += usize::from(summary.damages.count == 0 && summary.end_tag());
        }
    }
    assert!(
        opened > rounds / 2 && complete < opened,
        "{opened} {complete}"
    );
}

#[test]
fn wrong_bytes_never_panic() {
    mutations(4_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_files_with_wrong_bytes_never_panic() {
    mutations(1_000_000);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        exhaust(&bytes);
        exhaust(&[&Nettrace::four().cut()[..], &bytes].concat());
        exhaust(&[&Nettrace::six().cut()[..], &bytes].concat());
    }

    #[test]
    fn arbitrary_blocks_never_panic(number in 0_u8..12, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let names = ["EventBlock", "MetadataBlock", "StackBlock", "SPBlock", "x"];
        let name = names[usize::from(number) % names.len()];
        exhaust(&four(Headers::Compressed).block(name, 0, &body).end());
        exhaust(&six().block("", number, &body).end());
    }

    #[test]
    fn rows_are_read_as_they_were_written(
        seeds in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<u64>(), 0_u32..4, 0_usize..40, any::<bool>()), 1..40),
        fixed in any::<bool>(),
        is_six in any::<bool>(),
    ) {
        let rows: Vec<_> = seeds
            .iter()
            .map(|(sequence, thread, timestamp, processor, len, sorted)| Row {
                metadata: 1,
                sequence: *sequence,
                capture_thread: 70,
                thread: if is_six { 70 } else { *thread },
                timestamp: *timestamp,
                processor: *processor,
                stack: *sequence / 3,
                sorted: *sorted,
                payload: vec![7; *len],
                ..Row::default()
            })
            .collect();
        let headers = if fixed { Headers::Fixed } else { Headers::Compressed };
        let file = match is_six {
            true => six(),
            false => four(Headers::Compressed),
        };
        let file = file.events(headers, &rows).end();
        let (events, summary) = super::read(&file);
        prop_assert_eq!(summary.damages.count, 0);
        let events: Vec<_> = events.into_iter().rev().take(rows.len()).rev().collect();
        for (event, row) in events.iter().zip(&rows) {
            prop_assert_eq!((event.sequence, event.timestamp, event.stack), (row.sequence, row.timestamp, row.stack));
            prop_assert_eq!(event.thread, if is_six { 1070 } else { row.thread });
            prop_assert_eq!((event.processor, event.sorted, event.payload), (row.processor, row.sorted, &row.payload[..]));
        }
    }
}
