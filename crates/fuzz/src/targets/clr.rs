//! The runtime's structures: everything of a changed process is read, from its modules to its stacks.

use asynctriage_clr::Runtime;
use asynctriage_dump::Dump;

/// Objects that are looked into.
const MAX_OBJECTS: usize = 64;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::from_bytes(bytes.to_vec()) else {
        return;
    };
    let Ok(rt) = Runtime::open(&dump) else {
        return;
    };
    let heap = rt.walk_heap(&|_| true);
    assert!(heap.wanted.is_sorted());
    for object in heap.wanted.iter().take(MAX_OBJECTS) {
        let Some(ty) = rt.type_of(object.addr) else {
            continue;
        };
        let _ = (
            rt.name(&ty),
            rt.object_size(object.addr, &ty),
            rt.text(object.addr),
        );
        if let Some(place) = rt.place(object.addr) {
            let _ = place.fields(&rt).take(MAX_OBJECTS).count();
        }
        let items = rt.object(object.addr).and_then(|o| o.items(MAX_OBJECTS));
        assert!(items.is_none_or(|i| i.items.len() <= MAX_OBJECTS));
        let _ = (rt.managed_lock(object.addr), rt.thin_lock(object.addr));
    }
    let roots = rt.roots(&heap);
    let all = heap.wanted.iter().map(|o| o.addr);
    let reached = rt.reached(&heap, &roots, all.clone());
    assert!(reached.len() <= heap.wanted.len());
    let _ = rt.referrers(&heap, all.take(MAX_OBJECTS), 1000);
    let (threads, _) = rt.threads();
    for thread in threads.iter().take(MAX_OBJECTS) {
        let stack = rt.stack(thread);
        for frame in &stack.frames {
            let _ = rt.method_name(&frame.method);
        }
        let _ = (rt.blocked_on(thread), rt.stack_words(thread).count());
    }
    let _ = (rt.stack_gaps(threads), rt.module_gaps(), rt.sync_locks());
    for module in rt.modules_seen() {
        let _ = rt.static_references(&module);
    }
}
