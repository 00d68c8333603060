//! Shapes: what is the same for all paths over the same methods at the same awaits, found out once.
//!
//! A path is a list of sites, which are small numbers; equal lists are one shape. Names, whose code it is, and which
//! frames of libraries stand in it are asked of the shape.

use super::steps::{Place, Step};
use super::{Analysis, Path};
use crate::libraries::{self, Owner};
use asynctriage_async_graph::{Class, NodeId};
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What makes two frames one site.
#[derive(Clone, PartialEq, Eq, Hash)]
enum SiteKey {
    /// A state machine: its type and state.
    Machine(Addr, i32),
    /// A runtime-async method: its suspension point, and its name, as shared code has several.
    Async(Addr, Arc<str>, Option<u32>),
    /// A combinator.
    Class(Class),
    /// A continuation of the program's, by its name.
    Continuation(Arc<str>),
    /// Whatever has a name of its own.
    Node(NodeId),
}

/// The state of a machine that runs.
const RUNNING: i32 = -1;

/// A method at a place in it.
struct Site {
    name: Arc<str>,
    /// The number of the definition of the program's method: overloads are called alike. 0 for what has none.
    definition: u32,
    place: Option<Place>,
    owner: Owner,
    traits: Traits,
    stands_for: Option<LeafKind>,
}

/// Which frames of servers stand in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// One that calls a method of a SignalR hub.
    pub(crate) hub: bool,
    /// The loop of a server, where it waits for the application.
    pub(crate) request: bool,
    /// One in which the host runs a background service.
    pub(crate) background: bool,
    /// One in which a library calls the program.
    pub(crate) service: bool,
}

impl Traits {
    fn of(name: &str, place: Option<Place>) -> Self {
        let application = libraries::server::application_await(name).map(Place::Await);
        Self {
            hub: name.starts_with(libraries::signalr::HUB_DISPATCHER),
            request: application.is_some() && application == place,
            background: name.starts_with(libraries::hosting::BACKGROUND),
            service: libraries::service_of(name).is_some(),
        }
    }

    fn add(&mut self, other: Self) {
        self.hub |= other.hub;
        self.request |= other.request;
        self.background |= other.background;
        self.service |= other.service;
    }
}

/// The frames of a path in words: name, place, and how often it follows itself.
pub(crate) type Folded = Vec<(Arc<str>, Option<Place>, u64)>;

/// What all paths of a shape have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its frames with that of a blocked thread, runs folded. Shapes of equal words share them.
    pub(crate) folded: Rc<Folded>,
    /// The number of those words.
    pub(crate) number: u32,
    /// The number of the same words without the numbers in the name of the blocked thread.
    pub(crate) alike: u32,
    pub(crate) traits: Traits,
    /// The kinds of waits that frames of .NET stand for, innermost first, each once.
    pub(crate) stands_for: Vec<LeafKind>,
    /// Whether methods of a client library stand innermost, up to the first method of the program.
    pub(crate) in_library: bool,
    /// Whether all of it is code of .NET.
    pub(crate) is_framework: bool,
}

/// Sites and shapes met so far.
#[derive(Default)]
pub(crate) struct Shapes(RefCell<Known>);

/// Some words, and their number.
type Words = (Rc<Folded>, u32);

#[derive(Default)]
struct Known {
    numbers: FxHashMap<SiteKey, u32>,
    sites: Vec<Site>,
    shapes: FxHashMap<Box<[u32]>, Rc<Shape>>,
    /// By words, with the definitions behind them.
    words: FxHashMap<(Rc<Folded>, Box<[u32]>), Words>,
    definitions: FxHashMap<(Addr, u32), u32>,
    /// The path that is looked at; kept for its memory.
    path: Vec<u32>,
}

impl Analysis<'_, '_> {
    /// The shape of a path.
    pub(crate) fn shape(&self, path: &Path) -> Rc<Shape> {
        let mut known = self.shapes.0.borrow_mut();
        let mut sites = std::mem::take(&mut known.path);
        sites.clear();
        for node in &path.frames {
            for step in super::steps_of(&self.graph, *node) {
                sites.push(self.site(&mut known, step));
            }
        }
        // the thread that a path ends at has a name and nothing else that counts
        let own = sites.len();
        if let Some(node) = path.blocked {
            sites.push(self.site(&mut known, Step { node, frame: None }));
        }
        let shape = match known.shapes.get(sites.as_slice()) {
            Some(shape) => Rc::clone(shape),
            None => {
                let shape = Rc::new(known.make(&sites, own));
                known
                    .shapes
                    .insert(sites.as_slice().into(), Rc::clone(&shape));
                shape
            }
        };
        known.path = sites;
        shape
    }

