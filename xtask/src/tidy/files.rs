//! Rules for any file.

use super::tree::{File, Tree};

/// Largest file in bytes; the small real dumps are what comes closest.
const MAX_BYTES: u64 = 1 << 20;
/// Lines after which a source file has more than one subject.
const MAX_LINES: usize = 800;
/// Traces of where the text was written, and addresses that only belong into the lock file; in two halves so that this
/// file does not hold them.
const TRACES: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("crates.", "io"),
    ("static.rust-", "lang.org"),
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    tree.0
        .iter()
        .flat_map(|f| [size(f), lines(f), traces(f)])
        .flatten()
        .collect()
}

fn size(file: &File) -> Option<String> {
    (file.len > MAX_BYTES).then(|| {
        format!(
            "{}: {} bytes; files stay below {MAX_BYTES}",
            file.path, file.len
        )
    })
}

fn lines(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    (file.path.ends_with(".rs") && lines > MAX_LINES)
        .then(|| format!("{}: {lines} lines; split it", file.path))
}

fn traces(file: &File) -> Option<String> {
    let found = TRACES
        .iter()
        .map(|(a, b)| format!("{a}{b}"))
        .find(|t| file.text.contains(t.as_str()))?;
    (!file.path.ends_with("Cargo.lock")).then(|| format!("{}: mentions {found}", file.path))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn large_files_and_long_sources_are_refused() {
        let (long, large) = ("\n".repeat(801), "x".repeat(1_048_577));
        let found = check(&tree([
            ("a.rs", &long),
            ("a.md", &long),
            ("b.gz", &large),
            ("ok.rs", &long[1..]),
        ]));
        assert_eq!(
            found,
            [
                "a.rs: 801 lines; split it",
                "b.gz: 1048577 bytes; files stay below 1048576"
            ]
        );
    }

    #[test]
    fn traces_of_the_build_place_are_refused() {
        for (a, b) in TRACES {
            let text = format!("see {a}{b}x");
            assert_eq!(
                check(&tree([
                    ("README.md", text.as_str()),
                    ("Cargo.lock", text.as_str())
                ]))
                .len(),
                1
            );
        }
        assert_eq!(
            check(&tree([("README.md", "how it works/does, network")])),
            [""; 0]
        );
    }
}
