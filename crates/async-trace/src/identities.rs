//! What holds in every whole recording. Each rule is counted when it holds and when it does not, so that a reader sees
//! how much a recording confirms of itself.

use crate::Family;

/// Where a record stands: a batch of the file, and the index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordRef {
    /// Where the payload of the batch's event begins in the file.
    pub batch: u64,
    /// Index of the record in the batch, from 0.
    pub index: u32,
}

/// A rule. Measured on recordings of .NET 11.0.0: all hold for runtime-async when nothing is lost or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// Each dispatcher has one create record.
    OneCreate,
    /// The create record is not younger than the first resume.
    CreateFirst,
    /// Activations of a dispatcher do not overlap.
    NoOverlap,
    /// Only a suspended dispatcher is resumed again.
    OnlySuspendedResumes,
    /// The frames of a resume are those of the last suspension.
    ResumeFrames,
    /// The frames of the first resume are those of the create record.
    FirstFrames,
    /// Not more frames end than there are.
    FramesSuffice,
    /// The frames of a suspension end with those that had not run yet.
    SuspendTail,
    /// All frames have ended when a chain completes.
    AllConsumed,
    /// Each frame that ran ended, but the one that suspended or still runs.
    MethodBalance,
    /// An awaited task stands only in the first place.
    ZeroFirst,
    /// Resumes are as many as suspensions, ends and open activations.
    ResumeSum,
    /// Each context record has its call stack record.
    CallstackPairs,
    /// A thread's records begin with a reset.
    ResetFirst,
}

impl Identity {
    const COUNT: usize = 14;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::OneCreate,
        Self::CreateFirst,
        Self::NoOverlap,
        Self::OnlySuspendedResumes,
        Self::ResumeFrames,
        Self::FirstFrames,
        Self::FramesSuffice,
        Self::SuspendTail,
        Self::AllConsumed,
        Self::MethodBalance,
        Self::ZeroFirst,
        Self::ResumeSum,
        Self::CallstackPairs,
        Self::ResetFirst,
    ];

    /// The group that it belongs to, `I1` to `I10`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneCreate | Self::CreateFirst => "I1",
            Self::ResumeSum => "I2",
            Self::CallstackPairs => "I3",
            Self::ResumeFrames | Self::FirstFrames => "I4",
            Self::MethodBalance => "I5",
            Self::FramesSuffice | Self::AllConsumed => "I6",
            Self::SuspendTail => "I7",
            Self::ZeroFirst => "I8",
            Self::NoOverlap | Self::OnlySuspendedResumes => "I9",
            Self::ResetFirst => "I10",
        }
    }

    /// What holds, in short.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::OneCreate => "one create",
            Self::CreateFirst => "create<=first resume",
            Self::NoOverlap => "activations do not overlap",
            Self::OnlySuspendedResumes => "only suspended resumes again",
            Self::ResumeFrames => "resume frames == last suspend frames",
            Self::FirstFrames => "first resume frames == create frames",
            Self::FramesSuffice => "completed+unwound<=frames",
            Self::SuspendTail => "suspend tail == resume frames not yet run",
            Self::AllConsumed => "completed: all frames consumed",
            Self::MethodBalance => "resumed==completed+unwinds+(suspended|open running)",
            Self::ZeroFirst => "zero frame only first",
            Self::ResumeSum => "resumes == suspends+completes+open",
            Self::CallstackPairs => "call stack records == context records",
            Self::ResetFirst => "context begins with a reset",
        }
    }

    /// Whether it rests on records of single methods, which a session may not ask for.
    pub(crate) const fn needs_methods(self) -> bool {
        matches!(
            self,
            Self::SuspendTail | Self::AllConsumed | Self::MethodBalance
        )
    }

    /// Whether it rests on call stacks, which a session may not ask for.
    pub(crate) const fn needs_callstacks(self) -> bool {
        matches!(self, Self::ResumeFrames | Self::FirstFrames)
    }
}

