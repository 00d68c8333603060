//! Collections of .NET by their elements.

use crate::options::Values;
use crate::paths::Analysis;
use crate::process::values::{reference_text, structure_text};
use asynctriage_clr::{CollectionKind, Item, Runtime, Value};
use asynctriage_dump::Addr;
use asynctriage_report::{Address, ElementRow, Elements};

/// Fields of a structure that are written out, such as those of a key of two numbers.
const MAX_FIELDS: usize = 8;

/// The elements of a collection, arrays left out: their elements are their fields.
pub(super) fn elements(
    analysis: &Analysis<'_, '_>,
    addr: Addr,
    limit: usize,
    values: Values,
) -> Option<Elements> {
    let object = analysis.rt.object(addr)?;
    let found = object.items(limit)?;
    if found.kind == CollectionKind::Array {
        return None;
    }
    let counted = (!found.is_cut).then_some(found.items.len() as u64);
    let rows = found.items.iter().enumerate();
    Some(Elements {
        collection: format!("{:?}", found.kind),
        count: found.count.or(counted),
        is_cut: found.is_cut,
        rows: rows
            .map(|(i, item)| row(analysis.rt, i, item, values))
            .collect(),
    })
}

fn row(rt: &Runtime<'_>, index: usize, item: &Item<'_, '_>, values: Values) -> ElementRow {
    let object = item.value.as_object();
    let key = item.key.as_ref();
    ElementRow {
        key: key.map_or_else(|| index.to_string(), |k| value_text(rt, k, values)),
        value: value_text(rt, &item.value, values),
        type_name: object.map(|o| o.type_name().to_string()),
        link: object.map(|o| Address(o.address().0)),
        key_link: key
            .and_then(Value::as_object)
            .map(|o| Address(o.address().0)),
    }
}

/// A value in words; texts and what may be part of one by their size only unless they are asked for.
pub(super) fn value_text(rt: &Runtime<'_>, value: &Value<'_, '_>, values: Values) -> String {
    match value {
        Value::Object(object) => reference_text(rt, Some(object.address()), values),
        Value::Null => "null".into(),
        Value::Char(unit) => values.character(*unit),
        Value::Byte(byte) => values.byte(*byte),
        Value::Structure(structure) => {
            let fields = structure.fields();
            if fields.is_empty() || fields.len() > MAX_FIELDS {
                return structure_text(rt, structure.address(), structure.len(), values);
            }
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", plain(rt, value, values)))
                .collect();
            format!("({})", parts.join(", "))
        }
        other => plain(rt, other, values),
    }
}

/// The same without taking structures apart any further.
fn plain(rt: &Runtime<'_>, value: &Value<'_, '_>, values: Values) -> String {
    match value {
        Value::Object(object) => reference_text(rt, Some(object.address()), values),
        Value::Char(unit) => values.character(*unit),
        Value::Byte(byte) => values.byte(*byte),
        Value::Structure(s) => structure_text(rt, s.address(), s.len(), values),
        // numbers and truth values are always shown
        other => other.to_string(),
    }
}