    fn site(&self, known: &mut Known, step: Step<'_>) -> u32 {
        let key = self.site_key(step);
        if let Some(number) = known.numbers.get(&key) {
            return *number;
        }
        let name = self.step_name(step);
        let place = self.step_place(step);
        let number = u32::try_from(known.sites.len()).unwrap_or(u32::MAX);
        let mut traits = Traits::of(&name, place);
        // a loop of a server that runs has called the application, or is between two requests
        traits.request |= step.frame.is_none()
            && self.graph.running.contains_key(&step.node)
            && libraries::server::application_await(&name).is_some();
        let owner = self.step_owner(step);
        let definition = self.definition(step).filter(|_| !owner.is_framework());
        let definition = definition.map_or(0, |of| {
            let next = u32::try_from(known.definitions.len()).unwrap_or(u32::MAX);
            *known
                .definitions
                .entry(of)
                .or_insert(next.saturating_add(1))
        });
        known.sites.push(Site {
            definition,
            traits,
            stands_for: libraries::wait_of(&name),
            owner,
            name,
            place,
        });
        known.numbers.insert(key, number);
        number
    }

    /// The module of a method, and the row of it or of its state machine.
    fn definition(&self, step: Step<'_>) -> Option<(Addr, u32)> {
        if let Some(frame) = step.frame {
            let method = frame.point.method?;
            return Some((method.module, method.rid));
        }
        let machine = self.graph.machines.get(&step.node).map(|m| &m.place);
        let running = || Some(&self.graph.running.get(&step.node)?.machine()?.place);
        let ty = &machine.or_else(running)?.ty;
        Some((ty.module, ty.rid))
    }

    fn site_key(&self, step: Step<'_>) -> SiteKey {
        if let Some(frame) = step.frame {
            return SiteKey::Async(frame.point.info, Arc::clone(&frame.name), frame.by_callee);
        }
        if let Some(machine) = self.graph.machines.get(&step.node) {
            return SiteKey::Machine(machine.place.ty.mt, machine.state);
        }
        let running = self.graph.running.get(&step.node);
        if let Some(machine) = running.and_then(|r| r.machine()) {
            return SiteKey::Machine(machine.place.ty.mt, RUNNING);
        }
        if let Some((_, name)) = self.continuation(step.node) {
            return SiteKey::Continuation(name);
        }
        match self.graph.object(step.node).map(|n| n.class) {
            Some(class @ Class::Combinator(_)) if !self.graph.for_each.contains_key(&step.node) => {
                SiteKey::Class(class)
            }
            _ => SiteKey::Node(step.node),
        }
    }
}

/// A thread's name without its numbers: `worker 1` and `worker 2` do the same, and are alike when they wait alike.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}

impl Known {
    /// `own` is how many of the sites are frames; one more is the thread that the path ends at.
    fn make(&mut self, sites: &[u32], own: usize) -> Shape {
        let mut folded: Folded = Vec::new();
        let mut definitions: Vec<u32> = Vec::new();
        let mut traits = Traits::default();
        let mut stands_for: Vec<LeafKind> = Vec::new();
        let mut in_library = None;
        let mut is_framework = true;
        for (index, number) in sites.iter().enumerate() {
            let Some(site) = usize::try_from(*number)
                .ok()
                .and_then(|n| self.sites.get(n))
            else {
                continue;
            };
            match folded.last_mut() {
                Some((name, place, repeat))
                    if *name == site.name
                        && *place == site.place
                        && definitions.last() == Some(&site.definition) =>
                {
                    *repeat = repeat.saturating_add(1);
                }
                _ => {
                    folded.push((Arc::clone(&site.name), site.place, 1));
                    definitions.push(site.definition);
                }
            }
            if index >= own {
                continue;
            }
            traits.add(site.traits);
            stands_for.extend(site.stands_for.filter(|kind| !stands_for.contains(kind)));
            is_framework &= site.owner.is_framework();
            in_library = in_library.or(match site.owner {
                Owner::Library(_) => Some(true),
                Owner::Program => Some(false),
                Owner::Framework => None,
            });
        }
        let alike = (sites.len() > own).then(|| {
            let mut alike = folded.clone();
            if let Some((name, ..)) = alike.last_mut() {
                *name = without_numbers(name).into();
            }
            self.number(alike, &definitions).1
        });
        let (folded, number) = self.number(folded, &definitions);
        Shape {
            folded,
            number,
            alike: alike.unwrap_or(number),
            traits,
            stands_for,
            in_library: in_library == Some(true),
            is_framework,
        }
    }

    /// The number of some words, with the definitions behind them.
    fn number(&mut self, folded: Folded, definitions: &[u32]) -> (Rc<Folded>, u32) {
        let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        let folded = Rc::new(folded);
        let key = (Rc::clone(&folded), definitions.into());
        let (known, number) = self.words.entry(key).or_insert((folded, next));
        (Rc::clone(known), *number)
    }
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn threads_that_differ_by_number_are_called_alike() {
        assert_eq!(without_numbers("thread 'worker 17'"), "thread 'worker #'");
        assert_eq!(
            without_numbers("thread 'w3-120'"),
            without_numbers("thread 'w12-1'")
        );
        assert_ne!(
            without_numbers("thread 'reader 1'"),
            without_numbers("thread 'writer 1'")
        );
    }
}
