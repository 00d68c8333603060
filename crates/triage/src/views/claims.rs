//! What the statements of a report rest on, down to the bytes, with the commands of other tools that show the same.

use super::object::{ObjectOptions, object};
use crate::options::Values;
use crate::paths::Analysis;
use asynctriage_dump::Addr;
use asynctriage_report::{
    Address, ChainGroup, Claim, ClaimsReport, FieldRow, Place, PlaceKind, RawField, Report, Thread,
};
use std::collections::BTreeSet;

/// Claims that are listed; a report of 50,000 groups has more.
const MAX_CLAIMS: usize = 20_000;
/// Fields of one object that are listed.
const MAX_FIELDS: usize = 64;
const COMMANDS_OF: &str = "SOS, as in `dotnet-dump analyze hang.dmp`; with ClrMD, an object is runtime.Heap.GetObject(address)";

/// The claims of a report that was made by the same analysis, and what stands at the addresses that they name. Bytes are shown
/// where the report shows what they say: references, numbers and truth values.
pub(super) fn claims(analysis: &Analysis<'_, '_>, report: &Report) -> ClaimsReport {
    let mut all = Vec::new();
    for finding in &report.findings {
        all.extend(finding.evidence.iter().map(|e| {
            let named = addresses(&e.what).chain(addresses(&e.how));
            Claim {
                id: e.id.clone(),
                of: Some(finding.id.clone()),
                says: e.what.clone(),
                how: e.how.clone(),
                at: unique(e.address.into_iter().chain(named)),
                commands: commands_of(&e.how),
            }
        }));
    }
    for group in &report.chains {
        of_group(group, &mut all);
    }
    all.extend(report.requests.iter().map(|request| {
        let object = request.details.get("object").and_then(|v| v.as_str());
        Claim {
            id: request.id.clone(),
            of: request.chain.clone(),
            says: format!("{} {} is being served", request.method, request.path),
            how: "the server's object of the request".into(),
            at: unique(object.into_iter().flat_map(addresses)),
            commands: Vec::new(),
        }
    }));
    all.extend(report.threads.iter().map(of_thread));
    all.extend(report.pool.as_ref().map(|_| Claim {
        id: "P1".into(),
        says: "the thread pool, and what is queued for it".into(),
        commands: vec!["threadpool".into(), "threadpoolqueue".into()],
        ..Claim::default()
    }));
    all.push(Claim {
        id: "H1".into(),
        says: format!("{} objects on the heap", report.heap.objects),
        commands: vec!["dumpheap -stat".into(), "eeheap -gc".into()],
        ..Claim::default()
    });
    let left_out = all.len().saturating_sub(MAX_CLAIMS) as u64;
    all.truncate(MAX_CLAIMS);
    let named: BTreeSet<Address> = all.iter().flat_map(|c| c.at.iter().copied()).collect();
    ClaimsReport {
        commands_of: COMMANDS_OF.into(),
        places: named.into_iter().map(|at| place(analysis, at)).collect(),
        claims: all,
        claims_left_out: left_out,
        ..ClaimsReport::default()
    }
}

/// The frames of a group, and what it waits for.
fn of_group(group: &ChainGroup, all: &mut Vec<Claim>) {
    for (index, frame) in group.frames.iter().enumerate() {
        let how = frame.evidence.clone().unwrap_or_default();
        let stands = frame.place().map(|p| format!(" stands at {p}"));
        all.push(Claim {
            id: format!("{}/{index}", group.id),
            of: Some(group.id.clone()),
            says: format!("{}{}", frame.method, stands.unwrap_or_default()),
            at: unique(frame.address.into_iter().chain(addresses(&how))),
            how,
            commands: Vec::new(),
        });
    }
    let how = group.leaf.evidence.clone().unwrap_or_default();
    let waited = group.members.first().and_then(|m| m.waits_on);
    all.push(Claim {
        id: format!("{}/leaf", group.id),
        of: Some(group.id.clone()),
        says: format!("it waits for {}", group.leaf.text),
        at: unique(waited.into_iter().chain(addresses(&how))),
        how,
        commands: Vec::new(),
    });
}

fn of_thread(thread: &Thread) -> Claim {
    let waits = thread.waits_on.as_ref();
    let held = thread.holds.iter().filter_map(|h| h.address);
    let doing = waits.map_or_else(|| thread.state.clone(), |w| format!("waits for {}", w.text));
    let mut commands = vec![format!("setthread -t {}", thread.os_id), "clrstack".into()];
    if waits.is_some() || !thread.holds.is_empty() {
        commands.push("syncblk".into());
    }
    Claim {
        id: format!("T{}", thread.os_id),
        of: thread.chain.clone(),
        says: format!("thread {} {doing}", thread.os_id),
        how: "its registers and its stack".into(),
        at: unique(waits.and_then(|w| w.address).into_iter().chain(held)),
        commands,
    }
}

/// What shows what is not an object.
fn commands_of(how: &str) -> Vec<String> {
    let by_word = [
        ("sync block", "syncblk"),
        ("stack", "clrstack -all"),
        ("Blocking", "clrstack -all"),
        ("exception", "pe"),
    ];
    let named = by_word.iter().filter(|(word, _)| how.contains(word));
    named.map(|(_, command)| (*command).to_owned()).collect()
}

/// The addresses that a text names.
fn addresses(text: &str) -> impl Iterator<Item = Address> + '_ {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(|w| {
        let digits = w.strip_prefix("0x").filter(|d| d.len() == 16)?;
        u64::from_str_radix(digits, 16).ok().map(Address)
    })
}

