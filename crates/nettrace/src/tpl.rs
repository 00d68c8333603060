//! Events of the task library, which tell of waits before .NET 11.
//!
//! Provider [`PROVIDER`], keywords 0x1FF, level 5. Its metadata describes the fields (seen: .NET 10.0.15), so they are
//! read by name. Ids are those of `Task.Id`, which is the field `m_taskId` of a task in a dump.

use crate::field::Value;
use crate::{Event, Text};

/// Name of the provider.
pub const PROVIDER: &str = "System.Threading.Tasks.TplEventSource";

/// How a task is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// A thread blocks until the task has ended.
    Synchronous,
    /// Something goes on when the task has ended.
    Asynchronous,
    /// Another number.
    Other(i64),
}

/// An event of the task library. Tasks are named by `Task.Id`; 0 is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TplEvent<'a> {
    /// 7: a task was given to a scheduler.
    TaskScheduled {
        /// The task.
        task: i64,
        /// The task that its creator ran in.
        creator: i64,
    },
    /// 8: a task begins to run.
    TaskStarted {
        /// The task.
        task: i64,
    },
    /// 9: a task's delegate has returned.
    TaskCompleted {
        /// The task.
        task: i64,
        /// Whether by an exception.
        faulted: bool,
    },
    /// 10: something waits for a task.
    WaitBegin {
        /// The task that is waited for.
        task: i64,
        /// How.
        behavior: Behavior,
        /// The task that goes on behind the wait: the async method's own.
        continues: i64,
        /// The task that ran when the wait began.
        originating: i64,
    },
    /// 11: the wait for a task is over.
    WaitEnd {
        /// The task that was waited for.
        task: i64,
    },
    /// 12: a continuation was posted, as by `Task.Yield`.
    ContinuationScheduled {
        /// The task that was made to run it.
        task: i64,
    },
    /// 19: a posted continuation begins to run.
    ContinuationStarted {
        /// The task that runs it.
        task: i64,
    },
    /// 13: a posted continuation has run.
    ContinuationComplete {
        /// The task that ran it.
        task: i64,
    },
    /// 14: an operation began.
    OperationBegin {
        /// Its task.
        task: i64,
        /// `Async: <Method>d__3` (the type's name without namespace and enclosing types) or `Task.Delay` and the like.
        name: Text<'a>,
    },
    /// 16: something happened to an operation.
    OperationRelation {
        /// Its task.
        task: i64,
        /// 0 a delegate was assigned, 1 join, 2 choice, 3 cancelled, 4 error.
        relation: i64,
    },
    /// 15: an operation ended.
    OperationEnd {
        /// Its task.
        task: i64,
        /// 1 completed, 2 cancelled, 3 faulted.
        status: i64,
    },
    /// 17: a part of an async method begins to run on a thread.
    WorkBegin {
        /// Its task.
        task: i64,
        /// 0 completion, 1 progress, 2 all of it.
        work: i64,
    },
    /// 18: it has run.
    WorkEnd {
        /// As in `WorkBegin`.
        work: i64,
    },
}

impl<'a> TplEvent<'a> {
    /// `None` for events of other providers, for events not listed here, and when a field is missing.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        if event.kind.provider != PROVIDER {
            return None;
        }
        let number = |name: &str| event.value(name)?.as_i64();
        let task = || number("TaskID");
        Some(match event.kind.id {
            7 => Self::TaskScheduled {
                task: task()?,
                creator: number("CreatingTaskID")?,
            },
            8 => Self::TaskStarted { task: task()? },
            9 => Self::TaskCompleted {
                task: task()?,
                faulted: number("IsExceptional")? != 0,
            },
            10 => Self::WaitBegin {
                task: task()?,
                behavior: match number("Behavior")? {
                    1 => Behavior::Synchronous,
                    2 => Behavior::Asynchronous,
                    other => Behavior::Other(other),
                },
                continues: number("ContinueWithTaskID")?,
                originating: number("OriginatingTaskID")?,
            },
            11 => Self::WaitEnd { task: task()? },
            12 => Self::ContinuationScheduled {
                // spelt otherwise than in event 10
                task: number("ContinueWithTaskId")?,
            },
            13 => Self::ContinuationComplete { task: task()? },
            14 => Self::OperationBegin {
                task: task()?,
                name: match event.value("OperationName")? {
                    Value::Text(name) => name,
                    _ => return None,
                },
            },
            15 => Self::OperationEnd {
                task: task()?,
                status: number("Status")?,
            },
            16 => Self::OperationRelation {
                task: task()?,
                relation: number("Relation")?,
            },
            17 => Self::WorkBegin {
                task: task()?,
                work: number("Work")?,
            },
            18 => Self::WorkEnd {
                work: number("Work")?,
            },
            19 => Self::ContinuationStarted { task: task()? },
            _ => return None,
        })
    }
}
