//! What the calls of a method are made on: which variable holds the object that a method sets, releases or waits for.

use super::flow::{CallShape, Context, Origin, Value, follow};
use super::instructions;
use crate::metadata::Metadata;
use crate::source::Source;
use crate::table::Table;
use crate::token::Token;
use std::collections::HashMap;

/// Calls of one method at most.
const MAX_CALLS: usize = 1 << 14;

/// A call in a method's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Offset of the instruction.
    pub il_offset: u32,
    /// The called method's name as it stands in metadata.
    pub name: String,
    /// Full name of the type that the call names, that of its definition: ``System.Threading.Tasks.TaskCompletionSource`1``.
    pub class: String,
    /// What it is called on.
    pub receiver: Receiver,
}

/// What a call is made on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Receiver {
    /// The code does not tell, or it is one of several.
    #[default]
    Unknown,
    /// What a field holds, by its name in metadata: of the program's types, of a closure, or of a state machine, where
    /// variables of the method have become fields.
    Field(String),
    /// An argument of the method, by its number; 0 is `this` where there is one.
    Argument(u16),
    /// What a method has returned, by its name.
    Result(String),
    /// Made on the spot.
    New,
}

impl<S: Source> Metadata<S> {
    /// The calls in a method's code of methods whose names `wanted` accepts, in the order of the code.
    #[must_use]
    pub fn call_sites(&self, code: &[u8], wanted: impl Fn(&str) -> bool) -> Vec<CallSite> {
        let mut search = Search {
            metadata: self,
            wanted,
            shapes: HashMap::new(),
            names: HashMap::new(),
            out: Vec::new(),
        };
        follow(code, &mut search);
        search.out
    }
}

impl<S: Source> Metadata<S> {
    /// Whether code reads a field with one of these names, as they stand in metadata.
    #[must_use]
    pub fn reads_field(&self, code: &[u8], is_wanted: impl Fn(&str) -> bool) -> bool {
        let fields = instructions(code).filter(|i| matches!(i.opcode, 0x7b | 0x7c | 0x7e | 0x7f));
        let mut names = fields.filter_map(|i| self.field_name_of(i.token()?));
        names.any(|name| is_wanted(&name))
    }
}

struct Search<'m, S, W> {
    metadata: &'m Metadata<S>,
    wanted: W,
    shapes: HashMap<Token, Option<CallShape>>,
    /// Of called methods that are wanted.
    names: HashMap<Token, Option<String>>,
    out: Vec<CallSite>,
}

impl<S: Source, W: Fn(&str) -> bool> Search<'_, S, W> {
    fn name(&mut self, method: Token) -> Option<String> {
        let (metadata, wanted) = (self.metadata, &self.wanted);
        let find = || metadata.callee_name(method).filter(|n| wanted(n));
        self.names.entry(method).or_insert_with(find).clone()
    }

    fn receiver(&self, value: Option<&Value>) -> Receiver {
        let Some(value) = value.filter(|v| v.or.is_none()) else {
            return Receiver::Unknown;
        };
        let named =
            |name: Option<String>, of: fn(String) -> Receiver| name.map_or(Receiver::Unknown, of);
        match value.origin {
            Origin::Field(field) => named(self.metadata.field_name_of(field), Receiver::Field),
            Origin::Argument(number) => Receiver::Argument(number),
            Origin::Call(method) => named(self.metadata.callee_name(method), Receiver::Result),
            Origin::New(_) => Receiver::New,
            Origin::Unknown | Origin::Null | Origin::Number(_) => Receiver::Unknown,
        }
    }
}

impl<S: Source, W: Fn(&str) -> bool> Context for Search<'_, S, W> {
    fn shape(&mut self, method: Token) -> Option<CallShape> {
        if let Some(known) = self.shapes.get(&method) {
            return *known;
        }
        let signature = self.metadata.callee_signature(method);
        let shape = signature.map(|s| super::call_shape(&s));
        self.shapes.insert(method, shape);
        shape
    }

    fn indirect_shape(&mut self, signature: Token) -> Option<CallShape> {
        self.metadata.indirect_call_shape(signature)
    }

    fn called(&mut self, at: u32, method: Token, values: &[Value]) {
        let Some(name) = self.name(method).filter(|_| self.out.len() < MAX_CALLS) else {
            return;
        };
        let has_this = self.shape(method).is_some_and(|s| s.has_this);
        let class = self.metadata.callee_class(method).unwrap_or_default();
        self.out.push(CallSite {
            il_offset: at,
            name,
            class,
            receiver: self.receiver(values.first().filter(|_| has_this)),
        });
    }

    fn stored(&mut self, _: u32, _: Token, _: Value) {}
}

