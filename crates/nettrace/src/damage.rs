//! What was skipped because it makes no sense.

/// Bytes that were skipped because they make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where in the file they begin.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
    /// The block that they belong to; "other" where not even that can be told.
    pub block: &'static str,
    /// What is wrong.
    pub what: &'static str,
}

/// How many are kept; all are counted.
const MAX_KEPT: usize = 256;

/// All damage of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    /// The first 256.
    pub first: Vec<Damage>,
    /// How many there are.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Damages {
    pub(crate) fn push(&mut self, damage: Damage) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(damage.bytes);
        if self.first.len() < MAX_KEPT {
            self.first.push(damage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_kept() {
        let mut damages = Damages::default();
        for offset in 0..1000 {
            damages.push(Damage {
                offset,
                bytes: 2,
                block: "EventBlock",
                what: "x",
            });
        }
        assert_eq!(
            (damages.first.len(), damages.count, damages.bytes),
            (256, 1000, 2000)
        );
    }
}
