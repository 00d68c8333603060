//! What waits for what, of a changed process.

use asynctriage_async_graph::{AsyncGraph, Class};
use asynctriage_clr::Runtime;
use asynctriage_dump::Dump;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::from_bytes(bytes.to_vec()) else {
        return;
    };
    let Ok(rt) = Runtime::open(&dump) else {
        return;
    };
    let graph = AsyncGraph::build(&rt);
    for id in graph.graph.node_indices() {
        let node = graph.object(id).expect("each id has a node");
        assert_eq!(graph.node(node.addr), Some(id));
        assert!(!matches!(node.class, Class::Helper(_)));
        let waits = graph.waiters(id).count() + graph.awaited(id).count();
        assert!(waits <= 2 * graph.graph.edge_count());
    }
    for id in graph.machines.keys() {
        assert!(graph.object(*id).is_some_and(|n| n.class.is_machine()));
        // what stands at an await has not ended
        assert!(!graph.running.contains_key(id));
    }
}
