//! Finding the runtime's tables by what they look like, where the dump lacks the symbols.
//!
//! Worked on kernel cores, gcore and single-file dumps of 8.0, 9.0 and 10.0 on Linux, and on reduced minidumps.

use asynctriage_dump::{Addr, AddressSpace, Memory};
use memchr::memmem::Finder;
use std::cell::Cell;

/// How the GC's data table begins: major version 2, a minor version below 10, six zeros (8.0 to 10.0).
const GC_MAJOR: u8 = 2;
const GC_MINORS: u8 = 10;
/// Sizes of a generation that are believed; 0x100 and 0x108 were seen.
const GENERATION_SIZES: std::ops::Range<u64> = 0xE0..0x200;
const GENERATIONS: u64 = 5;
/// Indices, from the entry of the GC's data table on, among which the MethodTable of String is; 23 to 27 were seen.
const STRING_DISTANCES: std::ops::Range<u64> = 20..32;
/// Component size and base size of System.String.
const STRING_SHAPE: (u16, u32) = (2, 22);
/// More matches than any runtime has of one pattern.
const MAX_MATCHES: usize = 64;
/// Longest module that is searched; single-file hosts with the whole framework stay below 100 MiB.
const MAX_MODULE: u64 = 512 << 20;
/// Bytes that all searches of one dump go through: the longest host with a framework some eighty times.
const MAX_SEARCHED: u64 = 8 << 30;
/// What a piece of memory costs besides its bytes.
const PIECE_COST: u64 = 256;

/// How much may still be searched.
pub(crate) struct Budget {
    left: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(MAX_SEARCHED)
    }
}

impl Budget {
    fn of(bytes: u64) -> Self {
        Self {
            left: Cell::new(bytes),
        }
    }

    /// Whether a search was given up.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Takes what a piece costs; false when that is no longer there.
    fn take(&self, piece: &[u8]) -> bool {
        let cost = PIECE_COST.saturating_add(piece.len() as u64);
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// The address of the entry of `g_dacTable` for the GC's data table, found by content inside the runtime's module.
pub(crate) fn gc_entry(
    space: &AddressSpace,
    base: Addr,
    size: u64,
    budget: &Budget,
) -> Option<Addr> {
    let memory: &dyn Memory = space;
    let module = Module::new(space, base, size, budget);
    let variables = module
        .gc_tables()
        .flat_map(|t| module.find(&t.0.to_le_bytes()));
    let mut entries = variables.flat_map(|v| module.find(&v.0.to_le_bytes()));
    entries.find(|e| {
        STRING_DISTANCES
            .clone()
            .any(|k| is_string(memory, e.element(k, 8)))
    })
}

/// Whether something inside the module looks like the GC's data table, whatever else the dump lacks.
pub(crate) fn has_gc_table(space: &AddressSpace, base: Addr, size: u64, budget: &Budget) -> bool {
    let module = Module::new(space, base, size, budget);
    module.gc_tables().next().is_some()
}

/// Whether an entry leads to a variable that holds the MethodTable of System.String.
fn is_string(memory: &dyn Memory, entry: Addr) -> bool {
    let shape = || {
        let mt = memory.ptr(memory.ptr(entry)?)?;
        Some((memory.u16(mt)?, memory.u32(mt + 4)?))
    };
    shape() == Some(STRING_SHAPE)
}

/// The header of the contract descriptor, by its magic bytes.
pub(crate) fn descriptor(space: &AddressSpace, base: Addr, size: u64) -> Option<Addr> {
    let budget = Budget::default();
    let module = Module::new(space, base, size, &budget);
    module.find(&crate::descriptor::MAGIC).into_iter().next()
}

/// The readable parts of a module.
struct Module<'a> {
    space: &'a AddressSpace,
    base: Addr,
    size: u64,
    budget: &'a Budget,
}

impl<'a> Module<'a> {
    fn new(space: &'a AddressSpace, base: Addr, size: u64, budget: &'a Budget) -> Self {
        Self {
            space,
            base,
            size: size.min(MAX_MODULE),
            budget,
        }
    }

