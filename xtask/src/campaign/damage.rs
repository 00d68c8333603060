//! What is done to a file.

use super::subject::Subject;
use asynctriage_fuzz::{EXTREME, Random};
use std::fmt;

pub(super) const PAGE: usize = 4096;

/// Bytes that are written over others, and where the file is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) writes: Vec<(usize, Vec<u8>)>,
    pub(super) cut: Option<usize>,
    /// Whether it is the packed file that is changed, not what it holds.
    pub(super) packed: bool,
}

impl Change {
    pub(super) fn cut(at: usize) -> Self {
        Self {
            cut: Some(at),
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.cut.is_none()
    }

    /// The file with the change.
    pub(super) fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        for (at, new) in &self.writes {
            let end = at.saturating_add(new.len()).min(out.len());
            if let Some(old) = out.get_mut(*at..end) {
                old.copy_from_slice(&new[..old.len()]);
            }
        }
        out.truncate(self.cut.unwrap_or(usize::MAX));
        out
    }

    fn put(&mut self, at: usize, new: impl Into<Vec<u8>>) {
        self.writes.push((at, new.into()));
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packed {
            f.write_str("(packed) ")?;
        }
        if let Some(at) = self.cut {
            return write!(f, "cut at {at}");
        }
        for (i, (at, new)) in self.writes.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}{at}:")?;
            for byte in new.iter().take(64) {
                write!(f, "{byte:02x}")?;
            }
            if new.len() > 64 {
                write!(f, "..({} bytes)", new.len())?;
            }
        }
        Ok(())
    }
}

/// One kind of damage, by chance; those of objects are tried more often: there the meaning is.
pub(super) fn choose(subject: &Subject, random: &mut Random) -> (&'static str, Change) {
    const KINDS: [&str; 13] = [
        "flip", "smear", "page", "extreme", "pointer", "pointer", "object", "object", "object",
        "header", "note", "cut", "packed",
    ];
    let kind = random.of(&KINDS);
    let mut change = Change::default();
    let len = subject.bytes().len();
    match kind {
        "flip" => {
            for _ in 0..random.of(&[1, 4, 32]) {
                let at = random.index(len);
                let old = subject.bytes().get(at).copied().unwrap_or_default();
                change.put(at, [old ^ 1 << random.index(8)]);
            }
        }
        "smear" => {
            for _ in 0..random.of(&[1, 4]) {
                let many = random.of(&[1, 4, 8, 64, 512]);
                let at = random.index(len);
                change.put(at, random.bytes(many));
            }
        }
        "page" => {
            for _ in 0..random.of(&[1, 4]) {
                let page = match random.index(3) {
                    0 => vec![0; PAGE],
                    1 => vec![0xFF; PAGE],
                    _ => random.bytes(PAGE),
                };
                change.put(random.index(len) / PAGE * PAGE, page);
            }
        }
        "extreme" => {
            for _ in 0..random.of(&[1, 4]) {
                change.put(random.index(len) & !7, random.of(&EXTREME).to_le_bytes());
            }
        }
        "header" => header(subject, random, &mut change),
        "note" => note(subject, random, &mut change),
        "cut" => change.cut = Some(random.index(len) / PAGE * PAGE),
        "packed" => packed(subject, random, &mut change),
        "pointer" => pointers(subject, random, &mut change),
        _ => objects(subject, random, &mut change),
    }
    (kind, change)
}

/// References of objects that chains rest on, to others of them.
fn pointers(subject: &Subject, random: &mut Random, change: &mut Change) {
    if subject.places().is_empty() {
        return;
    }
    for _ in 0..random.of(&[1, 1, 3]) {
        let at = random.of(subject.places()) + 8 * random.index(16);
        change.put(at, random.of(subject.objects()).to_le_bytes());
    }
}

/// Numbers inside objects that chains rest on.
fn objects(subject: &Subject, random: &mut Random, change: &mut Change) {
    if subject.places().is_empty() {
        return;
    }
    for _ in 0..random.of(&[1, 1, 3]) {
        let at = (random.of(subject.places()) + 4 * random.index(42)).saturating_sub(8);
        let number = random.of(&EXTREME);
        match random.index(3) {
            0 => change.put(at, (number as u32).to_le_bytes()),
            1 => change.put(at, number.to_le_bytes()),
            _ => change.put(at, random.bytes(4)),
        }
    }
}

fn header(subject: &Subject, random: &mut Random, change: &mut Change) {
    let (start, count, entry) = subject.image().list;
    let at = start + random.index(count.max(1)) * entry + 4 * random.index(3);
    let number = if random.index(4) == 0 {
        random.index(subject.bytes().len()) as u64
    } else {
        random.of(&EXTREME)
    };
    change.put(at, number.to_le_bytes());
}

fn note(subject: &Subject, random: &mut Random, change: &mut Change) {
    let notes = &subject.image().notes;
    let Some(note) = notes.get(random.index(notes.len())) else {
        return;
    };
    let at = note.start + (random.index(note.len().clamp(4, 1 << 16)) & !3);
    let number = match random.index(4) {
        0 => random.word(),
        _ => random.of(&EXTREME),
    };
    let many = random.of(&[1, 4, 8]);
    change.put(at, &number.to_le_bytes()[..many]);
}

/// The file as it is packed: what is in it no longer has its checksum.
fn packed(subject: &Subject, random: &mut Random, change: &mut Change) {
    let Some(packed) = subject.packed() else {
        return;
    };
    change.packed = true;
    let at = random.index(packed.len());
    match random.index(3) {
        0 => change.cut = Some(at),
        1 => change.put(at, [packed[at] ^ 1 << random.index(8)]),
        _ => change.put(at, random.bytes(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::Change;

    #[test]
    fn a_change_stays_inside_the_file() {
        let change = Change {
            writes: vec![(1, vec![9; 2]), (3, vec![8; 8]), (100, vec![7])],
            ..Change::default()
        };
        assert_eq!(change.apply(&[0; 5]), [0, 9, 9, 8, 8]);
        assert_eq!(Change::cut(2).apply(&[1, 2, 3]), [1, 2]);
        assert_eq!(change.to_string(), "1:0909 3:0808080808080808 100:07");
    }
}
