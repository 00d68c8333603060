//! Which crate may use which.

use serde_json::Value;

/// A crate and those that it may use; the order is from the bottom up.
const LAYERS: &[(&str, &[&str])] = &[
    ("diagnostics", &[]),
    ("dump", &[]),
    ("metadata", &[]),
    ("report", &[]),
    ("pages", &["report"]),
    ("fleet", &["report"]),
    ("dump-synth", &[]),
    ("nettrace", &[]),
    ("async-trace", &["nettrace"]),
    ("image", &["dump"]),
    ("clr", &["dump", "image", "metadata"]),
    ("async-graph", &["dump", "metadata", "clr"]),
    (
        "triage",
        &[
            "dump",
            "image",
            "metadata",
            "report",
            "clr",
            "async-graph",
            "nettrace",
            "async-trace",
        ],
    ),
    (
        "cli",
        &[
            "diagnostics",
            "dump",
            "image",
            "metadata",
            "report",
            "pages",
            "fleet",
            "clr",
            "async-graph",
            "nettrace",
            "triage",
        ],
    ),
    (
        "fuzz",
        &[
            "dump",
            "dump-synth",
            "image",
            "metadata",
            "report",
            "pages",
            "clr",
            "async-graph",
            "nettrace",
            "async-trace",
            "triage",
        ],
    ),
    (
        "xtask",
        &[
            "dump", "image", "metadata", "report", "clr", "triage", "cli", "fuzz",
        ],
    ),
];

/// Only tests may use it.
const FOR_TESTS: &str = "dump-synth";

/// `metadata` is what `cargo metadata --no-deps` prints.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    packages.iter().flat_map(package).collect()
}

fn package(package: &Value) -> Vec<String> {
    let name = short(&package["name"]);
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![format!(
            "crate `{name}` is not in the list of layers in xtask/src/tidy/edges.rs"
        )];
    };
    let dependencies = package["dependencies"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let ours = dependencies.iter().filter(|d| d["path"].is_string());
    let wrong = ours.filter(|d| {
        let used = short(&d["name"]);
        !(allowed.contains(&used) || used == FOR_TESTS && d["kind"] == "dev")
    });
    wrong
        .map(|d| format!("crate `{name}` must not use `{}`", short(&d["name"])))
        .collect()
}

/// The name without the prefix that all of them share.
fn short(name: &Value) -> &str {
    match name.as_str().unwrap_or_default() {
        "asynctriage" => "cli",
        name => name.strip_prefix("asynctriage-").unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaints(name: &str, uses: &str, kind: Option<&str>) -> Vec<String> {
        let uses =
            json!([{"name": uses, "path": "/x", "kind": kind}, {"name": "object", "kind": null}]);
        check(&json!({"packages": [{"name": name, "dependencies": uses}]}))
    }

    #[test]
    fn downwards_is_allowed_upwards_is_not() {
        assert_eq!(
            complaints("asynctriage-clr", "asynctriage-image", None),
            [""; 0]
        );
        assert_eq!(
            complaints("asynctriage-dump", "asynctriage-image", None),
            ["crate `dump` must not use `image`"]
        );
        assert_eq!(
            complaints("asynctriage-report", "asynctriage-dump", Some("dev")).len(),
            1
        );
        assert_eq!(
            complaints("asynctriage", "asynctriage-triage", None),
            [""; 0]
        );
    }

    #[test]
    fn made_dumps_are_for_tests_only() {
        assert_eq!(
            complaints("asynctriage-dump", "asynctriage-dump-synth", Some("dev")),
            [""; 0]
        );
        assert_eq!(
            complaints("asynctriage", "asynctriage-dump-synth", None).len(),
            1
        );
    }

    #[test]
    fn a_new_crate_needs_a_layer() {
        assert!(complaints("asynctriage-new", "asynctriage-dump", None)[0].contains("`new`"));
    }

    #[test]
    fn every_layer_uses_only_what_stands_above_it_in_the_table() {
        for (index, (name, uses)) in LAYERS.iter().enumerate() {
            for used in *uses {
                assert!(
                    LAYERS[..index].iter().any(|(n, _)| n == used),
                    "{name} uses {used}"
                );
            }
        }
    }
}