    /// Where GC data tables seem to be.
    fn gc_tables(&self) -> impl Iterator<Item = Addr> {
        let memory: &dyn Memory = self.space;
        let begins =
            (0..GC_MINORS).flat_map(|minor| self.find(&[GC_MAJOR, minor, 0, 0, 0, 0, 0, 0]));
        begins.filter(move |t| {
            memory
                .u64(*t + 8)
                .is_some_and(|s| GENERATION_SIZES.contains(&s))
                && memory.u64(*t + 16) == Some(GENERATIONS)
        })
    }

    /// Where these eight bytes stand at an address that is a multiple of eight.
    fn find(&self, bytes: &[u8; 8]) -> Vec<Addr> {
        let finder = Finder::new(bytes);
        let pieces = self.space.scan_pieces(self.base, self.size);
        let affordable = pieces.take_while(|(_, piece)| self.budget.take(piece));
        let matches = affordable.flat_map(|(start, piece)| {
            let at: Vec<_> = finder
                .find_iter(piece)
                .map(|i| start + i as u64)
                .filter(|a| a.0 & 7 == 0)
                .take(MAX_MATCHES)
                .collect();
            at
        });
        matches.take(MAX_MATCHES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7000_0000;
    const STRING_MT: u64 = BASE + 0x800;

    /// A module with a GC data table at 0x100, its variable at 0x200, and a table whose entry for it is at 0x300.
    fn module(component: u16) -> AddressSpace {
        let mut m = vec![0_u8; 0x1000];
        let mut put = |at: usize, value: u64| m[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0x100, 0x0402);
        put(0x108, 0x100);
        put(0x110, 5);
        put(0x200, BASE + 0x100);
        // a stray pointer to the variable, as in a global offset table
        put(0x280, BASE + 0x200);
        put(0x300, BASE + 0x200);
        put(0x300 + 26 * 8, BASE + 0x700);
        put(0x700, STRING_MT);
        put(0x800, u64::from(component) | 22 << 32);
        put(0x900, u64::from_le_bytes(crate::descriptor::MAGIC));
        AddressSpace::from_pieces(vec![(Addr(BASE), m)])
    }

    #[test]
    fn the_entry_is_the_one_that_has_string_behind_it() {
        assert_eq!(
            gc_entry(&module(2), Addr(BASE), 0x1000, &Budget::default()),
            Some(Addr(BASE + 0x300))
        );
        let budget = Budget::default();
        assert_eq!(gc_entry(&module(4), Addr(BASE), 0x1000, &budget), None);
        assert!(!budget.is_spent());
    }

    #[test]
    fn all_searches_together_are_bounded() {
        // one search for each minor version up to 4, one for the table and one for its variable
        let whole = 7 * (0x1000 + PIECE_COST);
        let enough = Budget::of(whole + 1);
        assert!(gc_entry(&module(2), Addr(BASE), 0x1000, &enough).is_some());
        assert!(!enough.is_spent());
        let short = Budget::of(whole - 1);
        assert_eq!(gc_entry(&module(2), Addr(BASE), 0x1000, &short), None);
        assert!(short.is_spent());
        assert!(!has_gc_table(&module(2), Addr(BASE), 0x1000, &short));
    }

    #[test]
    fn the_table_is_seen_without_anything_behind_it() {
        assert!(has_gc_table(
            &module(4),
            Addr(BASE),
            0x1000,
            &Budget::default()
        ));
        assert!(!has_gc_table(
            &module(4),
            Addr(BASE),
            0x100,
            &Budget::default()
        ));
    }

    #[test]
    fn the_descriptor_is_found_by_its_magic() {
        assert_eq!(
            descriptor(&module(2), Addr(BASE), 0x1000),
            Some(Addr(BASE + 0x900))
        );
        assert_eq!(descriptor(&module(2), Addr(BASE), 0x800), None);
    }
}
