//! What somebody meant who mistyped a command or gave two dumps.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::path::Path;

/// Words further apart than this share of their length are not taken for one another.
const CLOSE: usize = 3;

/// The error of a command line, with what was likely meant where its first word is neither a command nor a file.
pub(super) fn better(error: clap::Error, words: impl Iterator<Item = OsString>) -> clap::Error {
    let mut plain = words.filter_map(|w| w.into_string().ok());
    let Some(first) = plain.next().filter(|w| !w.starts_with('-')) else {
        return error;
    };
    let is_position = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict | ErrorKind::InvalidSubcommand
    );
    if !is_position || is_command(&first) {
        return error;
    }
    let second = plain.find(|w| !w.starts_with('-'));
    let is_file = |word: &str| Path::new(word).exists();
    let text = match (command_like(&first), second) {
        (Some(command), _) if !is_file(&first) => {
            format!(
                "'{first}' is neither a command nor a file: did you mean `asynctriage {command}`?"
            )
        }
        (_, Some(second)) if is_file(&first) && is_file(&second) => format!(
            "one dump at a time: `asynctriage join {first} {second}` puts dumps of services that call each other together"
        ),
        _ => return error,
    };
    let mut better = clap::Error::raw(ErrorKind::InvalidSubcommand, format!("{text}\n"))
        .with_cmd(&super::Command::definition());
    better.insert(ContextKind::Suggested, ContextValue::StyledStrs(Vec::new()));
    better
}

fn commands() -> Vec<Command> {
    let definition = super::Command::definition();
    definition.get_subcommands().cloned().collect()
}

fn is_command(word: &str) -> bool {
    word == "help" || commands().iter().any(|c| c.get_name() == word)
}

/// The command that a word may be a misspelling of.
pub(crate) fn command_like(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let names = commands().into_iter().map(|c| c.get_name().to_owned());
    let near = names.map(|name| (distance(&word, &name), name));
    let is_near = |(far, name): &(usize, String)| {
        let longest = word.len().max(name.len());
        word.len() > 2 && *far <= longest.checked_div(CLOSE).unwrap_or(0).max(1)
    };
    let found = near.filter(is_near).min_by_key(|(far, _)| *far);
    found.map(|(_, name)| name)
}

/// Letters to insert, leave out, change or exchange with their neighbour to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(32).collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let above = rows.last().cloned().unwrap_or_default();
        let before = i.checked_sub(1).and_then(|p| rows.get(p)).cloned();
        let mut row = vec![i.saturating_add(1)];
        for (j, y) in b.iter().enumerate() {
            let get = |r: &[usize], k: usize| r.get(k).copied().unwrap_or(usize::MAX / 2);
            let change = get(&above, j).saturating_add(usize::from(x != y));
            let mut least = change
                .min(get(&above, j.saturating_add(1)).saturating_add(1))
                .min(get(&row, j).saturating_add(1));
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if let (true, Some(before)) = (swapped, &before) {
                least = least.min(get(before, j.saturating_sub(1)).saturating_add(1));
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last()
        .and_then(|r| r.last())
        .copied()
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_commands_and_others_are_not() {
        for (word, command) in [
            ("thread", "threads"),
            ("thraeds", "threads"),
            ("Taks", "tasks"),
            ("request", "requests"),
            ("whyy", "why"),
            ("thred", "threads"),
        ] {
            assert_eq!(command_like(word).as_deref(), Some(command), "{word}");
        }
        for word in ["hang.dmp", "a", "core.4711", "-"] {
            assert_eq!(command_like(word), None, "{word}");
        }
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
