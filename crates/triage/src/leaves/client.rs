//! Waits inside the methods of client libraries.

use crate::facts::{Awaited, ClientWait};
use crate::libraries::Owner;
use crate::libraries::database::{command_dialect, command_wait};
use crate::paths::{Analysis, Path, Step};
use asynctriage_dump::Addr;

impl Analysis<'_, '_> {
    /// Waits inside a library's methods, for what nothing below names: the innermost frames up to the first one that
    /// is the program's own.
    pub(super) fn lift_to_library(&self, path: &Path, found: Awaited) -> Awaited {
        let over = found.kind();
        let mut kind = None;
        let (mut command, mut object) = (None, None);
        for step in self.steps(path) {
            let client = match self.step_owner(step) {
                Owner::Library(client) => client,
                Owner::Program => break,
                Owner::Framework => continue,
            };
            kind = Some(client.kind);
            let variables = self.captured(step);
            command = command.or_else(|| self.command_among(&variables));
            object = object.or_else(|| client.wait_among(self.libraries(), &variables, over));
        }
        let Some(kind) = kind.filter(|k| *k != over) else {
            return found;
        };
        let is_library = |s: &Step<'_>| matches!(self.step_owner(*s), Owner::Library(_));
        let first = self.steps(path).find(is_library);
        // a command tells more than the connection that carries it out
        let wait: Option<ClientWait> = command.or(object);
        Awaited::Library {
            kind: wait.as_ref().map_or(kind, |w| w.kind),
            method: first.map(|s| self.step_name(s)),
            wait,
            over: Box::new(found),
        }
    }

    fn command_among(&self, variables: &[Addr]) -> Option<ClientWait> {
        let command = |v: &Addr| Some(command_wait(self.rt, *v, command_dialect(self.rt, *v)?));
        variables.iter().find_map(command)
    }
}
