//! Sentences with their sources.

use crate::markdown::plain;
use asynctriage_report::several;

/// Markdown under construction.
#[derive(Debug, Default)]
pub(super) struct Draft {
    out: String,
}

impl Draft {
    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// An empty line, unless there is one.
    pub(super) fn blank(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.line("");
        }
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.blank();
        self.line(&format!("## {text}\n"));
    }

    /// A sentence of the report with the ids that prove it.
    pub(super) fn fact(&mut self, text: &str, ids: &[&str]) {
        self.line(&format!("{} {}\n", plain(text), cite(ids)));
    }

    pub(super) fn item(&mut self, text: &str, ids: &[&str]) {
        self.line(&format!("- {} {}", plain(text), cite(ids)));
    }

    pub(super) fn sub_item(&mut self, text: &str, ids: &[&str]) {
        self.line(&format!("  - {} {}", plain(text), cite(ids)));
    }

    /// What the dump cannot know.
    pub(super) fn open_point(&mut self, what: &str) {
        self.blank();
        self.line(&format!("**to add**: {what}.\n"));
    }

    /// How much is not told; the report has it.
    pub(super) fn more(&mut self, all: usize, shown: usize, noun: &str) {
        let more = all.saturating_sub(shown) as u64;
        if more > 0 {
            self.line(&format!(
                "- and {} {}",
                several(more, &format!("more {noun}")),
                cite(&["D1"])
            ));
        }
    }

    pub(super) fn table(&mut self, columns: &[&str]) {
        self.blank();
        self.row(columns);
        self.row(&vec!["---"; columns.len()]);
    }

    /// Cells are Markdown already.
    pub(super) fn row(&mut self, cells: &[&str]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// `[F1] [C3]`: ids that `asynctriage show` knows.
pub(super) fn cite(ids: &[&str]) -> String {
    let known = ids.iter().filter(|id| !id.is_empty());
    let all: Vec<String> = known.map(|id| format!("[{}]", plain(id))).collect();
    all.join(" ")
}
