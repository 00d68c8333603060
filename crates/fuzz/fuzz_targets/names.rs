//! Arbitrary names of types, methods and fields, one on a line.
#![no_main]

use asynctriage_metadata::TypePath;
use asynctriage_metadata::names::{hoisted_local, method, simple_type_name, state_machine_method};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines().map(str::to_owned);
    let (name, namespace) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let _ = hoisted_local(&name).map(|l| l.source_name().map(str::len));
    let _ = simple_type_name(&name);
    let args: Vec<_> = lines.by_ref().take(3).collect();
    let path = TypePath {
        namespace,
        segments: lines.collect(),
    };
    let _ = state_machine_method(&path, &args).numbered(2);
    let _ = method(&path, &args, &name, &args);
});
