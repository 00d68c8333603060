//! Native frames of the threads, for whoever asks for whole stacks.

use crate::paths::Analysis;
use asynctriage_clr::NativeFrame;
use asynctriage_report::{Address, FrameStanding, Report, ThreadFrame};

impl Analysis<'_, '_> {
    /// Puts the native frames where they belong: below the innermost managed method, and between managed ones.
    pub(crate) fn add_native_frames(&self, report: &mut Report) {
        for row in &mut report.threads {
            let mut threads = self.threads.all.iter();
            let Some(thread) = threads.find(|t| u64::from(t.os_id) == row.os_id) else {
                continue;
            };
            let mut native = self.rt.native_frames(thread).into_iter().peekable();
            let managed = std::mem::take(&mut row.frames);
            let mut below = 0_usize;
            for frame in managed {
                while let Some((_, frame)) = native.next_if(|(b, _)| *b <= below) {
                    row.frames.push(native_frame(frame));
                }
                // native frames are counted between those that stand on the stack
                if frame.standing != Some(FrameStanding::Inlined) {
                    below = below.saturating_add(1);
                }
                row.frames.push(frame);
            }
            row.frames
                .extend(native.map(|(_, frame)| native_frame(frame)));
        }
    }
}

fn native_frame(frame: NativeFrame) -> ThreadFrame {
    ThreadFrame {
        method: frame.to_string(),
        address: Some(Address(frame.ip.0)),
        module: frame.image,
        native: true,
        standing: Some(FrameStanding::Exact),
        ..ThreadFrame::default()
    }
}
