//! Waits inside the methods of client libraries.

use crate::libraries::Owner;
use crate::libraries::database::{command_dialect, command_leaf};
use crate::paths::{Analysis, Path, Step};
use asynctriage_report::Leaf;
use serde_json::json;

impl Analysis<'_, '_> {
    /// Waits inside a library's methods, for what nothing below names: the innermost frames up to the first one that
    /// is the program's own.
    pub(crate) fn lift_to_library(&self, path: &Path, found: &mut Leaf) {
        let mut kind = None;
        let mut command = None;
        for step in self.steps(path) {
            match self.step_owner(step) {
                Owner::Library(client) => kind = Some(client.kind),
                Owner::Program => break,
                Owner::Framework => continue,
            }
            command = command.or_else(|| {
                let mut variables = self.captured(step).into_iter();
                variables.find_map(|v| Some((v, command_dialect(self.rt, v)?)))
            });
        }
        let Some(kind) = kind.filter(|k| *k != found.kind) else {
            return;
        };
        let over = std::mem::take(&mut found.text);
        if let Some((command, dialect)) = command {
            let leaf = command_leaf(self.rt, command, dialect);
            found.text = leaf.text;
            found.details.extend(leaf.details);
        } else {
            let is_library = |s: &Step<'_>| matches!(self.step_owner(*s), Owner::Library(_));
            let method = self.steps(path).find(is_library).map(|s| self.step_name(s));
            found.text = method
                .map(|m| format!("{m}, over {over}"))
                .unwrap_or_default();
        }
        found.details.insert("over".into(), json!(over));
        found.kind = kind;
    }
}
