//! The forms that a report can have.

use crate::args::{Form, OutputArgs, RenderArgs};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::output::Destination;
use crate::saved;
use asynctriage_pages as pages;
use asynctriage_report::{self as report, Report, TextOptions};

/// What is wanted of a report.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) output: &'a OutputArgs<Form>,
    /// The short form.
    pub(crate) brief: bool,
    /// No limits on rows.
    pub(crate) all: bool,
}

/// Writes a report in the form that is wanted; as text it is what `render` makes of it.
pub(crate) fn write(
    destination: &Destination,
    wanted: Wanted<'_>,
    report: &Report,
    render: impl Fn(&Report, &TextOptions) -> String,
) -> Result<(), CliError> {
    let text = if wanted.brief {
        report::json(&report::brief(report)).map_err(unwritable)?
    } else {
        match wanted.output.form() {
            Form::Text => {
                let options = destination.text_options(wanted.output, wanted.all);
                return destination.write_text(&render(report, &options));
            }
            Form::Json => report::json(report).map_err(unwritable)?,
            Form::Html => pages::html(report).map_err(unwritable)?,
            Form::Markdown => pages::markdown(report),
            Form::Dot => pages::dot(report),
        }
    };
    destination.write(&text)
}

/// A saved report in another form.
pub(crate) fn render(args: &RenderArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.report)?;
    let report = saved::open(&args.report)?;
    let wanted = Wanted {
        output: &args.output,
        brief: args.brief,
        all: args.all,
    };
    write(&destination, wanted, &report, report::text)?;
    Ok(Exit::Written)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn unwritable(error: serde_json::Error) -> CliError {
    CliError::new(
        Exit::Internal,
        format!("the report cannot be written as JSON: {error}"),
        "report this as an error of asynctriage",
    )
}
