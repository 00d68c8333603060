//! Damages real dumps and recordings at random and compares what is said of them with what is said of the whole ones.
//!
//! Damage may cost chains and findings; it must not crash or stall the program, and what is said wrongly has to be
//! visible as such: by a gap, a flag, a lower confidence or an object that was not believed.

mod damage;
pub(crate) mod figures;
mod image;
mod judge;
mod subject;

use crate::shell::{cargo, root, run as show};
use anyhow::{Context, Result, bail};
use asynctriage_fuzz::Random;
use judge::Verdict;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use subject::Subject;

const HELP: &str = "\
cargo xtask campaign [--seconds N] [--seed N] [--cuts EVERY] [--record] [--program FILE] [FILE...]

  --seconds N   how long files are damaged at random [default: 60]
  --seed N      which damage [default: 1]; equal seeds damage equally
  --cuts EVERY  instead: cut each file at every EVERYth page
  --record      write the figures into crates/RELIABILITY.md
  --program     the program to try [default: built now]
  FILE          dumps and recordings, packed or not [default: those of testdumps]";

/// What the command line asks for.
struct Plan {
    time: Duration,
    seed: u64,
    cuts: Option<usize>,
    record: bool,
    program: PathBuf,
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some(plan) = plan(args)? else {
        println!("{HELP}");
        return Ok(());
    };
    let mut subjects = plan
        .files
        .iter()
        .map(|file| Subject::open(file, &plan.program))
        .collect::<Result<Vec<_>>>()?;
    let mut figures = figures::Figures::new(plan.seed, subjects.len());
    match plan.cuts {
        Some(every) => cut(&mut subjects, &plan, every.max(1), &mut figures)?,
        None => damage(&mut subjects, &plan, &mut figures)?,
    }
    println!("{}", figures.line());
    if plan.record {
        figures.record(plan.cuts.is_some())?;
    }
    match figures.hits() {
        0 => Ok(()),
        n => bail!("{n} hits: see above"),
    }
}

fn damage(subjects: &mut [Subject], plan: &Plan, figures: &mut figures::Figures) -> Result<()> {
    let mut random = Random::new(plan.seed);
    let end = Instant::now() + plan.time;
    while Instant::now() < end {
        let subject = random.index(subjects.len());
        let subject = subjects.get_mut(subject).context("no file")?;
        let (kind, change) = damage::choose(subject, &mut random);
        if change.is_empty() {
            continue;
        }
        let verdict = subject.judge(&change, &plan.program)?;
        figures.add(kind, verdict);
        tell(verdict, subject, &format!("{kind} {change}"));
    }
    Ok(())
}

fn cut(
    subjects: &mut [Subject],
    plan: &Plan,
    every: usize,
    figures: &mut figures::Figures,
) -> Result<()> {
    for subject in subjects {
        let pages = subject.bytes().len().div_ceil(damage::PAGE);
        for page in (0..pages).step_by(every) {
            let change = damage::Change::cut(page * damage::PAGE);
            let verdict = subject.judge(&change, &plan.program)?;
            figures.add("cut", verdict);
            tell(verdict, subject, &change.to_string());
        }
    }
    Ok(())
}

fn tell(verdict: Verdict, subject: &Subject, what: &str) {
    if verdict.is_hit() {
        println!("{verdict} {} {what}", subject.name());
    }
}

/// `None` when help is asked for.
fn plan(args: &[String]) -> Result<Option<Plan>> {
    let mut plan = Plan {
        time: Duration::from_secs(60),
        seed: 1,
        cuts: None,
        record: false,
        program: PathBuf::new(),
        files: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seconds" => plan.time = Duration::from_secs(value()?.parse()?),
            "--seed" => plan.seed = value()?.parse()?,
            "--cuts" => plan.cuts = Some(value()?.parse()?),
            "--record" => plan.record = true,
            "--program" => plan.program = value()?.into(),
            file if !file.starts_with('-') => plan.files.push(file.into()),
            other => bail!("no option {other}\n\n{HELP}"),
        }
    }
    if plan.files.is_empty() {
        plan.files = testdumps()?;
    }
    if plan.program.as_os_str().is_empty() {
        show(cargo(&["build", "--quiet", "-p", "asynctriage"]))?;
        plan.program = root().join("target/debug/asynctriage");
    }
    Ok(Some(plan))
}

fn testdumps() -> Result<Vec<PathBuf>> {
    let folder = root().join("testdumps");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".dmp.gz") || name.ends_with(".nettrace.gz") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
