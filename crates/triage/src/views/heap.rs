//! What is on the heap, by type.

use asynctriage_clr::Runtime;
use asynctriage_report::{Address, HeapReport, TypeRow};

/// Counts objects and bytes by type, most bytes first; `filters` keep the types whose name contains any of them,
/// in whatever case.
#[must_use]
pub fn heap(rt: &Runtime<'_>, filters: &[String], limit: usize) -> HeapReport {
    let heap = rt.walk_heap(&|_| false);
    let free = heap.types.iter().find(|t| t.mt == rt.globals.free_mt);
    let rows = heap.types.iter().map(|t| TypeRow {
        name: rt.handle_name(t.mt),
        method_table: Address(t.mt.0),
        count: t.count,
        bytes: t.bytes,
    });
    let filters: Vec<String> = filters.iter().map(|f| f.to_lowercase()).collect();
    let is_wanted = |name: &str| filters.iter().any(|f| name.to_lowercase().contains(f));
    let mut rows: Vec<TypeRow> = rows
        .filter(|r| filters.is_empty() || is_wanted(&r.name))
        .collect();
    let left_out = rows.len().saturating_sub(limit) as u64;
    rows.truncate(limit);
    HeapReport {
        objects: heap.objects(),
        bytes: heap.bytes(),
        free_objects: free.map_or(0, |f| f.count),
        free_bytes: free.map_or(0, |f| f.bytes),
        invalid_objects: heap.invalid_places(),
        skipped_bytes: heap.skipped_bytes(),
        types: rows,
        types_left_out: left_out,
        gaps: super::gaps(rt, rt.gaps().iter().chain(&heap.gaps)),
        ..HeapReport::default()
    }
}
