//! Ways through the heap as C# would write them: `s_pending[42].Source`.

use crate::paths::Analysis;
use asynctriage_clr::{Field, FieldKind, Reference, Type, Value};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::hoisted_local;

/// Words of the runtime in front of an object's first field and of an array's first element.
const OBJECT_HEAD: u64 = 8;
const ARRAY_HEAD: u64 = 16;

impl Analysis<'_, '_> {
    /// The part of a way behind its first object: `._pending[42].Source`. With `keys`, elements of dictionaries are named
    /// by their keys where these are numbers; else by `…`.
    pub(crate) fn way_text(&self, references: &[Reference], keys: bool) -> String {
        const UNKNOWN: &str = "[…]";
        let mut out = String::new();
        for reference in references {
            let Some((text, is_inside)) = self.hop(reference, keys) else {
                continue;
            };
            // what leads through the inside of a collection adds up to one element
            if is_inside && out.ends_with(']') {
                if !out.ends_with(UNKNOWN) {
                    continue;
                }
                out.truncate(out.len().saturating_sub(UNKNOWN.len()));
            }
            out.push_str(&text);
        }
        out
    }

    /// One reference of a way, and whether it is one inside a collection; `None` for what a collection of .NET consists of.
    fn hop(&self, reference: &Reference, keys: bool) -> Option<(String, bool)> {
        let ty = self.rt.type_of(reference.holder)?;
        if ty.is_array() {
            return Some((self.element(&ty, reference, keys), false));
        }
        let field = self.field_at(&ty, reference)?;
        if self.is_collection(&ty) {
            let key = || self.number(reference.holder, "_key");
            let key = keys.then(key).flatten().unwrap_or_else(|| "…".into());
            return is_link(&field.name).then(|| (format!("[{key}]"), true));
        }
        Some((format!(".{}", source_name(&field.name)?), false))
    }

    /// A number in a field of an object, as text.
    fn number(&self, object: Addr, field: &str) -> Option<String> {
        match self.rt.object(object)?.field(field) {
            Value::Signed(n) => Some(n.to_string()),
            Value::Unsigned(n) => Some(n.to_string()),
            _ => None,
        }
    }

    fn element(&self, array: &Type, reference: &Reference, keys: bool) -> String {
        let key = keys.then(|| self.key_of(array, reference)).flatten();
        key.map_or_else(|| "[…]".to_owned(), |key| format!("[{key}]"))
    }

    /// The number of an element, or its key where it is an entry of a dictionary with numbers for keys.
    fn key_of(&self, array: &Type, reference: &Reference) -> Option<String> {
        let stride = u64::from(array.component_size);
        let offset = reference
            .slot
            .since(reference.holder)?
            .checked_sub(ARRAY_HEAD)?;
        let index = offset.checked_div(stride)?;
        let entry = self.rt.element_type(reference.holder)?;
        let name = self.rt.definition_name(&entry);
        if !name.starts_with("System.Collections.Generic.Dictionary`2") {
            // buckets and the like are no place that a program names
            let is_inside = name.starts_with("System.Collections.");
            return (stride == 8 && !is_inside).then(|| index.to_string());
        }
        let key = self.rt.instance_field(&entry, "key")?;
        let at = reference.holder + ARRAY_HEAD.saturating_add(index.saturating_mul(stride));
        match key.kind {
            FieldKind::Primitive(4) => Some(self.rt.memory().i32(at + key.offset)?.to_string()),
            FieldKind::Primitive(8) => Some(self.rt.memory().i64(at + key.offset)?.to_string()),
            _ => None,
        }
    }

    /// The field that a reference of an object stands in; inside of a structure that of the structure.
    pub(crate) fn field_at(&self, ty: &Type, reference: &Reference) -> Option<Field> {
        let offset = reference
            .slot
            .since(reference.holder)?
            .checked_sub(OBJECT_HEAD)?;
        let fields = self.rt.instance_fields(ty).values();
        let before = fields.filter(|f| f.offset <= offset && f.kind != FieldKind::Native);
        before.max_by_key(|f| (f.offset, f.rid)).cloned()
    }

    /// Whether a type is a collection of .NET, or part of one: its insides say nothing to who uses it.
    fn is_collection(&self, ty: &Type) -> bool {
        let name = self.rt.definition_name(ty);
        name.starts_with("System.Collections.")
    }

    /// A static field: `Shop.Program.s_pending`.
    pub(crate) fn static_text(&self, mt: Addr, name: &str) -> String {
        let class = self.type_name(mt).replace('+', ".");
        format!("{class}.{}", source_name(name).as_deref().unwrap_or(name))
    }
}

/// Fields that lead from one element of a linked collection to the next, or to an element's value.
fn is_link(field: &str) -> bool {
    matches!(field, "_value" | "value" | "item" | "_item" | "Value")
}

/// What a field is called in the source: the property of a backing field, the variable of a state machine or closure.
/// `None` for what only the compiler knows.
pub(crate) fn source_name(field: &str) -> Option<String> {
    let property = field
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix(">k__BackingField"));
    if let Some(property) = property {
        return Some(property.to_owned());
    }
    match hoisted_local(field) {
        Some(local) => local.source_name().map(str::to_owned),
        None => Some(field.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::source_name;

    #[test]
    fn fields_are_called_as_in_the_source() {
        for (field, name) in [
            ("<Source>k__BackingField", "Source"),
            ("<done>5__2", "done"),
            ("<>4__this", "this"),
            ("_pending", "_pending"),
        ] {
            assert_eq!(source_name(field).as_deref(), Some(name));
        }
    }
}
