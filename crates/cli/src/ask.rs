//! `why`, `root`, `find` and `heap --objects`: questions about one thing.

use crate::args::{FileArgs, FindArgs, HeapArgs, RootArgs, WhyArgs};
use crate::commands::{ask_runtime, ask_runtime_with, limit, print, shown};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::output::Destination;
use crate::symbols;
use asynctriage_dump::Addr;
use asynctriage_report::{self as report, Address, WhyReport};
use asynctriage_triage::{Analysis, Values, views};
use std::path::{Path, PathBuf};

/// Why something waits.
pub(crate) fn why(args: &WhyArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let values = Values::shown(args.show_values);
    let report = explained(
        &args.dump,
        (&args.files, &args.symbols),
        &args.subject,
        values,
    )?;
    print(&destination, &args.output, true, &report, report::why)?;
    Ok(Exit::Written)
}

/// Why a subject of a dump waits, with the files and folders of symbols that complete the dump.
pub(crate) fn explained(
    dump: &Path,
    (files, symbols): (&FileArgs, &[PathBuf]),
    word: &str,
    values: Values,
) -> Result<WhyReport, CliError> {
    let subject = subject(word)?;
    let found = ask_runtime_with(dump, files, symbols, |runtime| {
        let runtime = runtime.with_points(symbols::lists(symbols));
        let analysis = Analysis::new(&runtime)
            .with_symbols([symbols, &files.module_path].concat())
            .with_values(values);
        views::why(&analysis, &subject)
    })?;
    let mut report = found.ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            format!("nothing that waits or runs is {word}"),
            "name a chain of the report (C3), an object of one, or a thread; `asynctriage root` says what keeps any object",
        )
    })?;
    report.dump = shown(dump);
    Ok(report)
}

/// What the word for a chain, thread or object means.
fn subject(word: &str) -> Result<views::Subject, CliError> {
    let small = word.to_ascii_lowercase();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = small.strip_prefix("thread:").or(small.strip_prefix("t:"))
        && let Ok(number) = number.parse()
    {
        return Ok(views::Subject::Thread(number));
    }
    let group = small.split('.').next().unwrap_or_default();
    // an address of two digits is none of an object
    if group.strip_prefix('c').is_some_and(digits) && group.len() < 8 {
        return Ok(views::Subject::Chain(small));
    }
    let address: Result<Address, _> = word.parse();
    match address {
        Ok(address) => Ok(views::Subject::Object(Addr(address.0))),
        Err(e) => Err(CliError::new(
            Exit::Usage,
            format!("'{word}' is no chain, thread or address"),
            "give C3, thread:4711 or 0x7f12000010a0",
        )
        .because(e)),
    }
}

/// What keeps an object alive.
pub(crate) fn root(args: &RootArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let found = ask_runtime(&args.dump, &args.files, |runtime| {
        let runtime = runtime.with_points(symbols::lists(&[]));
        let analysis = Analysis::new(&runtime);
        views::root(&analysis, Addr(args.address.0), args.limit.max(1))
    })?;
    let mut report = found.ok_or_else(|| no_object(args.address))?;
    report.dump = shown(&args.dump);
    print(&destination, &args.output, true, &report, report::roots)?;
    Ok(Exit::Written)
}

/// Texts of the heap.
pub(crate) fn find(args: &FindArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let mut report = ask_runtime(&args.dump, &args.files, |runtime| {
        let most = limit(args.limit, args.all);
        views::texts(&Analysis::new(&runtime), &args.string, most)
    })?;
    report.dump = shown(&args.dump);
    print(
        &destination,
        &args.output,
        args.all,
        &report,
        report::objects,
    )?;
    Ok(Exit::Written)
}

/// The objects of some types.
pub(crate) fn objects(args: &HeapArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let mut report = ask_runtime(&args.dump, &args.files, |runtime| {
        let most = limit(args.limit, args.all);
        let values = Values::shown(args.show_values);
        views::objects(&Analysis::new(&runtime), &args.types, most, values)
    })?;
    report.dump = shown(&args.dump);
    print(
        &destination,
        &args.output,
        args.all,
        &report,
        report::objects,
    )?;
    Ok(Exit::Written)
}

/// For addresses at which no object starts.
pub(crate) fn no_object(address: Address) -> CliError {
    CliError::new(
        Exit::Usage,
        format!("no object of .NET begins at {address}"),
        "take an address from the report's members, or from `asynctriage heap --type NAME --objects`",
    )
}

#[cfg(test)]
mod tests {
    use super::subject;
    use asynctriage_dump::Addr;
    use asynctriage_triage::views::Subject;

    #[test]
    fn a_word_is_a_chain_a_thread_or_an_address() {
        let parse = |word| subject(word).map_err(|e| e.render());
        assert_eq!(parse("C3"), Ok(Subject::Chain("c3".into())));
        assert_eq!(parse("c12.4"), Ok(Subject::Chain("c12.4".into())));
        assert_eq!(parse("thread:4711"), Ok(Subject::Thread(4711)));
        let object = Ok(Subject::Object(Addr(0x7f12_0000_10a0)));
        assert_eq!(parse("7f12000010a0"), object);
        assert_eq!(parse("0x7F12000010A0"), object);
        assert!(parse("thread:x").is_err() && parse("orders").is_err());
    }
}
