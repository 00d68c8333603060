//! One object with its fields, and where they lead.

use super::elements::value_text;
use crate::paths::Analysis;
use crate::process::private::Values;
use crate::process::values::{primitive_text, reference_text, structure_text};
use asynctriage_clr::{Field, FieldKind, Place, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::hoisted_local;
use asynctriage_report::{Address, Decoded, FieldRow, ObjectRef, ObjectReport};

/// How much of an object is shown.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOptions {
    /// Fields or elements at most.
    pub limit: usize,
    /// Whether data is shown as it is. Numbers and truth values are always shown.
    pub values: Values,
}

/// References inside a structure that are shown.
const MAX_REFERENCES: usize = 4;

/// Shows the object at an address; `None` when no object starts there.
#[must_use]
pub fn object(
    analysis: &Analysis<'_, '_>,
    addr: Addr,
    options: ObjectOptions,
) -> Option<ObjectReport> {
    let rt = analysis.rt;
    if !analysis.graph.heap.is_object(addr) {
        return None;
    }
    let ty = rt.type_of(addr)?;
    let mut rows = if ty.is_array() {
        elements(rt, addr, options)
    } else {
        let machine = inline_machine(analysis, addr);
        fields(rt, &rt.place(addr)?, machine.as_ref(), options)
    };
    let total = rt
        .array_len(addr)
        .unwrap_or(rows.len() as u64)
        .max(rows.len() as u64);
    rows.truncate(options.limit);
    Some(ObjectReport {
        address: Address(addr.0),
        type_name: rt.name(&ty).to_string(),
        method_table: Some(Address(ty.mt.0)),
        size: rt.object_size(addr, &ty),
        decoded: decoded(analysis, addr, options),
        elements: super::elements::elements(analysis, addr, options.limit, options.values),
        fields_left_out: total.saturating_sub(rows.len() as u64),
        fields: rows,
        referenced_by: waiters(analysis, addr),
        ..ObjectReport::default()
    })
}

fn elements(rt: &Runtime<'_>, array: Addr, options: ObjectOptions) -> Vec<FieldRow> {
    let Some((start, stride, len)) = rt.vector(array) else {
        return Vec::new();
    };
    let found = rt.object(array).and_then(|a| a.items(options.limit));
    let items = found.map(|f| f.items).unwrap_or_default();
    let shown = (0..len).zip(items).map(|(i, item)| {
        let at = start.element(i, stride);
        let link = item.value.as_object();
        FieldRow {
            offset: at.since(array).unwrap_or(0),
            name: format!("[{i}]"),
            actual_type: link.map(|o| o.type_name().to_string()),
            value: value_text(rt, &item.value, options.values),
            link: link.map(|o| Address(o.address().0)),
            ..FieldRow::default()
        }
    });
    shown.collect()
}

/// The state machine inside a box, when it is a structure.
fn inline_machine(analysis: &Analysis<'_, '_>, addr: Addr) -> Option<Place> {
    let machine = analysis.graph.machines.get(&analysis.graph.node(addr)?)?;
    let ty = analysis.rt.type_of(addr)?;
    let end = addr + analysis.rt.object_size(addr, &ty);
    let is_inside = addr < machine.place.base && machine.place.base < end;
    is_inside.then(|| machine.place.clone())
}

/// The fields of an object; those of a state machine inside it stand for the field that holds it.
fn fields(
    rt: &Runtime<'_>,
    object: &Place,
    machine: Option<&Place>,
    options: ObjectOptions,
) -> Vec<FieldRow> {
    let mut out = Vec::new();
    for field in object.fields(rt) {
        match machine.filter(|m| m.base == object.at(field)) {
            Some(machine) => {
                let inside = machine.fields(rt);
                out.extend(inside.map(|f| field_row(rt, object, machine, f, options)));
            }
            None => out.push(field_row(rt, object, object, field, options)),
        }
    }
    out
}

/// `buffer (<buffer>5__2)`: a variable that the compiler made a field of by its name in the source, too.
fn field_name(field: &Field) -> String {
    let local = hoisted_local(&field.name);
    match local.as_ref().and_then(|l| l.source_name()) {
        Some(name) if name != &*field.name => format!("{name} ({})", field.name),
        _ => field.name.to_string(),
    }
}

