//! Several reports as one picture: a call of one service is a request of another when the ids of their spans fit.

use asynctriage_report::{
    Confidence, Hop, MissingServer, OutgoingCall, Report, Request, RequestPath, Service,
    ServicesReport,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Hops of one way; services that call each other in a circle end it earlier.
const MAX_HOPS: usize = 64;
/// Ways that are listed.
const MAX_PATHS: usize = 100_000;

/// A request: the index of its report, and its own in that.
type Place = (usize, usize);

/// One call that became a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    to: Place,
    certainty: Confidence,
}

/// Joins the reports of processes that call each other.
#[must_use]
pub fn join(reports: &[Report]) -> ServicesReport {
    let join = Join::new(reports);
    let mut out = ServicesReport::default();
    for place in join.entries() {
        if out.paths.len() >= MAX_PATHS {
            break;
        }
        join.follow(place, &mut out.paths);
    }
    out.paths.sort_by(|a, b| key(a).cmp(&key(b)));
    out.services = join.services(&out.paths);
    out.missing = join.missing();
    out
}

fn key(path: &RequestPath) -> (Reverse<usize>, Option<(&str, &str)>) {
    let first = path.hops.first();
    let first = first.map(|h| (h.service.as_str(), h.request.as_str()));
    (Reverse(path.hops.len()), first)
}

struct Join<'r> {
    reports: &'r [Report],
    /// By request: where each of its calls goes.
    edges: FxHashMap<Place, Vec<Edge>>,
    /// Requests that a call of another service has become.
    called: FxHashSet<Place>,
    /// Calls without a request, with the report that they stand in.
    unmatched: Vec<(usize, &'r OutgoingCall)>,
}

impl<'r> Join<'r> {
    fn new(reports: &'r [Report]) -> Self {
        let mut join = Self {
            reports,
            edges: FxHashMap::default(),
            called: FxHashSet::default(),
            unmatched: Vec::new(),
        };
        let by_span = join.requests_by_parent();
        let mut open: Vec<(Place, &OutgoingCall)> = Vec::new();
        for (place, request) in places(reports) {
            for call in &request.calls {
                let ids = call.trace_id.as_deref().zip(call.span_id.as_deref());
                let to = ids.and_then(|ids| by_span.get(&ids)).into_iter().flatten();
                let to: Vec<Place> = to.copied().filter(|to| to.0 != place.0).collect();
                if to.is_empty() {
                    open.push((place, call));
                }
                for to in to {
                    join.link(place, to, Confidence::Certain);
                }
            }
        }
        join.match_by_name(open);
        join
    }

    /// Requests by trace and the span of their caller.
    fn requests_by_parent(&self) -> FxHashMap<(&'r str, &'r str), Vec<Place>> {
        let mut out: FxHashMap<_, Vec<Place>> = FxHashMap::default();
        for (place, request) in places(self.reports) {
            let ids = request
                .trace_id
                .as_deref()
                .zip(request.parent_span_id.as_deref());
            if let Some(ids) = ids {
                out.entry(ids).or_default().push(place);
            }
        }
        out
    }

    fn link(&mut self, from: Place, to: Place, certainty: Confidence) {
        let edges = self.edges.entry(from).or_default();
        if edges.iter().all(|e| e.to != to) {
            edges.push(Edge { to, certainty });
            self.called.insert(to);
        }
    }

    /// Calls that carry no ids: method and path tell, when they leave one choice on both sides.
    fn match_by_name(&mut self, open: Vec<(Place, &'r OutgoingCall)>) {
        let choices: Vec<(Place, &OutgoingCall, Vec<Place>)> = open
            .into_iter()
            .map(|(place, call)| {
                let free = places(self.reports).filter(|(to, request)| {
                    to.0 != place.0
                        && !self.called.contains(to)
                        && request.parent_span_id.is_none()
                        && call.span_id.is_none()
                        && may_be(call, request)
                });
                (place, call, free.map(|(to, _)| to).take(2).collect())
            })
            .collect();
        let mut wanted: FxHashMap<Place, usize> = FxHashMap::default();
        for (_, _, to) in &choices {
            for to in to {
                let n = wanted.entry(*to).or_default();
                *n = n.saturating_add(1);
            }
        }
        for (place, call, to) in choices {
            match to.as_slice() {
                [only] if wanted.get(only) == Some(&1) => {
                    self.link(place, *only, Confidence::Likely);
                }
                _ => self.unmatched.push((place.0, call)),
            }
        }
    }

    /// Requests that no service among the dumps has called.
    fn entries(&self) -> impl Iterator<Item = Place> + '_ {
        let all = places(self.reports).map(|(place, _)| place);
        all.filter(|place| !self.called.contains(place))
    }

