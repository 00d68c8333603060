//! The schema of the tables: ECMA-335 partition II.22, the pointer and edit-and-continue tables, and portable PDB.

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A 16-bit number; also the one-byte type and the padding byte of `Constant`.
    U16,
    /// A 32-bit number.
    U32,
    /// Offset in `#Strings`.
    Str,
    /// Index in `#GUID`.
    Guid,
    /// Offset in `#Blob`.
    Blob,
    /// Row of one table.
    Rid(Table),
    /// First row of a run of members; goes through the pointer table of that table where there is one.
    List(Table),
    /// Row of one of several tables.
    Coded(Coded),
}

/// An index that names one of several tables in its low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coded {
    TypeDefOrRef,
    HasConstant,
    HasCustomAttribute,
    HasFieldMarshal,
    HasDeclSecurity,
    MemberRefParent,
    HasSemantics,
    MethodDefOrRef,
    MemberForwarded,
    Implementation,
    CustomAttributeType,
    ResolutionScope,
    TypeOrMethodDef,
    HasCustomDebugInformation,
}

impl Coded {
    /// How many low bits hold the tag.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::HasFieldMarshal
            | Self::HasSemantics
            | Self::MethodDefOrRef
            | Self::MemberForwarded
            | Self::TypeOrMethodDef => 1,
            Self::TypeDefOrRef
            | Self::HasConstant
            | Self::HasDeclSecurity
            | Self::Implementation
            | Self::ResolutionScope => 2,
            Self::MemberRefParent | Self::CustomAttributeType => 3,
            Self::HasCustomAttribute | Self::HasCustomDebugInformation => 5,
        }
    }

    /// The table of each tag; `None` for tags that are not used.
    pub(crate) const fn tables(self) -> &'static [Option<Table>] {
        use Table as T;
        match self {
            Self::TypeDefOrRef => &[Some(T::TypeDef), Some(T::TypeRef), Some(T::TypeSpec)],
            Self::HasConstant => &[Some(T::Field), Some(T::Param), Some(T::Property)],
            Self::HasCustomAttribute => HAS_CUSTOM_ATTRIBUTE,
            Self::HasFieldMarshal => &[Some(T::Field), Some(T::Param)],
            Self::HasDeclSecurity => &[Some(T::TypeDef), Some(T::MethodDef), Some(T::Assembly)],
            Self::MemberRefParent => &[
                Some(T::TypeDef),
                Some(T::TypeRef),
                Some(T::ModuleRef),
                Some(T::MethodDef),
                Some(T::TypeSpec),
            ],
            Self::HasSemantics => &[Some(T::Event), Some(T::Property)],
            Self::MethodDefOrRef => &[Some(T::MethodDef), Some(T::MemberRef)],
            Self::MemberForwarded => &[Some(T::Field), Some(T::MethodDef)],
            Self::Implementation => &[Some(T::File), Some(T::AssemblyRef), Some(T::ExportedType)],
            Self::CustomAttributeType => {
                &[None, None, Some(T::MethodDef), Some(T::MemberRef), None]
            }
            Self::ResolutionScope => &[
                Some(T::Module),
                Some(T::ModuleRef),
                Some(T::AssemblyRef),
                Some(T::TypeRef),
            ],
            Self::TypeOrMethodDef => &[Some(T::TypeDef), Some(T::MethodDef)],
            Self::HasCustomDebugInformation => HAS_CUSTOM_DEBUG_INFORMATION,
        }
    }
}

const HAS_CUSTOM_ATTRIBUTE: &[Option<Table>] = &[
    Some(Table::MethodDef),
    Some(Table::Field),
    Some(Table::TypeRef),
    Some(Table::TypeDef),
    Some(Table::Param),
    Some(Table::InterfaceImpl),
    Some(Table::MemberRef),
    Some(Table::Module),
    Some(Table::DeclSecurity),
    Some(Table::Property),
    Some(Table::Event),
    Some(Table::StandAloneSig),
    Some(Table::ModuleRef),
    Some(Table::TypeSpec),
    Some(Table::Assembly),
    Some(Table::AssemblyRef),
    Some(Table::File),
    Some(Table::ExportedType),
    Some(Table::ManifestResource),
    Some(Table::GenericParam),
    Some(Table::GenericParamConstraint),
    Some(Table::MethodSpec),
];

