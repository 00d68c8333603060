//! Simple names of types, and names of explicit implementations.

use super::UNNAMED;
use super::shape::closing_bracket;

/// What names say in place of arguments that are nested too deep.
const CUT: &str = "...";

/// A type's name without namespaces, enclosing types and arities:
/// ``System.Collections.Generic.List`1<System.String>`` becomes `List<String>`. Arrays, pointers and references keep
/// their marks.
#[must_use]
pub fn simple_type_name(full: &str) -> String {
    let simple = simplify(full, true);
    match (simple.is_empty(), full.is_empty()) {
        (false, _) => simple,
        (true, false) => full.to_owned(),
        (true, true) => UNNAMED.to_owned(),
    }
}

/// The name of a method; generic arguments of an explicitly named interface become simple names.
pub(super) fn explicit_name(name: &str) -> String {
    let opens = name.bytes().filter(|b| *b == b'<').count();
    let closes = name.bytes().filter(|b| *b == b'>').count();
    let is_explicit = opens > 0 && opens == closes && !name.starts_with('<') && name.contains('.');
    if is_explicit {
        simplify(name, false)
    } else {
        name.to_owned()
    }
}

/// Copies a name and drops the qualifiers of each type in it; those of the outermost name only when `outermost`.
fn simplify(text: &str, outermost: bool) -> String {
    let mut out = String::with_capacity(text.len());
    // Where the names begin that are being written, those around them first.
    let mut outer_starts: Vec<usize> = Vec::new();
    let mut start = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            // what stands where arguments are cut off is no qualifier
            '.' if rest.starts_with(CUT) => {
                out.push_str(CUT);
                used = CUT.len();
            }
            '.' | '+' if outermost || !outer_starts.is_empty() => out.truncate(start),
            '`' => used = used.saturating_add(leading_digits(rest.get(1..).unwrap_or_default())),
            '<' if out.len() == start => match closing_bracket(rest) {
                // A generated name begins with brackets of its own.
                Some(close) => {
                    used = close.saturating_add(1);
                    out.push_str(rest.get(..used).unwrap_or_default());
                }
                None => out.push(c),
            },
            '<' => {
                out.push(c);
                outer_starts.push(start);
                start = out.len();
            }
            '>' => {
                out.push(c);
                start = outer_starts.pop().unwrap_or(start);
            }
            ',' if !outer_starts.is_empty() => {
                out.push_str(", ");
                start = out.len();
                used = rest.find(|c| c != ',' && c != ' ').unwrap_or(rest.len());
            }
            '[' => {
                used = rest.find(']').map_or(used, |close| close.saturating_add(1));
                out.push_str(rest.get(..used).unwrap_or_default());
            }
            _ => out.push(c),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    out
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
