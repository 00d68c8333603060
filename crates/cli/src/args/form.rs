//! The forms that answers can have.

use clap::ValueEnum;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The only form of a postmortem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftForm {
    /// Markdown, to go on with
    #[value(alias = "md")]
    Markdown,
}

impl From<DraftForm> for Form {
    fn from(_: DraftForm) -> Self {
        Self::Markdown
    }
}

/// What a report can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people at a terminal
    Text,
    /// For programs: all of the report
    Json,
    /// One page for a browser, which fetches nothing
    Html,
    /// A short text for a ticket
    #[value(alias = "md")]
    Markdown,
    /// The wait-for graph for Graphviz
    Dot,
}

impl From<Format> for Form {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
        }
    }
}

impl Form {
    /// The form that the name of a file asks for.
    pub(super) fn of(file: &Path) -> Option<Self> {
        Some(match file.extension()?.to_str()? {
            "json" => Self::Json,
            "html" | "htm" => Self::Html,
            "md" => Self::Markdown,
            "dot" | "gv" => Self::Dot,
            _ => return None,
        })
    }
}
