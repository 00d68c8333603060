//! Whether a story that comes back to where it began is a circle.

use super::story::Story;
use asynctriage_report::WhyStep;

impl Story<'_, '_, '_, '_> {
    /// Whether the steps from one up to an earlier one are a circle that the report calls a deadlock: of groups with one
    /// chain each, as another chain of a larger group may be meant than the one above. Others may end what merely comes
    /// back to where it began.
    pub(super) fn is_circle(&self, above: &[usize], earlier: usize) -> bool {
        let mut chains = self.circle_of(above, earlier);
        let is_single = chains.all(|index| {
            let group = self.scene.group(index);
            group.is_some_and(|g| g.count == 1)
        });
        let part = above.iter().take_while(|p| **p > earlier).chain([&earlier]);
        let steps: Vec<&WhyStep> = part.filter_map(|p| self.steps.get(*p)).collect();
        is_single && self.scene.is_deadlock(&steps)
    }

    /// Whether a time limit ends one of the waits of a circle.
    pub(super) fn is_limited(&self, above: &[usize], earlier: usize) -> bool {
        let mut chains = self.circle_of(above, earlier);
        chains.any(|index| {
            self.scene
                .tallies
                .get(index)
                .is_some_and(|t| t.limited() > 0)
        })
    }

    /// The groups of the steps from one up to an earlier one.
    fn circle_of<'s2>(
        &'s2 self,
        above: &'s2 [usize],
        earlier: usize,
    ) -> impl Iterator<Item = usize> + 's2 {
        let part = above
            .iter()
            .copied()
            .take_while(move |p| *p > earlier)
            .chain(std::iter::once(earlier));
        part.filter_map(|p| {
            let chain = self.steps.get(p)?.chain.as_ref()?;
            self.scene.groups.get(chain).copied()
        })
    }
}
