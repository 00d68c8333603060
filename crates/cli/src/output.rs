//! Where the report goes: the terminal, a pipe or a new file.

use crate::args::{Color, OutputArgs};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::limits;
use crate::new_file::{self, Existing, Present};
use anstream::{AutoStream, ColorChoice};
use asynctriage_report::TextOptions;
use clap::ValueEnum;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Columns when there is no terminal to ask.
const COLUMNS: usize = 100;

/// Where to write, checked before the analysis so that a mistake does not cost its time.
#[derive(Debug)]
pub(crate) struct Destination {
    file: Option<PathBuf>,
    existing: Existing,
    color: ColorChoice,
    /// Whether long text may be given to a pager.
    pages: bool,
}

impl Destination {
    /// Refuses the dump itself, and an existing file without `--force`.
    pub(crate) fn new<F: ValueEnum + Clone + Send + Sync + 'static>(
        args: &OutputArgs<F>,
        dump: &Path,
    ) -> Result<Self, CliError> {
        if let Some(file) = &args.output {
            check(file, dump, args.force)?;
        }
        let color = match args.color {
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
            Color::Auto if args.output.is_some() => ColorChoice::Never,
            Color::Auto => AutoStream::choice(&io::stdout()),
        };
        Ok(Self {
            file: args.output.clone(),
            existing: existing(args.force),
            color,
            pages: args.output.is_none() && !args.no_pager,
        })
    }

    /// Another file beside the report, with the same checks.
    pub(crate) fn beside<F: ValueEnum + Clone + Send + Sync + 'static>(
        file: &Path,
        args: &OutputArgs<F>,
        input: &Path,
    ) -> Result<Self, CliError> {
        Self::file(file, args.force, input)
    }

    /// A file, with the same checks.
    pub(crate) fn file(file: &Path, force: bool, input: &Path) -> Result<Self, CliError> {
        check(file, input, force)?;
        Ok(Self {
            file: Some(file.to_owned()),
            existing: existing(force),
            color: ColorChoice::Never,
            pages: false,
        })
    }

    /// Refuses another input, too: nothing that was given to be read is ever replaced.
    pub(crate) fn spares(&self, input: &Path) -> Result<(), CliError> {
        match &self.file {
            Some(file) if is_same(file, input) => Err(is_input(file)),
            _ => Ok(()),
        }
    }

    /// Refuses to write two things into one file.
    pub(crate) fn differs_from(&self, other: &Self) -> Result<(), CliError> {
        match (&self.file, &other.file) {
            (Some(one), Some(two)) if is_same(one, two) || is_same_name(one, two) => {
                Err(CliError::new(
                    Exit::Usage,
                    format!("{} cannot hold both", one.display()),
                    "name two files",
                ))
            }
            _ => Ok(()),
        }
    }

    /// How text is laid out for this destination; `all` lifts the limits on rows.
    pub(crate) fn text_options<F: ValueEnum + Clone + Send + Sync + 'static>(
        &self,
        args: &OutputArgs<F>,
        all: bool,
    ) -> TextOptions {
        let terminal =
            || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        let asked = if self.file.is_some() {
            None
        } else {
            terminal()
        };
        let width = args.width.or(asked).filter(|w| *w > 0).unwrap_or(COLUMNS);
        let defaults = TextOptions::default();
        TextOptions {
            width,
            unicode: !args.ascii,
            color: self.color != ColorChoice::Never,
            verbose: args.verbose,
            fold: false,
            rows: if all { None } else { defaults.rows },
        }
    }

    /// Whether text goes to a terminal, and how many lines that shows.
    fn screen(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stdout()).filter(|_| self.pages);
        size.map(|(_, height)| usize::from(height.0))
    }

    /// Writes text for people: through a pager where it is longer than the terminal.
    pub(crate) fn write_text(&self, text: &str) -> Result<(), CliError> {
        let is_long = self
            .screen()
            .is_some_and(|lines| text.lines().count() > lines);
        if is_long && page(text, self.color != ColorChoice::Never) {
            return Ok(());
        }
        self.write(text)
    }

    /// Writes the whole text. A reader that stops reading, such as `head`, is no error.
    pub(crate) fn write(&self, text: &str) -> Result<(), CliError> {
        self.write_with(|out| out.write_all(text.as_bytes()))
    }

    /// Writes piece by piece what is too much to be held as a whole; otherwise as [`Destination::write`].
    pub(crate) fn write_with(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let Some(file) = &self.file else {
            let mut out = BufWriter::new(AutoStream::new(io::stdout().lock(), self.color));
            return match fill(&mut out).and_then(|()| out.flush()) {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(CliError::new(
                    Exit::Output,
                    "cannot write the report",
                    "check the device behind the standard output",
                )
                .because(e)),
                _ => Ok(()),
            };
        };
        new_file::write(file, self.existing, fill).map_err(|e| {
            let message = format!("cannot write {}", file.display());
            CliError::new(
                Exit::Output,
                message,
                "name a file on a disk with space that you may write to",
            )
            .because(e)
        })
    }
}

/// Shows text by $PAGER, or less; whether that could be started.
fn page(text: &str, colored: bool) -> bool {
    let named = std::env::var("PAGER").ok().filter(|p| !p.trim().is_empty());
    let command = named.unwrap_or_else(|| "less".to_owned());
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else {
        return false;
    };
    let mut pager = std::process::Command::new(program);
    // as git does: quit when it fits after all, keep colours, leave the text on the screen
    pager.args(words).stdin(std::process::Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", if colored { "FRX" } else { "FX" });
    }
    let Ok(mut child) = pager.spawn() else {
        return false;
    };
    limits::answered();
    if let Some(mut input) = child.stdin.take() {
        // who leaves the pager has read enough
        let _ = input.write_all(text.as_bytes());
    }
    // its exit status says nothing about the report
    let _ = child.wait();
    true
}

fn check(file: &Path, dump: &Path, force: bool) -> Result<(), CliError> {
    if is_same(file, dump) {
        return Err(is_input(file));
    }
    let (what, remedy) = match new_file::present(file) {
        Present::Nothing | Present::Device => return Ok(()),
        Present::File if force => return Ok(()),
        Present::File => (
            "exists already",
            "name another file, or add --force to replace it",
        ),
        Present::Folder => ("is a directory", "name a file in it"),
        Present::Link => (
            "is a link, which is not followed",
            "name the file that it leads to, or leave -o away for the standard output",
        ),
        Present::Other => (
            "is a pipe, a socket or a disk",
            "name a file, or leave -o away and redirect the standard output",
        ),
    };
    let message = format!("{} {what}", file.display());
    Err(CliError::new(Exit::Usage, message, remedy))
}

fn existing(force: bool) -> Existing {
    if force {
        Existing::Replace
    } else {
        Existing::Keep
    }
}

fn is_input(file: &Path) -> CliError {
    let message = format!("{} is the input itself", file.display());
    CliError::new(Exit::Usage, message, "name another file")
}

/// Whether two paths name one file that need not exist yet.
fn is_same_name(a: &Path, b: &Path) -> bool {
    match (std::path::absolute(a), std::path::absolute(b)) {
        (Ok(one), Ok(other)) => one == other,
        _ => a == b,
    }
}

/// Whether two paths lead to one file, through links as well.
fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(one), Ok(other)) => one == other || is_same_inode(&one, &other),
        _ => false,
    }
}

#[cfg(unix)]
fn is_same_inode(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    id(a).is_some() && id(a) == id(b)
}

#[cfg(not(unix))]
fn is_same_inode(_: &Path, _: &Path) -> bool {
    false
}
