//! Statements of databases, as far as they may be shown.
//!
//! They are shown without their literals: those may hold what users have typed.

use std::iter::Peekable;
use std::str::Chars;

/// Characters of a statement that are shown.
const MAX_STATEMENT: usize = 120;

/// A statement with a question mark for each text and number in it, without comments, on one line.
pub(super) fn without_literals(sql: &str, quotes_are_names: bool) -> String {
    let mut out = String::new();
    let mut rest = sql.chars().peekable();
    let mut last = ' ';
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let shown = match c {
            '\'' | '"' if c == '\'' || !quotes_are_names => {
                if !skip_text(&mut rest, c) {
                    out.push('?');
                    break;
                }
                '?'
            }
            '-' if next == Some('-') => {
                while rest.next().is_some_and(|e| e != '\n') {}
                ' '
            }
            // a comment of MySQL, whose double quotes stand around texts
            '#' if !quotes_are_names => {
                while rest.next().is_some_and(|e| e != '\n') {}
                ' '
            }
            '/' if next == Some('*') => {
                skip_comment(&mut rest);
                ' '
            }
            '$' if !next.is_some_and(|n| n.is_ascii_digit()) => {
                // a dollar-quoted text; what follows its tag cannot be told from the text, so nothing more is shown
                out.push('?');
                break;
            }
            '0'..='9' if !last.is_alphanumeric() && last != '_' && last != '@' && last != '$' => {
                while rest
                    .peek()
                    .is_some_and(|n| n.is_ascii_alphanumeric() || *n == '.')
                {
                    rest.next();
                }
                '?'
            }
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if !matches!((shown, last), (' ', ' ') | ('?', '?')) {
            out.push(shown);
        }
        last = shown;
    }
    let out = out.trim();
    if out.chars().count() <= MAX_STATEMENT {
        return out.to_owned();
    }
    let cut: String = out.chars().take(MAX_STATEMENT).collect();
    format!("{cut}…")
}

/// Goes behind the end of a quoted text. `false` when a backslash stands in front of it: whether the text goes on then
/// depends on the server's settings, so nothing more can be shown.
fn skip_text(rest: &mut Peekable<Chars<'_>>, quote: char) -> bool {
    let mut last = ' ';
    while let Some(c) = rest.next().filter(|c| *c != quote) {
        last = c;
    }
    last != '\\'
}

/// Goes behind the end of a comment whose slash was read; comments nest in some of the languages.
fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    rest.next();
    let mut depth = 1_u32;
    while let Some(c) = rest.next() {
        let end = match (c, rest.peek()) {
            ('*', Some('/')) => depth.saturating_sub(1),
            ('/', Some('*')) => depth.saturating_add(1),
            _ => continue,
        };
        rest.next();
        depth = end;
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_literals;

    #[test]
    fn statements_lose_what_users_typed() {
        let shown = |sql| without_literals(sql, true);
        assert_eq!(
            shown("SELECT  *\nFROM users WHERE name = 'O''Brien' AND id=42 -- 17"),
            "SELECT * FROM users WHERE name = ? AND id=?"
        );
        assert_eq!(
            shown("select /* secret */ @p1, $1, t2.a"),
            "select @p1, $1, t2.a"
        );
        assert_eq!(shown("select \"Name\" from x"), "select \"Name\" from x");
        assert_eq!(without_literals("select \"Bob\"", false), "select ?");
        assert_eq!(shown("select $tag$secret$tag$, 1"), "select ?");
        assert_eq!(shown("insert 0x1F, -1.5e3"), "insert ?, -?");
        assert!(without_literals(&"a ".repeat(200), true).ends_with('…'));
        assert_eq!(shown("select 'open"), "select ?");
        assert_eq!(shown(r"select E'O\'Brien', 'b'"), "select E?");
        assert_eq!(shown(r"select 'C:\dir', 'b'"), "select ?, ?");
        assert_eq!(shown("select /* a /* b */ secret */ x"), "select x");
        assert_eq!(shown("select x from #t"), "select x from #t");
        assert_eq!(
            without_literals("select x # secret\nfrom t", false),
            "select x from t"
        );
    }
}
