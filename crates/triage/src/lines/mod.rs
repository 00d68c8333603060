//! From the state of a method to the await in the source: the awaited call from its IL, file and line from its symbols.

mod source_link;
mod symbols;
mod variables;

use asynctriage_async_graph::{AsyncFrame, Machine};
use asynctriage_clr::{AwaitNumber, CodeView, DumpSource, Gap, GapKind, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::Metadata;
use asynctriage_metadata::il::AwaitSite;
use asynctriage_metadata::pdb::Location;
use rustc_hash::FxHashMap;
use source_link::SourceMap;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use symbols::{Absent, Pdb, Search};

/// Where a method stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    /// What is awaited there.
    pub(crate) awaits: Option<String>,
    /// Where that is in the source.
    pub(crate) location: Option<Location>,
    /// Where that file is published.
    pub(crate) url: Option<String>,
    /// The field that holds the awaiter (state machines).
    pub(crate) awaiter_field: Option<String>,
    /// Where that is in the method's IL.
    pub(crate) il_offset: Option<u32>,
}

/// The awaits of a method; `None` when its IL is not there.
type Awaits = Option<Rc<[AwaitSite]>>;

/// A place in a method, as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Asked {
    /// Module and row of a state machine, and the number of the await.
    Machine(Addr, u32, u32),
    /// Module and row of a runtime-async method, the number of the await where that is known, and the IL offset.
    Async(Addr, u32, Option<u32>, Option<u32>),
}

/// What is known of methods and modules, each looked up once.
#[derive(Default)]
pub(crate) struct Lines {
    search: Search,
    /// By module and row of the method.
    awaits: RefCell<FxHashMap<(Addr, u32), Awaits>>,
    modules: RefCell<FxHashMap<Addr, Rc<Symbols>>>,
    /// Places that were asked for: many methods stand at each.
    spots: RefCell<FxHashMap<Asked, Rc<Spot>>>,
    /// By module and row of a state machine: the row of its `MoveNext`.
    move_next: RefCell<FxHashMap<(Addr, u32), Option<u32>>>,
}

/// What tells the lines of a module.
struct Symbols {
    pdb: Result<Pdb, Absent>,
    sources: SourceMap,
    /// Whether the symbols contradict the IL somewhere.
    contradicted: Cell<bool>,
    /// Whether they lack the line of an await, which every compiler writes: they are cut or damaged.
    incomplete: Cell<bool>,
}

