//! One object.

use super::items::{self, Items};
use super::value::{Value, field_value};
use crate::objects::Place;
use crate::runtime::Runtime;
use crate::types::{Field, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::hoisted_local;
use std::fmt;
use std::sync::Arc;

/// An object of the heap.
#[derive(Clone)]
pub struct Object<'r, 'd> {
    pub(super) rt: &'r Runtime<'d>,
    pub(super) addr: Addr,
    pub(super) ty: Arc<Type>,
}

impl fmt::Debug for Object<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.addr, self.type_name())
    }
}

impl PartialEq for Object<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        self.addr == other.addr
    }
}

impl<'r, 'd> Object<'r, 'd> {
    pub(super) fn at(rt: &'r Runtime<'d>, addr: Addr) -> Option<Self> {
        let ty = rt.type_of(addr.non_null()?)?;
        Some(Self { rt, addr, ty })
    }

    /// Where it starts: its MethodTable word.
    #[must_use]
    pub fn address(&self) -> Addr {
        self.addr
    }

    /// The name of its type with exact generic arguments.
    #[must_use]
    pub fn type_name(&self) -> Arc<str> {
        self.rt.name(&self.ty)
    }

    /// Whether it is of this class or one that derives from it, by the name of the definition.
    #[must_use]
    pub fn is_a(&self, definition: &str) -> bool {
        self.rt.is_a(self.ty.mt, definition)
    }

    /// Its bytes, without what it refers to.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.rt.object_size(self.addr, &self.ty)
    }

    /// The whole text of a `System.String`, however long; `None` for other objects.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.rt.whole_text(self.addr)
    }

    /// A field by its name: that of the metadata, of the property that the compiler made it for, or of the variable of an
    /// async method or closure. [`Value::Missing`] when there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> Value<'r, 'd> {
        self.place()
            .map_or(Value::Missing, |place| field_of(self.rt, &place, name))
    }

    /// All fields with their names in metadata, base classes included, in the order of their offsets.
    #[must_use]
    pub fn fields(&self) -> Vec<(Arc<str>, Value<'r, 'd>)> {
        self.place()
            .map(|place| fields_of(self.rt, &place))
            .unwrap_or_default()
    }

    /// The elements of an array or a collection of .NET, at most `limit`; `None` for other objects.
    #[must_use]
    pub fn items(&self, limit: usize) -> Option<Items<'r, 'd>> {
        items::of(self, limit)
    }

    /// The element of a dictionary with a text for its key, or [`Value::Missing`].
    #[must_use]
    pub fn get(&self, key: &str) -> Value<'r, 'd> {
        let items = self.items(usize::MAX).map(|i| i.items).unwrap_or_default();
        let found = items.into_iter().find(|item| {
            let text = item.key.as_ref().and_then(Value::as_text);
            text.as_deref() == Some(key)
        });
        found.map_or(Value::Missing, |item| item.value)
    }

    fn place(&self) -> Option<Place> {
        self.rt.place(self.addr)
    }
}

pub(super) fn field_of<'r, 'd>(rt: &'r Runtime<'d>, place: &Place, name: &str) -> Value<'r, 'd> {
    let fields = rt.instance_fields(&place.ty);
    let field = fields
        .get(name)
        .or_else(|| fields.get(&format!("<{name}>k__BackingField")))
        .or_else(|| fields.values().find(|f| is_variable(f, name)));
    field.map_or(Value::Missing, |f| field_value(rt, place, f))
}

pub(super) fn fields_of<'r, 'd>(
    rt: &'r Runtime<'d>,
    place: &Place,
) -> Vec<(Arc<str>, Value<'r, 'd>)> {
    place
        .fields(rt)
        .map(|f| (Arc::clone(&f.name), field_value(rt, place, f)))
        .collect()
}

/// Whether a field holds the variable of that name: `<order>5__2`.
fn is_variable(field: &Field, name: &str) -> bool {
    let local = hoisted_local(&field.name);
    local.and_then(|l| l.source_name().map(|n| n == name)) == Some(true)
}
