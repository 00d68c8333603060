//! The managed side: types of System.Private.CoreLib that matter for waiting, and those of the program.

use crate::heap::Heap;
use crate::metadata::Sig;
use crate::module::Module;
use crate::space::{Id, Space};
use crate::types::{self, Elements, Kind, Spec, Type};
use std::collections::HashMap;

/// First addresses.
const NATIVE: u64 = 0x5500_0000_0000;
const CORE_LIB: u64 = 0x7f30_0000_0000;
const APP: u64 = 0x7f40_0000_0000;

const TASKS: &str = "System.Threading.Tasks";
const COMPILER: &str = "System.Runtime.CompilerServices";

/// Rows that the metadata gave to a type.
#[derive(Clone, Copy, Debug)]
struct Definition {
    row: u32,
    first_field: u32,
}

/// Where a definition stands.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    namespace: &'a str,
    name: &'a str,
    enclosing: Option<u32>,
}

fn top<'a>(namespace: &'a str, name: &'a str) -> Place<'a> {
    Place {
        namespace,
        name,
        enclosing: None,
    }
}

/// A field with what the metadata and what the loader say about it.
type FieldSpec<'a> = (&'a str, Sig, Kind);

fn int(name: &str) -> FieldSpec<'_> {
    (name, Sig::Int32, Kind::Int32)
}

fn reference(name: &str) -> FieldSpec<'_> {
    (name, Sig::Object, Kind::Reference)
}

fn native(name: &str) -> FieldSpec<'_> {
    (name, Sig::Native, Kind::Native)
}

/// Types of System.Private.CoreLib.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) object: Type,
    pub(crate) string: u64,
    pub(crate) free: u64,
    pub(crate) object_array: u64,
    pub(crate) task: Type,
    pub(crate) source: Type,
    pub(crate) list: Type,
    pub(crate) blocking_wait: Type,
    pub(crate) thread: Type,
    value: Type,
    void_result: Type,
    task_of_void: Type,
    builder: Type,
    awaiter: Type,
    box_definition: Definition,
}

/// A method of the program: its state machine, and the box around that.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub(crate) machine: Type,
    pub(crate) boxed: Type,
}

/// Everything that grows while the process is described.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) space: Space,
    pub(crate) native: Id,
    pub(crate) heap: Heap,
    pub(crate) core_lib: Module,
    pub(crate) app: Module,
    pub(crate) core: Core,
    builder_ref: Sig,
    awaiter_ref: Sig,
    outer_types: HashMap<String, u32>,
    methods: HashMap<String, Method>,
}

impl World {
    pub(crate) fn new(mut space: Space) -> Self {
        let native = space.stretch(NATIVE);
        let mut core_lib = Module::new(&mut space, native, CORE_LIB, "System.Private.CoreLib");
        let core = Loader {
            space: &mut space,
            native,
            module: &mut core_lib,
        }
        .core();
        let mut app = Module::new(&mut space, native, APP, "App");
        let mut other = |name| Sig::Other(app.metadata.type_ref(COMPILER, name));
        Self {
            builder_ref: other("AsyncTaskMethodBuilder"),
            awaiter_ref: other("TaskAwaiter"),
            heap: Heap::new(&mut space),
            space,
            native,
            core_lib,
            app,
            core,
            outer_types: HashMap::new(),
            methods: HashMap::new(),
        }
    }

    /// The method `Namespace.Type.Name`, made when it is asked for first.
    pub(crate) fn method(&mut self, name: &str) -> Method {
        if let Some(known) = self.methods.get(name) {
            return known.clone();
        }
        let (outer, own) = name.rsplit_once('.').expect("Namespace.Type.Method");
        let outer = self.outer_type(outer);
        let nested = format!("<{own}>d__{}", self.methods.len());
        let core = &self.core;
        let fields = [
            int("<>1__state"),
            (
                "<>t__builder",
                self.builder_ref,
                Kind::Value(core.builder.clone()),
            ),
            (
                "<>u__1",
                self.awaiter_ref,
                Kind::Value(core.awaiter.clone()),
            ),
        ];
        let place = Place {
            namespace: "",
            name: &nested,
            enclosing: Some(outer),
        };
        let machine = Loader {
            space: &mut self.space,
            native: self.native,
            module: &mut self.app,
        }
        .structure(place, &core.value, &fields);
        let method = Method {
            boxed: self.boxed(&machine),
            machine,
        };
        self.methods.insert(name.to_owned(), method.clone());
        method
    }