/// A record that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub identity: Identity,
    /// Of which family.
    pub family: Family,
    /// The dispatcher; 0 where the rule is not of one.
    pub dispatcher: u64,
    /// When, in ticks; none for a sum over the file.
    pub time: Option<u64>,
    /// The record at which it was noticed.
    pub record: Option<RecordRef>,
}

/// Breaches of one rule and family that are kept one by one.
const KEPT: u64 = 8;

/// All rules with their counts.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    held: [[u64; Identity::COUNT]; 2],
    broken: [[u64; Identity::COUNT]; 2],
    breaches: Vec<Breach>,
}

impl Identities {
    /// How often a rule held.
    #[must_use]
    pub fn held(&self, family: Family, identity: Identity) -> u64 {
        count(&self.held, family, identity)
    }

    /// How often a rule did not hold.
    #[must_use]
    pub fn broken(&self, family: Family, identity: Identity) -> u64 {
        count(&self.broken, family, identity)
    }

    /// How often all rules held, taken together.
    #[must_use]
    pub fn held_in_all(&self) -> u64 {
        self.held
            .iter()
            .flatten()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The first breaches of each rule, in the order of their times.
    #[must_use]
    pub fn breaches(&self) -> &[Breach] {
        &self.breaches
    }

    /// Counts whether a rule holds. Inlined, so that the breach is only made when there is one.
    #[inline]
    pub(crate) fn check(&mut self, holds: bool, breach: Breach) {
        if !holds {
            return self.breach(breach);
        }
        let row = self.held.get_mut(breach.family.index());
        if let Some(count) = row.and_then(|row| row.get_mut(breach.identity as usize)) {
            *count = count.saturating_add(1);
        }
    }

    #[cold]
    fn breach(&mut self, breach: Breach) {
        let row = self.broken.get_mut(breach.family.index());
        let Some(count) = row.and_then(|row| row.get_mut(breach.identity as usize)) else {
            return;
        };
        *count = count.saturating_add(1);
        if *count <= KEPT {
            self.breaches.push(breach);
        }
    }

    /// A check that held for a dispatcher turns out to have been made too early.
    pub(crate) fn take_back(&mut self, family: Family, identity: Identity) {
        let cell = self
            .held
            .get_mut(family.index())
            .and_then(|row| row.get_mut(identity as usize));
        if let Some(cell) = cell {
            *cell = cell.saturating_sub(1);
        }
    }

    /// Forgets rules that mean nothing, because the session did not record what they are about.
    pub(crate) fn drop_rules(&mut self, which: impl Fn(Identity) -> bool) {
        for identity in Identity::ALL.into_iter().filter(|i| which(*i)) {
            for table in [&mut self.held, &mut self.broken] {
                for row in table {
                    if let Some(cell) = row.get_mut(identity as usize) {
                        *cell = 0;
                    }
                }
            }
        }
        self.breaches.retain(|b| !which(b.identity));
    }
}

fn count(table: &[[u64; Identity::COUNT]; 2], family: Family, identity: Identity) -> u64 {
    table
        .get(family.index())
        .and_then(|row| row.get(identity as usize))
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breach(time: u64) -> Breach {
        Breach {
            identity: Identity::NoOverlap,
            family: Family::RuntimeAsync,
            dispatcher: 1,
            time: Some(time),
            record: None,
        }
    }

    #[test]
    fn all_breaches_are_counted_and_the_first_kept() {
        let mut all = Identities::default();
        for time in (10..30).rev() {
            all.check(false, breach(time));
        }
        all.check(true, breach(1));
        assert_eq!(all.broken(Family::RuntimeAsync, Identity::NoOverlap), 20);
        assert_eq!(all.held_in_all(), 1);
        assert_eq!(all.breaches().len(), 8);
    }

    #[test]
    fn names_are_told_apart() {
        let mut texts: Vec<_> = Identity::ALL.iter().map(|i| i.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Identity::ALL.len());
        for (index, identity) in Identity::ALL.into_iter().enumerate() {
            assert_eq!(identity as usize, index);
        }
    }
}
