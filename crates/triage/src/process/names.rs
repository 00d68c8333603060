//! Methods by the names that a C# programmer would write.

use asynctriage_async_graph::Combinator;
use asynctriage_clr::{Runtime, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::{self, MethodName, simple_type_name};
use asynctriage_metadata::{Table, Token, TypePath};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// Types of a module that are looked at for lambdas of the same method.
const MAX_TYPES: u32 = 1 << 20;

/// Names of state machine types, each made once.
#[derive(Default)]
pub(crate) struct Names {
    by_type: RefCell<FxHashMap<Addr, Arc<str>>>,
    /// By module: the rows of the state machines of lambdas, by the name of their method.
    lambdas: RefCell<FxHashMap<Addr, FxHashMap<String, Vec<u32>>>>,
}

impl Names {
    /// The method that a state machine type was made for; lambdas of one method are told apart by number.
    pub(crate) fn method(&self, rt: &Runtime<'_>, ty: &Type) -> Arc<str> {
        if let Some(known) = self.by_type.borrow().get(&ty.mt) {
            return Arc::clone(known);
        }
        let name: Arc<str> = self.make(rt, ty).into();
        self.by_type.borrow_mut().insert(ty.mt, Arc::clone(&name));
        name
    }

    fn make(&self, rt: &Runtime<'_>, ty: &Type) -> String {
        let module = rt.module(ty.module);
        let Some(path) = module.metadata.as_ref().and_then(|m| m.type_path(ty.rid)) else {
            return rt.definition_name(ty).to_string();
        };
        let args: Vec<String> = rt
            .type_args(ty)
            .into_iter()
            .map(|a| simple_type_name(&rt.handle_name(a)))
            .collect();
        let around = module.metadata.as_ref().map_or(0, |m| {
            m.params_around_local(Token::new(Table::TypeDef, ty.rid))
        });
        let name = names::state_machine_around(&path, &args, around);
        if !name.is_lambda {
            return name.text;
        }
        let number = self.lambda_number(rt, ty, &path);
        name.numbered(number)
    }

    /// The place of a lambda's state machine among those of the same method, in the order of the metadata, from 1.
    fn lambda_number(&self, rt: &Runtime<'_>, ty: &Type, path: &TypePath) -> usize {
        let mut lambdas = self.lambdas.borrow_mut();
        let of_module = lambdas
            .entry(ty.module)
            .or_insert_with(|| lambdas_of(rt, ty.module));
        let rows = of_module.get(&definition(path).text);
        rows.and_then(|r| r.iter().position(|rid| *rid == ty.rid))
            .map_or(1, |i| i.saturating_add(1))
    }
}

fn definition(path: &TypePath) -> MethodName {
    names::state_machine_method(path, &[])
}

fn lambdas_of(rt: &Runtime<'_>, module: Addr) -> FxHashMap<String, Vec<u32>> {
    let mut out: FxHashMap<String, Vec<u32>> = FxHashMap::default();
    let module = rt.module(module);
    let Some(metadata) = module.metadata.as_ref() else {
        return out;
    };
    for rid in 1..=metadata.rows(Table::TypeDef).min(MAX_TYPES) {
        let could_be = metadata
            .type_def(rid)
            .is_some_and(|t| t.name.starts_with("<<"));
        let name = could_be
            .then(|| metadata.type_path(rid))
            .flatten()
            .map(|p| definition(&p));
        if let Some(name) = name.filter(|n| n.is_lambda) {
            out.entry(name.text).or_default().push(rid);
        }
    }
    out
}

/// The combinator as C# calls it.
pub(crate) fn combinator_text(combinator: Combinator) -> String {
    match combinator {
        Combinator::WhenAll => "Task.WhenAll",
        Combinator::WhenAny => "Task.WhenAny",
        Combinator::WaitAsync => "Task.WaitAsync",
        Combinator::Unwrap => "Task.Unwrap",
        Combinator::ContinueWith => "Task.ContinueWith",
        Combinator::AsTask => "ValueTask.AsTask",
    }
    .into()
}
