//! The examples of the documentation are what the program prints.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first block of code behind a line that ends with `mark`.
fn example(file: &str, mark: &str) -> String {
    let text = std::fs::read_to_string(root().join(file)).expect("the page");
    let behind = text
        .split_once(mark)
        .unwrap_or_else(|| panic!("{file} lacks {mark}"));
    let block = behind.1.split("```\n").nth(1).expect("a block of code");
    block.to_owned()
}

/// Whether the parts of an example, between lines of three dots, stand in the output in their order.
#[track_caller]
fn assert_printed(example: &str, folder: &str, args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(root().join(folder))
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    let output = String::from_utf8(output.stdout).expect("UTF-8");
    let mut rest = output.as_str();
    for part in example
        .split("...\n")
        .map(str::trim)
        .filter(|p| !p.is_empty())
    {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("not printed:\n{part}\n\nbut:\n{rest}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    let example = example("README.md", "The first command prints:");
    assert!(example.lines().count() > 30);
    let args = ["testdumps/web-11.0.0.dmp.gz", "--symbols", "testdumps"];
    assert_printed(&example, ".", &args);
}

#[test]
fn the_reference_shows_what_is_printed_of_recordings() {
    let page = "crates/REFERENCE.md";
    let alone = example(page, "http-mixed-11.0.0.nettrace.gz` prints:");
    let args = ["trace", "testdumps/http-mixed-11.0.0.nettrace.gz"];
    assert_printed(&alone, ".", &args);
    let joined = example(page, "in `testdumps/joined`, prints:");
    let args = [
        "trace",
        "chain-11.0.0.nettrace.gz",
        "--dump",
        "chain-11.0.0.dmp.gz",
        "--symbols",
        "..",
    ];
    assert_printed(&joined, "testdumps/joined", &args);
}

#[test]
fn the_readme_is_short_and_its_links_lead_somewhere() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the page");
    assert!(text.lines().count() <= 250);
    for link in text.split("](").skip(1) {
        let target = link.split([')', '#']).next().expect("a target");
        assert!(root().join(target).exists(), "{target}");
    }
}
