//! Numbers in words.

/// A number with a comma between thousands.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len().saturating_mul(2));
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && digits.len().saturating_sub(i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 chain`, `20 chains`: the noun takes an s when there is not just one.
#[must_use]
pub fn several(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `verb` for one, without its s for several: `1 chain waits`, `2 chains wait`.
pub(crate) fn verb(n: u64, singular: &'static str, plural: &'static str) -> &'static str {
    if n == 1 { singular } else { plural }
}

/// What stands beside the kind of a thing, without the kind's name where the text begins with it: `cycle  a waits for itself`
/// rather than `cycle  cycle: a waits for itself`.
pub(crate) fn beside<'t>(kind: &str, text: &'t str) -> &'t str {
    let rest = text.strip_prefix(kind);
    let rest = rest.and_then(|r| r.strip_prefix(": ").or_else(|| r.strip_prefix(' ')));
    rest.unwrap_or(text)
}

/// `1.4 GiB`; binary units, one decimal.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
#[must_use]
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    if value < 1024.0 {
        return format!("{n} B");
    }
    for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        value /= 1024.0;
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
    }
    format!("{:.1} EiB", value / 1024.0)
}

/// `0.4 s`, `58 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and negative ages are cut at 0"
)]
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "an unknown time".to_owned();
    }
    let whole = seconds.max(0.0).round() as u64;
    let pair = |big: u64, upper: &str, small: u64, lower: &str| match small {
        0 => format!("{} {upper}", count(big)),
        _ => format!("{} {upper} {small} {lower}", count(big)),
    };
    match whole {
        0..=10 if seconds < 9.95 => format!("{:.1} s", seconds.max(0.0)),
        0..60 => format!("{whole} s"),
        60..3_600 => pair(whole / 60, "min", whole % 60, "s"),
        3_600..86_400 => pair(whole / 3_600, "h", whole % 3_600 / 60, "min"),
        _ => pair(whole / 86_400, "d", whole % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_once() {
        assert_eq!(beside("file", "file day.log"), "day.log");
        assert_eq!(beside("cycle", "cycle: a, b"), "a, b");
        assert_eq!(beside("file", "files of a folder"), "files of a folder");
        assert_eq!(beside("thread", "thread"), "thread");
    }
}
