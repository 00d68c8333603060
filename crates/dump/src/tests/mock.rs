use crate::*;

fn space() -> AddressSpace {
    AddressSpace::from_pieces(vec![
        (Addr(0x1000), b"abc".to_vec()),
        (Addr(0x1003), b"def\0x".to_vec()),
        (Addr(0x2000), vec![b'y'; 400]),
    ])
}

#[test]
fn pieces_that_touch_stay_apart() {
    let space = space();
    let memory: &dyn Memory = &space;
    assert_eq!(memory.slice(Addr(0x1000), 4), None);
    assert_eq!(memory.u32(Addr(0x1001)), Some(u32::from_le_bytes(*b"bcde")));
    assert_eq!(space.ranges().count(), 3);
}

#[test]
fn pieces_can_be_walked_and_scanned() {
    let space = space();
    let wanted = vec![(Addr(0x1002), &b"c"[..]), (Addr(0x1003), &b"de"[..])];
    assert_eq!(
        space.iter_pieces(Addr(0x1002), 3).collect::<Vec<_>>(),
        wanted
    );
    assert_eq!(
        space.scan_pieces(Addr(0x1002), 3).collect::<Vec<_>>(),
        wanted
    );
    assert_eq!(space.iter_pieces(Addr(0x1008), 0xFF8).count(), 0);
    assert_eq!(space.iter_pieces(Addr(0), 0).count(), 0);
}

#[test]
fn texts_end_at_a_nul_at_the_cap_or_where_memory_ends() {
    let space = space();
    let memory: &dyn Memory = &space;
    assert_eq!(memory.c_str(Addr(0x1001), 100).as_deref(), Some("bcdef"));
    assert_eq!(memory.c_str(Addr(0x1001), 2).as_deref(), Some("bc"));
    assert_eq!(memory.c_str(Addr(0x1006), 100).as_deref(), Some(""));
    assert_eq!(memory.c_str(Addr(0x1007), 100).as_deref(), Some("x"));
    assert_eq!(memory.c_str(Addr(0x2000), 1000).unwrap().len(), 400);
    assert_eq!(memory.c_str(Addr(0x3000), 100), None);
}

#[test]
fn faults_read_like_sentences() {
    let fault = space().why_not(Addr(0x1006), 4).unwrap();
    insta::assert_snapshot!(fault, @"cannot read 2 bytes at 0x0000000000001008: nothing is mapped there");
}

#[test]
fn regions_of_mocks_have_the_access_that_was_asked_for() {
    let execute = Access {
        read: true,
        write: false,
        execute: true,
    };
    let space = AddressSpace::from_regions(vec![(Addr(0x5000), vec![1; 8], execute)]);
    let wanted = Region {
        start: Addr(0x5000),
        size: 8,
        dumped: 8,
        access: execute,
    };
    assert_eq!(space.regions(), [wanted]);
    assert_eq!(space.regions()[0].end(), Addr(0x5008));
}
