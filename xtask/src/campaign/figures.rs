//! What came out, in a line and in the document.

use super::judge::Verdict;
use crate::shell::root;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Where the figures stand.
const FILE: &str = "crates/RELIABILITY.md";

pub(super) struct Figures {
    seed: u64,
    files: usize,
    /// Runs and hits by kind of damage.
    kinds: BTreeMap<&'static str, BTreeMap<Verdict, u64>>,
}

impl Figures {
    pub(super) fn new(seed: u64, files: usize) -> Self {
        Self {
            seed,
            files,
            kinds: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, kind: &'static str, verdict: Verdict) {
        *self
            .kinds
            .entry(kind)
            .or_default()
            .entry(verdict)
            .or_default() += 1;
    }

    fn count(&self, verdict: Verdict) -> u64 {
        let counts = self.kinds.values();
        counts.filter_map(|k| k.get(&verdict)).sum()
    }

    fn runs(&self) -> u64 {
        self.kinds.values().flat_map(|k| k.values()).sum()
    }

    pub(super) fn hits(&self) -> u64 {
        Verdict::HITS.iter().map(|v| self.count(*v)).sum()
    }

    /// `1000 runs: 0 crash, 0 hang, ...`
    pub(super) fn line(&self) -> String {
        let counts = Verdict::HITS.map(|v| format!("{} {v}", self.count(v)));
        format!("{} runs: {}", self.runs(), counts.join(", "))
    }

    fn table(&self) -> String {
        let head = Verdict::HITS.map(|v| v.to_string()).join(" | ");
        let mut out = format!(
            "| damage | runs | {head} |\n|---|---|{}\n",
            "---|".repeat(Verdict::HITS.len())
        );
        for (kind, counts) in &self.kinds {
            let runs: u64 = counts.values().sum();
            let hits = Verdict::HITS.map(|v| counts.get(&v).copied().unwrap_or(0).to_string());
            out.push_str(&format!("| {kind} | {runs} | {} |\n", hits.join(" | ")));
        }
        out
    }

    /// Puts the table between its marks in the document.
    pub(super) fn record(&self, cuts: bool) -> Result<()> {
        let name = if cuts { "cuts" } else { "campaign" };
        let of = if cuts {
            "cut at pages".to_owned()
        } else {
            format!("damaged at random, seed {}", self.seed)
        };
        let text = format!(
            "{} files {of}: {}\n\n{}",
            self.files,
            self.line(),
            self.table()
        );
        put(name, &text)
    }
}

/// Replaces what stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
pub(crate) fn put(name: &str, text: &str) -> Result<()> {
    let path = root().join(FILE);
    let old = std::fs::read_to_string(&path).context(FILE)?;
    let new =
        replaced(&old, name, text).with_context(|| format!("{FILE} has no marks for {name}"))?;
    std::fs::write(path, new).context(FILE)
}

fn replaced(old: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = old.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_those_before() {
        let old = "# T\n<!-- a -->\nold\n<!-- end of a -->\nrest\n";
        let new = replaced(old, "a", "new\n").unwrap();
        assert_eq!(new, "# T\n<!-- a -->\n\nnew\n\n<!-- end of a -->\nrest\n");
        assert_eq!(replaced(&new, "a", "new").as_ref(), Some(&new));
        assert_eq!(replaced(old, "b", "new"), None);
    }

    #[test]
    fn hits_are_counted_by_kind() {
        let mut figures = Figures::new(1, 2);
        figures.add("flip", Verdict::Right);
        figures.add("flip", Verdict::Novel);
        figures.add("cut", Verdict::Lost);
        assert_eq!(figures.hits(), 2);
        assert!(figures.line().starts_with("3 runs: 0 crash, "));
        assert!(
            figures
                .table()
                .contains("| flip | 2 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |")
        );
    }
}
