//! Traces of arbitrary bytes: every event is read, with its fields, its stack and what it says of methods and tasks.

use asynctriage_nettrace::Trace;
use asynctriage_nettrace::runtime::Methods;
use asynctriage_nettrace::tpl::TplEvent;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(trace) = Trace::open(bytes) else {
        return;
    };
    let mut events = trace.events();
    let mut methods = Methods::default();
    while let Some(event) = events.next() {
        event
            .values()
            .for_each(|(_, value)| drop(value.to_string()));
        let _ = events
            .stack(event.stack)
            .map(|stack| stack.addresses().count());
        let _ = TplEvent::decode(&event);
        let _ = trace.header().unix_nanos(event.timestamp);
        methods.add(&event);
    }
    let ranges = methods.into_ranges();
    for method in ranges.methods().ranges().iter().take(64) {
        let _ = ranges.candidates(method.start).count();
    }
    let _ = events.summary();
}
