//! Ctrl-C, for commands that have something to bring to an end first.

use crate::errors::CliError;
use crate::exit::Exit;

/// Calls `heard` at each Ctrl-C (and SIGTERM) from now on, on a thread of its own; the program goes on.
pub(crate) fn on_interrupt(heard: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    ctrlc::set_handler(heard).map_err(|e| {
        CliError::new(
            Exit::Internal,
            "cannot listen for Ctrl-C",
            "report this as an error of asynctriage",
        )
        .because(e)
    })
}
