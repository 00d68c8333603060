//! Folders of the command line: one that is not there would change the answer without a word.

use crate::args::{FileArgs, FilterArgs};
use crate::errors::CliError;
use crate::exit::Exit;
use std::path::PathBuf;

impl FileArgs {
    /// Refuses folders that do not exist.
    pub(crate) fn check(&self, symbols: &[PathBuf]) -> Result<(), CliError> {
        let all = [
            ("--symbols", symbols, false),
            ("--module-path", &self.module_path, true),
            ("--sysroot", &self.sysroot, true),
        ];
        for (option, paths, must_be_folder) in all {
            for path in paths {
                let what = match (path.exists(), path.is_dir()) {
                    (false, _) => "does not exist",
                    (true, false) if must_be_folder => "is no folder",
                    _ => continue,
                };
                let message = format!("{option} {} {what}", path.display());
                return Err(CliError::new(Exit::Usage, message, "check the path"));
            }
        }
        Ok(())
    }
}

impl FilterArgs {
    /// Whether nothing is filtered.
    pub(crate) fn is_empty(&self) -> bool {
        self.types.is_empty() && self.methods.is_empty() && self.leaves.is_empty()
    }
}
