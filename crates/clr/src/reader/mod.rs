//! The heap as a program would see it: objects by the name of their type, fields by name, collections by element.
//!
//! [`ManagedHeap`] is the entry. Everything here is a view that borrows the runtime: an [`Object`] is an address and a
//! type, and nothing is read before it is asked for. What is not there is [`Value::Missing`], so that
//! `order.field("Customer").field("Name")` needs no question at each step.

mod items;
mod object;
mod value;

pub use items::{CollectionKind, Item, Items};
pub use object::Object;
pub use value::{Structure, Value};

use crate::gap::Gap;
use crate::heap::Heap;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// The garbage collector's heap, walked once.
///
/// ```
/// use asynctriage_clr::Runtime;
/// use asynctriage_dump::{Dump, OpenOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdumps/chain-10.0.15.dmp.gz"));
/// let dump = Dump::open(path, &OpenOptions::default())?;
/// let runtime = Runtime::open(&dump)?;
/// let heap = runtime.managed_heap();
/// for thread in heap.objects_of("System.Threading.Thread") {
///     println!("{} is called {}", thread.address(), thread.field("_name"));
/// }
/// # Ok(())
/// # }
/// ```
pub struct ManagedHeap<'r, 'd> {
    rt: &'r Runtime<'d>,
    heap: Heap,
}

impl std::fmt::Debug for ManagedHeap<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagedHeap")
            .field("objects", &self.heap.objects())
            .finish_non_exhaustive()
    }
}

impl<'d> Runtime<'d> {
    /// Walks the heap, to read objects by the names of their types and fields.
    #[must_use]
    pub fn managed_heap(&self) -> ManagedHeap<'_, 'd> {
        ManagedHeap {
            rt: self,
            heap: self.walk_heap(&|_| false),
        }
    }

    /// The object that starts at an address, whatever the heap says of it; `None` when nothing there has a type.
    #[must_use]
    pub fn object(&self, addr: Addr) -> Option<Object<'_, 'd>> {
        Object::at(self, addr)
    }
}

impl<'r, 'd> ManagedHeap<'r, 'd> {
    /// What the walk has found.
    #[must_use]
    pub fn walked(&self) -> &Heap {
        &self.heap
    }

    /// What could not be read of the heap.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.heap.gaps
    }

    /// The object that starts at an address.
    #[must_use]
    pub fn object(&self, addr: Addr) -> Option<Object<'r, 'd>> {
        let is_object = self.heap.is_object(addr);
        is_object.then(|| Object::at(self.rt, addr)).flatten()
    }

    /// The objects of one type, by address; those of derived classes are others. The name is that of C#'s full name
    /// (`Shop.Order`, nested types behind `+`), of a generic type either its definition
    /// (``System.Collections.Generic.List`1``) or with all arguments.
    pub fn objects_of<'h>(&'h self, name: &'h str) -> impl Iterator<Item = Object<'r, 'd>> + 'h {
        self.objects_where(|heap, mt| {
            heap.rt.ty(mt).is_some_and(|ty| {
                *heap.rt.definition_name(&ty) == *name || *heap.rt.name(&ty) == *name
            })
        })
    }

    /// The objects of a class and of all that derive from it, by address.
    pub fn instances_of<'h>(&'h self, name: &'h str) -> impl Iterator<Item = Object<'r, 'd>> + 'h {
        self.objects_where(|heap, mt| heap.rt.is_a(mt, name))
    }

    /// The objects whose type passes; each type is asked about once.
    pub fn objects_where<'h>(
        &'h self,
        is_wanted: impl Fn(&Self, Addr) -> bool,
    ) -> impl Iterator<Item = Object<'r, 'd>> + 'h {
        let types = self.heap.types.iter().map(|t| t.mt);
        let wanted: Vec<Addr> = types
            .filter(|mt| *mt != self.rt.globals.free_mt && is_wanted(self, *mt))
            .collect();
        self.heap
            .addresses_of(self.rt, wanted)
            .filter_map(|addr| Object::at(self.rt, addr))
    }
}
