//! Activations one by one, for who wants to draw or export them: given away as they end, so that memory does not follow
//! their number.

use crate::Family;
use crate::dispatchers::{Moment, State};
use crate::frames::{FrameListId, FrameLists};

/// An activation: from a resume to the next suspension or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Family of its dispatcher.
    pub family: Family,
    /// Id of its dispatcher.
    pub dispatcher: u64,
    /// Ticks of the create record of its dispatcher.
    pub created: Option<u64>,
    /// The dispatcher that ran on the thread that created it; 0 for none.
    pub parent: u64,
    /// Its frames when it was resumed.
    pub frames: Option<FrameListId>,
    /// Its resume, or the first record that means it.
    pub began: Moment,
    /// Its suspension or end; `None` when it runs at the end of the recording.
    pub ended: Option<Moment>,
    /// How it ended.
    pub state: State,
}

/// Takes the activations of a recording.
pub trait SpanSink {
    /// The first and the last tick of the session's records; comes before all spans.
    fn range(&mut self, first: u64, last: u64);
    /// An activation. They come in the order of their ends; those that run at the end of the recording last.
    fn span(&mut self, span: &Span, frames: &FrameLists<'_>);
}

/// Activations that were not given away yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) wanted: bool,
    pending: Vec<Span>,
}

impl Spans {
    pub(crate) fn add(&mut self, span: impl FnOnce() -> Span) {
        if self.wanted {
            self.pending.push(span());
        }
    }

    /// Gives them away.
    pub(crate) fn give(&mut self, sink: &mut dyn SpanSink, frames: &FrameLists<'_>) {
        for span in self.pending.drain(..) {
            sink.span(&span, frames);
        }
    }
}
