//! Statements of SQL without what users typed.
//!
//! Where a text ends depends on the dialect and on settings of the server that no dump shows: backslashes, double quotes
//! and comments all mean different things. So what means the same under each of them is shown up to where that ends, and
//! nothing behind.

use std::iter::Peekable;
use std::str::Chars;

/// Characters of a statement that are shown.
const MAX_STATEMENT: usize = 120;
/// Characters of a name in quotes that are shown.
const MAX_NAME: usize = 64;

/// How a server reads quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Double quotes stand around names.
    Postgres,
    /// Brackets stand around names; double quotes around names or texts, by a setting.
    SqlServer,
    /// Backticks stand around names; double quotes around texts or names, by a setting.
    MySql,
}

/// The statement with a question mark for each text and number, without comments, on one line; cut with `…` where it cannot
/// be told any more what is a text, and where it is too long.
pub(crate) fn statement(sql: &str, dialect: Dialect) -> String {
    let mut writer = Writer {
        out: String::new(),
        rest: sql.chars().peekable(),
        dialect,
    };
    let is_whole = writer.run();
    let out = writer.out.trim();
    if out.chars().count() > MAX_STATEMENT {
        let cut: String = out.chars().take(MAX_STATEMENT).collect();
        return format!("{cut}…");
    }
    match (is_whole, out.is_empty()) {
        (true, false) => out.to_owned(),
        (true, true) | (false, true) => "…".into(),
        (false, false) => format!("{out} …"),
    }
}

/// It cannot be told what follows.
struct Unclear;

struct Writer<'s> {
    out: String,
    rest: Peekable<Chars<'s>>,
    dialect: Dialect,
}

