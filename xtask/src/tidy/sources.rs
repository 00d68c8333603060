//! Rules for Rust sources.

use super::code::{code_only, has_word};
use super::tree::{File, Tree};

/// Crates that handle bytes of a dump, which are untrusted.
const READERS: &[&str] = &[
    "dump",
    "image",
    "metadata",
    "clr",
    "async-graph",
    "triage",
    "nettrace",
    "async-trace",
];
/// Lints that such a crate denies outside of its tests.
const DENIED: &[&str] = &[
    "unwrap_used",
    "expect_used",
    "panic",
    "indexing_slicing",
    "arithmetic_side_effects",
];
/// The one file that may hold `unsafe` code: the mapping of the dump.
const MAPPING: &str = "crates/dump/src/backing.rs";
/// The one crate whose types are written as JSON.
const SERIALISED: &str = "report";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let lints = READERS
        .iter()
        .filter_map(|name| lints(name, tree.text(&format!("crates/{name}/src/lib.rs"))));
    lints.chain(tree.rust().flat_map(source)).collect()
}

fn lints(name: &str, lib: &str) -> Option<String> {
    let code = code_only(lib);
    let denied = code
        .split("deny(")
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        .unwrap_or_default();
    let missing: Vec<_> = DENIED
        .iter()
        .filter(|lint| !has_word(denied, lint))
        .copied()
        .collect();
    (!missing.is_empty())
        .then(|| format!("crates/{name}/src/lib.rs: must deny {}", missing.join(", ")))
}

fn source(file: &File) -> Vec<String> {
    let code = code_only(&file.text);
    let mut complaints = Vec::new();
    if file.crate_folder().is_some_and(|c| c != SERIALISED) && derives(&code, "Serialize") {
        complaints.push(format!(
            "{}: only crates/{SERIALISED} derives Serialize",
            file.path
        ));
    }
    for (index, _) in code
        .lines()
        .enumerate()
        .filter(|(_, line)| has_word(line, "unsafe"))
    {
        let at = format!("{}:{}", file.path, index.saturating_add(1));
        if file.path != MAPPING {
            complaints.push(format!("{at}: unsafe code belongs into {MAPPING}"));
        } else if !is_justified(&file.text, index) {
            complaints.push(format!(
                "{at}: say above it, after `// SAFETY:`, why this is sound"
            ));
        }
    }
    complaints
}

/// Whether any type in the code derives `name`.
fn derives(code: &str, name: &str) -> bool {
    let lists = code.split("derive(").skip(1);
    lists
        .filter_map(|rest| rest.split(')').next())
        .any(|list| has_word(list, name))
}

/// Whether the comment directly above a line begins with `SAFETY:`.
fn is_justified(text: &str, line: usize) -> bool {
    let above: Vec<_> = text.lines().take(line).collect();
    let comment = above
        .iter()
        .rev()
        .map(|l| l.trim())
        .take_while(|l| l.starts_with("//"));
    comment
        .last()
        .is_some_and(|first| first.starts_with("// SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        source(&tree([(path, text)]).0[0])
    }

    #[test]
    fn unsafe_code_needs_its_place_and_a_reason() {
        let reason = "// SAFETY: because\n// of this\nunsafe { f() }\n";
        assert_eq!(complaints(MAPPING, reason), [""; 0]);
        assert_eq!(complaints(MAPPING, "// because\nunsafe { f() }").len(), 1);
        assert_eq!(
            complaints(MAPPING, "// SAFETY: because\n\nunsafe { f() }").len(),
            1
        );
        assert_eq!(
            complaints("crates/clr/src/a.rs", reason),
            [format!(
                "crates/clr/src/a.rs:3: unsafe code belongs into {MAPPING}"
            )]
        );
        assert_eq!(
            complaints(
                "crates/clr/src/a.rs",
                "// unsafe\n#[allow(unsafe_code)] f(\"unsafe\")"
            ),
            [""; 0]
        );
    }

    #[test]
    fn only_the_report_is_serialised() {
        let text = "#[derive(Debug, serde::Serialize)] struct A;";
        assert_eq!(complaints("crates/report/src/a.rs", text), [""; 0]);
        assert_eq!(complaints("crates/clr/src/a.rs", text).len(), 1);
        assert_eq!(
            complaints(
                "crates/clr/src/a.rs",
                "#[derive(Deserialize)] fn f(a: &impl Serialize) {}"
            ),
            [""; 0]
        );
    }

    #[test]
    fn readers_deny_what_can_panic() {
        let all = format!(
            "#![cfg_attr(not(test), deny(\n clippy::{}))]",
            DENIED.join(",\n clippy::")
        );
        assert_eq!(lints("clr", &all), None);
        let found = lints("clr", &all.replace("clippy::panic,", "")).unwrap();
        assert_eq!(found, "crates/clr/src/lib.rs: must deny panic");
        assert!(
            lints("clr", &format!("// {}", all.replace('\n', ""))).is_some(),
            "a comment denies nothing"
        );
    }
}
