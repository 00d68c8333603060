//! Which calls of a method complete what others wait for, by its IL.

use crate::paths::{Analysis, Step};
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{CallSite, Receiver};
use asynctriage_metadata::names::hoisted_local;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// How a thing that is waited for is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A TaskCompletionSource, or the core of a value-task source.
    Result,
    /// A semaphore.
    Release,
}

/// Methods that complete a source: of TaskCompletionSource and of ManualResetValueTaskSourceCore (8.0 to 11.0).
const RESULT: [&str; 8] = [
    "SetResult",
    "TrySetResult",
    "SetException",
    "TrySetException",
    "SetCanceled",
    "TrySetCanceled",
    "SetFromTask",
    "TrySetFromTask",
];
const RELEASE: &str = "Release";
const SEMAPHORE: &str = "System.Threading.SemaphoreSlim";

impl By {
    fn is_done_by(self, site: &CallSite) -> bool {
        // every async method completes its own task, and every iterator its own source, through what only compilers name
        let is_own = matches!(&site.receiver, Receiver::Field(field)
            if hoisted_local(field).is_some_and(|local| local.source_name().is_none()));
        match self {
            _ if is_own => false,
            Self::Result => RESULT.contains(&site.name.as_str()),
            Self::Release => site.name == RELEASE && site.class == SEMAPHORE,
        }
    }
}

/// A call that completes something, and how well it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// The called method, `SetResult`.
    pub(super) method: String,
    /// The type that the call names.
    pub(super) class: String,
    /// The field, variable or argument that it is called on.
    pub(super) receiver: Receiver,
}

/// By module and row of the method.
type Known = FxHashMap<(Addr, u32), Rc<[CallSite]>>;

/// Calls of methods that complete things, each method looked at once.
#[derive(Default)]
pub(super) struct Calls {
    known: RefCell<Known>,
}

impl Calls {
    /// The completing calls of a method, in the order of its code; empty when its IL is not in the dump.
    fn of(&self, analysis: &Analysis<'_, '_>, module: Addr, method: u32) -> Rc<[CallSite]> {
        if let Some(known) = self.known.borrow().get(&(module, method)) {
            return Rc::clone(known);
        }
        let code = analysis.rt.method_il(module, method);
        let of = analysis.rt.module(module);
        let wanted = |name: &str| RESULT.contains(&name) || name == RELEASE;
        let sites = of.metadata.as_ref().zip(code);
        let sites: Rc<[CallSite]> = sites
            .map(|(metadata, code)| metadata.call_sites(&code, wanted))
            .unwrap_or_default()
            .into();
        self.known
            .borrow_mut()
            .insert((module, method), Rc::clone(&sites));
        sites
    }

    /// What a suspended method does behind the await that it stands at.
    pub(super) fn behind_await(
        &self,
        analysis: &Analysis<'_, '_>,
        step: Step<'_>,
        by: By,
    ) -> Vec<Completion> {
        let method = match step.frame {
            Some(frame) => frame.point.method.map(|m| (m.module, m.rid)),
            None => analysis.graph.machines.get(&step.node).and_then(|m| {
                let (module, ty) = (m.place.ty.module, m.place.ty.rid);
                Some((module, analysis.rt.move_next(module, ty)?))
            }),
        };
        let (Some((module, method)), Some(offset)) = (method, analysis.step_spot(step).il_offset)
        else {
            return Vec::new();
        };
        let sites = self.of(analysis, module, method);
        let behind = sites.iter().filter(|s| s.il_offset > offset);
        completions(behind, by)
    }

    /// What a method does anywhere in its code.
    pub(super) fn anywhere(
        &self,
        analysis: &Analysis<'_, '_>,
        module: Addr,
        method: u32,
        by: By,
    ) -> Vec<Completion> {
        completions(self.of(analysis, module, method).iter(), by)
    }
}

fn completions<'s>(sites: impl Iterator<Item = &'s CallSite>, by: By) -> Vec<Completion> {
    let done = sites.filter(|s| by.is_done_by(s));
    let of = |s: &CallSite| Completion {
        method: s.name.clone(),
        class: s.class.clone(),
        receiver: s.receiver.clone(),
    };
    done.map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_semaphores_are_released() {
        let site = |name: &str, class: &str| CallSite {
            il_offset: 1,
            name: name.into(),
            class: class.into(),
            receiver: Receiver::Unknown,
        };
        assert!(By::Release.is_done_by(&site("Release", SEMAPHORE)));
        assert!(!By::Release.is_done_by(&site("Release", "Contoso.Buffer")));
        assert!(!By::Result.is_done_by(&site("Release", SEMAPHORE)));
        assert!(By::Result.is_done_by(&site("TrySetResult", "Contoso.Job")));
        let builder = CallSite {
            receiver: Receiver::Field("<>t__builder".into()),
            ..site("SetResult", "Contoso.Builder")
        };
        assert!(!By::Result.is_done_by(&builder));
        let promise = CallSite {
            receiver: Receiver::Field("<>v__promiseOfValueOrEnd".into()),
            ..builder
        };
        assert!(!By::Result.is_done_by(&promise));
    }
}
