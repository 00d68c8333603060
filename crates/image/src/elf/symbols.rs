//! Exported symbols through the dynamic section, the only symbol tables that are mapped.

use crate::bytes::{compare_c_str, pod};
use asynctriage_dump::{Addr, Memory};
use object::LittleEndian as Le;
use object::elf;
use std::cmp::Ordering;

/// Most dynamic entries that are looked at; libcoreclr.so has some 35.
const MAX_DYNAMIC: u64 = 1024;
/// Most symbols that one look-up compares or walks over. libcoreclr.so exports some 40, libc.so.6 3,000.
const MAX_SYMBOLS: u64 = 1 << 17;

/// Size of a symbol table entry.
const SYMBOL: u64 = size_of::<Symbol>() as u64;

type Symbol = elf::Sym64<Le>;

/// What a hash table knows about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The symbol is here.
    Found(Addr),
    /// The table was read to the end of its chain, and the name is not in it.
    Absent,
    /// The dump lacks a part of the table.
    Unknown,
}

/// The tables that the dynamic section points to.
#[derive(Debug)]
pub(super) struct Tables {
    bias: u64,
    symbols: Addr,
    strings: Addr,
    gnu_hash: Option<Addr>,
    hash: Option<Addr>,
}

impl Tables {
    /// Reads the dynamic section of `len` bytes at `addr`.
    pub(super) fn read(
        memory: &dyn Memory,
        addr: Addr,
        len: u64,
        base: Addr,
        bias: u64,
    ) -> Option<Self> {
        let stride = size_of::<elf::Dyn64<Le>>() as u64;
        let entries = (0..len.div_ceil(stride).min(MAX_DYNAMIC))
            .map_while(|i| pod::<elf::Dyn64<Le>>(memory, addr.element(i, stride)));
        let (mut symbols, mut strings, mut gnu_hash, mut hash) = (None, None, None, None);
        for entry in entries.take_while(|e| e.d_tag.get(Le) != elf::DT_NULL) {
            let slot = match entry.d_tag.get(Le) {
                elf::DT_SYMTAB => &mut symbols,
                elf::DT_STRTAB => &mut strings,
                elf::DT_GNU_HASH => &mut gnu_hash,
                elf::DT_HASH => &mut hash,
                _ => continue,
            };
            *slot = Some(absolute(entry.d_val.get(Le), base, bias));
        }
        Some(Self {
            bias,
            symbols: symbols?,
            strings: strings?,
            gnu_hash,
            hash,
        })
    }

    /// The address of the defined symbol `name`.
    pub(super) fn find(&self, memory: &dyn Memory, name: &str) -> Option<Addr> {
        let tables = [
            self.gnu_hash.map(|at| self.in_gnu_hash(memory, at, name)),
            self.hash.map(|at| self.in_hash(memory, at, name)),
        ];
        for answer in tables.into_iter().flatten() {
            match answer {
                Some(Answer::Found(addr)) => return Some(addr),
                Some(Answer::Absent) => return None,
                Some(Answer::Unknown) | None => {}
            }
        }
        self.by_scanning(memory, name)
    }

    /// `None` where the table cannot be read.
    fn in_gnu_hash(&self, memory: &dyn Memory, table: Addr, name: &str) -> Option<Answer> {
        let header: elf::GnuHashHeader<Le> = pod(memory, table)?;
        let (buckets, first) = (
            header.bucket_count.get(Le),
            u64::from(header.symbol_base.get(Le)),
        );
        let wanted = elf::gnu_hash(name.as_bytes());
        // the Bloom filter in front of the buckets is not asked: its page is one more that the dump may lack
        let bucket_table = (table + size_of::<elf::GnuHashHeader<Le>>() as u64)
            .element(u64::from(header.bloom_count.get(Le)), 8);
        let chains = bucket_table.element(u64::from(buckets), 4);
        let start = u64::from(
            memory.u32(bucket_table.element(u64::from(wanted.checked_rem(buckets)?), 4))?,
        );
        if start == 0 {
            return Some(Answer::Absent);
        }
        let chain_at = start.checked_sub(first)?;
        let mut unsure = false;
        for step in 0..MAX_SYMBOLS {
            let hash = memory.u32(chains.element(chain_at.wrapping_add(step), 4))?;
            if hash | 1 == wanted | 1 {
                match self.matches(memory, start.wrapping_add(step), name) {
                    Answer::Absent => {}
                    Answer::Unknown => unsure = true,
                    found => return Some(found),
                }
            }
            if hash & 1 == 1 {
                return Some(if unsure {
                    Answer::Unknown
                } else {
                    Answer::Absent
                });
            }
        }
        None
    }

