//! Entry points of the ReadyToRun code of a module, and the methods behind them.
//!
//! The runtime keeps them in a HashMap: a count, then buckets of four keys and four values each, from the second bucket
//! on. Keys 0 and 1 stand for free and deleted slots. Values lack their lowest bit, which is moved out at the bottom to
//! make place for a mark at the top (8.0 to 11.0).

use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use std::sync::Arc;

/// Buckets of one map; that of System.Private.CoreLib has some thousand.
const MAX_BUCKETS: u64 = 1 << 20;
const SLOTS: u64 = 4;

/// Entry points with their MethodDescs, by address.
#[derive(Debug, Default)]
pub(crate) struct EntryPoints(Vec<(Addr, Addr)>);

impl EntryPoints {
    /// Where the last method begins.
    pub(crate) fn last(&self) -> Option<Addr> {
        self.0.last().map(|(start, _)| *start)
    }

    /// The last method that begins at or before an address.
    pub(super) fn at_or_before(&self, ip: Addr) -> Option<(Addr, Addr)> {
        let after = self.0.partition_point(|(start, _)| *start <= ip);
        self.0.get(after.checked_sub(1)?).copied()
    }
}

impl Runtime<'_> {
    pub(crate) fn entry_points(&self, module: Addr) -> Arc<EntryPoints> {
        let known = &self.code.entry_points;
        if let Some(found) = known.read().ok().and_then(|k| k.get(&module).cloned()) {
            return found;
        }
        let read = Arc::new(self.read_entry_points(module).unwrap_or_default());
        if let Ok(mut known) = known.write() {
            known.insert(module, Arc::clone(&read));
        }
        read
    }

    /// Of the module, and of the composite image that it may be part of.
    fn read_entry_points(&self, module: Addr) -> Option<EntryPoints> {
        let (m, l) = (self.memory, self.layout());
        let info = m
            .ptr(module + l.get("Module", "ReadyToRunInfo")?)?
            .non_null()?;
        let mut all = self.read_map(info).unwrap_or_default();
        let composite = l
            .get("ReadyToRunInfo", "CompositeInfo")
            .and_then(|o| m.ptr(info + o)?.non_null())
            .filter(|c| *c != info);
        all.extend(composite.and_then(|c| self.read_map(c)).unwrap_or_default());
        all.sort_unstable();
        all.dedup();
        Some(EntryPoints(all))
    }

    fn read_map(&self, info: Addr) -> Option<Vec<(Addr, Addr)>> {
        let (m, l) = (self.memory, self.layout());
        let map = info + l.get("ReadyToRunInfo", "EntryPointToMethodDescMap")?;
        let o = &self.offsets.bucket;
        let buckets = m.ptr(map + l.get("HashMap", "Buckets")?)?.non_null()?;
        let count = m.u64(buckets)?;
        if count > MAX_BUCKETS {
            return None;
        }
        let mut out = Vec::new();
        for bucket in (1..=count).map(|i| buckets.element(i, o.size)) {
            for slot in 0..SLOTS {
                let (Some(key), Some(value)) = (
                    m.ptr((bucket + o.keys).element(slot, 8)),
                    m.u64((bucket + o.values).element(slot, 8)),
                ) else {
                    continue;
                };
                if key.0 > 1 {
                    out.push((key, Addr(value << 1)));
                }
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_last_entry_before_it() {
        let entries = EntryPoints(vec![(Addr(0x10), Addr(1)), (Addr(0x40), Addr(2))]);
        assert_eq!(entries.at_or_before(Addr(0xf)), None);
        assert_eq!(
            entries.at_or_before(Addr(0x10)),
            Some((Addr(0x10), Addr(1)))
        );
        assert_eq!(
            entries.at_or_before(Addr(0x3f)),
            Some((Addr(0x10), Addr(1)))
        );
        assert_eq!(
            entries.at_or_before(Addr(u64::MAX)),
            Some((Addr(0x40), Addr(2)))
        );
    }
}