    fn outer_type(&mut self, name: &str) -> u32 {
        let metadata = &mut self.app.metadata;
        *self.outer_types.entry(name.to_owned()).or_insert_with(|| {
            let (namespace, own) = name.rsplit_once('.').unwrap_or(("", name));
            metadata.type_def(namespace, own, None, &[])
        })
    }

    /// The instance of the box for one state machine.
    fn boxed(&mut self, machine: &Type) -> Type {
        let core = &self.core;
        let fields = [
            ("StateMachine", Kind::Value(machine.clone())),
            ("_moveNextAction", Kind::Reference),
        ];
        let spec = Spec {
            module: self.core_lib.at,
            row: core.box_definition.row,
            first_field: core.box_definition.first_field,
            parent: Some(&core.task_of_void),
            fields: &fields,
            args: &[core.void_result.mt, machine.mt],
            is_value: false,
        };
        types::load(&mut self.space, self.native, &spec)
    }

    /// Puts an object with null fields on the heap.
    pub(crate) fn object(&mut self, ty: &Type) -> u64 {
        let at = self.heap.take(&mut self.space, ty.object_size());
        self.space.put_u64(at, ty.mt);
        at
    }

    /// Puts a string on the heap.
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        let units: Vec<u16> = text.encode_utf16().collect();
        let at = self.heap.take(&mut self.space, 22 + 2 * units.len() as u64);
        self.space.put_u64(at, self.core.string);
        self.space.put_u32(at + 8, units.len() as u32);
        for (i, unit) in units.into_iter().enumerate() {
            self.space.put_u16(at + 12 + 2 * i as u64, unit);
        }
        at
    }

    /// Puts an array of references on the heap.
    pub(crate) fn array(&mut self, items: &[u64]) -> u64 {
        let size = 24 + 8 * items.len() as u64;
        let at = self.heap.take(&mut self.space, size);
        self.fill_array(at, items);
        at
    }

    /// Puts an array of references where pinned objects are; what it holds stays alive.
    pub(crate) fn pinned_array(&mut self, items: &[u64]) {
        let size = 24 + 8 * items.len() as u64;
        let at = self.heap.take_pinned(&mut self.space, size);
        self.fill_array(at, items);
    }

    fn fill_array(&mut self, at: u64, items: &[u64]) {
        self.space.put_u64(at, self.core.object_array);
        self.space.put_u32(at + 8, items.len() as u32);
        for (i, item) in items.iter().enumerate() {
            self.space.put_u64(at + 16 + 8 * i as u64, *item);
        }
    }

    /// Writes a 64-bit field of an object.
    pub(crate) fn set(&mut self, object: u64, ty: &Type, field: &str, value: u64) {
        self.space.put_u64(object + ty.in_object(field), value);
    }

    /// Writes a 32-bit field of an object.
    pub(crate) fn set_u32(&mut self, object: u64, ty: &Type, field: &str, value: u32) {
        self.space.put_u32(object + ty.in_object(field), value);
    }
}

/// Defines and loads types of one module.
struct Loader<'a> {
    space: &'a mut Space,
    native: Id,
    module: &'a mut Module,
}

