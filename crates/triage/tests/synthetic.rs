//! Whole analyses of made-up processes, one for each shape that chains take.

use asynctriage_dump::Dump;
use asynctriage_dump_synth::Process;
use asynctriage_report::{CollectionStage, Confidence};
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

#[test]
fn everyone_who_waits_for_one_task_is_found() {
    let mut process = Process::new().task("tcs");
    for _ in 0..37 {
        process = process.method("App.Worker.Loop", 1, "tcs");
    }
    let report = check(&process, &["37 task-completion-source: App.Worker.Loop@1"]);
    let group = &report.chains[0];
    assert_eq!(group.members.len() as u64 + group.members_left_out, 37);
}

#[test]
fn a_list_of_waiters_has_holes_and_leftovers() {
    let process = Process::new()
        .task("tcs")
        .task("other")
        .method("App.Worker.First", 0, "tcs")
        .method("App.Worker.Second", 0, "tcs")
        .method("App.Worker.Gone", 0, "other")
        .removed_waiters("tcs", 3)
        .leftover_waiter("tcs", "App.Worker.Gone#1");
    check(
        &process,
        &[
            "1 task-completion-source: App.Worker.First@0",
            "1 task-completion-source: App.Worker.Gone@0",
            "1 task-completion-source: App.Worker.Second@0",
        ],
    );
}

#[test]
fn branches_are_chains_of_their_own() {
    let process = Process::new()
        .task("tcs")
        .method("App.Cache.LoadAsync", 3, "tcs")
        .method("App.Left.Run", 0, "App.Cache.LoadAsync#1")
        .method("App.Right.Run", 1, "App.Cache.LoadAsync#1");
    check(
        &process,
        &[
            "1 task-completion-source: App.Cache.LoadAsync@3 < App.Left.Run@0",
            "1 task-completion-source: App.Cache.LoadAsync@3 < App.Right.Run@1",
        ],
    );
}

#[test]
fn two_methods_that_wait_for_each_other_are_a_cycle() {
    let process = Process::new()
        .method("App.Ping.Run", 0, "App.Pong.Run#1")
        .method("App.Pong.Run", 0, "App.Ping.Run#1");
    let report = check(&process, &["1 cycle: App.Ping.Run@0 < App.Pong.Run@0"]);
    let found = report.findings.iter().map(|f| f.kind.as_str());
    assert!(
        found.clone().any(|k| k == "await-cycle"),
        "{:?}",
        found.collect::<Vec<_>>()
    );
}

#[test]
fn a_method_that_has_ended_waits_for_nothing() {
    let process = Process::new()
        .task("tcs")
        .completed("App.Client.SendAsync")
        .method("App.Handler.Run", 0, "tcs");
    let report = check(&process, &["1 task-completion-source: App.Handler.Run@0"]);
    assert!(report.rejected.is_empty(), "{:?}", report.rejected);
}

#[test]
fn what_a_collection_left_behind_is_no_chain() {
    let process = Process::new()
        .task("tcs")
        .method("App.Handler.Run", 0, "tcs")
        .copy_of("App.Handler.Run", "App.Handler.Run#1", "tcs");
    let report = check(&process, &["1 task-completion-source: App.Handler.Run@0"]);
    assert_eq!(report.rejected.len(), 1, "{:?}", report.rejected);
    assert!(report.rejected[0].reason.contains("another task"));
}

#[test]
fn a_running_method_waits_for_nothing() {
    let process = Process::new()
        .task("tcs")
        .method("App.Spinner.Run", -1, "tcs");
    let report = check(&process, &[]);
    assert!(report.rejected.is_empty(), "{:?}", report.rejected);
}

#[test]
fn a_state_that_no_method_has_is_rejected() {
    let process = Process::new()
        .task("tcs")
        .method("App.Handler.Odd", -77, "tcs")
        .method("App.Handler.Run", 0, "tcs");
    let report = report(&process);
    assert_eq!(
        chains(&report),
        ["1 task-completion-source: App.Handler.Run@0"]
    );
    assert_eq!(report.rejected.len(), 1, "{:?}", report.rejected);
    let told = report
        .gaps
        .iter()
        .any(|g| g.why.starts_with("1 are not read"));
    assert!(told, "{:#?}", report.gaps);
}

#[test]
fn a_chain_may_be_very_long() {
    const DEPTH: usize = 100_000;
    let mut process = Process::new()
        .task("tcs")
        .method("App.Deep.Start", 0, "tcs")
        .method("App.Deep.Run", 0, "App.Deep.Start#1");
    for i in 1..DEPTH {
        process = process.method("App.Deep.Run", 0, &format!("App.Deep.Run#{i}"));
    }
    let report = check(
        &process,
        &["1 task-completion-source: App.Deep.Start@0 < App.Deep.Run@0 x100000"],
    );
    assert_eq!(report.heap.state_machines, DEPTH as u64 + 1);
}

#[test]
fn what_no_root_reaches_cannot_go_on() {
    let process = Process::new()
        .task("tcs")
        .lost_task("lost")
        .method("App.Lost.Run", 0, "lost")
        .method("App.Handler.Run", 0, "tcs");
    check(
        &process,
        &[
            "1 task-completion-source: App.Handler.Run@0",
            "1 unreachable: App.Lost.Run@0",
        ],
    );
}

#[test]
fn the_walk_goes_on_behind_torn_bytes() {
    let process = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .torn(248)
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1")
        .method("App.Handler.Run", 2, "tcs")
        .method("App.Handler.Run", 2, "tcs");
    let report = check(
        &process,
        &[
            "1 task-completion-source: App.Client.SendAsync@0 < App.Handler.Run@2",
            "2 task-completion-source: App.Handler.Run@2",
        ],
    );
    assert_eq!(report.heap.invalid_objects, 1);
    assert_eq!(report.heap.skipped_bytes, 248);
    assert!(report.gaps.iter().any(|g| g.section == "heap"));
}

