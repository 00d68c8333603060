//! The JSON schemas of all documents.

use crate::args::SchemaArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::output::Destination;
use asynctriage_report::SCHEMAS;
use std::path::Path;

/// Prints a schema, or the kinds of documents that have one.
pub(crate) fn schema(args: &SchemaArgs) -> Result<Exit, CliError> {
    // there is no dump that the output could overwrite
    let destination = Destination::new(&args.output, Path::new(""))?;
    let Some(wanted) = args.kind.as_ref().or(args.named.as_ref()) else {
        let kinds: String = SCHEMAS
            .iter()
            .map(|(kind, _)| format!("{kind}\n"))
            .collect();
        destination.write(&kinds)?;
        return Ok(Exit::Written);
    };
    let Some((_, text)) = SCHEMAS.iter().find(|(kind, _)| kind == wanted) else {
        return Err(CliError::new(
            Exit::Usage,
            format!("there is no kind of document called {wanted}"),
            "asynctriage schema lists the kinds",
        ));
    };
    destination.write(text)?;
    Ok(Exit::Written)
}