impl Loader<'_> {
    fn define(&mut self, place: Place<'_>, fields: &[(&str, Sig)]) -> Definition {
        let metadata = &mut self.module.metadata;
        let first_field = metadata.field_count + 1;
        let row = metadata.type_def(place.namespace, place.name, place.enclosing, fields);
        Definition { row, first_field }
    }

    fn load(
        &mut self,
        place: Place<'_>,
        parent: Option<&Type>,
        fields: &[FieldSpec<'_>],
        args: &[u64],
        is_value: bool,
    ) -> Type {
        let signatures: Vec<_> = fields.iter().map(|(n, s, _)| (*n, *s)).collect();
        let kinds: Vec<_> = fields.iter().map(|(n, _, k)| (*n, k.clone())).collect();
        let definition = self.define(place, &signatures);
        let spec = Spec {
            module: self.module.at,
            row: definition.row,
            first_field: definition.first_field,
            parent,
            fields: &kinds,
            args,
            is_value,
        };
        let ty = types::load(self.space, self.native, &spec);
        self.module.loaded.push((definition.row, ty.mt));
        ty
    }

    fn class(&mut self, place: Place<'_>, parent: &Type, fields: &[FieldSpec<'_>]) -> Type {
        self.load(place, Some(parent), fields, &[], false)
    }

    fn structure(&mut self, place: Place<'_>, value: &Type, fields: &[FieldSpec<'_>]) -> Type {
        self.load(place, Some(value), fields, &[], true)
    }

    fn elements(&mut self, name: &str, object: &Type, shape: (u64, u32), of: Option<u64>) -> u64 {
        let row = self.define(top("System", name), &[]).row;
        let (base_size, size) = shape;
        let spec = Elements {
            module: self.module.at,
            row,
            parent: object.mt,
            base_size,
            size,
            of,
        };
        types::load_elements(self.space, self.native, spec)
    }

    fn core(&mut self) -> Core {
        let object = self.load(top("System", "Object"), None, &[], &[], false);
        let value = self.class(top("System", "ValueType"), &object, &[]);
        let string = self.elements("String", &object, (22, 2), None);
        let object_array = self.elements("Array", &object, (24, 8), Some(object.mt));
        let free = types::load_elements(
            self.space,
            self.native,
            Elements {
                module: 0,
                row: 0,
                parent: 0,
                base_size: 24,
                size: 1,
                of: None,
            },
        );
        self.delegates(&object);
        let task = self.task(&object);
        let void_result = self.structure(top(TASKS, "VoidTaskResult"), &value, &[int("_")]);
        let result = (
            "m_result",
            Sig::Variable(0),
            Kind::Value(void_result.clone()),
        );
        let task_of_void = self.load(
            top(TASKS, "Task`1"),
            Some(&task.0),
            &[result],
            &[void_result.mt],
            false,
        );
        let builder = self.structure(
            top(COMPILER, "AsyncTaskMethodBuilder"),
            &value,
            &[reference("m_task")],
        );
        let awaiter = self.structure(top(COMPILER, "TaskAwaiter"), &value, &[reference("m_task")]);
        let list = [reference("_items"), int("_size"), int("_version")];
        let thread = [reference("_name"), int("_managedThreadId")];
        Core {
            source: self.class(
                top(TASKS, "TaskCompletionSource"),
                &object,
                &[reference("_task")],
            ),
            list: self.load(
                top("System.Collections.Generic", "List`1"),
                Some(&object),
                &list,
                &[object.mt],
                false,
            ),
            thread: self.class(top("System.Threading", "Thread"), &object, &thread),
            blocking_wait: self.blocking_wait(&object, task.1),
            box_definition: self.box_definition(),
            task: task.0,
            object,
            string,
            free,
            object_array,
            value,
            void_result,
            task_of_void,
            builder,
            awaiter,
        }
    }

    fn delegates(&mut self, object: &Type) {
        let fields = [
            reference("_target"),
            reference("_methodBase"),
            native("_methodPtr"),
            native("_methodPtrAux"),
        ];
        let delegate = self.class(top("System", "Delegate"), object, &fields);
        let fields = [reference("_invocationList"), native("_invocationCount")];
        let several = self.class(top("System", "MulticastDelegate"), &delegate, &fields);
        self.class(top("System", "Action"), &several, &[]);
    }

    /// Task, and the row of its definition.
    fn task(&mut self, object: &Type) -> (Type, u32) {
        let fields = [
            reference("m_action"),
            reference("m_stateObject"),
            reference("m_taskScheduler"),
            reference("m_continuationObject"),
            reference("m_contingentProperties"),
            int("m_taskId"),
            int("m_stateFlags"),
        ];
        let task = self.class(top(TASKS, "Task"), object, &fields);
        (task, self.module.metadata.type_count)
    }

    fn blocking_wait(&mut self, object: &Type, task_row: u32) -> Type {
        let fields = [
            reference("m_lock"),
            reference("m_eventObj"),
            int("m_combinedState"),
        ];
        let slim = top("System.Threading", "ManualResetEventSlim");
        let slim = self.class(slim, object, &fields);
        let place = Place {
            namespace: "",
            name: "SetOnInvokeMres",
            enclosing: Some(task_row),
        };
        self.class(place, &slim, &[])
    }

    fn box_definition(&mut self) -> Definition {
        let outer = self.define(
            top(COMPILER, "AsyncTaskMethodBuilder`1"),
            &[("m_task", Sig::Object)],
        );
        let place = Place {
            namespace: "",
            name: "AsyncStateMachineBox`1",
            enclosing: Some(outer.row),
        };
        let fields = [
            ("StateMachine", Sig::Variable(1)),
            ("_moveNextAction", Sig::Object),
        ];
        self.define(place, &fields)
    }
}
