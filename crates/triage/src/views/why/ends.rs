//! How a story ends.

use asynctriage_report::{LeafKind, WhyEnd, WhyStep};

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

/// One sentence for each end, the surest kinds first.
pub(super) fn conclusions(steps: &[WhyStep]) -> Vec<String> {
    let mut out: Vec<(WhyEnd, String)> = Vec::new();
    for step in steps {
        let Some(end) = step.end else { continue };
        let said = (end, format!("{}: {}", phrase(end), sentence(step)));
        if out.len() < MAX_CONCLUSIONS && !out.contains(&said) {
            out.push(said);
        }
    }
    out.sort_by_key(|(end, _)| *end == WhyEnd::Unknown);
    out.into_iter().map(|(_, text)| text).collect()
}

fn sentence(step: &WhyStep) -> String {
    match step.same_as {
        Some(earlier) => format!("step {} comes back to step {earlier}", step.number),
        None => format!("{} (step {})", step.text, step.number),
    }
}

fn phrase(end: WhyEnd) -> &'static str {
    match end {
        WhyEnd::Runs => "It depends on code that runs",
        WhyEnd::Remote => "It depends on something outside the process",
        WhyEnd::Clock => "A time ends it",
        WhyEnd::Work => "It waits for work",
        WhyEnd::Cycle => "It waits for itself",
        WhyEnd::Nothing => "Nothing can end it",
        WhyEnd::Unknown => "The dump does not tell who ends it",
    }
}
