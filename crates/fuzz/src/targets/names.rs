//! Arbitrary names of types, methods and fields, one on a line.

use asynctriage_metadata::TypePath;
use asynctriage_metadata::names::{hoisted_local, method, simple_type_name, state_machine_method};

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
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
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let names = [
        "<Run>d__3\nShop.Orders\nSystem.Int32\n__Canon\n\nOuter\n<>c__DisplayClass4_0",
        "<<Main>b__0_1>d\n\nA\nB\nC\nProgram\n<>c",
        "<>s__2\nX`2\nT\n\n\nA+B`1",
        "<order>5__2",
    ];
    names.iter().map(|n| n.as_bytes().to_vec()).collect()
}
