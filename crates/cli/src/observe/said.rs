//! What a program says of its own run.
//!
//! The convention: somewhere in its standard output stands `NAME=VALUE`, `NAME: VALUE`, or a member of a JSON object
//! with that name. A name is a whole word; a value ends at a space, a comma, a semicolon, a closing bracket or a quote.
//! The last mention counts, since a program may print intermediate results.

use crate::digest::sha256_of_parts;

/// What all that a program prints is compared by, instead of a name.
pub(crate) const STDOUT: &str = "stdout";

/// The time in milliseconds that the program says; only a finite one that is not negative.
pub(crate) fn milliseconds(output: &str, name: &str) -> Option<f64> {
    let value: f64 = last(output, name)?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// The result that the program says.
pub(crate) fn result<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    last(output, name)
}

/// SHA-256 of the output without the lines that mention the timer: they differ in every run.
pub(crate) fn hash(output: &str, timer: &str) -> String {
    let lines = output.split_inclusive('\n');
    let kept = lines.filter(|line| last(line, timer).is_none());
    sha256_of_parts(kept.map(str::as_bytes))
}

fn last<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    if name.is_empty() {
        return None;
    }
    output.rmatch_indices(name).find_map(|(at, _)| {
        let before = output.get(..at)?;
        let behind = output.get(at.saturating_add(name.len())..)?;
        if before.ends_with(is_part_of_word) {
            return None;
        }
        value(behind)
    })
}

/// The value behind a name.
fn value(behind: &str) -> Option<&str> {
    let rest = behind.strip_prefix('"').unwrap_or(behind);
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix(['=', ':'])?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    let is_end = |c: char| c.is_whitespace() || c.is_control() || ",;\"'}])".contains(c);
    let value = rest.split(is_end).next().unwrap_or_default();
    (!value.is_empty()).then_some(value)
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-' || c == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_found() {
        for (output, found) in [
            ("elapsed_ms=158.03 checksum=5050\n", Some("158.03")),
            ("elapsed_ms: 158.03\n", Some("158.03")),
            ("READY {\"n\":1,\"elapsed_ms\":158.03}\n", Some("158.03")),
            ("{\"elapsed_ms\" : \"158.03\"}", Some("158.03")),
            ("elapsed_ms=1\nelapsed_ms=2\n", Some("2")),
            ("my_elapsed_ms=1 not.elapsed_ms=2", None),
            ("elapsed_ms 158", None),
            ("elapsed_ms=\n158", None),
            ("elapsed_ms_all=3", None),
            ("", None),
        ] {
            assert_eq!(last(output, "elapsed_ms"), found, "{output}");
        }
        assert_eq!(last("a=1", ""), None);
        assert_eq!(result("checksum=0x1f;", "checksum"), Some("0x1f"));
    }

    #[test]
    fn only_times_are_times() {
        assert_eq!(milliseconds("t=1.5", "t"), Some(1.5));
        for output in ["t=fast", "t=-1", "t=NaN", "t=inf", "t=5x"] {
            assert_eq!(milliseconds(output, "t"), None, "{output}");
        }
    }

    #[test]
    fn the_hash_leaves_the_timer_out() {
        let one = hash("sum 5\nelapsed_ms=1\n", "elapsed_ms");
        assert_eq!(one, hash("sum 5\nelapsed_ms=2.7\n", "elapsed_ms"));
        assert_ne!(one, hash("sum 6\nelapsed_ms=1\n", "elapsed_ms"));
        assert_eq!(
            hash("", "t"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
