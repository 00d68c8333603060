//! The await of a runtime-async frame, checked against the frame below it.
//!
//! Frames of one task lie on one another as calls do: what a method awaits made the frame below. Compiled code tells the
//! await by an offset that may belong to a neighbour (11.0.0: `ChunkedEncodingReadStream.CopyToAsyncCore`), so where the
//! awaited call has another name than the method below, and one other await of the method has that name, the frame below
//! wins.

use crate::runtime_async::AsyncFrame;
use asynctriage_clr::{AwaitNumber, MethodRef, Runtime};
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The awaits of a method, with the names of what they call.
type Calls = Arc<[(u32, Option<String>)]>;

/// What is known of the awaits of methods.
#[derive(Default)]
pub(crate) struct Callees {
    by_method: FxHashMap<(Addr, u32), Calls>,
}

impl Callees {
    /// Checks the frames of one task, innermost first.
    pub(crate) fn check(&mut self, rt: &Runtime<'_>, frames: &mut [AsyncFrame]) {
        let below: Vec<Option<String>> = frames.iter().map(|f| own_name(&f.name)).collect();
        for (frame, below) in frames.iter_mut().skip(1).zip(below) {
            let (Some(method), Some(below)) = (frame.point.method, below) else {
                continue;
            };
            if frame.is_async() {
                let number = frame.point.await_index.and_then(AwaitNumber::exact);
                frame.by_callee = choose(&self.calls(rt, method), number, &below);
            }
        }
    }

    fn calls(&mut self, rt: &Runtime<'_>, method: MethodRef) -> Calls {
        let key = (method.module, method.rid);
        let calls = self.by_method.entry(key).or_insert_with(|| {
            let read = || {
                let code = rt.method_il(method.module, method.rid)?;
                let module = rt.module(method.module);
                let sites = module
                    .metadata
                    .as_ref()?
                    .runtime_async_awaits(method.rid, &code);
                let call = |s: asynctriage_metadata::il::AwaitSite| {
                    (s.number, s.awaits.as_deref().and_then(own_name))
                };
                Some(sites.into_iter().map(call).collect())
            };
            read().unwrap_or_default()
        });
        Arc::clone(calls)
    }
}

/// The await that the frame below tells, where the code's own number is another one.
fn choose(calls: &[(u32, Option<String>)], number: Option<u32>, below: &str) -> Option<u32> {
    let names_it = |call: &&(u32, Option<String>)| call.1.as_deref() == Some(below);
    let mut fitting = calls.iter().filter(names_it).map(|(n, _)| *n);
    let only = fitting.next().filter(|_| fitting.next().is_none())?;
    (Some(only) != number).then_some(only)
}

/// `LoadAsync` of `Ns.Store<Ns.Row>.LoadAsync<Int32>`; nothing for lambdas and for what is no call.
fn own_name(name: &str) -> Option<String> {
    let mut depth = 0_u32;
    let mut own = String::new();
    for c in name.chars() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => own.clear(),
            ' ' if depth == 0 => return None,
            _ if depth == 0 => own.push(c),
            _ => {}
        }
    }
    (!own.is_empty()).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(calls: &[&str], number: u32, below: &str) -> Option<u32> {
        let calls = (0..).zip(calls.iter().map(|c| own_name(c)));
        choose(&calls.collect::<Vec<_>>(), Some(number), below)
    }

    #[test]
    fn the_frame_below_wins_where_one_await_calls_it() {
        let calls = ["Stream.WriteAsync", "HttpConnection.FillAsync"];
        assert_eq!(chosen(&calls, 0, "FillAsync"), Some(1));
        assert_eq!(chosen(&calls, 1, "FillAsync"), None, "it is so");
        assert_eq!(chosen(&calls, 0, "CopyAsync"), None, "none calls it");
    }

    #[test]
    fn of_several_awaits_of_one_call_none_is_chosen() {
        let calls = ["A.Read", "B.Write", "B.Write"];
        assert_eq!(chosen(&calls, 0, "Write"), None);
    }

    #[test]
    fn names_come_without_types_and_arguments() {
        let own = |n| own_name(n).unwrap_or_default();
        assert_eq!(own("Ns.Store<Ns.Row>.LoadAsync<Int32>"), "LoadAsync");
        assert_eq!(own("_gate"), "_gate");
        assert_eq!(own("Ns.Store.Run lambda"), "");
    }
}
