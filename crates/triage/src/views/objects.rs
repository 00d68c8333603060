//! Lists of objects: those of some types, and texts that hold something.

use crate::options::Values;
use crate::paths::Analysis;
use asynctriage_dump::Addr;
use asynctriage_report::{Address, ObjectRow, ObjectsReport};

/// Characters around what was found in a text.
const AROUND: usize = 60;

/// Lists the objects of types whose name contains any of `filters` (in whatever case), by address.
#[must_use]
pub fn objects(
    analysis: &Analysis<'_, '_>,
    filters: &[String],
    limit: usize,
    values: Values,
) -> ObjectsReport {
    let rt = analysis.rt;
    let heap = &analysis.graph.heap;
    let filters: Vec<String> = filters.iter().map(|f| f.to_lowercase()).collect();
    let is_wanted = |mt: Addr| {
        let name = rt.handle_name(mt).to_lowercase();
        mt != rt.globals.free_mt && filters.iter().any(|f| name.contains(f))
    };
    let types: Vec<_> = heap.types.iter().filter(|t| is_wanted(t.mt)).collect();
    let found = heap.addresses_of(rt, types.iter().map(|t| t.mt).collect());
    let count = found.len() as u64;
    let rows: Vec<ObjectRow> = rt
        .budget()
        .each("objects", found.take(limit))
        .map(|object| row(analysis, object, values))
        .collect();
    ObjectsReport {
        asked: format!("types with {}", filters.join(" or ")),
        count,
        bytes: types.iter().map(|t| t.bytes).fold(0, u64::saturating_add),
        left_out: count.saturating_sub(rows.len() as u64),
        objects: rows,
        gaps: super::gaps(rt, rt.gaps().iter().chain(&heap.gaps)),
        ..ObjectsReport::default()
    }
}

fn row(analysis: &Analysis<'_, '_>, object: Addr, values: Values) -> ObjectRow {
    let rt = analysis.rt;
    let ty = rt.type_of(object);
    let length = rt.text_length(object).or_else(|| {
        let items = rt.object(object)?.items(0)?;
        items.count
    });
    ObjectRow {
        address: Address(object.0),
        type_name: ty
            .as_ref()
            .map_or_else(|| "?".into(), |t| rt.name(t).to_string()),
        size: ty.as_ref().map_or(0, |t| rt.object_size(object, t)),
        length,
        text: meaning(analysis, object, values),
    }
}

/// The method of a box, the state of a task, a text where it may be shown.
fn meaning(analysis: &Analysis<'_, '_>, object: Addr, values: Values) -> String {
    let rt = analysis.rt;
    if rt.text_length(object).is_some() {
        return match values {
            Values::Shown => rt.text(object).unwrap_or_default(),
            Values::Hidden => String::new(),
        };
    }
    let Some(id) = analysis.graph.node(object) else {
        return String::new();
    };
    let mut parts = Vec::new();
    if analysis.graph.machines.contains_key(&id) {
        parts.push(analysis.frame_name(id).to_string());
    }
    let task = analysis.graph.object(id).filter(|n| n.class.is_task());
    if let (Some(_), Some(task)) = (task, analysis.graph.task) {
        parts.push(task.status(rt, object).to_owned());
    }
    parts.join(", ")
}

/// Lists the texts of the heap that contain `wanted`, in whatever case, by address. Their surroundings are shown: it is
/// for who may see the data of the process.
#[must_use]
pub fn texts(analysis: &Analysis<'_, '_>, wanted: &str, limit: usize) -> ObjectsReport {
    let rt = analysis.rt;
    let heap = &analysis.graph.heap;
    let needle = wanted.to_lowercase();
    let (mut count, mut bytes, mut rows) = (0_u64, 0_u64, Vec::new());
    let all = heap.addresses_of(rt, vec![rt.globals.string_mt]);
    for object in rt.budget().each("texts", all) {
        let Some(text) = rt.whole_text(object) else {
            continue;
        };
        let Some(around) = around(&text, &needle) else {
            continue;
        };
        let size = rt
            .type_of(object)
            .map_or(0, |ty| rt.object_size(object, &ty));
        count = count.saturating_add(1);
        bytes = bytes.saturating_add(size);
        if rows.len() < limit {
            rows.push(ObjectRow {
                address: Address(object.0),
                type_name: "System.String".into(),
                size,
                length: rt.text_length(object),
                text: around,
            });
        }
    }
    ObjectsReport {
        asked: format!("texts with \"{wanted}\""),
        count,
        bytes,
        left_out: count.saturating_sub(rows.len() as u64),
        objects: rows,
        gaps: super::gaps(rt, rt.gaps().iter().chain(&heap.gaps)),
        ..ObjectsReport::default()
    }
}

/// The part of a text around what is looked for, which is in small letters; `None` when it is not there.
fn around(text: &str, needle: &str) -> Option<String> {
    let small = text.to_lowercase();
    let at = small.find(needle)?;
    let before = small.get(..at).map_or(0, |s| s.chars().count());
    let first = before.saturating_sub(AROUND);
    let length = needle.chars().count().saturating_add(AROUND * 2);
    let cut: String = text.chars().skip(first).take(length).collect();
    let head = if first > 0 { "…" } else { "" };
    let is_whole = text.chars().count() <= first.saturating_add(length);
    Some(format!("{head}{cut}{}", if is_whole { "" } else { "…" }))
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn the_surroundings_of_what_is_found_are_shown() {
        assert_eq!(
            around("Order 4711 of Bob", "order").as_deref(),
            Some("Order 4711 of Bob")
        );
        assert_eq!(around("nothing here", "order"), None);
        let long = format!("{}NEEDLE{}", "ä".repeat(500), "z".repeat(500));
        let found = around(&long, "needle").unwrap();
        assert_eq!(
            found,
            format!("…{}NEEDLE{}…", "ä".repeat(60), "z".repeat(60))
        );
    }
}
