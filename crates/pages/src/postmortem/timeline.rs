//! Since when things wait, by the dump's own clocks.

use super::text::{Draft, cite};
use super::{is_idle, method, oldest, routes};
use crate::markdown::plain;
use asynctriage_report::{LeafKind, Report, duration};

/// Moments that are told.
const MAX_MOMENTS: usize = 15;

/// One moment: seconds before the dump.
struct Moment {
    seconds: f64,
    what: String,
    how: String,
    id: String,
}

pub(super) fn timeline(draft: &mut Draft, report: &Report) {
    draft.heading("Timeline");
    if let Some(time) = &report.dump.time {
        draft.fact(&format!("The dump was taken {time}."), &["D1"]);
    }
    let mut moments = moments(report);
    moments.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    if moments.is_empty() {
        draft.fact(
            "Nothing in the dump tells since when anything waits.",
            &["D1"],
        );
    } else {
        draft.line("Times count back from the dump by clocks of the process; what each rests on stands beside it.");
        draft.table(&["before the dump", "what", "how it is known"]);
        for moment in moments.iter().take(MAX_MOMENTS) {
            let what = format!("{} {}", plain(&moment.what), cite(&[&moment.id]));
            draft.row(&[&duration(moment.seconds), &what, &plain(&moment.how)]);
        }
        draft.line("");
        draft.more(moments.len(), MAX_MOMENTS, "moment");
    }
    draft.open_point("deployments, alerts and actions before and after the dump");
}

fn moments(report: &Report) -> Vec<Moment> {
    let chains = report
        .chains
        .iter()
        // a loop between two ticks dates nothing of what hangs
        .filter(|c| !is_idle(c) && c.leaf.kind != LeafKind::PeriodicTimer)
        .filter_map(|c| {
            let waiting = c.waiting_seconds.as_ref()?;
            let which = if c.count > 1 {
                "the oldest chain of"
            } else {
                "the chain of"
            };
            Some(Moment {
                seconds: waiting.max,
                what: format!(
                    "{which} {} has waited at least since then for {}",
                    method(c),
                    c.leaf.kind
                ),
                how: waiting.how.clone(),
                id: c.id.clone(),
            })
        });
    let requests = routes(report).into_iter().filter_map(|(name, requests)| {
        let oldest = oldest(&requests)?;
        let how = oldest.details.get("age_how").and_then(|h| h.as_str());
        Some(Moment {
            seconds: oldest.age_seconds?,
            what: format!("the oldest request {name} began, or was no younger than that"),
            how: how.unwrap_or_default().to_owned(),
            id: oldest.id.clone(),
        })
    });
    chains.chain(requests).collect()
}
