//! What can be read, and on what evidence.

use asynctriage_clr::{SELF_CHECKS, Supported, refused, supported};
use asynctriage_report::{RuntimeTable, RuntimesReport};

/// The built-in tables, the checks that each has to pass, and what is refused by name.
#[must_use]
pub fn runtimes() -> RuntimesReport {
    RuntimesReport {
        tables: supported().into_iter().map(table).collect(),
        checks: SELF_CHECKS.map(str::to_owned).to_vec(),
        refused: refused(),
        ..RuntimesReport::default()
    }
}

fn table(known: Supported) -> RuntimeTable {
    RuntimeTable {
        table: known.table.to_owned(),
        platform: known.platform,
        version: known.version,
        describes_itself: known.describes_itself,
        offsets: known.offsets as u64,
        evidence: known.evidence,
    }
}
