//! What many dumps have in common.

/// What became of many dumps, and which findings they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetReport {
    /// Dumps that were read.
    pub read: u64,
    /// Dumps whose analysis was ended by a limit.
    pub partial: u64,
    /// Files that are no dumps, or hold no runtime that can be read.
    pub refused: u64,
    /// Dumps whose analysis failed.
    pub failed: u64,
    /// Those that were refused, that failed or are partial in this run, each with why.
    pub problems: Vec<FleetProblem>,
    /// Findings that are more than information, by signature; those of most processes first.
    pub signatures: Vec<FleetSignature>,
}

/// A dump that was not read as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetProblem {
    /// The file.
    pub path: String,
    /// `partial`, `refused`, `failed`.
    pub status: String,
    /// Why.
    pub why: String,
}

/// One finding in many dumps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetSignature {
    /// Signature of the finding.
    pub signature: String,
    /// What it is about.
    pub kind: String,
    /// How much it matters.
    pub severity: String,
    /// Its title in one of the dumps.
    pub title: String,
    /// Dumps that have it.
    pub dumps: u64,
    /// Processes that have it.
    pub processes: u64,
    /// Time of the first dump that has it, in UTC as RFC 3339.
    pub first_seen: Option<String>,
    /// Time of the last one.
    pub last_seen: Option<String>,
}