    /// The ways from a request inwards, one for each request that they end at.
    fn follow(&self, entry: Place, out: &mut Vec<RequestPath>) {
        let mut todo = vec![(vec![entry], Confidence::Certain)];
        while let Some((way, certainty)) = todo.pop() {
            let last = way.last().copied().unwrap_or(entry);
            let edges = self.edges.get(&last).into_iter().flatten();
            let further: Vec<&Edge> = edges.filter(|e| !way.contains(&e.to)).collect();
            if further.is_empty() || way.len() >= MAX_HOPS {
                out.extend(self.path(&way, certainty));
            }
            if way.len() >= MAX_HOPS || out.len() >= MAX_PATHS {
                continue;
            }
            for edge in further.into_iter().rev() {
                let mut longer = way.clone();
                longer.push(edge.to);
                todo.push((longer, certainty.min(edge.certainty)));
            }
        }
    }

    fn path(&self, way: &[Place], certainty: Confidence) -> Option<RequestPath> {
        let hops: Vec<Hop> = way.iter().filter_map(|place| self.hop(*place)).collect();
        let (report, request) = *way.first()?;
        Some(RequestPath {
            trace_id: self
                .reports
                .get(report)?
                .requests
                .get(request)?
                .trace_id
                .clone(),
            certainty,
            hops,
        })
    }

    fn hop(&self, (report, request): Place) -> Option<Hop> {
        let report = self.reports.get(report)?;
        let request = report.requests.get(request)?;
        Some(Hop {
            dump: report.dump.path.clone(),
            service: service_name(&report.dump.path),
            request: format!("{} {}", request.method, request.path),
            span_id: request.span_id.clone(),
            parent_span_id: request.parent_span_id.clone(),
            age_seconds: request.age_seconds,
            waits_for: waits_for(report, request),
            chain: request.chain.clone(),
        })
    }

    /// The services, those first that most ways end in.
    fn services(&self, paths: &[RequestPath]) -> Vec<Service> {
        let mut out: Vec<Service> = self
            .reports
            .iter()
            .map(|report| {
                let dump = &report.dump.path;
                let last = paths.iter().filter_map(|p| p.hops.last());
                let ends: Vec<&Hop> = last.filter(|h| h.dump == *dump).collect();
                let mut waits: Vec<String> = ends.iter().map(|h| h.waits_for.clone()).collect();
                waits.sort_unstable();
                waits.dedup();
                Service {
                    name: service_name(dump),
                    dump: dump.clone(),
                    requests: report.requests.len() as u64,
                    ends: ends.len() as u64,
                    waits_for: waits,
                }
            })
            .collect();
        out.sort_by(|a, b| b.ends.cmp(&a.ends).then_with(|| a.name.cmp(&b.name)));
        out
    }

    fn missing(&self) -> Vec<MissingServer> {
        let mut by_server: FxHashMap<&str, MissingServer> = FxHashMap::default();
        for (report, call) in &self.unmatched {
            let missing = by_server
                .entry(&call.server)
                .or_insert_with(|| MissingServer {
                    server: call.server.clone(),
                    ..MissingServer::default()
                });
            missing.calls = missing.calls.saturating_add(1);
            let from = self
                .reports
                .get(*report)
                .map(|r| service_name(&r.dump.path));
            let new = from.filter(|f| !missing.from.contains(f));
            missing.from.extend(new);
        }
        let mut out: Vec<MissingServer> = by_server.into_values().collect();
        out.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.server.cmp(&b.server)));
        out
    }
}

fn places(reports: &[Report]) -> impl Iterator<Item = (Place, &Request)> {
    let of = |(i, report): (usize, &'_ Report)| (i, report.requests.len());
    let sizes: Vec<(usize, usize)> = reports.iter().enumerate().map(of).collect();
    sizes.into_iter().flat_map(move |(i, count)| {
        (0..count).filter_map(move |j| Some(((i, j), reports.get(i)?.requests.get(j)?)))
    })
}

/// Whether a call can be a request by what both show: the method, and the part of the path that the call tells.
fn may_be(call: &OutgoingCall, request: &Request) -> bool {
    let mut words = call.text.split_whitespace();
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        return false;
    };
    let path = url.strip_prefix(call.server.as_str()).unwrap_or_default();
    let told = path.split('…').next().unwrap_or_default();
    method == request.method && told.len() > 1 && request.path.starts_with(told)
}

