//! Running the targets of crates/fuzz.

use crate::campaign::figures;
use crate::shell::root;
use anyhow::{Context, Result, bail};
use asynctriage_fuzz::{ALL, Target, Tried, fuzz, replay};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const HELP: &str = "\
cargo xtask fuzz [NAME...] [--seconds N] [--seed N] [--record]
cargo xtask fuzz NAME --replay FILE

  NAME          targets to run [default: all]
  --seconds N   how long each runs [default: 20]
  --seed N      which inputs [default: by the time]
  --record      write the figures into crates/RELIABILITY.md
  --replay      run a target once, on an input that was kept

Inputs that break a target are kept in crates/fuzz/failures.";

/// How long each target runs when nobody says.
pub(crate) const SECONDS: u64 = 20;

/// What the command line asks for.
struct Plan {
    targets: Vec<&'static Target>,
    time: Duration,
    seed: u64,
    record: bool,
    replay: Option<PathBuf>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some(plan) = plan(args)? else {
        let names: Vec<&str> = ALL.iter().map(|t| t.name).collect();
        println!("{HELP}\n\nTargets: {}", names.join(", "));
        return Ok(());
    };
    if let Some(file) = &plan.replay {
        let [target] = plan.targets.as_slice() else {
            bail!("name the one target that the input is for\n\n{HELP}");
        };
        let input = std::fs::read(file).with_context(|| file.display().to_string())?;
        return replay(target, &input).map_err(anyhow::Error::msg);
    }
    let (mut rows, mut failures) = (Vec::new(), 0);
    for target in plan.targets {
        let begun = Instant::now();
        let tried = fuzz(target, plan.time, plan.seed);
        let seconds = begun.elapsed().as_secs();
        println!("{:12} {:>10} runs in {seconds} s", target.name, tried.runs);
        failures += keep(target, &tried)?;
        rows.push((target.name, tried, seconds));
    }
    if plan.record {
        figures::put("fuzz", &table(&rows))?;
    }
    match failures {
        0 => Ok(()),
        n => bail!("{n} inputs broke their targets: see above"),
    }
}

/// Writes the inputs that broke a target; how many these are.
fn keep(target: &Target, tried: &Tried) -> Result<usize> {
    let folder = root().join("crates/fuzz/failures");
    for (number, failure) in tried.failures.iter().enumerate() {
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}-{}-{number}", target.name, tried.runs));
        std::fs::write(&file, &failure.input)?;
        let shown = file.strip_prefix(root()).unwrap_or(Path::new(&file));
        println!(
            "  {}\n  kept in {}",
            failure.why.replace('\n', "\n  "),
            shown.display()
        );
    }
    Ok(tried.failures.len())
}

fn table(rows: &[(&str, Tried, u64)]) -> String {
    let runs: u64 = rows.iter().map(|(_, tried, _)| tried.runs).sum();
    let failures: usize = rows.iter().map(|(_, tried, _)| tried.failures.len()).sum();
    let mut out = format!(
        "{} targets: {runs} runs, {failures} failures\n\n| target | runs | seconds | failures |\n|---|---|---|---|\n",
        rows.len()
    );
    for (name, tried, seconds) in rows {
        let failures = tried.failures.len();
        out.push_str(&format!(
            "| {name} | {} | {seconds} | {failures} |\n",
            tried.runs
        ));
    }
    out
}

/// `None` when help is asked for.
fn plan(args: &[String]) -> Result<Option<Plan>> {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut plan = Plan {
        targets: Vec::new(),
        time: Duration::from_secs(SECONDS),
        seed: since.as_secs(),
        record: false,
        replay: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seconds" => plan.time = Duration::from_secs(value()?.parse()?),
            "--seed" => plan.seed = value()?.parse()?,
            "--record" => plan.record = true,
            "--replay" => plan.replay = Some(value()?.into()),
            name => {
                let target = ALL.iter().find(|t| t.name == name);
                plan.targets
                    .push(target.with_context(|| format!("no target {name}\n\n{HELP}"))?);
            }
        }
    }
    if plan.targets.is_empty() {
        plan.targets = ALL.iter().collect();
    }
    Ok(Some(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        let tried = |runs| Tried {
            runs,
            failures: Vec::new(),
        };
        let table = table(&[("a", tried(2), 20), ("b", tried(3), 21)]);
        assert!(table.starts_with("2 targets: 5 runs, 0 failures\n"));
        assert!(table.contains("| b | 3 | 21 | 0 |"), "{table}");
    }

    #[test]
    fn targets_are_chosen_by_name() {
        let plan = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
            super::plan(&args)
        };
        let all = plan(&["--seconds", "3"]).unwrap().unwrap();
        assert_eq!((all.targets.len(), all.time.as_secs()), (ALL.len(), 3));
        assert_eq!(plan(&["clr"]).unwrap().unwrap().targets.len(), 1);
        assert!(plan(&["none"]).is_err() && plan(&["--help"]).unwrap().is_none());
    }
}