/// A field of `place`, which is `object` or inside it.
fn field_row(
    rt: &Runtime<'_>,
    object: &Place,
    place: &Place,
    field: &Field,
    options: ObjectOptions,
) -> FieldRow {
    let at = place.at(field);
    let link = (field.kind == FieldKind::Reference)
        .then(|| rt.memory().ptr(at))
        .flatten()
        .and_then(Addr::non_null);
    let value = match field.kind {
        FieldKind::Reference => reference_text(rt, link, options.values),
        FieldKind::Primitive(_) => primitive_text(rt, at, field.element_type, options.values),
        FieldKind::Native => rt
            .memory()
            .ptr(at)
            .map_or_else(|| "unreadable".into(), |p| p.to_string()),
        FieldKind::ValueType => references_text(rt, place, field, options.values),
    };
    FieldRow {
        // fields are counted from behind the MethodTable
        offset: at.since(object.base.back(8)).unwrap_or(0),
        name: field_name(field),
        declared_type: rt.field_type_name(field),
        actual_type: link
            .and_then(|o| rt.type_of(o))
            .map(|t| rt.name(&t).to_string()),
        value,
        link: link.map(|o| Address(o.0)),
    }
}

/// The references inside a structure; its other bytes are not decoded.
fn references_text(rt: &Runtime<'_>, place: &Place, field: &Field, values: Values) -> String {
    let references: Vec<_> = place
        .references_in(rt, field)
        .filter(|a| rt.type_of(*a).is_some())
        .take(MAX_REFERENCES)
        .collect();
    if references.is_empty() {
        return structure_text(rt, place.at(field), place.extent(rt, field), values);
    }
    references
        .iter()
        .map(|a| format!("{a}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn decoded(analysis: &Analysis<'_, '_>, addr: Addr, options: ObjectOptions) -> Vec<Decoded> {
    let mut out = Vec::new();
    let mut add = |name: &str, value: String| {
        out.push(Decoded {
            name: name.into(),
            value,
        });
    };
    if let Some(length) = analysis.rt.text_length(addr) {
        let text = options.values.text(length, || analysis.rt.whole_text(addr));
        add(
            "text",
            match options.values {
                Values::Shown => text,
                Values::Hidden => format!("{text} (shown with --show-values)"),
            },
        );
    }
    if let Some(id) = analysis.graph.node(addr)
        && let Some(node) = analysis.graph.object(id)
    {
        if let Some(machine) = analysis.graph.machines.get(&id) {
            add(
                "method",
                format!(
                    "{} waits at await {}",
                    analysis.frame_name(id),
                    machine.state
                ),
            );
            add("state machine", machine.place.base.to_string());
        } else if let Some(method) = analysis.box_method(node) {
            add("method", method.to_string());
        }
        if node.class.is_task()
            && let Some(task) = analysis.graph.task
        {
            add("status", task.status(analysis.rt, addr).into());
        }
        for (from, edge) in analysis.graph.awaited(id) {
            add(
                "waits for",
                format!(
                    "{} ({} at {})",
                    analysis.node_text(from),
                    edge.field,
                    edge.slot
                ),
            );
        }
        add(
            "reachable from a root",
            if analysis.is_reachable(addr) {
                "yes"
            } else {
                "no"
            }
            .into(),
        );
    }
    out
}

fn waiters(analysis: &Analysis<'_, '_>, addr: Addr) -> Vec<ObjectRef> {
    let Some(id) = analysis.graph.node(addr) else {
        return Vec::new();
    };
    let nodes = analysis
        .graph
        .waiters(id)
        .filter_map(|w| Some((w, analysis.graph.object(w)?)));
    nodes
        .map(|(w, node)| ObjectRef {
            text: format!("resumes {}", analysis.node_text(w)),
            address: Some(Address(node.addr.0)),
            type_name: Some(analysis.type_name(node.mt).to_string()),
        })
        .collect()
}