/// What a request waits for in the end: its chain's leaf, and who would complete it.
fn waits_for(report: &Report, request: &Request) -> String {
    let chain = report
        .chains
        .iter()
        .find(|c| Some(&c.id) == request.chain.as_ref());
    let Some(leaf) = chain.map(|c| &c.leaf) else {
        return String::new();
    };
    match leaf.completers.first() {
        Some(completer) => format!("{}, to be completed by {}", leaf.text, completer.text),
        None => leaf.text.clone(),
    }
}

/// What the file of a dump is called, up to the first dot.
fn service_name(dump: &str) -> String {
    let file = dump.rsplit(['/', '\\']).next().unwrap_or(dump);
    file.split('.').next().unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(
        path: &str,
        span: &str,
        parent: Option<&str>,
        calls: &[(&str, Option<&str>)],
    ) -> Request {
        Request {
            method: "GET".into(),
            path: path.into(),
            trace_id: Some("t".into()),
            span_id: Some(span.into()),
            parent_span_id: parent.map(str::to_owned),
            calls: calls
                .iter()
                .map(|(url, span)| OutgoingCall {
                    text: format!("GET http://{url}"),
                    server: format!("http://{}", url.split('/').next().unwrap_or_default()),
                    trace_id: span.map(|_| "t".into()),
                    span_id: span.map(str::to_owned),
                    object: None,
                })
                .collect(),
            ..Request::default()
        }
    }

    fn report(name: &str, requests: Vec<Request>) -> Report {
        let mut report = Report {
            requests,
            ..Report::default()
        };
        report.dump.path = format!("/dumps/{name}.heap.dmp");
        report
    }

    fn services(path: &RequestPath) -> Vec<&str> {
        path.hops.iter().map(|h| h.service.as_str()).collect()
    }

    #[test]
    fn spans_lead_from_the_entry_inwards_and_fan_out() {
        let both = [("b:1/x", Some("1")), ("c:1/y", Some("2"))];
        let joined = join(&[
            report("a", vec![request("/a", "0", None, &both)]),
            report("b", vec![request("/x", "3", Some("1"), &[])]),
            report(
                "c",
                vec![
                    request("/y", "4", Some("2"), &[]),
                    request("/z", "5", None, &[]),
                ],
            ),
        ]);
        let paths: Vec<_> = joined.paths.iter().map(services).collect();
        assert_eq!(paths, [vec!["a", "b"], vec!["a", "c"], vec!["c"]]);
        assert!(
            joined
                .paths
                .iter()
                .all(|p| p.certainty == Confidence::Certain)
        );
        assert_eq!(
            joined.services.first().map(|s| (s.name.as_str(), s.ends)),
            Some(("c", 2))
        );
        assert!(joined.missing.is_empty());
    }

    #[test]
    fn circles_end_and_calls_without_a_dump_are_told() {
        let joined = join(&[
            report(
                "a",
                vec![request("/a", "0", Some("9"), &[("b:1/x", Some("1"))])],
            ),
            report(
                "b",
                vec![request(
                    "/x",
                    "2",
                    Some("1"),
                    &[("a:1/a", Some("9")), ("d:5/q", Some("7"))],
                )],
            ),
        ]);
        assert!(joined.paths.is_empty(), "each is called by the other");
        let missing: Vec<_> = joined
            .missing
            .iter()
            .map(|m| (m.server.as_str(), m.calls))
            .collect();
        assert_eq!(missing, [("http://d:5", 1)]);
    }

    #[test]
    fn without_ids_a_hop_is_likely_when_one_choice_is_left() {
        let call = [("b:1/stock/…", None)];
        let a = || report("a", vec![request("/a", "0", None, &call)]);
        let joined = join(&[a(), report("b", vec![request("/stock/7", "1", None, &[])])]);
        assert_eq!(
            joined.paths.iter().map(services).collect::<Vec<_>>(),
            [["a", "b"]]
        );
        assert_eq!(joined.paths[0].certainty, Confidence::Likely);
        let two = vec![
            request("/stock/7", "1", None, &[]),
            request("/stock/8", "2", None, &[]),
        ];
        let joined = join(&[a(), report("b", two)]);
        assert!(joined.paths.iter().all(|p| p.hops.len() == 1));
        assert_eq!(joined.missing.len(), 1);
    }
}