impl Lines {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self {
            search: Search { folders },
            ..Self::default()
        }
    }

    /// Where a state machine stands.
    pub(crate) fn machine(&self, rt: &Runtime<'_>, machine: &Machine) -> Rc<Spot> {
        let (module, ty) = (machine.place.ty.module, machine.place.ty.rid);
        match u32::try_from(machine.state) {
            Ok(number) => self.known(Asked::Machine(module, ty, number), || {
                self.machine_at(rt, module, ty, number)
            }),
            Err(_) => Rc::default(),
        }
    }

    /// Looks a place up once.
    fn known(&self, asked: Asked, find: impl FnOnce() -> Spot) -> Rc<Spot> {
        if let Some(known) = self.spots.borrow().get(&asked) {
            return Rc::clone(known);
        }
        let spot = Rc::new(find());
        self.spots.borrow_mut().insert(asked, Rc::clone(&spot));
        spot
    }

    fn machine_at(&self, rt: &Runtime<'_>, module: Addr, ty: u32, number: u32) -> Spot {
        let Some(method) = self.move_next(rt, module, ty) else {
            return Spot::default();
        };
        let awaits = self.awaits(rt, module, method, |m, code| m.state_machine_awaits(code));
        let site = awaits
            .as_deref()
            .map(|all| all.iter().find(|s| s.number == number));
        let symbols = self.symbols(rt, module);
        let offset = match site {
            Some(site) => site.map(|s| s.il_offset),
            // without the IL the symbols tell the offset, too: their steps are in the order of the states
            None => symbols.step(method, number),
        };
        self.spot(&symbols, method, offset, site.flatten(), true)
    }

    /// Where a runtime-async method stands.
    pub(crate) fn runtime_async(&self, rt: &Runtime<'_>, frame: &AsyncFrame) -> Rc<Spot> {
        let point = &frame.point;
        let Some(method) = point.method else {
            return Rc::default();
        };
        let (module, rid) = (method.module, method.rid);
        let number = frame.await_number().and_then(AwaitNumber::exact);
        let asked = Asked::Async(module, rid, number, point.il_offset);
        self.known(asked, || {
            self.async_at(rt, (module, rid), number, point.il_offset)
        })
    }

    fn async_at(
        &self,
        rt: &Runtime<'_>,
        (module, rid): (Addr, u32),
        number: Option<u32>,
        il_offset: Option<u32>,
    ) -> Spot {
        let awaits = self.awaits(rt, module, rid, |m, code| m.runtime_async_awaits(rid, code));
        let site = awaits
            .as_deref()
            .and_then(|all| all.iter().find(|s| Some(s.number) == number));
        let offset = site.map(|s| s.il_offset).or(il_offset);
        self.spot(&self.symbols(rt, module), rid, offset, site, false)
    }

    fn spot(
        &self,
        symbols: &Symbols,
        method: u32,
        offset: Option<u32>,
        site: Option<&AwaitSite>,
        is_machine: bool,
    ) -> Spot {
        let location = offset
            .filter(|o| !is_machine || symbols.agree(method, *o))
            .and_then(|o| symbols.location(method, o));
        Spot {
            url: location.as_ref().and_then(|l| symbols.sources.url(&l.file)),
            awaits: site.and_then(|s| s.awaits.clone()),
            location,
            awaiter_field: site.and_then(|s| s.awaiter_field.clone()),
            il_offset: offset,
        }
    }

    pub(crate) fn move_next(&self, rt: &Runtime<'_>, module: Addr, ty: u32) -> Option<u32> {
        if let Some(known) = self.move_next.borrow().get(&(module, ty)) {
            return *known;
        }
        let method = rt.move_next(module, ty);
        self.move_next.borrow_mut().insert((module, ty), method);
        method
    }

    fn awaits(
        &self,
        rt: &Runtime<'_>,
        module: Addr,
        method: u32,
        find: impl Fn(&Metadata<DumpSource<'_>>, &[u8]) -> Vec<AwaitSite>,
    ) -> Awaits {
        if let Some(known) = self.awaits.borrow().get(&(module, method)) {
            return known.clone();
        }
        let of = rt.module(module);
        let found = rt
            .method_il(module, method)
            .zip(of.metadata.as_ref())
            .map(|(code, metadata)| find(metadata, &code).into());
        self.awaits
            .borrow_mut()
            .insert((module, method), found.clone());
        found
    }

    fn symbols(&self, rt: &Runtime<'_>, module: Addr) -> Rc<Symbols> {
        if let Some(known) = self.modules.borrow().get(&module) {
            return Rc::clone(known);
        }
        let pdb = self.search.find(&wanted(rt, module));
        let published = pdb.as_ref().ok().and_then(|p| p.source_link());
        let symbols = Rc::new(Symbols {
            pdb,
            sources: published.map(|t| SourceMap::parse(&t)).unwrap_or_default(),
            contradicted: Cell::new(false),
            incomplete: Cell::new(false),
        });
        self.modules
            .borrow_mut()
            .insert(module, Rc::clone(&symbols));
        symbols
    }

    /// The symbol files of this machine that are in use.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let modules = self.modules.borrow();
        let used = modules.values().filter_map(|s| s.pdb.as_ref().ok());
        let mut out: Vec<PathBuf> = used.filter_map(|pdb| pdb.file.clone()).collect();
        out.sort();
        out
    }

    /// What was wanted of modules of the application and is not known: lines, awaited calls.
    pub(crate) fn gaps(&self, rt: &Runtime<'_>) -> Vec<Gap> {
        let modules = self.modules.borrow();
        let named = modules
            .iter()
            .map(|(addr, symbols)| (*addr, rt.module(*addr), symbols));
        let mut out: Vec<Gap> = named
            .filter(|(_, module, _)| !module.ships_with_dotnet)
            .flat_map(|(addr, module, symbols)| {
                [symbols.gap(&module.name), self.il_gap(addr, &module.name)]
            })
            .flatten()
            .collect();
        out.sort_by(|a, b| a.place.cmp(&b.place));
        out
    }

    fn il_gap(&self, module: Addr, name: &str) -> Option<Gap> {
        let awaits = self.awaits.borrow();
        let lacking = awaits
            .iter()
            .filter(|((of, _), awaits)| *of == module && awaits.is_none())
            .count();
        (lacking > 0).then(|| Gap {
            kind: GapKind::Awaited,
            place: name.to_owned(),
            why: format!(
                "what {lacking} of its methods await is not known: their IL is not in the dump"
            ),
            remedy: format!("give --module-path DIR with {name}.dll of this very build"),
        })
    }
}

