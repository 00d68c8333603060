//! What could not be read, said so that a person can do something about it.

use asynctriage_dump::Cut;

/// Something that is missing from an answer. Layers return what they could read and a list of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    /// The part of the answer that is affected: `runtime`, `heap`, `types`, `threads`, `chains`; `limits` when the analysis was
    /// ended before its time.
    pub section: &'static str,
    /// Which object, module, address or structure.
    pub place: String,
    /// Why it could not be read.
    pub why: String,
    /// What would help, as an instruction.
    pub remedy: String,
}

impl Gap {
    /// A loop that was left because the analysis was to end.
    pub(crate) fn of_cut(cut: Cut) -> Self {
        let left = cut.left.map_or_else(
            || "not all of them were".into(),
            |left| format!("{left} of them were not"),
        );
        Self {
            section: "limits",
            place: cut.what.into(),
            why: format!(
                "the analysis was ended {}: {left} looked at, and what hangs on them is missing",
                cut.why
            ),
            remedy: "run it again with more: --max-time and --max-memory, 0 for no limit".into(),
        }
    }
}
