//! The contract descriptor: what the runtime itself says of its layouts (from .NET 9 on).
//!
//! Header of 40 bytes on 64-bit: magic `DNCCDAC\0` in memory order, flags u32, JSON length u32, JSON pointer, count u32,
//! padding, pointer to the pointer data (9.0.5, 10.0.11, 11.0.0). createdump heap dumps of 9 and 10 lack it.

use asynctriage_dump::{Addr, Memory};
use serde_json::Value;
use std::collections::BTreeMap;

/// How the header begins.
pub(crate) const MAGIC: [u8; 8] = *b"DNCCDAC\0";
/// 11.0.0 needs 17 KiB; more than this is no descriptor.
const MAX_JSON: u64 = 1 << 20;
const MAX_POINTERS: u32 = 4096;
/// The only sub-descriptor there is (11.0) hangs directly below the main one.
const MAX_DEPTH: u32 = 2;

/// Layouts and globals that a process tells of itself.
#[derive(Debug, Default)]
pub(crate) struct Descriptor {
    /// Offsets by type and field; the key `Size` is the size of the type.
    pub(crate) types: BTreeMap<String, BTreeMap<String, u64>>,
    /// Text globals, such as `RuntimeProductVersionString`.
    pub(crate) texts: BTreeMap<String, String>,
}

impl Descriptor {
    /// Reads the descriptor whose header is at `header`, sub-descriptors included; `None` when it is not all readable.
    pub(crate) fn read(memory: &dyn Memory, header: Addr) -> Option<Self> {
        let mut out = Self::default();
        out.add(memory, header, MAX_DEPTH)?;
        Some(out)
    }

    fn add(&mut self, memory: &dyn Memory, header: Addr, depth: u32) -> Option<()> {
        if memory.u64(header)? != u64::from_le_bytes(MAGIC) {
            return None;
        }
        let len = u64::from(memory.u32(header + 12)?);
        let json = memory.bytes(memory.ptr(header + 16)?, len, MAX_JSON)?;
        let pointers = Pointers {
            memory,
            count: memory.u32(header + 24)?.min(MAX_POINTERS),
            data: memory.ptr(header + 32)?,
        };
        let root: Value = serde_json::from_slice(&json).ok()?;
        self.add_types(root.get("types"));
        self.add_texts(root.get("globals"));
        let subs = root.get("subDescriptors").and_then(Value::as_object);
        for sub in subs
            .into_iter()
            .flat_map(|s| s.values())
            .filter(|_| depth > 0)
        {
            // the slot holds the address of a pointer to the other header; null until the GC has set it
            let slot = pointers
                .get(sub)
                .and_then(|p| memory.ptr(p))
                .and_then(Addr::non_null);
            if let Some(at) = slot {
                self.add(memory, at, depth.saturating_sub(1));
            }
        }
        Some(())
    }

    fn add_types(&mut self, types: Option<&Value>) {
        for (name, fields) in types.and_then(Value::as_object).into_iter().flatten() {
            let known = self.types.entry(name.clone()).or_default();
            for (field, offset) in fields.as_object().into_iter().flatten() {
                let key = if field == "!" { "Size" } else { field };
                if let Some(offset) = number(offset) {
                    known.insert(key.to_owned(), offset);
                }
            }
        }
    }

    fn add_texts(&mut self, globals: Option<&Value>) {
        for (name, value) in globals.and_then(Value::as_object).into_iter().flatten() {
            let direct = value.get(0).unwrap_or(value);
            if let (Some(text), Some("string")) =
                (direct.as_str(), value.get(1).and_then(Value::as_str))
            {
                self.texts.insert(name.clone(), text.to_owned());
            }
        }
    }
}

struct Pointers<'m> {
    memory: &'m dyn Memory,
    count: u32,
    data: Addr,
}

impl Pointers<'_> {
    /// The pointer that `[index]` or `[[index], "type"]` names.
    fn get(&self, value: &Value) -> Option<Addr> {
        let first = value.get(0)?;
        let index = first.as_u64().or_else(|| first.get(0)?.as_u64())?;
        if index >= u64::from(self.count) {
            return None;
        }
        self.memory.ptr(self.data.element(index, 8))
    }
}

/// An offset: a number, a text with one, or either with a type name behind it.
fn number(value: &Value) -> Option<u64> {
    let value = value.get(0).unwrap_or(value);
    if let Some(n) = value.as_u64() {
        return Some(n);
    }
    let text = value.as_str()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn offsets_come_bare_typed_or_as_text() {
        assert_eq!(number(&json!(8)), Some(8));
        assert_eq!(number(&json!([304, "GCHandle"])), Some(304));
        assert_eq!(number(&json!(["0x10", "uint8"])), Some(16));
        assert_eq!(number(&json!("-3")), None);
    }

    #[test]
    fn unknown_keys_and_untyped_texts_are_passed_over() {
        let mut d = Descriptor::default();
        d.add_types(Some(
            &json!({"Thread": {"!": 64, "Id": 16, "New": {"odd": 1}}}),
        ));
        d.add_texts(Some(
            &json!({"Version": ["11.0.0", "string"], "Pointer": [[1], "pointer"]}),
        ));
        assert_eq!(
            d.types["Thread"],
            BTreeMap::from([("Id".to_owned(), 16), ("Size".to_owned(), 64)])
        );
        assert_eq!(
            d.texts,
            BTreeMap::from([("Version".to_owned(), "11.0.0".to_owned())])
        );
    }
}
