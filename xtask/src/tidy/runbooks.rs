//! Every finding that the tool can make has a runbook.

use super::code::code_only;
use super::tree::{File, Tree};
use asynctriage_report::FindingKind;
use std::collections::BTreeSet;

/// A kind of finding: the name of the variant and the word in the report.
pub(super) type Kind = (String, &'static str);

/// The kinds of the report.
pub(super) fn known_kinds() -> Vec<Kind> {
    FindingKind::ALL
        .iter()
        .map(|k| (format!("{k:?}"), k.as_str()))
        .collect()
}

pub(super) fn check(tree: &Tree, kinds: &[Kind]) -> Vec<String> {
    let runbooks = || {
        tree.0
            .iter()
            .filter(|f| f.path.starts_with("runbooks/") && f.path.ends_with(".md"))
    };
    let covered: BTreeSet<_> = runbooks().flat_map(|f| findings(&f.text)).collect();
    let made = made_by_triage(tree);
    let missing = kinds
        .iter()
        .filter(|(variant, word)| made.contains(variant.as_str()) && !covered.contains(word));
    let missing =
        missing.map(|(_, word)| format!("runbooks: none has `{word}` among its findings"));
    let unknown = runbooks().flat_map(|f| findings(&f.text).map(move |word| (f, word)));
    let unknown = unknown.filter(|(_, word)| kinds.iter().all(|(_, known)| known != word));
    let unknown = unknown.map(|(f, word)| format!("{}: there is no finding `{word}`", f.path));
    missing.chain(unknown).collect()
}

/// The words of the line `findings: [a, b]` between the two `---` at the top.
fn findings(runbook: &str) -> impl Iterator<Item = &str> {
    let front = runbook
        .strip_prefix("---\n")
        .and_then(|t| t.split("\n---").next());
    let line = front.and_then(|f| f.lines().find_map(|l| l.strip_prefix("findings:")));
    let words = line
        .unwrap_or_default()
        .trim()
        .trim_matches(['[', ']'])
        .split(',');
    words.map(str::trim).filter(|w| !w.is_empty())
}

/// Names of the variants that triage mentions, outside of its tests.
fn made_by_triage(tree: &Tree) -> BTreeSet<String> {
    let sources = tree
        .rust()
        .filter(|f| f.path.starts_with("crates/triage/src/") && !is_test(f));
    let mentioned = |f: &File| {
        let code = code_only(f.text.split("#[cfg(test)]").next().unwrap_or_default());
        let names = code.split("FindingKind::").skip(1);
        names
            .filter_map(|rest| {
                rest.split(|c: char| !c.is_alphanumeric())
                    .next()
                    .map(str::to_owned)
            })
            .collect::<Vec<_>>()
    };
    sources.flat_map(mentioned).collect()
}

fn is_test(file: &File) -> bool {
    file.path.contains("/tests/") || file.path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn findings_without_runbook_and_runbooks_without_finding_are_told() {
        let kinds = [
            ("LockDeadlock".into(), "lock-deadlock"),
            ("Idle".into(), "idle"),
            ("Bottleneck".into(), "bottleneck"),
        ];
        let code = "f(FindingKind::LockDeadlock); // FindingKind::Bottleneck\nf(FindingKind::Idle)\n#[cfg(test)]\nmod tests { FindingKind::Bottleneck }";
        let book = "---\nid: locks\nfindings: [lock-deadlock, lock-dead]\n---\nfindings: [idle]\n";
        let found = check(
            &tree([
                ("crates/triage/src/a.rs", code),
                ("runbooks/locks.md", book),
            ]),
            &kinds,
        );
        assert_eq!(
            found,
            [
                "runbooks: none has `idle` among its findings",
                "runbooks/locks.md: there is no finding `lock-dead`"
            ]
        );
    }

    #[test]
    fn the_names_of_variants_are_those_in_code() {
        assert!(known_kinds().contains(&("AwaitCycle".into(), "await-cycle")));
    }
}
