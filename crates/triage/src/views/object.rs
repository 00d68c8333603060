//! One object with its fields, and where they lead.

use crate::analysis::Analysis;
use asynctriage_clr::{Field, FieldKind, Place, Runtime};
use asynctriage_dump::Addr;
use asynctriage_report::{Address, Decoded, FieldRow, ObjectRef, ObjectReport};

/// How much of an object is shown.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOptions {
    /// Fields or elements at most.
    pub limit: usize,
    /// Texts as they are; else only their length.
    pub values: bool,
}

/// Structures inside structures that are opened.
const MAX_NESTING: u32 = 4;

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
        fields(rt, &rt.place(addr)?, 8, options, MAX_NESTING)
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
    let element = rt.element_type(array);
    let is_reference = element.as_ref().is_none_or(|t| !t.is_value_type());
    let shown = (0..len.min(options.limit as u64)).map(|i| {
        let at = start.element(i, stride);
        let link = is_reference
            .then(|| rt.memory().ptr(at))
            .flatten()
            .and_then(Addr::non_null);
        FieldRow {
            offset: at.since(array).unwrap_or(0),
            name: format!("[{i}]"),
            actual_type: link
                .and_then(|o| rt.type_of(o))
                .map(|t| rt.name(&t).to_string()),
            value: if is_reference {
                reference_text(rt, link, options)
            } else {
                bytes_text(rt, at, stride)
            },
            link: link.map(|o| Address(o.0)),
            ..FieldRow::default()
        }
    });
    shown.collect()
}

fn fields(
    rt: &Runtime<'_>,
    place: &Place,
    base: u64,
    options: ObjectOptions,
    depth: u32,
) -> Vec<FieldRow> {
    place
        .fields(rt)
        .into_iter()
        .map(|field| field_row(rt, place, field, base, options, depth))
        .collect()
}

fn field_row(
    rt: &Runtime<'_>,
    place: &Place,
    field: &Field,
    base: u64,
    options: ObjectOptions,
    depth: u32,
) -> FieldRow {
    let at = place.at(field);
    let link = (field.kind == FieldKind::Reference)
        .then(|| rt.memory().ptr(at))
        .flatten()
        .and_then(Addr::non_null);
    let value = match field.kind {
        FieldKind::Reference => reference_text(rt, link, options),
        FieldKind::Primitive(size) => primitive_text(rt, at, field.element_type, size),
        FieldKind::Native => rt
            .memory()
            .ptr(at)
            .map_or_else(|| "unreadable".into(), |p| p.to_string()),
        FieldKind::ValueType => structure_text(rt, place, field, depth),
    };
    FieldRow {
        offset: base.saturating_add(field.offset),
        name: field.name.to_string(),
        declared_type: rt.field_type_name(field),
        actual_type: link
            .and_then(|o| rt.type_of(o))
            .map(|t| rt.name(&t).to_string()),
        value,
        link: link.map(|o| Address(o.0)),
    }
}

/// The references inside a structure; its other bytes are not decoded.
fn structure_text(rt: &Runtime<'_>, place: &Place, field: &Field, depth: u32) -> String {
    let references: Vec<_> = place
        .references_in(rt, field)
        .filter(|a| rt.type_of(*a).is_some())
        .take(usize::try_from(depth).unwrap_or(0))
        .collect();
    if references.is_empty() {
        return bytes_text(rt, place.at(field), place.extent(rt, field));
    }
    references
        .iter()
        .map(|a| format!("{a}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn bytes_text(rt: &Runtime<'_>, at: Addr, len: u64) -> String {
    match rt.memory().bytes(at, len.min(32), 32) {
        Some(bytes) => bytes
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<Vec<_>>()
            .join(" "),
        None => "unreadable".into(),
    }
}

/// A reference in words: a text by its length unless values are wanted.
pub(crate) fn reference_text(
    rt: &Runtime<'_>,
    link: Option<Addr>,
    options: ObjectOptions,
) -> String {
    let Some(object) = link else {
        return "null".into();
    };
    match rt.text(object) {
        Some(text) if options.values => format!("\"{text}\""),
        Some(text) => format!("text of {} characters", text.chars().count()),
        None => object.to_string(),
    }
}

/// A number or truth value in words.
pub(crate) fn primitive_text(rt: &Runtime<'_>, at: Addr, element_type: u32, size: u8) -> String {
    let m = rt.memory();
    let text = match (element_type, size) {
        (0x02, _) => m.u8(at).map(|v| {
            if v == 0 {
                "false".to_owned()
            } else {
                "true".to_owned()
            }
        }),
        (0x0c, _) => m.u32(at).map(|v| f32::from_bits(v).to_string()),
        (0x0d, _) => m.u64(at).map(|v| f64::from_bits(v).to_string()),
        (0x04, _) => m.u8(at).map(|v| v.cast_signed().to_string()),
        (0x06, _) => m.u16(at).map(|v| v.cast_signed().to_string()),
        (0x08, _) => m.i32(at).map(|v| v.to_string()),
        (0x0a, _) => m.i64(at).map(|v| v.to_string()),
        (_, 1) => m.u8(at).map(|v| v.to_string()),
        (_, 2) => m.u16(at).map(|v| v.to_string()),
        (_, 4) => m.u32(at).map(|v| v.to_string()),
        _ => m.u64(at).map(|v| v.to_string()),
    };
    text.unwrap_or_else(|| "unreadable".into())
}

fn decoded(analysis: &Analysis<'_, '_>, addr: Addr, options: ObjectOptions) -> Vec<Decoded> {
    let mut out = Vec::new();
    let mut add = |name: &str, value: String| {
        out.push(Decoded {
            name: name.into(),
            value,
        });
    };
    if let Some(text) = analysis.rt.text(addr) {
        add(
            "text",
            if options.values {
                text
            } else {
                format!(
                    "{} characters (shown with --show-values)",
                    text.chars().count()
                )
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
