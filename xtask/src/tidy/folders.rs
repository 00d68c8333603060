//! The folders of triage: which may import from which, and how long a function may be.

use super::code::{code_only, has_word};
use super::tree::{File, Tree};

/// The sources that the order holds for.
const TRIAGE: &str = "crates/triage/src/";
/// Folders and files of [`TRIAGE`] from the bottom up: each may import from itself and from those before it. As an import
/// against this order fails, so does a circle over folders.
const ORDER: &[&str] = &[
    "words",
    "options",
    "facts",
    "process",
    "lines",
    "libraries",
    "threads",
    "paths",
    "leaves",
    "chains",
    "holders",
    "completers",
    "waitfor",
    "findings",
    "summary",
    "views",
    "services",
    "diff",
    "trace",
];
/// The root names all of them.
const ROOT: &str = "lib.rs";
/// What fits a screen.
const MAX_LINES: usize = 80;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let files = tree.rust().filter(|f| f.path.starts_with(TRIAGE));
    files
        .flat_map(|file| {
            let code = code_only(&file.text);
            let mut all = order(file, &code);
            all.extend(long_functions(file, &code));
            all
        })
        .collect()
}

/// Imports of a file against the order.
fn order(file: &File, code: &str) -> Vec<String> {
    let inside = file.path.strip_prefix(TRIAGE).unwrap_or_default();
    if inside == ROOT {
        return Vec::new();
    }
    let own = inside.split(['/', '.']).next().unwrap_or_default();
    let Some(height) = ORDER.iter().position(|name| *name == own) else {
        return vec![format!(
            "{}: `{own}` has no place in the order of xtask/src/tidy/folders.rs",
            file.path
        )];
    };
    let mut complaints = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for used in imported(line, depth(inside)) {
            let above = ORDER.iter().position(|name| *name == used);
            if above.is_some_and(|used| used > height) {
                complaints.push(format!(
                    "{}:{}: `{own}` must not import from `{used}`, which stands above it",
                    file.path,
                    index.saturating_add(1)
                ));
            }
        }
    }
    complaints
}

/// How many times `super` leads from a file to the root.
fn depth(inside: &str) -> usize {
    let folders = inside.split('/').count();
    // `mod.rs` is the module of its folder
    if inside.ends_with("/mod.rs") {
        folders.saturating_sub(1)
    } else {
        folders
    }
}

/// The modules of the root that a line names, by `crate::` or by climbing to it.
fn imported(line: &str, depth: usize) -> Vec<&str> {
    let climb = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", climb.as_str()] {
        for behind in line.split(root).skip(1) {
            let several = behind.strip_prefix('{');
            let names = several.map_or(behind, |list| list.split('}').next().unwrap_or(list));
            let names = names
                .split(',')
                .take(if several.is_some() { usize::MAX } else { 1 });
            found.extend(names.map(|n| {
                let n = n.trim_start();
                let end = n.find(|c: char| !c.is_alphanumeric() && c != '_');
                n.get(..end.unwrap_or(n.len())).unwrap_or_default()
            }));
        }
    }
    found
}

/// Functions that do not fit a screen.
fn long_functions(file: &File, code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().collect();
    let mut complaints = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if !has_word(line, "fn") || line.trim_start().starts_with("type ") {
            continue;
        }
        let Some(length) = length(lines.get(start..).unwrap_or_default()) else {
            continue;
        };
        if length > MAX_LINES {
            complaints.push(format!(
                "{}:{}: a function of {length} lines does not fit a screen; {MAX_LINES} do",
                file.path,
                start.saturating_add(1)
            ));
        }
    }
    complaints
}

/// Lines from a function's first one to the brace that ends it; `None` for one without a body.
fn length(lines: &[&str]) -> Option<usize> {
    let mut open = 0_usize;
    let mut brackets = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '[' => brackets = brackets.saturating_add(1),
                ']' => brackets = brackets.saturating_sub(1),
                ';' if open == 0 && brackets == 0 => return None,
                '{' => open = open.saturating_add(1),
                '}' => {
                    open = open.checked_sub(1)?;
                    if open == 0 {
                        return Some(index.saturating_add(1));
                    }
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&tree([(&format!("{TRIAGE}{path}"), text)]))
    }

    #[test]
    fn imports_lead_down() {
        let down = "use crate::paths::Path;\nuse crate::words::several;\nuse super::roots;\n";
        assert_eq!(complaints("chains/groups.rs", down), [""; 0]);
        assert_eq!(
            complaints("paths/steps.rs", "// why\nuse crate::chains::Groups;\n"),
            [format!(
                "{TRIAGE}paths/steps.rs:2: `paths` must not import from `chains`, which stands above it"
            )]
        );
        assert_eq!(complaints("lib.rs", "use crate::trace::Trace;"), [""; 0]);
        assert_eq!(
            complaints("words.rs", "fn a() { crate::trace::b(); }").len(),
            1
        );
    }

    #[test]
    fn a_way_over_the_root_is_no_way_around() {
        assert_eq!(
            complaints("paths/steps.rs", "use crate::{leaves, words};").len(),
            1
        );
        assert_eq!(
            complaints("paths/steps.rs", "use super::super::leaves::leaf;").len(),
            1
        );
        assert_eq!(
            complaints("paths/mod.rs", "use super::leaves::leaf;").len(),
            1
        );
        assert_eq!(
            complaints("threads/waits/rw.rs", "use super::super::trace;"),
            [""; 0]
        );
    }

    #[test]
    fn a_new_folder_needs_a_place() {
        assert!(complaints("news/mod.rs", "")[0].contains("`news` has no place"));
    }

    #[test]
    fn functions_fit_a_screen() {
        let body = |lines: usize| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        assert_eq!(complaints("words.rs", &body(MAX_LINES - 2)), [""; 0]);
        assert_eq!(complaints("words.rs", &body(MAX_LINES - 1)).len(), 1);
        assert_eq!(complaints("words.rs", "trait A { fn b(); }\n"), [""; 0]);
        let array = body(MAX_LINES).replace("a()", "a() -> [u8; 2]");
        assert_eq!(complaints("words.rs", &array).len(), 1);
    }
}
