//! From a dump to a report.

mod collection;
mod native;
mod rows;
mod waits;

use crate::chains::{Groups, Wanted};
use crate::findings;
use crate::holders::Holders;
use crate::options::Options;
use crate::paths::{Analysis, Users};
use crate::process::{dump, identity};
use crate::waitfor::Deadlocks;
use asynctriage_async_graph::Class;
use asynctriage_clr::{Gap as ClrGap, GapKind, HeapShape, Runtime, RuntimeError};
use asynctriage_dump::{Arch, Dump};
use asynctriage_report as report;
use asynctriage_report::{Address, Report};
use std::collections::BTreeMap;
use std::time::Instant;

/// Rejected objects that are listed; the rest is counted by reason.
const MAX_REJECTED: usize = 100;

/// Analyses a dump.
///
/// # Errors
/// When the dump has no .NET runtime that can be read.
pub fn analyse(dump: &Dump, options: &Options) -> Result<Report, RuntimeError> {
    analyse_and(dump, options, |_, _| ()).map(|(report, ())| report)
}

/// Analyses a dump, and asks the analysis something more when its report is there.
pub(crate) fn analyse_and<T>(
    dump: &Dump,
    options: &Options,
    more: impl FnOnce(&Analysis<'_, '_>, &Report) -> T,
) -> Result<(Report, T), RuntimeError> {
    let mut clock = Clock::new();
    dump.budget.begin("finding the runtime");
    let rt = Runtime::open(dump)?.with_points(options.points.clone());
    clock.lap("runtime");
    let analysis = Analysis::new(&rt)
        .with_symbols(options.symbols.clone())
        .with_values(options.values);
    clock.lap("heap and graph");
    let groups = analysis.groups(Wanted {
        idle_too: options.idle_too,
        members: options.members,
        locals: options.locals,
    });
    clock.lap("chains");
    let mut report = analysis.report(groups);
    if options.native {
        analysis.add_native_frames(&mut report);
        clock.lap("native frames");
    }
    analysis.add_cuts(&mut report);
    if options.timings {
        report.timings = clock.laps;
    }
    let more = more(&analysis, &report);
    Ok((report, more))
}

struct Clock {
    last: Instant,
    laps: Vec<report::Timing>,
}

impl Clock {
    fn new() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, phase: &str) {
        let milliseconds = self.last.elapsed().as_secs_f64() * 1000.0;
        self.laps.push(report::Timing {
            phase: phase.into(),
            milliseconds,
        });
        self.last = Instant::now();
    }
}

/// Paths that were counted and not listed.
fn unlisted_gap(unlisted: u64) -> Option<ClrGap> {
    let count = match unlisted {
        0 => return None,
        u64::MAX => "uncountably many".to_owned(),
        n => n.to_string(),
    };
    Some(ClrGap {
        kind: GapKind::PathLimit,
        place: "the graph of continuations".into(),
        why: format!(
            "it has {count} paths more than can be listed: methods that wait for several others multiply them"
        ),
        remedy: "the groups shown are right, their counts are lower bounds".into(),
    })
}

/// `server, regions` and the like.
fn gc_kind(shape: &HeapShape) -> String {
    let kind = if shape.server {
        "server"
    } else {
        "workstation"
    };
    let memory = if shape.regions { "regions" } else { "segments" };
    format!("{kind}, {memory}")
}

impl Analysis<'_, '_> {
    /// Adds what was not looked at because the analysis was ended; to be called when all else is done.
    pub(crate) fn add_cuts(&self, report: &mut Report) {
        for gap in self.rt.cut_gaps() {
            let gap = report_gap(report.gaps.len(), &gap);
            report.gaps.push(gap);
        }
    }

    pub(crate) fn report(&self, mut groups: Groups) -> Report {
        let budget = self.rt.budget();
        budget.begin("who completes what is waited for");
        let mut gaps: Vec<report::Gap> = Vec::new();
        let absent = self.rt.module_gaps();
        let known = self
            .rt
            .gaps()
            .iter()
            .chain(&self.graph.gaps)
            .chain(&self.threads.gaps)
            .chain(&absent);
        gaps.extend(known.enumerate().map(|(i, g)| report_gap(i, g)));
        for gap in self.lines.gaps(self.rt) {
            gaps.push(report_gap(gaps.len(), &gap));
        }
        gaps.extend(self.kept_gap().map(|g| report_gap(gaps.len(), &g)));
        gaps.extend(unlisted_gap(groups.unlisted).map(|g| report_gap(gaps.len(), &g)));
        let (rejected, rejected_by_reason, rejected_left_out) = self.rejected();
        let hang = self.hang();
        let holders = Holders::find(self, hang);
        let completers = self.add_completers(&mut groups, hang, &holders);
        for gap in completers.gaps.iter().chain(&self.unsearched_gap()) {
            gaps.push(report_gap(gaps.len(), gap));
        }
        budget.begin("findings");
        let users = Users::find(self);
        let deadlocks = Deadlocks::find(self, &groups, hang, holders, completers);
        let facts = findings::Facts {
            a: self,
            groups: &groups,
            hang,
            users: &users,
            deadlocks: &deadlocks,
        };
        let (findings, unsaid) = findings::all(facts);
        if let Some(gap) = unsaid {
            gaps.push(report_gap(gaps.len(), &gap));
        }
        let threads = rows::threads(facts);
        let waits = waits::graph(facts, &threads);
        Report {
            dump: dump::facts(self.rt.dump(), &self.clock, self.values),
            process: identity::read(self.rt),
            runtime: self.runtime_facts(),
            heap: self.heap_facts(),
            threads,
            waits,
            pool: self.pool_row(&groups),
            requests: self.request_rows(&groups, hang),
            findings,
            gaps,
            rejected,
            rejected_by_reason,
            statistics: self.statistics(),
            left_out: report::LeftOut {
                groups: groups.idle_groups,
                chains: groups.idle_chains,
                rejected: rejected_left_out,
                ..Default::default()
            },
            chains: groups.groups,
            ..Report::default()
        }
    }

