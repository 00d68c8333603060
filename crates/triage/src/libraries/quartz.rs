//! Quartz.NET: scheduled jobs.

use super::Service;
use asynctriage_report::RootKind;

pub(super) const JOB: Service = Service {
    frame: "Quartz.Core.JobRunShell.Run",
    kind: RootKind::Job,
    what: "Quartz job",
    holder: "Quartz.Core.JobRunShell",
    name: &["context", "jobDetail", "name"],
};
