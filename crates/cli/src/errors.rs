//! Errors as the user sees them: what is wrong, why, and what to do next.

use crate::exit::Exit;
use asynctriage_report::printable;
use std::error::Error;
use std::fmt::Write;

/// An error that ends the program.
#[derive(Debug)]
pub(crate) struct CliError {
    /// The exit status.
    pub(crate) exit: Exit,
    message: String,
    /// What the user can do, in one sentence.
    remedy: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            remedy: remedy.into(),
            source: None,
        }
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The message, its causes and the remedy, a line each; harmless for a terminal.
    pub(crate) fn render(&self) -> String {
        let mut out = format!("error: {}\n", printable(&self.message));
        let mut cause: Option<&(dyn Error + 'static)> = self.source.as_deref().map(|e| e as _);
        while let Some(error) = cause {
            // writing to a String cannot fail
            let _ = writeln!(out, "  because: {}", printable(&error.to_string()));
            cause = error.source();
        }
        if !self.remedy.is_empty() {
            let _ = writeln!(out, "  next: {}", printable(&self.remedy));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_why_and_what_next() {
        let io = std::io::Error::other("disk\u{1b}[2J gone");
        let error = CliError::new(Exit::Input, "cannot read 'a.dmp'", "try again").because(io);
        assert_eq!(
            error.render(),
            "error: cannot read 'a.dmp'\n  because: disk\\u{1b}[2J gone\n  next: try again\n"
        );
    }
}
