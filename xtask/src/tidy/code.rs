//! What of a Rust source is code.

/// The source with comments and the insides of literals removed; lines stay where they are.
pub(super) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| literal(rest));
        let len = skipped.unwrap_or(first.len_utf8());
        let (token, behind) = rest.split_at(len.min(rest.len()));
        match skipped {
            Some(_) => {
                code.push(' ');
                code.extend(token.chars().filter(|c| *c == '\n'));
            }
            None => code.push(first),
        }
        rest = behind;
    }
    code
}

/// Whether `word` stands in the code as a whole identifier.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|w| w == word)
}

/// Length of the comment that the text begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    // block comments nest
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// Length of the text or character literal that the text begins with. Prefixes such as `b` stay behind as code.
fn literal(text: &str) -> Option<usize> {
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let body = raw.get(hashes..)?.strip_prefix('"')?;
        return Some(2 + hashes + body.find(&end).map_or(body.len(), |at| at + end.len()));
    }
    if let Some(body) = text.strip_prefix('\'') {
        // a lifetime has no second quote behind its first character
        let mut chars = body.char_indices();
        let (_, first) = chars.next()?;
        if first != '\\' {
            return chars
                .next()
                .filter(|(_, c)| *c == '\'')
                .map(|(at, _)| at + 2);
        }
        return Some(1 + quoted(body, '\''));
    }
    Some(1 + quoted(text.strip_prefix('"')?, '"'))
}

/// Length up to and with the first `quote` that no backslash stands before.
fn quoted(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> String {
        code_only(source)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(
            words(r#"a("b \" c", 'd', '\'', '"', "\\") e"#),
            "a( , , , , ) e"
        );
        assert_eq!(words("a(r\"b\\\", r#\"c \" d\"#) e"), "a( , ) e");
        assert_eq!(
            words("fn f<'a>(x: &'a str) -> &'static str {}"),
            "fn f<'a>(x: &'a str) -> &'static str {}"
        );
        assert_eq!(words("a \"never closed"), "a");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let code = code_only("/* a\nb */\n\"c\nd\"\ne");
        assert_eq!(code.lines().position(|l| l == "e"), Some(4));
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("x unsafe{", "unsafe") && !has_word("unsafe_code, is_unsafe", "unsafe"));
    }
}
