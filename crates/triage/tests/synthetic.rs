//! Whole analyses of made-up processes, one for each shape that chains take.

use asynctriage_dump::Dump;
use asynctriage_dump_synth::Process;
use asynctriage_triage::{Options, Report, analyse};

fn report(process: &Process) -> Report {
    let dump = Dump::from_bytes(process.build()).expect("a core");
    analyse(&dump, &Options::default()).expect("a runtime")
}

/// A line for each group: how many chains, what they wait for, their frames from the innermost one on.
fn chains(report: &Report) -> Vec<String> {
    let groups = report.chains.iter().map(|group| {
        let frames = group.frames.iter().map(|f| {
            let at = f.await_index.map(|i| format!("@{i}")).unwrap_or_default();
            let repeat = match f.repeat {
                1 => String::new(),
                n => format!(" x{n}"),
            };
            format!("{}{at}{repeat}", f.method)
        });
        let frames: Vec<String> = frames.collect();
        format!(
            "{} {}: {}",
            group.count,
            group.leaf.kind,
            frames.join(" < ")
        )
    });
    let mut lines: Vec<String> = groups.collect();
    lines.sort();
    lines
}

/// Analyses a process, compares its chains, and says that nothing but what the test is about went wrong.
fn check(process: &Process, expected: &[&str]) -> Report {
    let report = report(process);
    assert_eq!(chains(&report), expected);
    assert_eq!(report.runtime.version, "10.0.15");
    let odd: Vec<_> = report
        .gaps
        .iter()
        .filter(|g| ["runtime", "threads", "chains"].contains(&g.section.as_str()))
        .collect();
    assert!(odd.is_empty(), "{odd:#?}");
    report
}

#[test]
fn an_empty_process_has_no_chains() {
    let report = check(&Process::new(), &[]);
    assert_eq!(report.heap.invalid_objects, 0);
    assert_eq!(report.threads.len(), 1);
}

#[test]
fn a_chain_goes_from_the_source_to_the_outermost_method() {
    let process = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1");
    let report = check(
        &process,
        &["1 task-completion-source: App.Client.SendAsync@0 < App.Handler.Run@2"],
    );
    assert_eq!(report.heap.state_machines, 2);
    assert_eq!(report.heap.invalid_objects, 0);
}