const HAS_CUSTOM_DEBUG_INFORMATION: &[Option<Table>] = &[
    Some(Table::MethodDef),
    Some(Table::Field),
    Some(Table::TypeRef),
    Some(Table::TypeDef),
    Some(Table::Param),
    Some(Table::InterfaceImpl),
    Some(Table::MemberRef),
    Some(Table::Module),
    Some(Table::DeclSecurity),
    Some(Table::Property),
    Some(Table::Event),
    Some(Table::StandAloneSig),
    Some(Table::ModuleRef),
    Some(Table::TypeSpec),
    Some(Table::Assembly),
    Some(Table::AssemblyRef),
    Some(Table::File),
    Some(Table::ExportedType),
    Some(Table::ManifestResource),
    Some(Table::GenericParam),
    Some(Table::GenericParamConstraint),
    Some(Table::MethodSpec),
    Some(Table::Document),
    Some(Table::LocalScope),
    Some(Table::LocalVariable),
    Some(Table::LocalConstant),
    Some(Table::ImportScope),
];

/// Most columns that a table has (`Assembly`, `AssemblyRef`).
pub(crate) const MAX_COLUMNS: usize = 9;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $number:literal [$($column:expr),+];)+) => {
        /// A metadata table, by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Table { $($(#[$doc])* $name = $number),+ }

        impl Table {
            /// The table with this number, as the upper byte of a token has it.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }

            pub(crate) const fn columns(self) -> &'static [Column] {
                use self::Coded::*;
                use Column::*;
                match self { $(Self::$name => &[$($column),+],)+ }
            }
        }
    };
}