#[test]
fn a_blocked_thread_is_the_end_of_its_chain() {
    let process = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .blocked_thread("worker", "App.Client.SendAsync#1");
    let report = check(
        &process,
        &["1 task-completion-source: App.Client.SendAsync@0 < thread 'worker'"],
    );
    let group = &report.chains[0];
    assert_eq!(group.root.as_ref().map(|r| r.kind.as_str()), Some("thread"));
    let finding = report
        .findings
        .iter()
        .find(|f| f.kind.as_str() == "thread-blocked-on-task");
    assert!(finding.is_some(), "{:#?}", report.findings);
}

#[test]
fn a_cut_dump_says_so_and_keeps_what_is_left() {
    // the last page holds the metadata of the program
    let mut bytes = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1")
        .build();
    bytes.truncate(bytes.len() - 4096);
    let dump = Dump::from_bytes(bytes).expect("a core");
    let report = analyse(&dump, &Options::default()).expect("a runtime");
    assert!(report.dump.truncated);
    assert!(
        report.gaps.iter().any(|g| g.section == "names"),
        "{:#?}",
        report.gaps
    );
    assert_eq!(report.chains.len(), 1, "{:#?}", report.chains);
    let frames = &report.chains[0].frames;
    assert_eq!(frames.len(), 2, "{frames:#?}");
    assert!(
        frames.iter().all(|f| f.method.contains("App!0x02")),
        "{frames:#?}"
    );
}

/// A chain of two calls, a task that lists the inner one without being awaited by it, and a chain whose inner call is in
/// no list: what a moving collection makes of three chains.
fn torn() -> Process {
    Process::new()
        .task("new")
        .task("old")
        .task("other")
        .method("App.Client.SendAsync", 0, "new")
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1")
        .stranger("old", "App.Client.SendAsync#1")
        .method("App.Queue.Take", 1, "other")
        .method("App.Worker.Loop", 0, "App.Queue.Take#1")
        .unlisted("App.Queue.Take#1")
}

#[test]
fn links_that_one_end_does_not_know_are_not_followed_while_objects_are_moved() {
    let whole = "1 task-completion-source: App.Client.SendAsync@0 < App.Handler.Run@2";
    let moving = report(&torn().moving());
    assert_eq!(chains(&moving), [whole]);
    assert_eq!(moving.chains[0].leaf.confidence, Some(Confidence::Possible));
    let collection = moving.heap.collection.expect("it runs");
    assert_eq!(collection.stage, CollectionStage::Moving);
    let gap = moving.gaps.iter().find(|g| g.place.contains("moving"));
    assert!(
        gap.is_some_and(|g| g.why.starts_with("1 of them")),
        "{gap:?}"
    );
    // at rest, one end is enough: a task may be about to be awaited
    assert_eq!(chains(&report(&torn())).len(), 2);
}

#[test]
fn marked_objects_are_read_as_ever() {
    let process = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .method("App.Handler.Run", 2, "App.Client.SendAsync#1");
    let marking = check(
        &process.marking(),
        &["1 task-completion-source: App.Client.SendAsync@0 < App.Handler.Run@2"],
    );
    let collection = marking.heap.collection.expect("it runs");
    assert_eq!(collection.stage, CollectionStage::Marking);
    assert_eq!(collection.extent.as_deref(), Some("generation 0"));
    assert_eq!(collection.marked, 2);
    assert_eq!(marking.chains[0].leaf.confidence, None);
}

#[test]
fn findings_are_possible_at_most_while_objects_are_moved() {
    let process = Process::new()
        .task("tcs")
        .method("App.Client.SendAsync", 0, "tcs")
        .blocked_thread("worker", "App.Client.SendAsync#1");
    let sure = report(&process);
    let moving = report(&process.moving());
    assert_eq!(sure.findings.len(), moving.findings.len());
    let confidence = |r: &Report| r.findings[0].confidence;
    assert!(confidence(&sure) > Confidence::Possible);
    assert_eq!(confidence(&moving), Confidence::Possible);
    assert!(
        moving.findings[0].evidence[0]
            .what
            .contains("moving objects")
    );
}

#[test]
fn a_link_that_the_method_denies_is_left_out_and_told() {
    let process = Process::new()
        .task("tcs")
        .task("other")
        .method("App.Handler.Run", 0, "tcs")
        .stranger("other", "App.Handler.Run#1");
    let report = report(&process);
    assert_eq!(
        chains(&report),
        ["1 task-completion-source: App.Handler.Run@0"]
    );
    assert!(
        has_contradiction(&report, "1 are left out"),
        "{:#?}",
        report.gaps
    );
}

#[test]
fn a_link_that_the_awaited_task_denies_is_shown_and_told() {
    let process = Process::new()
        .task("tcs")
        .method("App.Handler.Run", 0, "tcs")
        .unlisted("App.Handler.Run#1");
    let report = report(&process);
    assert_eq!(
        chains(&report),
        ["1 task-completion-source: App.Handler.Run@0"]
    );
    assert!(
        has_contradiction(&report, "they are shown"),
        "{:#?}",
        report.gaps
    );
}

fn has_contradiction(report: &Report, what: &str) -> bool {
    let denied =
        |g: &asynctriage_report::Gap| g.why.contains("denied by the other") && g.why.contains(what);
    report.gaps.iter().any(denied)
}
