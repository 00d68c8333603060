//! How a story ends.

use asynctriage_report::{Confidence, LeafKind, WhyEnd, WhyStep};

/// Conclusions that are told.
const MAX_CONCLUSIONS: usize = 8;

/// How a wait of a kind ends when nothing in the process is known that would end it.
pub(super) fn of_leaf(kind: LeafKind) -> WhyEnd {
    use LeafKind as K;
    match kind {
        K::HttpResponse
        | K::HttpBody
        | K::HttpRequestBody
        | K::SocketReceive
        | K::SocketSend
        | K::SocketConnect
        | K::Dns
        | K::TlsHandshake
        | K::Database
        | K::Cache
        | K::MessageBroker
        | K::Grpc
        | K::ProcessExit => WhyEnd::Remote,
        K::Delay | K::PeriodicTimer | K::Timeout => WhyEnd::Clock,
        K::SocketAccept => WhyEnd::Work,
        K::Cycle => WhyEnd::Cycle,
        K::Unreachable => WhyEnd::Nothing,
        K::TaskRunning | K::ThreadBlocked => WhyEnd::Runs,
        _ => WhyEnd::Unknown,
    }
}

/// Says of each end how sure it is: as sure as the weakest step on the way to it.
pub(super) fn weigh(steps: &mut [WhyStep]) {
    // how sure the way is to the last step of each depth
    let mut ways: Vec<Confidence> = Vec::new();
    for step in steps {
        ways.truncate(usize::try_from(step.depth).unwrap_or(usize::MAX));
        let before = ways.last().copied().unwrap_or(Confidence::Certain);
        let sure = before.min(step.confidence.unwrap_or(Confidence::Certain));
        ways.push(sure);
        step.end_confidence = step.end.map(|_| sure);
    }
}

/// One sentence for each end, the surest kinds first.
pub(super) fn conclusions(steps: &[WhyStep]) -> Vec<String> {
    let mut out: Vec<(WhyEnd, String)> = Vec::new();
    for step in steps {
        let (Some(end), Some(sure)) = (step.end, step.end_confidence) else {
            continue;
        };
        let said = (
            end,
            format!("{}: {}", phrase(end), sentence(step, end, sure)),
        );
        if out.len() < MAX_CONCLUSIONS && !out.contains(&said) {
            out.push(said);
        }
    }
    out.sort_by_key(|(end, _)| *end == WhyEnd::Unknown);
    out.into_iter().map(|(_, text)| text).collect()
}

fn sentence(step: &WhyStep, end: WhyEnd, sure: Confidence) -> String {
    let doubt = match (end, sure) {
        (WhyEnd::Unknown, _) | (_, Confidence::Certain) => "",
        (_, Confidence::Likely) => "; likely",
        (_, Confidence::Possible) => "; possible",
    };
    match step.same_as {
        Some(earlier) => format!("step {} comes back to step {earlier}{doubt}", step.number),
        None => format!("{} (step {}{doubt})", step.text, step.number),
    }
}

fn phrase(end: WhyEnd) -> &'static str {
    match end {
        WhyEnd::Runs => "It depends on code that runs",
        WhyEnd::Remote => "It depends on something outside the process",
        WhyEnd::Clock => "A time ends it",
        WhyEnd::Work => "It waits for work",
        WhyEnd::Cycle => "It waits for itself",
        WhyEnd::Nothing => "Nothing was found that could end it",
        WhyEnd::Unknown => "The dump does not tell who ends it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(depth: u64, confidence: Option<Confidence>, end: Option<WhyEnd>) -> WhyStep {
        WhyStep {
            number: depth + 1,
            depth,
            confidence,
            end,
            text: "it".into(),
            ..WhyStep::default()
        }
    }

    #[test]
    fn a_conclusion_is_as_sure_as_the_weakest_step_on_its_way() {
        let mut steps = [
            step(0, None, None),
            step(1, Some(Confidence::Possible), None),
            step(2, Some(Confidence::Likely), Some(WhyEnd::Clock)),
            step(1, None, Some(WhyEnd::Runs)),
        ];
        weigh(&mut steps);
        assert_eq!(steps[2].end_confidence, Some(Confidence::Possible));
        assert_eq!(
            conclusions(&steps),
            [
                "A time ends it: it (step 3; possible)",
                "It depends on code that runs: it (step 2)"
            ]
        );
    }
}
