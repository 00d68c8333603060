//! Waits inside the methods of client libraries.

use crate::libraries::database::{command_dialect, command_leaf};
use crate::libraries::{DEPENDENCY, Owner};
use crate::paths::{Analysis, Path, Step};
use asynctriage_dump::Addr;
use asynctriage_report::Leaf;
use serde_json::json;

impl Analysis<'_, '_> {
    /// Waits inside a library's methods, for what nothing below names: the innermost frames up to the first one that
    /// is the program's own.
    pub(crate) fn lift_to_library(&self, path: &Path, found: &mut Leaf) {
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
            object = object.or_else(|| client.leaf_among(self.libraries(), &variables, found.kind));
        }
        let Some(mut kind) = kind.filter(|k| *k != found.kind) else {
            return;
        };
        let over = std::mem::take(&mut found.text);
        let first = || {
            let is_library = |s: &Step<'_>| matches!(self.step_owner(*s), Owner::Library(_));
            self.steps(path).find(is_library).map(|s| self.step_name(s))
        };
        // a command tells more than the connection that carries it out
        found.text = match command.or(object) {
            // what tells the server alone leaves open what is asked of it
            Some(leaf) => {
                kind = leaf.kind;
                found.details.extend(leaf.details);
                let is_server = |d: &serde_json::Value| d.as_str() == Some(&leaf.text);
                match first() {
                    Some(m) if found.details.get(DEPENDENCY).is_some_and(is_server) => {
                        format!("{}: {m}, over {over}", leaf.text)
                    }
                    _ => leaf.text,
                }
            }
            None => first()
                .map(|m| format!("{m}, over {over}"))
                .unwrap_or_default(),
        };
        found.details.insert("over".into(), json!(over));
        found.kind = kind;
    }

    fn command_among(&self, variables: &[Addr]) -> Option<Leaf> {
        let command = |v: &Addr| Some(command_leaf(self.rt, *v, command_dialect(self.rt, *v)?));
        variables.iter().find_map(command)
    }
}
