//! Roles of text, and how each looks on a terminal with colours.

use anstyle::{AnsiColor, Style};

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// What the eye should find first.
    Strong,
    /// What one may skip: code of the framework, addresses, remarks.
    Dim,
    Heading,
    /// A word of the contract: the kind of a leaf, a root, a finding.
    Kind,
    Critical,
    Warning,
    Good,
}

impl Role {
    pub(crate) fn style(self) -> Style {
        let colour = |c: AnsiColor| Style::new().fg_color(Some(c.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Heading => Style::new().bold().underline(),
            Self::Kind => colour(AnsiColor::Cyan),
            Self::Critical => colour(AnsiColor::Red).bold(),
            Self::Warning => colour(AnsiColor::Yellow).bold(),
            Self::Good => colour(AnsiColor::Green),
        }
    }
}
