//! Other events of a recording: markers of the application, waits of the task library.

use super::TraceOptions;
use super::names::StateMachines;
use super::time::Times;
use asynctriage_async_trace::Container;
use asynctriage_async_trace::markers::{Key, MarkerSpec, Markers, OutOfOrder, Stage};
use asynctriage_async_trace::tpl::{PendingChain, Tpl};
use asynctriage_nettrace::Summary;
use asynctriage_nettrace::runtime::MethodRanges;
use asynctriage_report as report;

pub(super) fn markers(markers: &Markers) -> report::MarkerReport {
    report::MarkerReport {
        groups: markers.groups,
        ordered: markers.ordered,
        more_than_one_thread: markers.more_than_one_thread,
        events: markers.events,
        without_key: markers.without_key,
        dropped: markers.dropped,
        out_of_order: markers.out_of_order.iter().map(group).collect(),
    }
}

/// What was asked for of markers, and what there is.
pub(super) fn marker_check(
    markers: &Markers,
    spec: &MarkerSpec,
    options: &TraceOptions,
    summary: &Summary,
) -> report::MarkerCheck {
    let texts = |stages: &[Stage]| stages.iter().map(Stage::to_string).collect();
    let is_absent = markers.seen.is_empty();
    let sequences = markers.sequences.iter();
    let in_order = options.expect.is_none() || markers.ordered == markers.groups;
    report::MarkerCheck {
        provider: spec.provider.clone(),
        expected: options.expect.as_deref().map(texts),
        as_asked: !is_absent && markers.absent.is_empty() && in_order,
        sequences: sequences
            .map(|(stages, count)| report::MarkerSequence {
                stages: texts(stages),
                count: *count,
            })
            .collect(),
        absent_events: markers.absent.clone(),
        seen: markers.seen.clone(),
        providers: if is_absent {
            summary.events_by_provider.keys().cloned().collect()
        } else {
            Vec::new()
        },
    }
}

fn group(group: &OutOfOrder) -> report::MarkerGroup {
    let markers = group.markers.iter().map(|marker| report::MarkerEvent {
        stage: marker.stage.to_string(),
        ticks: marker.time,
        os_thread: marker.thread,
        event: report::Address(marker.offset),
    });
    report::MarkerGroup {
        key: match &group.key {
            Key::Text(text) => format!("a text of {} characters", text.chars().count()),
            other => other.to_string(),
        },
        why: group.why.to_string(),
        markers: markers.collect(),
    }
}

/// What the task library's events say of waits.
pub(super) fn tpl(
    tpl: &Tpl,
    methods: &MethodRanges,
    container: Container,
    times: &Times,
) -> report::TplReport {
    let machines = StateMachines::new(methods);
    report::TplReport {
        unproven: unproven(container).filter(|_| tpl.pending_waits > 0),
        by_event: tpl.by_event.clone(),
        operations: tpl.operations,
        ended: tpl.ended,
        pending_waits: tpl.pending_waits,
        without_wait: tpl.without_wait,
        undecoded: tpl.undecoded,
        pending_chains_leaf_first: tpl
            .chains
            .iter()
            .map(|c| chain(c, &machines, times))
            .collect(),
        chains_left_out: tpl.more_chains,
    }
}

/// Why waits may have ended although no event says so.
fn unproven(container: Container) -> Option<String> {
    let what = match (container.lost, container.damages) {
        (0, 0) => return None,
        (0, damages) => format!("{damages} parts of the file could not be read"),
        (lost, _) => format!("the process lost {lost} events"),
    };
    Some(format!(
        "{what}, and the ends of these waits may be among what is missing; record again with a larger buffer, fewer \
         providers, or for a shorter time"
    ))
}

fn chain(chain: &PendingChain, machines: &StateMachines, times: &Times) -> report::TplChain {
    let (first, last) = chain.since;
    report::TplChain {
        count: chain.count,
        names: chain.names.clone(),
        methods: chain.names.iter().map(|n| machines.method(n)).collect(),
        names_left_out: chain.more_names,
        cycle: chain.cycle,
        leaves: chain.leaves.iter().map(|task| task.0).collect(),
        first_seen: times.utc(first),
        longest_seconds: times.until_end(first),
        shortest_seconds: times.until_end(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_proved_only_when_nothing_is_missing() {
        let said = |lost, damages| {
            unproven(Container {
                lost,
                damages,
                ..Container::default()
            })
        };
        assert_eq!(said(0, 0), None);
        let lost = said(7, 1).unwrap();
        assert!(lost.starts_with("the process lost 7 events"), "{lost}");
        let damaged = said(0, 2).unwrap();
        assert!(damaged.starts_with("2 parts"), "{damaged}");
    }
}
