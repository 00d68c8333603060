//! Checks, benchmarks and fixtures: `cargo xtask NAME`.
#![expect(
    clippy::print_stdout,
    reason = "talks to the developer at the terminal"
)]

mod bench;
mod campaign;
mod ci;
mod core_names;
mod dist;
mod fuzz;
mod matrix;
mod r2r_table;
mod schema;
mod shell;
mod targets;
mod tidy;
mod trim;

use anyhow::{Result, bail};

/// A name, the function behind it, and what to say about it.
type Task = (&'static str, fn(&[String]) -> Result<()>, &'static str);

const TASKS: &[Task] = &[
    (
        "ci",
        ci::all,
        "everything below down to `schema`, then all tests, then each fuzz target for a while",
    ),
    (
        "check",
        ci::check,
        "formatting, clippy, tidy, schema, table of the README, other targets; no tests",
    ),
    (
        "tidy",
        tidy::run,
        "rules of the repository that no other tool checks",
    ),
    (
        "schema",
        schema::run,
        "write the JSON schemas in crates/report; with --check only compare",
    ),
    (
        "r2r-table",
        r2r_table::run,
        "DIR...: write the built-in list of suspension points from a runtime's folders (users: `asynctriage symbols add`)",
    ),
    (
        "core-names",
        core_names::run,
        "DUMP...: write the list of names of System.Private.CoreLib's builds",
    ),
    (
        "matrix",
        matrix::run,
        "DIR: try every dump of a folder, write what they show and the README's table; --check only compares the table",
    ),
    (
        "trim",
        trim::run,
        "DUMP OUT [--managed] [--objects TEXT]: keep only what an analysis reads (without native frames; with what commands show of types), gzip it, compare",
    ),
    (
        "bench",
        bench::run,
        "DUMP|RECORDING [RUNS]: time the release build against reading the file once",
    ),
    (
        "campaign",
        campaign::run,
        "damage real dumps and recordings and judge what is said of them; --help tells the options",
    ),
    (
        "targets",
        targets::run,
        "list the other systems and processors that `check` looks at",
    ),
    (
        "dist",
        dist::run,
        "[--twice] [TARGET...]: an archive for release with the program (static on Linux), manual, completions, licences and bill of materials",
    ),
    (
        "fuzz",
        fuzz::run,
        "[NAME...] [--seconds N]: change inputs at random against what reads and shows them; --help tells the targets",
    ),
];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(name) = args.next() else {
        println!("cargo xtask NAME\n\n{}", help());
        return Ok(());
    };
    let Some((_, task, _)) = TASKS.iter().find(|(n, ..)| *n == name) else {
        bail!("no task `{name}`\n\n{}", help());
    };
    task(&args.collect::<Vec<_>>())
}

fn help() -> String {
    let lines: Vec<_> = TASKS
        .iter()
        .map(|(name, _, help)| format!("  {name:12}{help}"))
        .collect();
    lines.join("\n")
}
