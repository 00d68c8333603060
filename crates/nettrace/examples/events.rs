//! Prints what a trace holds: `cargo run --example events -- FILE`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;

use asynctriage_nettrace::Trace;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let file = std::fs::read(path)?;
    let trace = Trace::open(&file)?;
    let header = trace.header();
    println!(
        "version {}, process {:?}, {} Hz, from {}",
        header.version, header.pid, header.frequency, header.start
    );
    let mut events = trace.events();
    let mut counts = BTreeMap::<_, u64>::new();
    for event in &mut events {
        let kind = &event.kind;
        let what = (
            kind.provider.clone(),
            kind.id,
            kind.version,
            kind.name.clone(),
        );
        *counts.entry(what).or_default() += 1;
    }
    for ((provider, id, version, name), count) in counts {
        println!("{count:10}  {provider} {id} v{version} {name}");
    }
    println!("{:#?}", events.summary());
    Ok(())
}