fn unique(all: impl Iterator<Item = Address>) -> Vec<Address> {
    let mut seen = BTreeSet::new();
    all.filter(|a| a.0 != 0 && seen.insert(*a)).collect()
}

fn place(analysis: &Analysis<'_, '_>, address: Address) -> Place {
    let (heap, rt) = (&analysis.graph.heap, analysis.rt);
    let at = Addr(address.0);
    if heap.is_object(at) {
        return of_object(analysis, at);
    }
    let around = heap.object_at_or_before(at).and_then(|object| {
        let ty = rt.type_of(object)?;
        let size = rt.object_size(object, &ty);
        (at.since(object)? < size).then_some((object, ty, size))
    });
    if let Some((object, ty, size)) = around {
        return Place {
            address,
            kind: PlaceKind::Slot,
            object: Some(Address(object.0)),
            type_name: Some(rt.name(&ty).to_string()),
            size,
            commands: vec![format!("dumpobj {object}")],
            ..reference(analysis, at)
        };
    }
    if let Some(method) = rt.method_at(at) {
        return Place {
            address,
            kind: PlaceKind::Code,
            says: Some(rt.method_name(&method).to_string()),
            commands: vec![format!("ip2md {at}")],
            ..Place::default()
        };
    }
    if rt.memory().u64(at).is_none() {
        return Place {
            address,
            ..Place::default()
        };
    }
    Place {
        address,
        kind: PlaceKind::Memory,
        commands: vec![format!("dq -c 4 {at}")],
        ..reference(analysis, at)
    }
}

/// The word at an address when it refers to an object; anything else may be data.
fn reference(analysis: &Analysis<'_, '_>, at: Addr) -> Place {
    let rt = analysis.rt;
    let target = rt.memory().ptr(at);
    let target = target.filter(|o| analysis.graph.heap.is_object(*o));
    let Some(target) = target else {
        return Place::default();
    };
    let name = rt.object_type_name(target).unwrap_or_default();
    Place {
        bytes: Some(hex(&target.0.to_le_bytes())),
        says: Some(format!("{target} ({name})")),
        ..Place::default()
    }
}

fn of_object(analysis: &Analysis<'_, '_>, at: Addr) -> Place {
    let options = ObjectOptions {
        limit: MAX_FIELDS,
        values: Values::Hidden,
    };
    let Some(shown) = object(analysis, at, options) else {
        return Place::default();
    };
    let is_array = analysis.rt.array_len(at).is_some();
    let waits = |name: &str| shown.decoded.iter().find(|d| d.name == name);
    let mut commands = vec![if is_array {
        format!("dumparray {at}")
    } else {
        format!("dumpobj {at}")
    }];
    if waits("method").is_some() {
        commands.push(format!("dumpasync -addr {at} -stacks"));
    }
    let said: Vec<String> = shown
        .decoded
        .iter()
        .filter(|d| d.name != "text")
        .map(|d| format!("{}: {}", d.name, d.value))
        .collect();
    let method_table = shown.method_table.map(|m| hex(&m.0.to_le_bytes()));
    let ends = shown.fields.iter().skip(1).map(|f| f.offset);
    let ends = ends.chain(std::iter::once(shown.size));
    let fields = if is_array { &[][..] } else { &shown.fields };
    Place {
        address: shown.address,
        kind: PlaceKind::Object,
        object: Some(shown.address),
        type_name: Some(shown.type_name.clone()),
        size: shown.size,
        bytes: method_table,
        says: (!said.is_empty()).then(|| said.join("; ")),
        fields: fields
            .iter()
            .zip(ends)
            .map(|(field, end)| raw_field(analysis, at, field, end))
            .collect(),
        fields_left_out: shown.fields_left_out,
        commands,
    }
}

/// A field with its bytes, where the value tells them anyway.
fn raw_field(analysis: &Analysis<'_, '_>, object: Addr, field: &FieldRow, end: u64) -> RawField {
    let room = end.saturating_sub(field.offset);
    let value = field.value.as_str();
    let length = match value {
        "null" => Some(8),
        "true" | "false" => Some(1),
        _ if value.starts_with("0x") || field.link.is_some() => Some(8),
        _ if value.parse::<f64>().is_ok() => [8, 4, 2, 1].into_iter().find(|n| *n <= room),
        _ => None,
    };
    let bytes = length.and_then(|n| analysis.rt.memory().bytes(object + field.offset, n, 8));
    RawField {
        offset: field.offset,
        name: field.name.clone(),
        type_name: field.declared_type.clone(),
        bytes: bytes.map(|b| hex(&b)),
        says: value.to_owned(),
    }
}

/// Bytes in the order of memory.
fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_sentences() {
        let found: Vec<_> =
            addresses("awaiter at 0x00007ff39daefd48 names 0x00007ff39dab4168 (T)").collect();
        assert_eq!(
            found,
            [Address(0x7ff3_9dae_fd48), Address(0x7ff3_9dab_4168)]
        );
        assert_eq!(addresses("at 0x12, 00007ff39daefd48").count(), 0);
        assert_eq!(
            unique([Address(0), Address(8), Address(8)].into_iter()),
            [Address(8)]
        );
    }

    #[test]
    fn bytes_stand_in_the_order_of_memory() {
        assert_eq!(hex(&0x0102_u16.to_le_bytes()), "02 01");
    }
}