    /// `None` where the table cannot be read.
    fn in_hash(&self, memory: &dyn Memory, table: Addr, name: &str) -> Option<Answer> {
        let header: elf::HashHeader<Le> = pod(memory, table)?;
        let (buckets, count) = (
            header.bucket_count.get(Le),
            u64::from(header.chain_count.get(Le)),
        );
        let bucket_table = table + size_of::<elf::HashHeader<Le>>() as u64;
        let chains = bucket_table.element(u64::from(buckets), 4);
        let bucket = elf::hash(name.as_bytes()).checked_rem(buckets)?;
        let mut index = u64::from(memory.u32(bucket_table.element(u64::from(bucket), 4))?);
        let mut unsure = false;
        for _ in 0..count.min(MAX_SYMBOLS) {
            if index == 0 {
                return Some(if unsure {
                    Answer::Unknown
                } else {
                    Answer::Absent
                });
            }
            match self.matches(memory, index, name) {
                Answer::Absent => {}
                Answer::Unknown => unsure = true,
                found => return Some(found),
            }
            index = u64::from(memory.u32(chains.element(index, 4))?);
        }
        None
    }

    /// Without a readable hash table: the symbol table from its beginning to the string table, which linkers put behind.
    fn by_scanning(&self, memory: &dyn Memory, name: &str) -> Option<Addr> {
        let count = self
            .strings
            .since(self.symbols)?
            .checked_div(SYMBOL)?
            .min(MAX_SYMBOLS);
        (0..count).find_map(|index| match self.matches(memory, index, name) {
            Answer::Found(addr) => Some(addr),
            Answer::Absent | Answer::Unknown => None,
        })
    }

    /// The functions that the table defines, by address: begin, length and where the name stands.
    pub(super) fn functions(&self, memory: &dyn Memory) -> Vec<(Addr, u64, Addr)> {
        let count = self
            .strings
            .since(self.symbols)
            .and_then(|len| len.checked_div(SYMBOL))
            .unwrap_or(0)
            .min(MAX_SYMBOLS);
        let symbols =
            (0..count).filter_map(|i| pod::<Symbol>(memory, self.symbols.element(i, SYMBOL)));
        let functions = symbols.filter(|s| {
            s.st_shndx.get(Le) != elf::SHN_UNDEF
                && matches!(s.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC)
        });
        let mut out: Vec<_> = functions
            .map(|s| {
                (
                    Addr(s.st_value.get(Le)) + self.bias,
                    s.st_size.get(Le),
                    self.strings + u64::from(s.st_name.get(Le)),
                )
            })
            .collect();
        out.sort_unstable();
        out
    }

    /// Whether symbol `index` is defined and called `name`.
    fn matches(&self, memory: &dyn Memory, index: u64, name: &str) -> Answer {
        let Some(symbol) = pod::<Symbol>(memory, self.symbols.element(index, SYMBOL)) else {
            return Answer::Unknown;
        };
        // the value of a thread-local symbol is not an address
        if symbol.st_shndx.get(Le) == elf::SHN_UNDEF || symbol.st_type() == elf::STT_TLS {
            return Answer::Absent;
        }
        match compare_c_str(
            memory,
            self.strings + u64::from(symbol.st_name.get(Le)),
            name,
        ) {
            Some(Ordering::Equal) => Answer::Found(Addr(symbol.st_value.get(Le)) + self.bias),
            Some(_) => Answer::Absent,
            None => Answer::Unknown,
        }
    }
}

/// The address that a dynamic entry means: glibc adds the bias to the entries in memory, musl leaves them as linked.
fn absolute(value: u64, base: Addr, bias: u64) -> Addr {
    if value < base.0 {
        Addr(value) + bias
    } else {
        Addr(value)
    }
}
