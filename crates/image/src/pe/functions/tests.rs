use super::*;
use crate::test_memory::Pieces;
use proptest::prelude::*;

const BASE: Addr = Addr(0x7000_0000);
const TABLE: Addr = Addr(0x7010_0000);
/// Bytes that a test keeps or leaves out as a whole: not a multiple of an entry's.
const PIECE: usize = 32;

fn bytes(functions: &[(u32, u32)]) -> Vec<u8> {
    let words = functions.iter().flat_map(|(begin, end)| [*begin, *end, 0]);
    words.flat_map(u32::to_le_bytes).collect()
}

fn table(functions: &[(u32, u32)]) -> FunctionTable {
    FunctionTable::new(BASE, TABLE, functions.len() as u32)
}

/// The table with the pieces that are kept; the others are no memory.
fn with_holes(functions: &[(u32, u32)], keeps: impl Fn(usize) -> bool) -> Pieces {
    let bytes = bytes(functions);
    let pieces = bytes.chunks(PIECE).enumerate().filter(|(i, _)| keeps(*i));
    pieces.fold(Pieces::default(), |memory, (i, piece)| {
        memory.with(TABLE.0 + (i * PIECE) as u64, piece)
    })
}

#[test]
fn an_entry_counts_where_its_end_or_its_neighbour_proves_it() {
    // pages of 4096 bytes hold 341 entries and a third of one
    let functions: Vec<_> = (0..1024).map(|i| (i * 0x10, i * 0x10 + 8)).collect();
    let all = bytes(&functions);
    let memory = Pieces::default().with(TABLE.0 + 4096, &all[4096..8192]);
    let table = table(&functions);
    let covering = |rva: u32| table.covering(&memory, rva);
    let inside = covering(400 * 0x10 + 7);
    assert!(matches!(inside, Some(Covering::Function(f)) if f.begin == 400 * 0x10));
    assert_eq!(covering(400 * 0x10 + 8), Some(Covering::Nothing));
    // the last entry that is there covers its own, and proves nothing of what lies behind
    assert!(matches!(covering(681 * 0x10), Some(Covering::Function(_))));
    assert_eq!(covering(681 * 0x10 + 8), None);
    assert_eq!(covering(0), None, "entries before are missing");
    assert_eq!(covering(900 * 0x10), None);
}

fn functions() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let sizes = prop::collection::vec((0_u32..40, 1_u32..40), 1..400);
    sizes.prop_map(|sizes| {
        let mut at = 0;
        let place = |(gap, size)| {
            let begin = at + gap;
            at = begin + size;
            (begin, at)
        };
        sizes.into_iter().map(place).collect()
    })
}

proptest! {
    #[test]
    fn what_is_said_of_a_table_with_holes_is_true_of_the_whole(
        functions in functions(),
        kept in prop::collection::vec(any::<bool>(), 200),
        rva in 0_u32..20_000,
    ) {
        let table = table(&functions);
        let whole = with_holes(&functions, |_| true);
        let at = functions.iter().find(|(begin, end)| (*begin..*end).contains(&rva));
        let truth = at.map_or(Covering::Nothing, |(begin, end)| {
            Covering::Function(Function { base: BASE, begin: *begin, end: *end, unwind: 0 })
        });
        prop_assert_eq!(table.covering(&whole, rva), Some(truth));
        let memory = with_holes(&functions, |i| kept[i % kept.len()]);
        let said = table.covering(&memory, rva);
        prop_assert!(said.is_none_or(|said| said == truth), "{said:?} for {truth:?}");
    }

    #[test]
    fn any_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        count: u32,
        rva: u32,
    ) {
        let memory = Pieces::default().with(TABLE.0, bytes);
        let table = FunctionTable::new(BASE, TABLE, count.min(1 << 16));
        if let Some(Covering::Function(f)) = table.covering(&memory, rva) {
            prop_assert!(f.contains(rva));
        }
    }
}