    fn runtime_facts(&self) -> report::Runtime {
        let target = self.rt.dump().target;
        let sources = self
            .rt
            .version_sources
            .iter()
            .map(|s| format!("{} ({})", s.version, s.from))
            .collect::<Vec<_>>();
        let mut layouts = vec![report::LayoutFact {
            what: "version".into(),
            how: if sources.is_empty() {
                format!(
                    "nothing in the dump tells it; the layouts of {} fit",
                    self.rt.layout().name()
                )
            } else {
                sources.join(", ")
            },
            check: None,
        }];
        layouts.extend(self.rt.checks.iter().map(|c| report::LayoutFact {
            what: "layouts".into(),
            how: c.clone(),
            check: None,
        }));
        layouts.extend(
            self.rt
                .layout()
                .evidence()
                .iter()
                .map(|e| report::LayoutFact {
                    what: "evidence".into(),
                    how: e.clone(),
                    check: None,
                }),
        );
        let (major, minor) = self.rt.layout().version();
        report::Runtime {
            version: self
                .rt
                .version
                .map_or_else(|| format!("{major}.{minor}"), |v| v.to_string()),
            os: dump::os(self.rt.dump()).into(),
            arch: match target.arch {
                Arch::X64 => "x64",
                Arch::Arm64 => "arm64",
            }
            .into(),
            flavor: "CoreCLR".into(),
            layouts,
        }
    }

    fn heap_facts(&self) -> report::Heap {
        let heap = &self.graph.heap;
        let free = heap.types.iter().find(|t| t.mt == self.rt.globals.free_mt);
        let nodes = |wanted: fn(Class) -> bool| {
            self.graph
                .graph
                .node_weights()
                .filter(|n| wanted(n.class))
                .count() as u64
        };
        report::Heap {
            gc: (!heap.shape.segments.is_empty()).then(|| gc_kind(&heap.shape)),
            objects: heap.objects(),
            bytes: heap.bytes(),
            invalid_objects: heap.invalid_places(),
            skipped_bytes: heap.skipped_bytes(),
            free_objects: free.map_or(0, |f| f.count),
            free_bytes: free.map_or(0, |f| f.bytes),
            gc_in_progress: heap.shape.collection.is_running(),
            collection: self.collection_facts(),
            state_machines: nodes(Class::is_machine),
            tasks: nodes(Class::is_task),
        }
    }

    fn statistics(&self) -> BTreeMap<String, u64> {
        let boxes = |nodes: &[asynctriage_async_graph::Node]| {
            nodes.iter().filter(|n| n.class.is_machine()).count() as u64
        };
        BTreeMap::from([
            (
                "suspended_state_machines".to_owned(),
                self.graph.machines.len() as u64,
            ),
            (
                "running_state_machines".to_owned(),
                self.graph.running.len() as u64,
            ),
            (
                "completed_state_machines".to_owned(),
                boxes(&self.graph.completed),
            ),
            (
                "graph_edges".to_owned(),
                self.graph.graph.edge_count() as u64,
            ),
        ])
    }

    fn rejected(&self) -> (Vec<report::Rejected>, BTreeMap<String, u64>, u64) {
        let mut by_reason: BTreeMap<String, u64> = BTreeMap::new();
        for r in &self.graph.rejected {
            let n = by_reason.entry(r.reason.to_owned()).or_default();
            *n = n.saturating_add(1);
        }
        let rows = self
            .graph
            .rejected
            .iter()
            .take(MAX_REJECTED)
            .map(|r| report::Rejected {
                address: Address(r.addr.0),
                type_name: self.type_name(r.mt).to_string(),
                reason: r.reason.to_owned(),
            });
        let left_out = self.graph.rejected.len().saturating_sub(MAX_REJECTED) as u64;
        (rows.collect(), by_reason, left_out)
    }
}

pub(crate) fn report_gap(index: usize, gap: &ClrGap) -> report::Gap {
    report::Gap {
        id: format!("G{}", index.saturating_add(1)),
        kind: gap.kind.name().into(),
        section: gap.kind.section().name().into(),
        place: gap.place.clone(),
        why: gap.why.clone(),
        remedy: gap.remedy.clone(),
        only_names: gap.kind.is_only_names(),
    }
}
