//! Activations one by one, for who wants to draw them.

use crate::Family;
use crate::dispatchers::{Moment, State};
use std::collections::VecDeque;

/// An activation: from a resume to the next suspension or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Family of its dispatcher.
    pub family: Family,
    /// Id of its dispatcher.
    pub dispatcher: u64,
    /// Its resume, or the first record that means it.
    pub began: Moment,
    /// Its suspension or end; `None` when it runs at the end of the recording.
    pub ended: Option<Moment>,
    /// How it ended.
    pub state: State,
}

/// The activations that ended last, up to a limit.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// They, in the order of their ends; those that run at the end of the recording last.
    pub kept: VecDeque<Span>,
    /// How many were before them.
    pub left_out: u64,
    pub(crate) limit: usize,
}

impl Spans {
    pub(crate) fn add(&mut self, span: Span) {
        if self.kept.len() >= self.limit {
            self.left_out = self.left_out.saturating_add(1);
            if self.kept.pop_front().is_none() {
                return;
            }
        }
        self.kept.push_back(span);
    }
}