impl<S: Source> Metadata<S> {
    /// How a call through a pointer changes the stack, by the row of its signature.
    pub(super) fn indirect_call_shape(&self, signature: Token) -> Option<CallShape> {
        let blob = self.cell(Table::StandAloneSig, signature.rid(), 0)?;
        let parsed = crate::signature::MethodSig::parse(&self.blob(blob)?)?;
        Some(super::call_shape(&parsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Coded;
    use crate::testing::{Builder, coded};
    use proptest::prelude::*;

    const DONE: u32 = 0x0400_0001;
    const SET: u32 = 0x0a00_0001;
    const OTHER: u32 = 0x0a00_0002;
    const FIND: u32 = 0x0a00_0003;

    /// A field `_done`, and of a class `Threading.Source` the methods `Set` and `Other` of objects, and `Find`, static.
    fn sample() -> Metadata<Vec<u8>> {
        let mut b = Builder::new();
        let (class, namespace) = (b.string("Source"), b.string("Threading"));
        b.row(Table::TypeRef, &[0, class, namespace]);
        let (own, field, int) = (b.string("Own"), b.string("_done"), b.blob(&[6, 8]));
        b.row(Table::TypeDef, &[0, own, 0, 0, 1, 1]);
        b.row(Table::Field, &[6, field, int]);
        let class = coded(Coded::MemberRefParent, Table::TypeRef, 1);
        let methods: [(&str, &[u8]); 3] = [
            ("Set", &[0x20, 0, 1]),
            ("Other", &[0x20, 0, 1]),
            ("Find", &[0x00, 0, 0x1c]),
        ];
        for (name, signature) in methods {
            let (name, signature) = (b.string(name), b.blob(signature));
            b.row(Table::MemberRef, &[class, name, signature]);
        }
        Metadata::parse(b.build()).expect("metadata")
    }

    fn code(parts: &[(&[u8], Option<u32>)]) -> Vec<u8> {
        let bytes = parts.iter().flat_map(|(opcode, token)| {
            let token = token.map(|t| t.to_le_bytes().to_vec());
            opcode.iter().copied().chain(token.unwrap_or_default())
        });
        bytes.collect()
    }

    #[test]
    fn calls_tell_which_field_they_are_made_on() {
        let code = code(&[
            (&[0x02, 0x7b], Some(DONE)), // ldarg.0, ldfld
            (&[0x6f], Some(SET)),
            (&[0x7e], Some(DONE)), // ldsfld
            (&[0x28], Some(OTHER)),
            (&[0x28], Some(FIND)),
            (&[0x6f], Some(SET)),
            (&[0x03, 0x6f], Some(SET)), // ldarg.1
        ]);
        let sites = sample().call_sites(&code, |name| name == "Set");
        let receivers: Vec<_> = sites.iter().map(|s| s.receiver.clone()).collect();
        assert_eq!(
            receivers,
            [
                Receiver::Field("_done".into()),
                Receiver::Result("Find".into()),
                Receiver::Argument(1)
            ]
        );
        assert!(sites.iter().all(|s| s.class == "Threading.Source"));
        assert!(sample().reads_field(&code, |name| name == "_done"));
        assert!(!sample().reads_field(&code, |name| name == "_other"));
        assert_eq!(sites.first().map(|s| s.il_offset), Some(6));
    }

    proptest! {
        #[test]
        fn any_code_ends_and_tells_calls_in_order(code in prop::collection::vec(any::<u8>(), 0..512)) {
            let sites = sample().call_sites(&code, |_| true);
            prop_assert!(sites.windows(2).all(|w| w[0].il_offset < w[1].il_offset));
        }
    }
}
