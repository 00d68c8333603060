//! Telling the async lambdas of one method apart, as state machines of lambdas are told apart in classic builds.

use super::method::{LAMBDA, MethodRef};
use crate::modules::Module;
use crate::runtime::Runtime;
use asynctriage_metadata::names;
use asynctriage_metadata::{Table, TypePath};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Methods of a module that are looked at.
const MAX_METHODS: u32 = 1 << 21;

/// Rows of the runtime-async lambdas of a module, by the name of their method, in the order of the metadata.
pub(super) type Lambdas = FxHashMap<String, Vec<u32>>;

impl Runtime<'_> {
    /// The place of a lambda among those of the same method, from 1; 0 when it is none.
    pub(super) fn lambda_number(&self, method: &MethodRef, path: &TypePath, name: &str) -> usize {
        let known = &self.code.lambdas;
        let found = known
            .read()
            .ok()
            .and_then(|k| k.get(&method.module).cloned());
        let lambdas = found.unwrap_or_else(|| {
            let read = Arc::new(lambdas_of(&self.module(method.module)));
            if let Ok(mut known) = known.write() {
                known.insert(method.module, Arc::clone(&read));
            }
            read
        });
        let rows = lambdas.get(&names::method(path, &[], name, &[]));
        rows.and_then(|r| r.iter().position(|rid| *rid == method.rid))
            .map_or(0, |i| i.saturating_add(1))
    }
}

fn lambdas_of(module: &Module<'_>) -> Lambdas {
    let mut out = Lambdas::default();
    let Some(metadata) = module.metadata.as_ref() else {
        return out;
    };
    for rid in 1..=metadata.rows(Table::MethodDef).min(MAX_METHODS) {
        let method = metadata
            .method(rid)
            .filter(|m| m.is_runtime_async() && m.name.starts_with('<'));
        let text = method.and_then(|m| {
            let path = metadata.type_path(metadata.method_owner(rid)?)?;
            Some(names::method(&path, &[], &m.name, &[]))
        });
        if let Some(text) = text.filter(|t| t.ends_with(LAMBDA)) {
            out.entry(text).or_default().push(rid);
        }
    }
    out
}
