//! MethodTables with what hangs on them: class, fields, generic arguments, map of references.

use crate::layout::{class, field_desc, method_table as mt};
use crate::space::{Id, Space};

/// Header word and MethodTable word of an object.
const OBJECT_OVERHEAD: u64 = 16;
/// MethodTable word.
const HEAD: u64 = 8;

/// What a field holds.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Int32,
    Native,
    Reference,
    /// A structure, inline.
    Value(Type),
}

impl Kind {
    fn element_type(&self) -> u32 {
        match self {
            Self::Int32 => 0x08,
            Self::Native => 0x18,
            Self::Reference => 0x12,
            Self::Value(_) => 0x11,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Int32 => 4,
            Self::Native | Self::Reference => 8,
            Self::Value(ty) => ty.size,
        }
    }
}

/// A loaded type.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) mt: u64,
    /// Bytes of all fields.
    size: u64,
    /// Names and offsets of the fields, inherited ones first; offsets from the first field of the object.
    fields: Vec<(String, u64)>,
    /// Offsets of the references among the fields.
    references: Vec<u64>,
}

impl Type {
    /// Bytes of an object.
    pub(crate) fn object_size(&self) -> u64 {
        (self.size + OBJECT_OVERHEAD).max(24).next_multiple_of(8)
    }

    /// Offset of a field from the start of a value.
    pub(crate) fn in_value(&self, name: &str) -> u64 {
        let field = self.fields.iter().find(|(n, _)| n == name);
        field.unwrap_or_else(|| panic!("no field {name}")).1
    }

    /// Offset of a field from the start of an object.
    pub(crate) fn in_object(&self, name: &str) -> u64 {
        self.in_value(name) + HEAD
    }
}

/// A type to be loaded.
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    /// The native structure of the module.
    pub(crate) module: u64,
    pub(crate) row: u32,
    /// Row of the first of `fields`.
    pub(crate) first_field: u32,
    pub(crate) parent: Option<&'a Type>,
    pub(crate) fields: &'a [(&'a str, Kind)],
    pub(crate) args: &'a [u64],
    pub(crate) is_value: bool,
}

/// Loads a type.
pub(crate) fn load(space: &mut Space, native: Id, spec: &Spec<'_>) -> Type {
    // structures begin anew: what they inherit has no fields
    let mut ty = spec.parent.cloned().unwrap_or(Type {
        mt: 0,
        size: 0,
        fields: Vec::new(),
        references: Vec::new(),
    });
    let inherited = ty.fields.len();
    for (name, kind) in spec.fields {
        let at = ty.size.next_multiple_of(kind.size().min(8));
        ty.fields.push(((*name).to_owned(), at));
        match kind {
            Kind::Reference => ty.references.push(at),
            Kind::Value(inner) => ty
                .references
                .extend(inner.references.iter().map(|r| at + r)),
            Kind::Int32 | Kind::Native => {}
        }
        ty.size = at + kind.size();
    }
    let mut flags = 0;
    if spec.is_value {
        flags |= mt::VALUE_TYPE;
        ty.size = ty.size.next_multiple_of(8);
    }
    if !spec.args.is_empty() {
        flags |= mt::GENERIC_INSTANCE;
    }
    let head = Head {
        flags,
        base_size: (ty.size + OBJECT_OVERHEAD).max(24),
        row: spec.row,
        parent: spec.parent.map_or(0, |p| p.mt),
        module: spec.module,
    };
    ty.mt = head.write(space, native, &series(&ty, head.base_size));
    let own = &ty.fields[inherited..];
    let list = space.take(native, (own.len() as u64).max(1) * field_desc::SIZE);
    for (i, ((_, at), (_, kind))) in own.iter().zip(spec.fields).enumerate() {
        let desc = list + i as u64 * field_desc::SIZE;
        space.put_u64(desc, ty.mt);
        space.put_u32(desc + field_desc::DWORD1, spec.first_field + i as u32);
        let offset = u32::try_from(*at).expect("a small type");
        let kind = kind.element_type() << field_desc::TYPE_SHIFT;
        space.put_u32(desc + field_desc::DWORD2, offset | kind);
    }
    write_class(space, native, ty.mt, list, ty.fields.len() as u16);
    write_args(space, native, ty.mt, spec.args);
    ty
}