tables! {
    /// The module itself.
    Module = 0x00 [U16, Str, Guid, Guid, Guid];
    /// Types of other modules.
    TypeRef = 0x01 [Coded(ResolutionScope), Str, Str];
    /// Types of this module.
    TypeDef = 0x02 [U32, Str, Str, Coded(TypeDefOrRef), List(Table::Field), List(Table::MethodDef)];
    /// Order of fields (`#-` only).
    FieldPtr = 0x03 [Rid(Table::Field)];
    /// Fields.
    Field = 0x04 [U16, Str, Blob];
    /// Order of methods (`#-` only).
    MethodPtr = 0x05 [Rid(Table::MethodDef)];
    /// Methods.
    MethodDef = 0x06 [U32, U16, U16, Str, Blob, List(Table::Param)];
    /// Order of parameters (`#-` only).
    ParamPtr = 0x07 [Rid(Table::Param)];
    /// Parameters.
    Param = 0x08 [U16, U16, Str];
    /// Which type implements which interface.
    InterfaceImpl = 0x09 [Rid(Table::TypeDef), Coded(TypeDefOrRef)];
    /// Fields and methods of other modules, or of instantiated types.
    MemberRef = 0x0a [Coded(MemberRefParent), Str, Blob];
    /// Constants and default values.
    Constant = 0x0b [U16, Coded(HasConstant), Blob];
    /// Custom attributes.
    CustomAttribute = 0x0c [Coded(HasCustomAttribute), Coded(CustomAttributeType), Blob];
    /// Marshalling of fields and parameters.
    FieldMarshal = 0x0d [Coded(HasFieldMarshal), Blob];
    /// Declarative security.
    DeclSecurity = 0x0e [U16, Coded(HasDeclSecurity), Blob];
    /// Packing and size of types.
    ClassLayout = 0x0f [U16, U32, Rid(Table::TypeDef)];
    /// Explicit offsets of fields.
    FieldLayout = 0x10 [U32, Rid(Table::Field)];
    /// Signatures of locals and call sites.
    StandAloneSig = 0x11 [Blob];
    /// Which type has which events.
    EventMap = 0x12 [Rid(Table::TypeDef), List(Table::Event)];
    /// Order of events (`#-` only).
    EventPtr = 0x13 [Rid(Table::Event)];
    /// Events.
    Event = 0x14 [U16, Str, Coded(TypeDefOrRef)];
    /// Which type has which properties.
    PropertyMap = 0x15 [Rid(Table::TypeDef), List(Table::Property)];
    /// Order of properties (`#-` only).
    PropertyPtr = 0x16 [Rid(Table::Property)];
    /// Properties.
    Property = 0x17 [U16, Str, Blob];
    /// Accessors of properties and events.
    MethodSemantics = 0x18 [U16, Rid(Table::MethodDef), Coded(HasSemantics)];
    /// Explicit implementations.
    MethodImpl = 0x19 [Rid(Table::TypeDef), Coded(MethodDefOrRef), Coded(MethodDefOrRef)];
    /// Other modules and native libraries.
    ModuleRef = 0x1a [Str];
    /// Types written as signatures.
    TypeSpec = 0x1b [Blob];
    /// Platform invoke.
    ImplMap = 0x1c [U16, Coded(MemberForwarded), Str, Rid(Table::ModuleRef)];
    /// Initial bytes of fields.
    FieldRva = 0x1d [U32, Rid(Table::Field)];
    /// Edit-and-continue log.
    EncLog = 0x1e [U32, U32];
    /// Edit-and-continue map.
    EncMap = 0x1f [U32];
    /// The assembly itself.
    Assembly = 0x20 [U32, U16, U16, U16, U16, U32, Blob, Str, Str];
    /// Obsolete.
    AssemblyProcessor = 0x21 [U32];
    /// Obsolete.
    AssemblyOs = 0x22 [U32, U32, U32];
    /// Other assemblies.
    AssemblyRef = 0x23 [U16, U16, U16, U16, U32, Blob, Str, Str, Blob];
    /// Obsolete.
    AssemblyRefProcessor = 0x24 [U32, Rid(Table::AssemblyRef)];
    /// Obsolete.
    AssemblyRefOs = 0x25 [U32, U32, U32, Rid(Table::AssemblyRef)];
    /// Files of a multi-file assembly.
    File = 0x26 [U32, Str, Blob];
    /// Types of other files, and forwarded types.
    ExportedType = 0x27 [U32, U32, Str, Str, Coded(Implementation)];
    /// Resources.
    ManifestResource = 0x28 [U32, U32, Str, Coded(Implementation)];
    /// Which type is nested in which.
    NestedClass = 0x29 [Rid(Table::TypeDef), Rid(Table::TypeDef)];
    /// Generic parameters.
    GenericParam = 0x2a [U16, U16, Coded(TypeOrMethodDef), Str];
    /// Instantiated methods.
    MethodSpec = 0x2b [Coded(MethodDefOrRef), Blob];
    /// Constraints of generic parameters.
    GenericParamConstraint = 0x2c [Rid(Table::GenericParam), Coded(TypeDefOrRef)];
    /// Source files (portable PDB).
    Document = 0x30 [Blob, Guid, Blob, Guid];
    /// Sequence points (portable PDB).
    MethodDebugInformation = 0x31 [Rid(Table::Document), Blob];
    /// Scopes of locals (portable PDB).
    LocalScope = 0x32 [
        Rid(Table::MethodDef), Rid(Table::ImportScope), Rid(Table::LocalVariable), Rid(Table::LocalConstant), U32, U32
    ];
    /// Locals (portable PDB).
    LocalVariable = 0x33 [U16, U16, Str];
    /// Constants of a scope (portable PDB).
    LocalConstant = 0x34 [Str, Blob];
    /// Imports of a scope (portable PDB).
    ImportScope = 0x35 [Rid(Table::ImportScope), Blob];
    /// Which method a state machine's `MoveNext` comes from (portable PDB).
    StateMachineMethod = 0x36 [Rid(Table::MethodDef), Rid(Table::MethodDef)];
    /// Everything else about debugging (portable PDB).
    CustomDebugInformation = 0x37 [Coded(HasCustomDebugInformation), Guid, Blob];
}

impl Table {
    /// The table that gives the rows of this one their order in uncompressed metadata.
    pub(crate) const fn pointer_table(self) -> Option<Self> {
        match self {
            Self::Field => Some(Self::FieldPtr),
            Self::MethodDef => Some(Self::MethodPtr),
            Self::Param => Some(Self::ParamPtr),
            Self::Event => Some(Self::EventPtr),
            Self::Property => Some(Self::PropertyPtr),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        let known = (0..=u8::MAX)
            .filter_map(|n| Table::from_number(n).map(|t| (n, t)))
            .collect::<Vec<_>>();
        assert_eq!(known.len(), 53);
        for (number, table) in known {
            assert_eq!(table as u8, number);
            assert!((1..=MAX_COLUMNS).contains(&table.columns().len()));
        }
    }

    #[test]
    fn every_tag_fits_its_bits() {
        for number in 0..=u8::MAX {
            for column in Table::from_number(number).map_or(&[][..], Table::columns) {
                if let Column::Coded(coded) = column {
                    assert!(coded.tables().len() <= 1 << coded.bits());
                    assert!(coded.tables().len() > 1 << (coded.bits() - 1));
                }
            }
        }
    }
}