impl Spot {
    /// Whether a slot of a state machine is in the awaiter that the await keeps: all awaits of a type share one, others
    /// may hold what was awaited before.
    pub(crate) fn awaiter_truth(
        &self,
        rt: &Runtime<'_>,
        machine: &Machine,
        slot: Addr,
    ) -> Option<String> {
        let name = self.awaiter_field.as_deref()?;
        let field = rt.instance_field(&machine.place.ty, name)?;
        let at = slot.since(machine.place.at(&field));
        let is_inside = at.is_some_and(|at| at < machine.place.extent(rt, &field).max(8));
        Some(if is_inside {
            format!("{name} is the awaiter of this await, by the IL")
        } else {
            format!("not in {name}, which this await uses by the IL: perhaps an old value")
        })
    }
}

impl Symbols {
    /// IL offset behind the store of a state number.
    fn step(&self, method: u32, number: u32) -> Option<u32> {
        let steps = self.pdb.as_ref().ok()?.async_steps(method)?;
        steps
            .get(usize::try_from(number).ok()?)
            .map(|s| s.yields_at)
    }

    /// Whether the symbols of a state machine's method, as far as they tell, have an await where its IL has one.
    fn agree(&self, method: u32, offset: u32) -> bool {
        let steps = self.pdb.as_ref().ok().and_then(|p| p.async_steps(method));
        let agree = steps.is_none_or(|all| all.iter().any(|s| s.yields_at == offset));
        self.contradicted.set(self.contradicted.get() || !agree);
        agree
    }

    fn location(&self, method: u32, offset: u32) -> Option<Location> {
        let location = self.pdb.as_ref().ok()?.location(method, offset);
        self.incomplete
            .set(self.incomplete.get() || location.is_none());
        location
    }

    fn gap(&self, module: &str) -> Option<Gap> {
        let (why, remedy) = match &self.pdb {
            Ok(pdb) if self.incomplete.get() && !self.contradicted.get() => (
                format!(
                    "no lines for some awaits: {} does not tell them, it may be cut or damaged",
                    pdb.from
                ),
                "give --symbols DIR with the whole symbol file".to_owned(),
            ),
            Ok(pdb) if self.contradicted.get() => (
                format!(
                    "no lines where {} has no await and the code has one",
                    pdb.from
                ),
                "give --symbols DIR with the symbols of this very build".to_owned(),
            ),
            Ok(_) => return None,
            Err(absent) => (absent.why.clone(), absent.remedy.clone()),
        };
        Some(Gap {
            kind: GapKind::Symbols,
            place: module.to_owned(),
            why,
            remedy,
        })
    }
}

/// What is looked for.
struct Wanted {
    /// Simple name of the module.
    name: String,
    code_view: Option<CodeView>,
    /// Whether the image says that there are no symbols of it.
    is_without: bool,
    embedded: Option<Vec<u8>>,
    /// Files on this machine that are the module's image, or stand where the process had it.
    images: Vec<PathBuf>,
}

fn wanted(rt: &Runtime<'_>, module: Addr) -> Wanted {
    let path = rt.module_path(module);
    let completed = rt.dump().completion.used.iter();
    let used = completed
        .filter(|u| Some(u.module.as_str()) == path)
        .map(|u| u.file.clone());
    Wanted {
        name: rt.module(module).name.clone(),
        code_view: rt.code_view(module),
        is_without: rt.is_without_symbols(module),
        embedded: rt.embedded_pdb(module),
        images: used
            .chain(path.and_then(|p| rt.dump().host_path(p)))
            .collect(),
    }
}
