//! Task: flags and fields.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// Bits of Task.m_stateFlags (8.0 to 11.0).
pub mod flags {
    /// Its delegate has been called.
    pub const DELEGATE_INVOKED: u32 = 0x2_0000;
    /// Handed to a scheduler.
    pub const STARTED: u32 = 0x1_0000;
    /// Has no delegate: something else completes it.
    pub const PROMISE: u32 = 0x400;
    /// Ended with an exception.
    pub const FAULTED: u32 = 0x20_0000;
    /// Cancelled.
    pub const CANCELED: u32 = 0x40_0000;
    /// Ended well.
    pub const RAN_TO_COMPLETION: u32 = 0x100_0000;
    /// Waits for attached children.
    pub const WAITING_ON_CHILDREN: u32 = 0x80_0000;
    /// Bits that no version sets.
    pub(crate) const NEVER: u32 = 0x8800_8000;
    /// Any way of having ended.
    pub const COMPLETED: u32 = FAULTED | CANCELED | RAN_TO_COMPLETION;
}

/// Where the fields of every Task are.
#[derive(Clone, Copy, Debug)]
pub struct TaskFields {
    action: u64,
    state_object: u64,
    continuation: u64,
    state_flags: u64,
    contingent: u64,
}

impl TaskFields {
    /// Reads the offsets from the type itself.
    pub(crate) fn find(rt: &Runtime<'_>) -> Option<Self> {
        let ty = rt.ty(rt.core_type("System.Threading.Tasks", "Task")?)?;
        let offset = |name| {
            rt.instance_field(&ty, name)
                .map(|f| f.offset.saturating_add(8))
        };
        Some(Self {
            action: offset("m_action")?,
            state_object: offset("m_stateObject")?,
            continuation: offset("m_continuationObject")?,
            state_flags: offset("m_stateFlags")?,
            contingent: offset("m_contingentProperties")?,
        })
    }

    /// `m_stateFlags`; 0 when unreadable. Flags that no task can have together say nothing of its end and count as if it
    /// had not ended.
    #[must_use]
    pub fn flags(&self, rt: &Runtime<'_>, task: Addr) -> u32 {
        let raw = rt.memory().u32(task + self.state_flags).unwrap_or(0);
        if raw & flags::COMPLETED == 0 || self.is_possible(rt, task, raw) {
            raw
        } else {
            raw & !flags::COMPLETED
        }
    }

    /// Whether a task says that it has ended and in a way that none can.
    pub(crate) fn is_impossible(&self, rt: &Runtime<'_>, task: Addr) -> bool {
        let raw = rt.memory().u32(task + self.state_flags).unwrap_or(0);
        raw & flags::COMPLETED != 0 && !self.is_possible(rt, task, raw)
    }

    /// A task ends in one way, and one that ends with an exception keeps it.
    fn is_possible(&self, rt: &Runtime<'_>, task: Addr, raw: u32) -> bool {
        let one_end = (raw & flags::COMPLETED).is_power_of_two() && raw & flags::NEVER == 0;
        let keeps_exception = || {
            // where the fields cannot be read nothing is known against it
            let Some(contingent) = rt.memory().ptr(task + self.contingent) else {
                return true;
            };
            let holder = rt.field_addr(contingent, "m_exceptionsHolder");
            let holder = holder.map(|slot| rt.memory().ptr(slot).unwrap_or_default());
            !contingent.is_null() && holder.is_none_or(|h| !h.is_null())
        };
        one_end && (raw & flags::FAULTED == 0 || keeps_exception()) && !self.is_awaited(rt, task)
    }

    /// Whether somebody is registered to be resumed: a task that ends puts a plain object in the place (8.0 to 11.0).
    fn is_awaited(&self, rt: &Runtime<'_>, task: Addr) -> bool {
        let ty = self
            .continuation(rt, task)
            .and_then(|(_, value)| rt.type_of(value));
        ty.is_some_and(|t| !t.parent.is_null())
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn completed(&self, rt: &Runtime<'_>, task: Addr) -> bool {
        self.flags(rt, task) & flags::COMPLETED != 0
    }

    /// Where `m_continuationObject` is.
    pub(crate) fn continuation_slot(&self, task: Addr) -> Addr {
        task + self.continuation
    }

    /// Slot and value of `m_continuationObject`.
    #[must_use]
    pub fn continuation(&self, rt: &Runtime<'_>, task: Addr) -> Option<(Addr, Addr)> {
        let slot = self.continuation_slot(task);
        Some((slot, rt.memory().ptr(slot)?.non_null()?))
    }

    /// `m_action`: the delegate of a task with a body; of a box, its cached MoveNext.
    #[must_use]
    pub fn action(&self, rt: &Runtime<'_>, task: Addr) -> Option<Addr> {
        rt.memory().ptr(task + self.action)?.non_null()
    }

    /// `m_stateObject`: of a box, its ExecutionContext.
    #[must_use]
    pub fn state_object(&self, rt: &Runtime<'_>, task: Addr) -> Option<Addr> {
        rt.memory().ptr(task + self.state_object)?.non_null()
    }

    /// `m_contingentProperties`.
    #[must_use]
    pub fn contingent(&self, rt: &Runtime<'_>, task: Addr) -> Option<Addr> {
        rt.memory().ptr(task + self.contingent)?.non_null()
    }

    /// The state as Task.Status would name it.
    #[must_use]
    pub fn status(&self, rt: &Runtime<'_>, task: Addr) -> &'static str {
        let f = self.flags(rt, task);
        match f {
            _ if f & flags::FAULTED != 0 => "Faulted",
            _ if f & flags::CANCELED != 0 => "Canceled",
            _ if f & flags::RAN_TO_COMPLETION != 0 => "RanToCompletion",
            _ if f & flags::WAITING_ON_CHILDREN != 0 => "WaitingForChildrenToComplete",
            _ if f & flags::DELEGATE_INVOKED != 0 => "Running",
            _ if f & flags::STARTED != 0 => "WaitingToRun",
            _ if f & 0x200_0000 != 0 => "WaitingForActivation",
            _ => "Created",
        }
    }
}
