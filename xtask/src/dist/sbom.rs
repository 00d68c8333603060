//! The bill of materials: which crates the program is made of, as CycloneDX 1.5 says it. Without a time and a serial
//! number, so that the same sources make the same bytes.

use super::licences::Linked;
use crate::shell::root;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The document for what is linked into the program.
pub(super) fn document(linked: &Linked, version: &str) -> Result<Vec<u8>> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock")?;
    let checksums = checksums(&lock);
    let components: Vec<Value> = linked
        .foreign()
        .map(|package| component(package, &checksums))
        .collect();
    let program = format!("pkg:cargo/asynctriage@{version}");
    let uses: Vec<&str> = components
        .iter()
        .filter_map(|c| c["bom-ref"].as_str())
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": program,
                "name": "asynctriage",
                "version": version,
                "licenses": [{ "license": { "id": "MIT" } }],
            },
        },
        "dependencies": [{ "ref": program, "dependsOn": uses }],
        "components": components,
    });
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut out = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "scope": "required",
    });
    if let Some(licence) = package["license"].as_str() {
        // old manifests separate alternatives by a slash
        out["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        out["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    out
}

/// The checksums of the lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, key: &str| {
        let prefix = format!("{key} = \"");
        let line = block.lines().find_map(|l| l.strip_prefix(&prefix))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]");
    blocks
        .filter_map(|b| {
            let key = (field(b, "name")?, field(b, "version")?);
            Some((key, field(b, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets;

    #[test]
    fn every_crate_has_a_licence_and_a_checksum() {
        let linked = Linked::of(&targets::host().unwrap()).unwrap();
        let bytes = document(&linked, "1.2.3").unwrap();
        assert_eq!(bytes, document(&linked, "1.2.3").unwrap());
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let components = document["components"].as_array().unwrap();
        assert!(components.len() > 20, "{}", components.len());
        for component in components {
            let hash = component["hashes"][0]["content"].as_str().unwrap();
            assert_eq!(hash.len(), 64, "{component}");
            assert!(
                component["licenses"][0]["expression"].is_string(),
                "{component}"
            );
        }
        let names: Vec<&str> = components
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert!(
            names.contains(&"memmap2") && !names.contains(&"insta"),
            "{names:?}"
        );
    }
}
