//! Which customers' orders wait? `waiting-orders ../../testdumps/shop-10.0.15.dmp.gz`

use asynctriage_async_graph::AsyncGraph;
use asynctriage_clr::Runtime;
use asynctriage_dump::{Dump, OpenOptions};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("give a dump")?;
    let dump = Dump::open(path.as_ref(), &OpenOptions::default())?;
    let runtime = Runtime::open(&dump)?;
    let graph = AsyncGraph::build(&runtime);
    for order in runtime.managed_heap().objects_of("Shop.Order") {
        // each order has a TaskCompletionSource that is completed when it is shipped
        let task = order.field("Shipped").field("_task");
        let node = task.as_object().and_then(|task| graph.node(task.address()));
        let waiters = node.map_or(0, |node| graph.waiters(node).count());
        if waiters > 0 {
            let customer = order.field("Customer").field("Name").as_text();
            let customer = customer.as_deref().unwrap_or("?");
            println!("{customer}: order {} waits", order.field("Id"));
        }
    }
    for gap in runtime.gaps().iter().chain(&graph.gaps) {
        eprintln!("not read: {}: {}", gap.place, gap.why);
    }
    Ok(())
}
