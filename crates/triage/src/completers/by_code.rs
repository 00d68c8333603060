//! Who completes something by code alone: no way needs to lead from them to it.

use super::ahead::Proved;
use super::calls::By;
use super::{Candidate, Search, Target};
use crate::holders::{Holder, Who};
use crate::threads::ThreadFacts;
use asynctriage_report::{Address, Completer, CompleterKind, Confidence};

impl Search<'_, '_, '_> {
    /// Who is inside a semaphore.
    pub(super) fn inside(&self, target: Target) -> Vec<Candidate> {
        let holders = match target.by {
            By::Release => self.holders.of(target.object),
            By::Result | By::Set | By::Put | By::Take | By::Resume => &[],
        };
        let all = holders
            .iter()
            .filter(|h| h.confidence > Confidence::Possible);
        all.map(|h| self.holder(h)).collect()
    }

    fn holder(&self, holder: &Holder) -> Candidate {
        let method = &holder.method;
        let of = match holder.who {
            Who::Method(_) => Completer {
                kind: CompleterKind::Chain,
                text: format!("{method}, which is inside"),
                chain: self.chain_of_who(holder.who),
                ..Completer::default()
            },
            Who::Thread(id) => {
                let thread = self.thread_of(id);
                let title = thread.map_or_else(|| id.to_string(), ThreadFacts::title);
                Completer {
                    kind: CompleterKind::Thread,
                    text: format!("thread {title} in {method}, which is inside"),
                    thread: thread.map(|t| u64::from(t.thread.os_id)),
                    ..Completer::default()
                }
            }
        };
        Candidate {
            who: Some(holder.who),
            completer: Completer {
                object: holder.slot.map(|s| Address(s.0)),
                confidence: holder.confidence,
                evidence: holder.how.clone(),
                ..of
            },
        }
    }

    fn thread_of(&self, id: u32) -> Option<&ThreadFacts> {
        let index = self.hang.by_managed_id(id)?;
        self.hang.threads.get(index)
    }

    fn chain_of_who(&self, who: Who) -> Option<String> {
        match who {
            Who::Method(id) => self.chain_of(id),
            Who::Thread(_) => None,
        }
    }

    /// One whose code names the object without that a way leads to it: through a static field.
    pub(super) fn proved(&self, proved: &Proved) -> Candidate {
        let Proved {
            name,
            call,
            variable,
            ..
        } = proved;
        let on = match variable.as_str() {
            "" => String::new(),
            variable => format!(" on `{variable}`"),
        };
        let evidence =
            format!("the code of {name} calls {call}{on} behind the place where it stands");
        let of = match proved.who {
            Who::Method(_) => {
                let at = proved
                    .at
                    .map_or_else(String::new, |n| format!(" at await {n}"));
                Completer {
                    kind: CompleterKind::Chain,
                    text: format!("{name}{at}, which calls {call} behind its await{on}"),
                    chain: self.chain_of_who(proved.who),
                    ..Completer::default()
                }
            }
            Who::Thread(id) => {
                let thread = self.thread_of(id);
                thread.map_or_else(Completer::default, |t| {
                    self.thread_in(t, name, Some(call.as_str()))
                })
            }
        };
        Candidate {
            who: Some(proved.who),
            completer: Completer {
                object: proved.slot.map(|s| Address(s.0)),
                confidence: proved.confidence,
                evidence,
                ..of
            },
        }
    }
}
