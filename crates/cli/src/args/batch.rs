//! `asynctriage batch`.

use super::FileArgs;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  asynctriage batch /dumps -o out                      all dumps below a folder
  asynctriage batch '/dumps/2026-03-*/*.dmp' -o out    those that fit a pattern
  asynctriage batch --list dumps.txt -o out            those that a file names, one in a line; - for the standard input
  asynctriage batch /dumps -o out --shard 3/8          the fourth of eight jobs

out/ndjson/TABLE/day=DAY/service=NAME/ holds a file of rows for each dump, out/parquet/ the same rows in one file for each \
day and service. Tables: dumps, chains, findings, requests, calls, waits; out/schema.json lists their columns, \
`asynctriage runbook fleet` shows queries. A dump is done when its row in dumps is there, by the hash of the file: a run \
that was ended goes on where it was.";

/// Read many dumps into tables
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BatchArgs {
    /// Folders, whose dumps are taken by what they hold; files; patterns with * ? [ ] **
    #[arg(value_name = "DUMPS", required_unless_present = "list")]
    pub(crate) dumps: Vec<PathBuf>,
    /// A file that names dumps, folders and patterns, one in a line; - is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// The folder of the tables; what is there is kept, and added to
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Take part I of N, counted from 0: by the paths of the dumps, which have to be the same for all parts
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    pub(crate) shard: (u32, u32),
    /// Dumps that are read at the same time, each by a process of its own [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Lines only, no Parquet files
    #[arg(long)]
    pub(crate) no_parquet: bool,
    /// Keep texts, messages of exceptions and paths of requests, which may be secrets of the processes
    #[arg(long)]
    pub(crate) show_values: bool,
    /// Look for symbol files (portable PDBs) in DIR, too; repeat for more
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Lay the summary out for a width of COLUMNS [default: that of the terminal]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// More detail; twice and three times also what asynctriage does, on the standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    // limits are those of each dump
    #[command(flatten)]
    pub(crate) files: FileArgs,
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let (part, parts) = text.split_once('/').ok_or("a part is 0/8, 1/8 and so on")?;
    let number = |t: &str| t.parse::<u32>().map_err(|_| format!("'{t}' is no number"));
    let (part, parts) = (number(part)?, number(parts)?);
    if part < parts {
        Ok((part, parts))
    } else {
        Err(format!(
            "parts of {parts} are 0 to {}",
            parts.saturating_sub(1)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::shard;

    #[test]
    fn parts_count_from_0() {
        assert_eq!(shard("3/8"), Ok((3, 8)));
        assert!(
            shard("8/8").is_err()
                && shard("0/0").is_err()
                && shard("3").is_err()
                && shard("-1/2").is_err()
        );
    }
}
