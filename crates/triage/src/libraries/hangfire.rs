//! Hangfire: jobs that its own threads run.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// What it keeps on the stack of a worker that runs a job.
const CONTEXT: &str = "Hangfire.Server.PerformContext";

/// The job of a worker, with its id, by the objects on its stack.
pub(crate) fn job_among(
    rt: &Runtime<'_>,
    mut on_stack: impl Iterator<Item = Addr>,
) -> Option<(Addr, Option<String>)> {
    let context = on_stack.find(|o| rt.object_type_name(*o).as_deref() == Some(CONTEXT))?;
    let job = rt.reference(context, "<BackgroundJob>k__BackingField")?;
    Some((job, rt.field_text(job, "<Id>k__BackingField")))
}
