use super::said::closing;
use super::*;
use crate::args::Command;

fn said(ending: Ending, refused: Option<&str>, cut: Option<&str>) -> String {
    let matches = Command::definition().try_get_matches_from([
        "asynctriage",
        "collect",
        "--pid",
        "1",
        "-o",
        "x.nettrace",
    ]);
    let command = clap::FromArgMatches::from_arg_matches(&matches.unwrap()).unwrap();
    let Command::Collect(args) = command else {
        unreachable!("the command that was asked for")
    };
    let outcome = Outcome {
        ending,
        bytes: 1 << 20,
        handed_over: false,
        refused: refused.map(str::to_owned),
        cut: cut.map(str::to_owned),
    };
    closing(&args, &outcome, Duration::from_secs(2), None, false)
}

#[test]
fn a_full_disk_is_not_the_end_of_the_process() {
    let full = io::Error::from(io::ErrorKind::StorageFull);
    let (ending, copied) = Ending::of(Some(Event::Copied(Err(full))));
    assert_eq!(ending, Ending::Failed);
    let why = copied.unwrap().unwrap_err().to_string();
    insta::assert_snapshot!(said(ending, None, Some(&why)), @r"
    x.nettrace  1.00 MiB in 2.0 s; it broke off
    the last events of each thread may be missing, unless the program asked for them before it ended
    the end of the file may be missing: no storage space
    next: asynctriage trace x.nettrace
    ");
    assert_eq!(
        Ending::of(Some(Event::Copied(Ok(Copied::Whole)))).0,
        Ending::ProcessEnded
    );
}

#[test]
fn a_refusal_to_hand_over_is_told() {
    insta::assert_snapshot!(said(Ending::Duration, Some("no"), None), @r"
    x.nettrace  1.00 MiB in 2.0 s; the time was over
    the last events of each thread may be missing: they were not asked for (no)
    next: asynctriage trace x.nettrace
    ");
}
