//! Questions about one thing: `why`, `root`, `find`, the objects of a type, and collections in `show`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Three orders of two customers wait; a bag holds every collection. The source lies beside it.
const SHOP: &str = "shop-10.0.15.dmp.gz";

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(testdumps())
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts")
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--format", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text(args: &[&str]) -> String {
    let output = run(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn list<'r>(value: &'r Value, name: &str) -> &'r Vec<Value> {
    value[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

/// The addresses of the objects of exactly this type.
fn addresses(dump: &str, of: &str) -> Vec<String> {
    let found = json(&["heap", dump, "--type", of, "--objects", "--all"]);
    let rows = list(&found, "objects").iter();
    rows.filter(|r| r["type"] == of)
        .map(|r| r["address"].as_str().expect("an address").to_owned())
        .collect()
}

/// The fields of the bag, by name, with the object that each leads to.
fn bag() -> Vec<(String, Value)> {
    let [bag] = &addresses(SHOP, "Shop.Bag")[..] else {
        panic!("one bag")
    };
    let bag = json(&["show", SHOP, bag]);
    let fields = list(&bag, "fields").iter();
    fields
        .map(|f| {
            let link = f["link"].as_str().expect("a reference");
            let shown = json(&["show", SHOP, link, "--show-values"]);
            (f["name"].as_str().expect("a name").to_owned(), shown)
        })
        .collect()
}

/// What a collection holds: `key=value`, or the values alone where keys are places.
fn elements(shown: &Value) -> String {
    let rows = list(&shown["elements"], "rows").iter().enumerate();
    let texts: Vec<String> = rows
        .map(|(i, row)| {
            let (key, value) = (row["key"].as_str().unwrap(), row["value"].as_str().unwrap());
            if key == i.to_string() {
                value.to_owned()
            } else {
                format!("{key}={value}")
            }
        })
        .collect();
    texts.join(" ")
}

#[test]
fn collections_are_shown_by_their_elements() {
    let bag = bag();
    let of = |name: &str| {
        let found = bag.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    };
    for (name, collection, holds) in [
        (
            "ByPair",
            "Dictionary",
            "(Item1: 1, Item2: 2)=33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff",
        ),
        ("Names", "HashSet", "\"ada\" \"cleo\""),
        ("Ring", "Queue", "2 3 4"),
        ("Last", "Stack", "\"second\" \"first\""),
        ("Linked", "LinkedList", "0 1 2"),
        ("Sorted", "SortedList", "\"a\"=1 \"b\"=2"),
        ("Urgent", "PriorityQueue", "1=\"now\" 9=\"later\""),
        ("Bytes", "List", "7 8"),
        (
            "Maybe",
            "List",
            "(hasValue: true, value: true) (hasValue: false, value: false)",
        ),
        ("Empty", "Dictionary", ""),
    ] {
        let elements_of = &of(name)["elements"];
        assert_eq!(elements_of["collection"], collection, "{name}");
        assert_eq!(elements(of(name)), holds, "{name}");
        assert_eq!(elements_of["is_cut"], false, "{name}");
    }
    let numbers = &of("ByNumber")["elements"];
    assert_eq!(numbers["count"], 38, "two were removed");
    assert_eq!(numbers["rows"][2]["key"], "30");
    assert_eq!(numbers["rows"][2]["value"], "\"number 3\"");
    let lines: Vec<String> = (5..100).map(|n| n.to_string()).collect();
    assert_eq!(elements(of("Lines")), lines.join(" "));
    assert_eq!(of("Lines")["elements"]["count"], 95);
    let orders = addresses(SHOP, "Shop.Order");
    assert_eq!(elements(of("Orders")), orders[..3].join(" "));
    let shared = &of("Shared")["elements"];
    assert_eq!(shared["collection"], "ConcurrentDictionary");
    assert_eq!(list(shared, "rows").len(), 3);
    assert_eq!(list(shared, "rows")[0]["key"], "101000000000");
}

#[test]
fn arrays_are_read_whatever_their_rank_and_element() {
    let bag = bag();
    let values = |name: &str| {
        let shown = &bag.iter().find(|(n, _)| n == name).expect("a field").1;
        let fields = list(shown, "fields").iter();
        fields
            .map(|f| f["value"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(values("Grid"), "1 2 3 4 5 6");
    assert_eq!(values("States"), "0 4");
    assert_eq!(values("Key"), "1 2 3");
}

#[test]
fn elements_are_bounded_and_hide_texts() {
    let names = bag().into_iter().find(|(n, _)| n == "ByNumber").unwrap().1;
    let address = names["address"].as_str().unwrap();
    let shown = text(&["show", SHOP, address, "--limit", "3"]);
    assert!(shown.contains("text of 8 characters"), "{shown}");
    assert!(!shown.contains("number 1"), "{shown}");
    assert!(shown.contains("more elements not shown"), "{shown}");
    let cut = json(&["show", SHOP, address, "--limit", "3"]);
    assert_eq!(list(&cut["elements"], "rows").len(), 3);
    assert_eq!(cut["elements"]["count"], 38);
}

/// The ways to an object, certain ones only.
fn paths(dump: &str, address: &str) -> Vec<String> {
    let found = json(&["root", dump, address]);
    let paths = list(&found, "paths").iter();
    paths
        .filter(|p| p["confidence"] == "certain")
        .map(|p| p["path"].as_str().expect("a path").to_owned())
        .collect()
}

#[test]
fn roots_are_told_as_the_source_names_them() {
    let orders = addresses(SHOP, "Shop.Order");
    assert_eq!(
        paths(SHOP, &orders[2]),
        [
            "static Shop.Program.s_pending[103]",
            "static Shop.Program.s_bag.ByName[…]",
            "local order of Shop.Program.Ship",
            "what Shop.Program.Serve awaits.order",
        ]
    );
    let by = |wanted: &str| {
        let all: Vec<Vec<String>> = orders.iter().map(|o| paths(SHOP, o)).collect();
        let found = all.iter().flatten().any(|p| p.starts_with(wanted));
        assert!(found, "{wanted}: {all:?}");
    };
    by("static Shop.Program.s_key ⇒ (ConditionalWeakTable)");
    by("strong handle → Shop.Order");
    by("static Shop.Program.s_tail[0][0][0]");
    let customers = addresses(SHOP, "Shop.Customer");
    let of_threads = customers.iter().flat_map(|c| paths(SHOP, c));
    let of_threads: Vec<String> = of_threads
        .filter(|p| p.starts_with("thread statics"))
        .collect();
    assert_eq!(of_threads.len(), 1, "{of_threads:?}");
}

#[test]
fn what_only_a_stack_names_is_possible_and_garbage_has_no_root() {
    let order = addresses(SHOP, "Shop.Order");
    let last = order.last().expect("orders");
    let found = json(&["root", SHOP, last]);
    let only = &list(&found, "paths")[0];
    assert_eq!(only["kind"], "stack");
    assert_eq!(only["confidence"], "possible");
    assert!(
        only["root"]
            .as_str()
            .unwrap()
            .ends_with("in Shop.Program.Hold")
    );
    assert!(paths(SHOP, last).is_empty());
    assert!(!run(&["root", SHOP, "0x10"]).status.success());
}

#[test]
fn why_goes_from_a_lock_to_the_thread_that_holds_it_and_back() {
    let dump = "locks-10.0.15.dmp.gz";
    let report = json(&[dump]);
    let blocked = list(&report, "threads").iter().find(|t| {
        let wait = t["waits_on"]["text"].as_str().unwrap_or_default();
        wait.contains("held by 'stock-then-orders'")
    });
    let thread = blocked.expect("a blocked thread")["os_id"].to_string();
    let why = json(&["why", dump, &format!("thread:{thread}")]);
    let steps = list(&why, "steps");
    let relations: Vec<&str> = steps
        .iter()
        .map(|s| s["relation"].as_str().unwrap())
        .collect();
    assert_eq!(relations, ["asked", "held-by", "held-by"]);
    assert_eq!(steps[2]["end"], "cycle");
    assert_eq!(steps[2]["same_as"], 1);
    assert!(
        why["conclusions"][0]
            .as_str()
            .unwrap()
            .contains("waits for itself")
    );
    // the lock's object means the same deadlock
    let lock = blocked.unwrap()["waits_on"]["address"].as_str().unwrap();
    let of_lock = json(&["why", dump, lock]);
    assert!(list(&of_lock, "steps").iter().any(|s| s["end"] == "cycle"));
}

#[test]
fn why_goes_from_a_pool_of_connections_to_the_server() {
    let dump = "web-11.0.0.dmp.gz";
    let story = text(&["why", dump, "C2"]);
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("why_web", story);
    });
    let why = json(&["why", dump, "C2"]);
    let ends: Vec<&Value> = list(&why, "steps")
        .iter()
        .filter_map(|s| s.get("end"))
        .collect();
    assert!(
        !ends.is_empty() && ends.iter().all(|e| *e == "remote"),
        "{ends:?}"
    );
}

#[test]
fn why_knows_chains_members_objects_and_sources() {
    let report = json(&[SHOP]);
    let group = &list(&report, "chains")[0];
    let boxes = list(&group["members"][0], "boxes");
    let source = group["leaf"]["details"]["owner"]
        .as_str()
        .expect("a source");
    for subject in ["C1", "c1.1", boxes[0].as_str().unwrap(), source] {
        let why = json(&["why", SHOP, subject]);
        assert_eq!(list(&why, "steps")[0]["chain"], "C1", "{subject}");
    }
    let never = json(&["why", "never-10.0.15.dmp.gz", "C19"]);
    assert_eq!(list(&never, "steps")[1]["end"], "nothing");
    let unknown = run(&["why", SHOP, "C9"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("nothing that waits or runs is C9"), "{said}");
}

#[test]
fn texts_are_found_only_by_who_may_see_them() {
    let refused = run(&["find", SHOP, "--string", "number 3"]);
    assert_eq!(refused.status.code(), Some(2));
    let found = json(&["find", SHOP, "--string", "NUMBER 3", "--show-values"]);
    let texts: Vec<&str> = list(&found, "objects")
        .iter()
        .map(|r| r["text"].as_str().unwrap())
        .collect();
    assert_eq!(found["count"], 11, "{texts:?}");
    assert!(texts.contains(&"number 39"), "{texts:?}");
}

#[test]
fn the_names_of_chains_do_not_depend_on_what_is_listed() {
    for dump in [SHOP, "web-11.0.0.dmp.gz", "web-idle-11.0.0.dmp.gz"] {
        let (some, all) = (json(&[dump]), json(&[dump, "--all"]));
        let names = |report: &Value| -> Vec<(String, String)> {
            let chains = list(report, "chains").iter();
            chains
                .map(|c| (c["id"].to_string(), c["signature"].to_string()))
                .collect()
        };
        let (some, all) = (names(&some), names(&all));
        assert_eq!(some, all[..some.len()], "{dump}");
    }
}

#[test]
fn why_takes_folders_of_symbols() {
    let dump = "states-10.0.15.dmp.gz";
    let with = text(&["why", dump, "C1", "--symbols", "."]);
    assert!(with.contains("Basic.cs:"), "{with}");
    assert!(!text(&["why", dump, "C1"]).contains("Basic.cs:"));
}
