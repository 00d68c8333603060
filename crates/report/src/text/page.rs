//! Lines of styled text, wrapped to the width of the terminal.

use super::TextOptions;
use super::escape::clean;
use super::style::Role;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Longest text that is shown whole without `-v`; nobody reads more, and a hostile name could be megabytes.
const LONGEST: usize = 2_000;
/// The same with `-v`.
const LONGEST_VERBOSE: usize = 64 * 1024;

/// A piece of text with one role; the text is harmless already.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    role: Role,
    text: String,
}

impl Span {
    pub(crate) fn width(&self) -> usize {
        self.text.width()
    }
}

/// What the renderers write on.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) options: &'a TextOptions,
    out: String,
}

impl<'a> Page<'a> {
    pub(crate) fn new(options: &'a TextOptions) -> Self {
        Self {
            options,
            out: String::new(),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Columns of a line; never so few that nothing fits.
    pub(crate) fn width(&self) -> usize {
        if self.options.width == 0 {
            80
        } else {
            self.options.width.max(40)
        }
    }

    pub(crate) fn verbose(&self) -> bool {
        self.options.verbose > 0
    }

    /// Text in a role, harmless, cut in the middle when it is absurdly long.
    pub(crate) fn span(&self, role: Role, text: impl AsRef<str>) -> Span {
        let longest = if self.verbose() {
            LONGEST_VERBOSE
        } else {
            LONGEST
        };
        let text = text.as_ref();
        let ascii = !self.options.unicode;
        let text = clean(text, ascii);
        let text = if text.width() > longest {
            shorten(&text, longest, ascii)
        } else {
            text
        };
        Span { role, text }
    }

    pub(crate) fn blank(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// A heading with a remark, after an empty line.
    pub(crate) fn heading(&mut self, title: &str, remark: &str) {
        self.blank();
        let spans = [
            self.span(Role::Heading, title),
            self.span(Role::Dim, format!("  {remark}")),
        ];
        self.line("", "  ", &spans);
    }

    /// A line that begins with `first`; when it does not fit, its further lines begin with `rest`.
    /// How much has been written.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn line(&mut self, first: &str, rest: &str, spans: &[Span]) {
        let (first, rest) = (self.span(Role::Dim, first), self.span(Role::Dim, rest));
        let room = |prefix: &Span| self.width().saturating_sub(prefix.width()).max(16);
        let lines = self.wrap_from(room(&first), room(&rest), spans);
        for (i, line) in lines.iter().enumerate() {
            self.put(if i == 0 { &first } else { &rest });
            for span in line {
                self.put(span);
            }
            self.end_line();
        }
    }

    /// `spans` in lines of at most `room` columns.
    pub(crate) fn wrap(&self, room: usize, spans: &[Span]) -> Vec<Vec<Span>> {
        self.wrap_from(room, room, spans)
    }

    fn wrap_from(&self, first_room: usize, room: usize, spans: &[Span]) -> Vec<Vec<Span>> {
        let mut wrapper = Wrapper {
            first_room,
            rest_room: room,
            split_long: self.verbose(),
            ascii: !self.options.unicode,
            lines: vec![Vec::new()],
            used: 0,
        };
        for word in words(spans) {
            wrapper.word(&word);
        }
        wrapper.lines
    }

    /// Writes a table's cell or a prefix as it is, padded to `width` columns.
    pub(crate) fn put_padded(&mut self, line: &[Span], width: usize, right: bool) {
        let used: usize = line.iter().map(Span::width).fold(0, usize::saturating_add);
        let pad = " ".repeat(width.saturating_sub(used));
        if right {
            self.out.push_str(&pad);
        }
        for span in line {
            self.put(span);
        }
        if !right {
            self.out.push_str(&pad);
        }
    }

    /// Ends a line that was written piece by piece.
    pub(crate) fn end_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push('\n');
    }

    fn put(&mut self, span: &Span) {
        let style = span.role.style();
        // writing to a String cannot fail
        let _ = if self.options.color && span.role != Role::Plain && !span.text.trim().is_empty() {
            write!(self.out, "{style}{}{style:#}", span.text)
        } else {
            self.out.write_str(&span.text)
        };
    }
}

/// What stands between two runs of spaces, with the number of spaces before it.
#[derive(Debug, Default)]
struct Word {
    spaces: usize,
    parts: Vec<Span>,
}

/// Splits at spaces; spans that touch make one word.
fn words(spans: &[Span]) -> Vec<Word> {
    let mut all: Vec<Word> = Vec::new();
    let (mut open, mut spaces) = (false, 0_usize);
    for span in spans {
        for (i, piece) in span.text.split(' ').enumerate() {
            if i > 0 {
                open = false;
                spaces = spaces.saturating_add(1);
            }
            if piece.is_empty() {
                continue;
            }
            let part = Span {
                role: span.role,
                text: piece.to_owned(),
            };
            match all.last_mut() {
                Some(word) if open => word.parts.push(part),
                _ => all.push(Word {
                    spaces,
                    parts: vec![part],
                }),
            }
            (open, spaces) = (true, 0);
        }
    }
    all
}

/// Fills lines word by word.
struct Wrapper {
    first_room: usize,
    rest_room: usize,
    /// Whether a word that fits no line is split rather than cut in the middle.
    split_long: bool,
    ascii: bool,
    lines: Vec<Vec<Span>>,
    used: usize,
}

impl Wrapper {
    /// Columns of the current line.
    fn room(&self) -> usize {
        if self.lines.len() > 1 {
            self.rest_room
        } else {
            self.first_room
        }
    }