/// Runs of references: offset in the object, and length less the object's size.
fn series(ty: &Type, base_size: u64) -> Vec<(u64, i64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for at in &ty.references {
        match runs.last_mut() {
            Some((start, len)) if *start + *len == at + HEAD => *len += 8,
            _ => runs.push((at + HEAD, 8)),
        }
    }
    let less = |len: u64| len.cast_signed() - base_size.cast_signed();
    runs.into_iter().map(|(at, len)| (at, less(len))).collect()
}

/// The fixed words of a MethodTable.
#[derive(Clone, Copy, Debug)]
struct Head {
    flags: u32,
    base_size: u64,
    row: u32,
    parent: u64,
    module: u64,
}

impl Head {
    /// Writes the table, in front of it the map of references: the number of runs, and the runs backwards.
    fn write(&self, space: &mut Space, native: Id, series: &[(u64, i64)]) -> u64 {
        let front = 8 + 16 * series.len() as u64;
        let at = space.take(native, front + mt::SIZE) + front;
        space.put_u64(at - 8, series.len() as u64);
        for (i, (start, less)) in series.iter().enumerate() {
            let run = at - 8 - 16 * (i as u64 + 1);
            space.put_u64(run, less.cast_unsigned());
            space.put_u64(run + 8, *start);
        }
        let with_references = if series.is_empty() {
            0
        } else {
            mt::CONTAINS_REFERENCES
        };
        space.put_u32(at + mt::FLAGS, self.flags | with_references);
        let base = u32::try_from(self.base_size).expect("a small type");
        space.put_u32(at + mt::BASE_SIZE, base);
        space.put_u32(at + mt::FLAGS2, self.row << 8);
        space.put_u64(at + mt::PARENT, self.parent);
        space.put_u64(at + mt::MODULE, self.module);
        at
    }
}

fn write_class(space: &mut Space, native: Id, table: u64, list: u64, instance_fields: u16) {
    let at = space.take(native, class::SIZE);
    space.put_u64(at + class::METHOD_TABLE, table);
    space.put_u64(at + class::FIELDS, list);
    space.put_u16(at + class::INSTANCE_FIELDS, instance_fields);
    space.put_u64(table + mt::CLASS, at);
}

/// One dictionary, with its counts in front of the list of dictionaries.
fn write_args(space: &mut Space, native: Id, table: u64, args: &[u64]) {
    if args.is_empty() {
        return;
    }
    let counts = space.take(native, 16);
    space.put_u16(counts + 4, 1);
    space.put_u16(counts + 6, args.len() as u16);
    let own = space.take(native, 8 * args.len() as u64);
    for (i, arg) in args.iter().enumerate() {
        space.put_u64(own + 8 * i as u64, *arg);
    }
    space.put_u64(counts + 8, own);
    space.put_u64(table + mt::PER_INST, counts + 8);
}

/// A type with elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) module: u64,
    pub(crate) row: u32,
    pub(crate) parent: u64,
    /// Bytes of an object without elements.
    pub(crate) base_size: u64,
    /// Bytes of an element.
    pub(crate) size: u32,
    /// MethodTable of the elements of a vector of references.
    pub(crate) of: Option<u64>,
}

/// Loads a vector, System.String, or free space; answers its MethodTable.
pub(crate) fn load_elements(space: &mut Space, native: Id, spec: Elements) -> u64 {
    let kind = if spec.of.is_some() { mt::VECTOR } else { 0 };
    let head = Head {
        flags: mt::HAS_COMPONENT_SIZE | kind | spec.size,
        base_size: spec.base_size,
        row: spec.row,
        parent: spec.parent,
        module: spec.module,
    };
    // from the first element to the end of the object
    let all = (OBJECT_OVERHEAD, -spec.base_size.cast_signed());
    let series = spec.of.map(|_| all);
    let table = head.write(space, native, series.as_slice());
    if let Some(of) = spec.of {
        space.put_u64(table + mt::PER_INST, of);
    }
    write_class(space, native, table, 0, 0);
    table
}
