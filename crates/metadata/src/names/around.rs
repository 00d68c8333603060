//! Local functions of generic methods.

use super::shape::{MethodShape, Part, TypeShape, split_suffixes};
use crate::metadata::Metadata;
use crate::source::Source;
use crate::table::Table;
use crate::token::Token;

impl<S: Source> Metadata<S> {
    /// How many generic parameters a local function shares with the method around it, which come first: `owner` is a
    /// `TypeDef` or `MethodDef`, the state machine of the local function or itself. 0 for anything else, and where a
    /// closure has them.
    ///
    /// Names of the method are not unique: of overloads, the one counts with the most parameters that the local
    /// function has by the same names.
    #[must_use]
    pub fn params_around_local(&self, owner: Token) -> usize {
        self.around_local(owner).unwrap_or(0)
    }

    fn around_local(&self, owner: Token) -> Option<usize> {
        let names = |of| self.generic_params(of).map(|p| p.name).collect::<Vec<_>>();
        let all = names(owner);
        let is_type = owner.table() == Some(Table::TypeDef);
        let (name, outer) = if is_type {
            (
                self.type_def(owner.rid())?.name,
                self.enclosing(owner.rid())?,
            )
        } else {
            (
                self.method(owner.rid())?.name,
                self.method_owner(owner.rid())?,
            )
        };
        // nested types repeat the parameters of those around them
        let inherited = self
            .generic_params(Token::new(Table::TypeDef, outer))
            .count();
        let own = all.get(if is_type { inherited } else { 0 }..)?;
        let (bare, _) = split_suffixes(&name);
        let shape = match (is_type, TypeShape::of(bare)) {
            (true, TypeShape::StateMachine(shape)) => shape,
            (true, _) => return None,
            (false, _) => MethodShape::of(bare),
        };
        if own.is_empty() || !matches!(shape.part, Part::Local(_)) {
            return None;
        }
        let around = self.method_rids_of_type(outer).filter_map(|rid| {
            let named = self.method(rid)?.name == shape.method;
            let params = named.then(|| names(Token::new(Table::MethodDef, rid)))?;
            own.starts_with(&params).then_some(params.len())
        });
        around.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;
    use crate::names::{method_around, state_machine_around};
    use crate::table::Coded;
    use crate::testing::{Builder, coded};

    /// `T` with `Run()`, `Run<U>`, `<Run>g__Own|0_0<V>`, `<Run>g__Both|1_0<U, V>` and the machines of the two.
    fn metadata() -> Metadata<Vec<u8>> {
        let mut b = Builder::new();
        let mvid = b.guid([7; 16]);
        b.row(Table::Module, &[0, 0, mvid, 0, 0]);
        let types = [
            (0, "T", 1),
            (0x103, "<<Run>g__Own|0_0>d", 5),
            (0x103, "<<Run>g__Both|1_0>d", 5),
        ];
        for (flags, name, methods) in types {
            let name = b.string(name);
            b.row(Table::TypeDef, &[flags, name, 0, 0, 1, methods]);
        }
        b.row(Table::NestedClass, &[2, 1]);
        b.row(Table::NestedClass, &[3, 1]);
        let void = b.blob(&[0, 0, 1]);
        for name in ["Run", "Run", "<Run>g__Own|0_0", "<Run>g__Both|1_0"] {
            let name = b.string(name);
            b.row(Table::MethodDef, &[0, 0, 0, name, void, 1]);
        }
        let mut params = vec![
            (0, Table::MethodDef, 2, "U"),
            (0, Table::MethodDef, 3, "V"),
            (0, Table::MethodDef, 4, "U"),
            (1, Table::MethodDef, 4, "V"),
            (0, Table::TypeDef, 2, "V"),
            (0, Table::TypeDef, 3, "U"),
            (1, Table::TypeDef, 3, "V"),
        ];
        params.sort_by_key(|(n, table, rid, _)| (coded(Coded::TypeOrMethodDef, *table, *rid), *n));
        for (number, table, rid, name) in params {
            let name = b.string(name);
            let owner = coded(Coded::TypeOrMethodDef, table, rid);
            b.row(Table::GenericParam, &[number, 0, owner, name]);
        }
        Metadata::parse(b.build()).unwrap()
    }

    #[test]
    fn parameters_of_the_method_around_come_first() {
        let m = metadata();
        let around = |table, rid| m.params_around_local(Token::new(table, rid));
        let methods = [1, 2, 3, 4].map(|rid| around(Table::MethodDef, rid));
        assert_eq!(methods, [0, 0, 0, 1]);
        let types = [1, 2, 3].map(|rid| around(Table::TypeDef, rid));
        assert_eq!(types, [0, 0, 1]);
    }

    #[test]
    fn arguments_go_to_the_method_around_first() {
        let m = metadata();
        let args = ["String".to_owned(), "Guid".to_owned()];
        let machine = m.type_path(3).unwrap();
        let name = |around| state_machine_around(&machine, &args, around).text;
        assert_eq!(name(1), "T.Run<String>.Both<Guid>");
        assert_eq!(name(2), "T.Run<String, Guid>.Both");
        assert_eq!(name(9), "T.Run<String, Guid>.Both");
        assert_eq!(name(0), "T.Run.Both<String, Guid>");
        let owner = m.type_path(1).unwrap();
        assert_eq!(
            method_around(&owner, &[], "<Run>g__Both|1_0", &args, 1),
            "T.Run<String>.Both<Guid>"
        );
    }
}
