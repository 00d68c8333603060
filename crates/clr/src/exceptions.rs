//! Exceptions: which a thread threw last, what they say, where they were thrown.

use crate::code::MethodRef;
use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::Addr;
use std::sync::Arc;

/// Frames of one stack trace that are read; deep recursion leaves many thousands.
const MAX_FRAMES: u64 = 256;
/// Exceptions inside one another that are followed.
const MAX_INNER: usize = 16;

/// A frame that an exception passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrowFrame {
    /// The instruction.
    pub ip: Addr,
    /// The stack pointer of the frame.
    pub sp: Addr,
    /// The method, when the trace names one.
    pub method: Option<MethodRef>,
}

/// An exception object.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The object.
    pub object: Addr,
    /// Its type, as the runtime names it.
    pub type_name: Arc<str>,
    /// Its own message; `None` when the type makes one up.
    pub message: Option<String>,
    /// What caused it.
    pub inner: Option<Addr>,
    /// Where it was thrown and what it passed since, innermost first.
    pub frames: Vec<ThrowFrame>,
    /// How many frames the trace has, those above the limit counted.
    pub frame_count: u64,
}

impl Runtime<'_> {
    /// The exception that a thread threw last, whether or not it was caught.
    #[must_use]
    pub fn last_thrown(&self, thread: &Thread) -> Option<Addr> {
        let offset = self.layout().get("Thread", "LastThrownObject")?;
        let handle = self.memory.ptr(thread.addr + offset)?.non_null()?;
        self.memory.ptr(handle)?.non_null()
    }

    /// Whether an exception is being handled on a thread now: it looks for a handler, runs one, or found none.
    #[must_use]
    pub fn handles_exception(&self, thread: &Thread) -> bool {
        let tracker = self.layout().get("Thread", "ExceptionTracker");
        let tracker = tracker.and_then(|o| self.memory.ptr(thread.addr + o)?.non_null());
        // 8.0: trackers name their thread
        let owner = self.layout().get("ExceptionTracker", "Thread");
        tracker.is_some_and(|t| match owner {
            Some(offset) => self.memory.ptr(t + offset) == Some(thread.addr),
            None => self.memory.readable(t, 8),
        })
    }

    /// Reads an exception; `None` when the object is none.
    #[must_use]
    pub fn exception(&self, object: Addr) -> Option<Exception> {
        let ty = self.type_of(object)?;
        if !self.is_a(ty.mt, "System.Exception") {
            return None;
        }
        let (frames, frame_count) = self.throw_frames(object).unwrap_or_default();
        Some(Exception {
            object,
            type_name: self.name(&ty),
            message: self.field_text(object, "_message"),
            inner: self.reference(object, "_innerException"),
            frames,
            frame_count,
        })
    }

    /// An exception and what caused it, the outermost first.
    #[must_use]
    pub fn exception_chain(&self, object: Addr) -> Vec<Exception> {
        let mut out: Vec<Exception> = Vec::new();
        let mut next = Some(object);
        while let Some(exception) = next
            .filter(|o| out.len() < MAX_INNER && out.iter().all(|e| e.object != *o))
            .and_then(|o| self.exception(o))
        {
            next = exception.inner;
            out.push(exception);
        }
        out
    }

    /// The frames that an exception had passed when an `ExceptionDispatchInfo` kept it, innermost first, and how many
    /// there are. Those of the exception itself go on when it is thrown again elsewhere; these do not (8.0 to 11.0).
    #[must_use]
    pub fn captured_frames(&self, dispatch_info: Addr) -> Option<(Vec<ThrowFrame>, u64)> {
        let place = self.place(dispatch_info)?;
        let state = self.instance_field(&place.ty, "_dispatchState")?;
        place
            .references_in(self, &state)
            .find_map(|trace| self.trace_frames(trace))
    }

    fn throw_frames(&self, exception: Addr) -> Option<(Vec<ThrowFrame>, u64)> {
        self.trace_frames(self.reference(exception, "_stackTrace")?)
    }

    /// A stack trace: bytes with a count in front (8.0 to 11.0), or an array whose first element those are.
    fn trace_frames(&self, mut array: Addr) -> Option<(Vec<ThrowFrame>, u64)> {
        let (m, l) = (self.memory, self.layout());
        let field = |name| l.get("StackTraceArray", name);
        let (mut start, mut stride, mut len) = self.vector(array)?;
        if stride == 8 {
            array = m.ptr(start)?.non_null()?;
            (start, stride, len) = self.vector(array)?;
        }
        let (elements, size) = (field("Elements")?, field("ElementSize")?);
        let room = len
            .saturating_mul(stride)
            .checked_sub(elements)?
            .checked_div(size)?;
        let count = u64::from(m.u32(start + field("Count")?)?).min(room);
        let (ip, sp, desc) = (field("Ip")?, field("Sp")?, field("MethodDesc")?);
        let frame = |i| {
            let at = (start + elements).element(i, size);
            Some(ThrowFrame {
                ip: m.ptr(at + ip)?,
                sp: m.ptr(at + sp)?,
                method: m
                    .ptr(at + desc)?
                    .non_null()
                    .and_then(|d| self.method_of_desc(d)),
            })
        };
        Some((
            (0..count.min(MAX_FRAMES)).filter_map(frame).collect(),
            count,
        ))
    }
}
