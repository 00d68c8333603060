//! What could not be read, said so that a person can do something about it.

/// Something that is missing from an answer. Layers return what they could read and a list of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    /// The part of the answer that is affected: `runtime`, `heap`, `types`, `threads`, `chains`.
    pub section: &'static str,
    /// Which object, module, address or structure.
    pub place: String,
    /// Why it could not be read.
    pub why: String,
    /// What would help, as an instruction.
    pub remedy: String,
}
