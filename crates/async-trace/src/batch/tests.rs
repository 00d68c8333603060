//! Batches of real recordings, and what is wrong with changed ones.

use super::*;
use crate::testing::{ARTICLE_FIRST, ARTICLE_METADATA, batch};

fn outer(payload: &[u8]) -> Outer<'_> {
    Outer {
        thread: 0,
        offset: 0x1000,
        time: u64::MAX,
        payload,
    }
}

fn decode(payload: &[u8]) -> Result<Vec<Record>, Rejected> {
    let mut out = Decoded::default();
    records(
        &outer(payload),
        &Manifest::default(),
        &mut FrameLists::default(),
        &mut out,
    )?;
    Ok(out.records)
}

#[test]
fn the_metadata_of_a_real_recording() {
    let mut out = Decoded::default();
    let bytes = ARTICLE_METADATA;
    let header = records(
        &outer(bytes),
        &Manifest::default(),
        &mut FrameLists::default(),
        &mut out,
    )
    .unwrap();
    assert_eq!(
        (header.context, header.os_thread, header.records),
        (1, 11_565, 1)
    );
    let metadata = &out.metadata[0];
    assert_eq!(metadata.frequency, 1_000_000_000);
    assert_eq!(metadata.clock.ticks, 3_418_553_973_039);
    assert_eq!(metadata.buffer_size, 16_128);
    assert_eq!((metadata.wrappers, metadata.entries), (32, 23));
    assert_eq!(metadata.manifest, Manifest::default());
    assert_eq!(metadata.time, header.end);
}

#[test]
fn the_first_records_of_a_real_recording() {
    let records = decode(ARTICLE_FIRST).unwrap();
    let kinds: Vec<_> = records.iter().filter_map(|r| r.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::ResetAsyncThreadContext,
            Kind::CreateRuntimeAsyncContext,
            Kind::CreateRuntimeAsyncCallstack
        ]
    );
    assert_eq!((records[1].parent, records[1].dispatcher), (0, 1));
    assert_eq!(records[1].time, records[2].time);
    assert_eq!(records[2].dispatcher, 1);
    assert!(records[2].frames.is_some());
    assert_eq!(records[1].offset, 44);
}

#[test]
fn each_equality_is_checked() {
    let changed = |at: usize, value: u8| {
        let mut bytes = ARTICLE_FIRST.to_vec();
        bytes[at] = value;
        decode(&bytes).unwrap_err()
    };
    assert!(matches!(
        changed(0, 0x42).reason,
        Rejection::OuterLength { stated: 66, .. }
    ));
    assert_eq!(changed(4, 2).reason, Rejection::Version(2));
    assert!(matches!(
        changed(5, 0x44).reason,
        Rejection::Size { stated: 68, .. }
    ));
    assert!(matches!(
        changed(21, 4).reason,
        Rejection::RecordCount { .. }
    ));
    assert!(matches!(changed(33, 0).reason, Rejection::EndTime { .. }));
    assert_eq!(changed(41, 0).reason, Rejection::UnknownRecord(0));
    assert_eq!(changed(41, 24).reason, Rejection::UnknownRecord(24));
    // the parent of the create record becomes a longer number
    let longer = changed(49, 0x80);
    assert_eq!(
        longer.reason,
        Rejection::Payload(Kind::CreateRuntimeAsyncContext)
    );
    assert_eq!((longer.record, longer.at), (Some(1), 0x1000 + 44));
    // the reserved byte of the call stack
    assert_eq!(
        changed(55, 1).reason,
        Rejection::Payload(Kind::CreateRuntimeAsyncCallstack)
    );
}

#[test]
fn cut_batches_are_refused_whole() {
    for len in 0..ARTICLE_FIRST.len() {
        assert!(decode(&ARTICLE_FIRST[..len]).is_err(), "{len}");
    }
}

#[test]
fn versions_are_those_of_the_process() {
    let refused = |triple: [u8; 3]| {
        let mut triples: Vec<[u8; 3]> = Kind::ALL.iter().map(|k| [k.id(), 1, k.prefix()]).collect();
        triples.retain(|t| t[0] != triple[0]);
        triples.push(triple);
        let manifest = Manifest::from_triples(&triples);
        records(
            &outer(ARTICLE_FIRST),
            &manifest,
            &mut FrameLists::default(),
            &mut Decoded::default(),
        )
    };
    assert_eq!(
        refused([6, 2, 2]).unwrap_err().reason,
        Rejection::SchemaVersion {
            kind: Kind::CreateRuntimeAsyncCallstack,
            version: 2
        }
    );
    assert_eq!(
        refused([20, 1, 1]).unwrap_err().reason,
        Rejection::Prefix { id: 20, prefix: 1 }
    );
    assert!(refused([7, 2, 2]).is_ok(), "the batch holds no record 7");
}

#[test]
fn records_of_later_runtimes_are_framed_and_skipped() {
    let mut triples: Vec<[u8; 3]> = Kind::ALL.iter().map(|k| [k.id(), 1, k.prefix()]).collect();
    triples.push([24, 1, 1]);
    let bytes = batch(1, 10, &[&[20, 0], &[24, 1, 3, 9, 9, 9], &[3, 2]], 3);
    let mut out = Decoded::default();
    let read = records(
        &outer(&bytes),
        &Manifest::from_triples(&triples),
        &mut FrameLists::default(),
        &mut out,
    );
    assert!(read.is_ok());
    assert_eq!((out.records[1].id, out.records[1].kind), (24, None));
}

#[test]
fn previews_are_known_by_their_metadata() {
    let short: &[u8] = &[13, 0, 1, 2, 3, 4, 32];
    let mut long = short.to_vec();
    long.extend([1; 32]);
    assert!(is_preview(&outer(&batch(1, 10, &[short], 0))));
    assert!(is_preview(&outer(&batch(1, 10, &[&long], 0))));
    assert!(!is_preview(&outer(&batch(1, 10, &[&[13, 0]], 0))));
    assert!(!is_preview(&outer(ARTICLE_METADATA)));
}
