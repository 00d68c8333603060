//! Whether the list of memory of a file agrees with itself and with the file.
//!
//! createdump, gdb, the kernel and dbgcore list regions by address, none over another, and write their bytes one behind
//! the other up to the end of the file. An entry that is changed breaks that: nothing else tells that it is.

use std::fmt;

/// Most bytes in front of the first region: writers align it to a page, of 64 KiB on some arm64 systems.
const ALIGNMENT: u64 = 1 << 16;

/// What contradicts the list of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contradictions {
    /// Entries of the list.
    pub entries: usize,
    /// Entries of no known kind, with rights that no system has, or of a size that no region has.
    pub strange: usize,
    /// Entries that stand below the one before them, or reach over the next.
    pub disordered: usize,
    /// Bytes of the file that no entry names.
    pub unnamed_bytes: u64,
    /// Bytes of the file that two entries name.
    pub shared_bytes: u64,
}

impl Contradictions {
    /// Whether there are any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.strange > 0 || self.disordered > 0 || self.unnamed_bytes > 0 || self.shared_bytes > 0
    }

    /// Compares the addresses of regions, from and to, in the order of the list.
    pub(crate) fn check_order(&mut self, regions: impl Iterator<Item = (u64, u64)>) {
        let mut end = 0;
        for (from, to) in regions {
            if from < end {
                self.disordered = self.disordered.saturating_add(1);
            }
            end = to;
        }
    }

    /// Compares the parts of a file, from and to, with its length. Only the first gap may be due to alignment.
    pub(crate) fn check_parts(&mut self, mut parts: Vec<(u64, u64)>, file_len: u64) {
        parts.retain(|(from, to)| from < to);
        parts.sort_unstable();
        let mut end = parts.first().map_or(0, |(from, _)| *from);
        let mut aligned = false;
        for (from, to) in parts {
            let gap = from.saturating_sub(end);
            // gdb writes to multiples of 4
            let is_alignment = gap < 8 || gap < ALIGNMENT && !aligned;
            aligned |= gap > 0;
            if !is_alignment {
                self.unnamed_bytes = self.unnamed_bytes.saturating_add(gap);
            }
            let shared = end.min(to).saturating_sub(from);
            self.shared_bytes = self.shared_bytes.saturating_add(shared);
            end = end.max(to);
        }
        let rest = file_len.saturating_sub(end);
        self.unnamed_bytes = self.unnamed_bytes.saturating_add(rest);
    }
}

impl fmt::Display for Contradictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries;
        let parts = [
            (self.strange > 0).then(|| {
                format!(
                    "{} of its {entries} entries are of no kind that a system writes",
                    self.strange
                )
            }),
            (self.disordered > 0).then(|| {
                format!(
                    "{} of its {entries} entries are out of order or reach over others",
                    self.disordered
                )
            }),
            (self.unnamed_bytes > 0).then(|| {
                format!(
                    "{} bytes of the file belong to no entry",
                    self.unnamed_bytes
                )
            }),
            (self.shared_bytes > 0)
                .then(|| format!("{} bytes of the file belong to two", self.shared_bytes)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(parts: &[(u64, u64)], file_len: u64) -> (u64, u64) {
        let mut out = Contradictions::default();
        out.check_parts(parts.to_vec(), file_len);
        (out.unnamed_bytes, out.shared_bytes)
    }

    #[test]
    fn parts_fill_the_file() {
        assert_eq!(
            parts(&[(100, 900), (4096, 8192), (8192, 9000)], 9000),
            (0, 0)
        );
        assert_eq!(
            parts(&[(100, 900), (4096, 8192), (12288, 16384)], 16384),
            (4096, 0)
        );
        assert_eq!(parts(&[(4096, 8192), (100, 900)], 9000), (808, 0));
        assert_eq!(parts(&[(0, 4096), (4000, 8192)], 8192), (0, 96));
        assert_eq!(parts(&[(0, 4097), (4100, 8192)], 8192), (0, 0));
        assert_eq!(parts(&[], 0), (0, 0));
    }

    #[test]
    fn regions_ascend() {
        let mut out = Contradictions::default();
        out.check_order([(0, 10), (10, 20), (15, 30), (30, 40), (5, 6)].into_iter());
        assert_eq!(out.disordered, 2);
        assert!(out.any());
        out.entries = 5;
        assert_eq!(
            out.to_string(),
            "2 of its 5 entries are out of order or reach over others"
        );
    }
}
