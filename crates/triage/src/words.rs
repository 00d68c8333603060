//! Words that sentences are made of: numbers with their nouns and verbs, lists.

/// Names that a sentence lists before it counts.
const MAX_NAMES: usize = 20;

/// `a, b and c`, cut after [`MAX_NAMES`].
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|n| n.as_ref().to_owned())
        .collect();
    if names.len() > MAX_NAMES {
        shown.push(format!("{} more", names.len().saturating_sub(MAX_NAMES)));
    }
    match shown.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// `1 thread`, `2 threads`.
pub(crate) fn several(count: u64, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {one}{end}")
}

/// `1 chain waits`, `2 chains wait`.
pub(crate) fn waits(count: u64, one: &str) -> String {
    format!("{} {}", several(count, one), verb(count, "waits", "wait"))
}

/// `1 of 3 chains waits`, `2 of 3 chains wait`.
pub(crate) fn part_waits(count: u64, total: u64, one: &str) -> String {
    let verb = verb(count, "waits", "wait");
    format!("{count} of {} {verb}", several(total, one))
}

/// The verb that goes with a number of things.
pub(crate) fn verb<'t>(count: u64, one: &'t str, many: &'t str) -> &'t str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_and_then_counted() {
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        let many: Vec<String> = (0..25).map(|i| i.to_string()).collect();
        assert!(listed(&many).ends_with("19 and 5 more"));
    }
}
