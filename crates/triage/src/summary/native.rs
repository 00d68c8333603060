//! Native frames of the threads, for whoever asks for whole stacks.

use crate::paths::Analysis;
use asynctriage_report::{Address, FrameStanding, Report, ThreadFrame};

impl Analysis<'_, '_> {
    /// Puts the native frames in front of the managed ones: what a thread does below its innermost managed method.
    pub(crate) fn add_native_frames(&self, report: &mut Report) {
        for row in &mut report.threads {
            let mut threads = self.threads.all.iter();
            let Some(thread) = threads.find(|t| u64::from(t.os_id) == row.os_id) else {
                continue;
            };
            let native = self.rt.native_frames(thread).into_iter();
            let native = native.map(|frame| ThreadFrame {
                method: frame.to_string(),
                address: Some(Address(frame.ip.0)),
                module: frame.image,
                native: true,
                standing: Some(FrameStanding::Exact),
                ..ThreadFrame::default()
            });
            row.frames.splice(0..0, native);
        }
    }
}