impl Writer<'_> {
    /// `false` when something was left out at the end.
    fn run(&mut self) -> bool {
        while let Some(c) = self.rest.next() {
            if self.token(c).is_err() {
                return false;
            }
        }
        true
    }

    fn token(&mut self, c: char) -> Result<(), Unclear> {
        let next = self.rest.peek().copied();
        match (c, self.dialect) {
            ('\'', _) => self.text('\'')?,
            ('"', Dialect::Postgres) => self.name('"')?,
            ('"', _) => self.text('"')?,
            ('[', Dialect::SqlServer) => self.name(']')?,
            ('`', Dialect::MySql) => self.name('`')?,
            ('-', _) if next == Some('-') => self.line_comment(true)?,
            ('#', Dialect::MySql) => self.line_comment(false)?,
            ('/', _) if next == Some('*') => self.comment()?,
            // a parameter by its number; else a text in dollars, whose end nothing tells
            ('$', Dialect::Postgres) if next.is_some_and(|n| n.is_ascii_digit()) => {
                self.out.push('$');
                self.copy(|c| c.is_ascii_digit());
            }
            ('0'..='9', _) => self.number(),
            _ if c.is_alphabetic() || matches!(c, '_' | '@' | ':') => return self.word(c),
            _ if c.is_whitespace() => self.put(' '),
            (
                '(' | ')' | ',' | '.' | ';' | '*' | '=' | '<' | '>' | '+' | '-' | '/' | '%' | '!'
                | '?' | '|' | '&',
                _,
            ) => {
                self.out.push(c);
            }
            ('[' | ']' | '{' | '}' | '~' | '^' | '#', _) => self.out.push(c),
            _ => return Err(Unclear),
        }
        Ok(())
    }

    /// Spaces and question marks once.
    fn put(&mut self, c: char) {
        if !self.out.ends_with(c) {
            self.out.push(c);
        }
    }

    fn copy(&mut self, is_part: impl Fn(char) -> bool) {
        while let Some(c) = self.rest.next_if(|c| is_part(*c)) {
            self.out.push(c);
        }
    }

    fn number(&mut self) {
        while self
            .rest
            .next_if(|n| n.is_ascii_alphanumeric() || matches!(n, '.' | '_'))
            .is_some()
        {}
        self.put('?');
    }

    /// A keyword, a name or a parameter. What a procedure is called with may stand without quotes.
    fn word(&mut self, first: char) -> Result<(), Unclear> {
        let start = self.out.len();
        self.out.push(first);
        self.copy(|c| c.is_alphanumeric() || matches!(c, '_' | '@' | '$' | ':'));
        let word = self.out.get(start..).unwrap_or_default();
        if !word.eq_ignore_ascii_case("exec") && !word.eq_ignore_ascii_case("execute") {
            return Ok(());
        }
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {
            self.put(' ');
        }
        self.copy(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        Err(Unclear)
    }

    /// Goes behind a text. A doubled quote is one within it everywhere; behind a backslash it may be either.
    fn text(&mut self, quote: char) -> Result<(), Unclear> {
        self.put('?');
        while let Some(c) = self.rest.next() {
            if c == '\\' {
                return Err(Unclear);
            }
            if c == quote && self.rest.next_if_eq(&quote).is_none() {
                return Ok(());
            }
        }
        Err(Unclear)
    }

    /// A name in quotes, shown when it is one word.
    fn name(&mut self, end: char) -> Result<(), Unclear> {
        let mut name = String::new();
        loop {
            let c = self.rest.next().ok_or(Unclear)?;
            if c == end && self.rest.next_if_eq(&end).is_none() {
                break;
            }
            name.push(c);
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | ' ');
        if name.chars().count() <= MAX_NAME && name.chars().all(plain) {
            let begin = if end == ']' { '[' } else { end };
            self.out
                .extend([begin].into_iter().chain(name.chars()).chain([end]));
        } else {
            self.put('?');
        }
        Ok(())
    }

    /// Goes behind a comment that ends with its line. MySQL needs a space behind two dashes, else it subtracts; a single
    /// carriage return ends a line for some servers.
    fn line_comment(&mut self, dashes: bool) -> Result<(), Unclear> {
        if dashes {
            self.rest.next();
            if !self.rest.peek().is_none_or(|c| c.is_whitespace()) {
                return Err(Unclear);
            }
        }
        while let Some(c) = self.rest.next() {
            if c == '\r' && self.rest.peek() != Some(&'\n') {
                return Err(Unclear);
            }
            if c == '\n' {
                break;
            }
        }
        self.put(' ');
        Ok(())
    }

    /// Goes behind a comment. Those within it nest for some servers, and some carry out what begins with a mark.
    fn comment(&mut self) -> Result<(), Unclear> {
        self.rest.next();
        if matches!(self.rest.peek(), Some('!' | '+')) {
            return Err(Unclear);
        }
        while let Some(c) = self.rest.next() {
            match (c, self.rest.peek()) {
                ('*', Some('/')) => {
                    self.rest.next();
                    self.put(' ');
                    return Ok(());
                }
                ('/', Some('*')) => return Err(Unclear),
                _ => {}
            }
        }
        Err(Unclear)
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect::{MySql, Postgres, SqlServer};
    use super::{Dialect, statement};
    use proptest::prelude::*;

    #[test]
    fn statements_lose_what_users_typed() {
        let shown = |sql| statement(sql, Postgres);
        assert_eq!(
            shown("SELECT  *\nFROM users WHERE name = 'O''Brien' AND id=42 -- 17"),
            "SELECT * FROM users WHERE name = ? AND id=?"
        );
        assert_eq!(
            shown("select /* secret */ @p1, $1, :x, t2.a"),
            "select @p1, $1, :x, t2.a"
        );
        assert_eq!(shown("insert 0x1F, -1.5e3"), "insert ?, -?");
        assert_eq!(shown("select N'x', X'ab'"), "select N?, X?");
        assert_eq!(shown("EXEC dbo.find bob, carol"), "EXEC dbo.find …");
        assert!(statement(&"a ".repeat(200), Postgres).ends_with('…'));
        assert_eq!(shown(""), "…");
    }

    #[test]
    fn names_in_quotes_show_when_they_are_names_for_sure() {
        let pg = "select u.\"Id\" from \"Users\" u where a[1] = \"it's\"";
        assert_eq!(
            statement(pg, Postgres),
            "select u.\"Id\" from \"Users\" u where a[?] = ?"
        );
        let ms = "SELECT [u].[Id] FROM [O'Brien] WHERE x = \"bob\"";
        assert_eq!(
            statement(ms, SqlServer),
            "SELECT [u].[Id] FROM ? WHERE x = ?"
        );
        assert_eq!(
            statement("select `Id` from `it's` where x = \"bob\"", MySql),
            "select `Id` from ? where x = ?"
        );
        assert_eq!(statement("select `x`", Postgres), "select …");
    }

    #[test]
    fn nothing_shows_behind_what_servers_read_differently() {
        for (sql, dialect, shown) in [
            (r"select E'O\'Brien', 'b'", Postgres, "select E? …"),
            (r"select 'C:\', secret", MySql, "select ? …"),
            ("select $t$secret$t$, 1", Postgres, "select …"),
            ("select /* a /* b */ secret */ x", Postgres, "select …"),
            ("select /*! secret */ x", MySql, "select …"),
            ("select 5--'a\n'secret'", MySql, "select ? …"),
            ("select -- a\rsecret", SqlServer, "select …"),
            ("select 'open", Postgres, "select ? …"),
            ("select [open", SqlServer, "select …"),
        ] {
            assert_eq!(statement(sql, dialect), shown, "{sql}");
        }
        assert_eq!(
            statement("select x # secret\nfrom t", MySql),
            "select x from t"
        );
        assert_eq!(statement("select x from #t", SqlServer), "select x from #t");
    }

    fn dialect() -> impl Strategy<Value = Dialect> {
        prop_oneof![Just(Postgres), Just(SqlServer), Just(MySql)]
    }

    proptest! {
        /// A text in single quotes never shows, whatever stands around it, as long as no other quote is open.
        #[test]
        fn no_text_in_quotes_shows(
            before in "[a-z0-9 .,()=*@\\\\$#/-]{0,30}",
            inside in "[a-z \"`\\[\\]]{0,5}",
            after in "[ -~]{0,30}",
            dialect in dialect(),
        ) {
            let sql = format!("select {before} '{inside}SECRET{inside}' {after}");
            prop_assert!(!statement(&sql, dialect).contains("SECRET"), "{sql}");
        }

        #[test]
        fn anything_is_a_statement(sql in "\\PC*", dialect in dialect()) {
            prop_assert!(statement(&sql, dialect).chars().count() <= 130);
        }
    }
}