    fn word(&mut self, word: &Word) {
        let width = word
            .parts
            .iter()
            .map(Span::width)
            .fold(0, usize::saturating_add);
        let spaces = if self.used == 0 && self.lines.len() > 1 {
            0
        } else {
            word.spaces
        };
        let left = self.room().saturating_sub(self.used.saturating_add(spaces));
        // a name that fits no line begins here only when a good part of it has room
        let too_long = width > self.rest_room;
        if width <= left || (too_long && left > self.room() / 2) {
            self.push(Role::Plain, " ".repeat(spaces), spaces);
        } else if self.used > 0 {
            self.next_line();
        }
        for part in &word.parts {
            if width <= self.room() {
                self.push(part.role, part.text.clone(), part.width());
            } else {
                self.pieces(part);
            }
        }
    }

    /// A part of a word that fits no line, broken where a C# name or a path can be.
    fn pieces(&mut self, part: &Span) {
        for piece in part
            .text
            .split_inclusive(['.', ',', '<', '+', '/', '\\', ';', '&', '['])
        {
            let width = piece.width();
            if self.used.saturating_add(width) > self.room() && self.used > 0 {
                self.next_line();
            }
            if width <= self.room() {
                self.push(part.role, piece.to_owned(), width);
            } else if self.split_long {
                self.split(part.role, piece);
            } else {
                let short = shorten(piece, self.room(), self.ascii);
                let width = short.width();
                self.push(part.role, short, width);
            }
        }
    }

    fn split(&mut self, role: Role, text: &str) {
        let (mut chunk, mut width) = (String::new(), 0_usize);
        for c in text.chars() {
            let columns = c.width().unwrap_or(0);
            if self.used.saturating_add(width).saturating_add(columns) > self.room() {
                self.push(role, std::mem::take(&mut chunk), width);
                self.next_line();
                width = 0;
            }
            chunk.push(c);
            width = width.saturating_add(columns);
        }
        self.push(role, chunk, width);
    }

    fn push(&mut self, role: Role, text: String, width: usize) {
        self.used = self.used.saturating_add(width);
        if let Some(line) = self.lines.last_mut() {
            line.push(Span { role, text });
        }
    }

    fn next_line(&mut self) {
        self.lines.push(Vec::new());
        self.used = 0;
    }
}

/// At most `room` columns of `text`: its beginning and, since the end of a name tells most, its end.
pub(crate) fn shorten(text: &str, room: usize, ascii: bool) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mark = if ascii { "..." } else { "…" };
    let room = room.saturating_sub(mark.width());
    let head_room = room / 2;
    let head = take_columns(text.chars(), head_room);
    let tail: String = take_columns(text.chars().rev(), room.saturating_sub(head.width()))
        .chars()
        .rev()
        .collect();
    format!("{head}{mark}{tail}")
}

fn take_columns(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0_usize;
    chars
        .take_while(|c| {
            used = used.saturating_add(c.width().unwrap_or(0));
            used <= room
        })
        .collect()
}
