//! Prints the JSON schema of the report of a dump, with the argument `trace` that of a recording, with `observe` that of an
//! experiment, with `brief` that of the short form, with `services` that of several dumps, with `diff` that of dumps
//! compared, with `manifest`, `claims` and `verify` those of a bundle of evidence; the schemas beside the crate are these texts.

use asynctriage_report::{
    brief_schema, claims_schema, diff_schema, json, manifest_schema, observe_schema, schema,
    services_schema, trace_schema, verify_schema,
};
use std::io::{Error, Write, stdout};

fn main() -> std::io::Result<()> {
    let asked = std::env::args().nth(1);
    let schema = match asked.as_deref() {
        Some("brief") => brief_schema(),
        Some("trace") => trace_schema(),
        Some("observe") => observe_schema(),
        Some("services") => services_schema(),
        Some("diff") => diff_schema(),
        Some("manifest") => manifest_schema(),
        Some("claims") => claims_schema(),
        Some("verify") => verify_schema(),
        _ => schema(),
    };
    let text = json(&schema).map_err(Error::other)?;
    stdout().write_all(text.as_bytes())
}
