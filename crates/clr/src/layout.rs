//! Where the fields of the runtime's own structures are: data files by version, and what the process says of itself.
//!
//! The built-in tables stand in `layouts/`: `coreclr.json` holds what is the same in every supported version, one file
//! per operating system, architecture and minor version holds the rest, each with the evidence for it. A table may say
//! that it is like another one: structures that it does not list are the same there. Where the process carries a
//! contract descriptor, its offsets are laid over the table's.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Major and minor version, operating system and processor that a table speaks of.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Applies {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) arch: String,
    #[serde(default)]
    pub(crate) major: u32,
    #[serde(default)]
    pub(crate) minor: u32,
}

#[derive(Debug, Deserialize)]
struct TableFile {
    applies: Applies,
    /// The table that holds the structures which this one does not list.
    #[serde(default)]
    like: Option<String>,
    evidence: Vec<String>,
    dac_table: BTreeMap<String, u64>,
    types: BTreeMap<String, BTreeMap<String, u64>>,
}

const COMMON: &str = include_str!("../layouts/coreclr.json");
const TABLES: [(&str, &str); 9] = [
    (
        "linux-x64-8.0",
        include_str!("../layouts/linux-x64-8.0.json"),
    ),
    (
        "linux-x64-9.0",
        include_str!("../layouts/linux-x64-9.0.json"),
    ),
    (
        "linux-x64-10.0",
        include_str!("../layouts/linux-x64-10.0.json"),
    ),
    (
        "linux-x64-11.0",
        include_str!("../layouts/linux-x64-11.0.json"),
    ),
    (
        "linux-arm64-9.0",
        include_str!("../layouts/linux-arm64-9.0.json"),
    ),
    (
        "linux-arm64-10.0",
        include_str!("../layouts/linux-arm64-10.0.json"),
    ),
    ("win-x64-8.0", include_str!("../layouts/win-x64-8.0.json")),
    ("win-x64-9.0", include_str!("../layouts/win-x64-9.0.json")),
    ("win-x64-10.0", include_str!("../layouts/win-x64-10.0.json")),
];

fn table(name: &str) -> Option<TableFile> {
    let (_, text) = TABLES.iter().find(|(n, _)| *n == name)?;
    serde_json::from_str(text).ok()
}

/// A field that neither the table nor the process's descriptor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the layout of {ty}.{field} is not known")]
pub struct MissingField {
    /// The runtime's name of the structure.
    pub ty: &'static str,
    /// The field's name in the contract descriptor, or the field's own where the descriptor has none.
    pub field: &'static str,
}

/// Field offsets in bytes from the start of each structure, by the names that the contract descriptor uses.
#[derive(Clone, Debug)]
pub struct Layout {
    name: &'static str,
    applies: Applies,
    evidence: Vec<String>,
    types: BTreeMap<String, BTreeMap<String, u64>>,
    dac_table: BTreeMap<String, u64>,
    from_descriptor: usize,
}

impl Layout {
    /// The built-in tables for an operating system and processor (`linux`, `x64`), newest version last.
    pub(crate) fn built_in(os: &str, arch: &str) -> Vec<Self> {
        Self::all()
            .filter(|l| l.applies.os == os && l.applies.arch == arch)
            .collect()
    }

    /// All built-in tables.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let common: Option<TableFile> = serde_json::from_str(COMMON).ok();
        TABLES.iter().filter_map(move |(name, _)| {
            let table = table(name)?;
            let mut layout = Self {
                name,
                applies: table.applies,
                evidence: table.evidence,
                types: common.as_ref().map(|c| c.types.clone()).unwrap_or_default(),
                dac_table: table.dac_table,
                from_descriptor: 0,
            };
            // a structure that the table lists is all its own: a field that differs must not come from elsewhere
            let mut alike = table.like.and_then(|name| self::table(&name)?.types.into());
            if let Some(types) = &mut alike {
                types.retain(|ty, _| !table.types.contains_key(ty));
            }
            layout.lay_over(alike.unwrap_or_default());
            layout.lay_over(table.types);
            Some(layout)
        })
    }

    /// The versions that the built-in tables know, as `linux-x64-8.0`.
    pub fn known() -> impl Iterator<Item = &'static str> {
        TABLES.iter().map(|(name, _)| *name)
    }

    /// Whether there is a table for this version on any platform.
    pub(crate) fn knows(major: u32, minor: u32) -> bool {
        let ending = format!("-{major}.{minor}");
        Self::known().any(|name| name.ends_with(&ending))
    }

    /// Lays what the process's own descriptor says over the table; returns how many offsets differ from it.
    pub(crate) fn lay_over_descriptor(
        &mut self,
        types: BTreeMap<String, BTreeMap<String, u64>>,
    ) -> usize {
        let known = types
            .iter()
            .flat_map(|(ty, fields)| fields.iter().map(move |(f, v)| (ty, f, v)));
        let mut differing = 0_usize;
        for (ty, field, value) in known {
            self.from_descriptor = self.from_descriptor.saturating_add(1);
            let old = self.types.get(ty).and_then(|f| f.get(field));
            differing = differing.saturating_add(usize::from(old.is_some_and(|old| old != value)));
        }
        self.lay_over(types);
        differing
    }

    fn lay_over(&mut self, types: BTreeMap<String, BTreeMap<String, u64>>) {
        for (ty, fields) in types {
            self.types.entry(ty).or_default().extend(fields);
        }
    }

    /// The table's name, as `linux-x64-10.0`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Operating system and processor, as `linux-x64`.
    pub(crate) fn platform(&self) -> String {
        format!("{}-{}", self.applies.os, self.applies.arch)
    }

    /// Offsets and indices that it holds.
    pub(crate) fn len(&self) -> usize {
        let offsets = self.types.values().map(BTreeMap::len);
        offsets.fold(self.dac_table.len(), usize::saturating_add)
    }

    /// Major and minor version of the table.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        (self.applies.major, self.applies.minor)
    }

    /// What the table's numbers rest on.
    #[must_use]
    pub fn evidence(&self) -> &[String] {
        &self.evidence
    }

    /// How many offsets the process's own contract descriptor gave.
    #[must_use]
    pub fn from_descriptor(&self) -> usize {
        self.from_descriptor
    }

    /// Offset of a field, when it is known.
    #[must_use]
    pub fn get(&self, ty: &str, field: &str) -> Option<u64> {
        self.types.get(ty)?.get(field).copied()
    }

    /// Offset of a field that nothing works without.
    pub(crate) fn need(&self, ty: &'static str, field: &'static str) -> Result<u64, MissingField> {
        self.get(ty, field).ok_or(MissingField { ty, field })
    }

    /// Index of a runtime variable in `g_dacTable`.
    pub(crate) fn dac_index(&self, variable: &str) -> Option<u64> {
        self.dac_table.get(variable).copied()
    }
}

/// Declares structures whose members are offsets: a plain one must be known, one behind `;` may be.
macro_rules! layouts {
    ($($name:ident = $ty:literal { $($field:ident = $key:literal),* $(; $($opt:ident = $okey:literal),*)? })*) => {
        $(
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name { $(pub(crate) $field: u64,)* $($(pub(crate) $opt: Option<u64>,)*)? }

            impl $name {
                pub(crate) fn resolve(layout: &Layout) -> Result<Self, MissingField> {
                    Ok(Self {
                        $($field: layout.need($ty, $key)?,)*
                        $($($opt: layout.get($ty, $okey),)*)?
                    })
                }
            }
        )*
    };
}

layouts! {
    MethodTableLayout = "MethodTable" {
        flags = "MTFlags", base_size = "BaseSize", parent = "ParentMethodTable", module = "Module", auxiliary = "AuxiliaryData",
        class = "EEClassOrCanonMT", per_inst = "PerInstInfo", interfaces = "InterfaceMap", interface_count = "NumInterfaces"; flags2 = "MTFlags2", rid16 = "TypeDefRid16"
    }
    ClassLayout = "EEClass" {
        method_table = "MethodTable", field_list = "FieldDescList"; chunks = "MethodDescChunk",
        instance_fields = "NumInstanceFields", static_fields = "NumStaticFields", packed = "PackedFieldsOffset"
    }
    FieldDescLayout = "FieldDesc" { dword1 = "DWord1", dword2 = "DWord2", size = "Size" }
    GenericsLayout = "GenericsDictInfo" { dictionaries = "NumDicts", arguments = "NumTypeArgs" }
    ModuleLayout = "Module" {
        pe_assembly = "PEAssembly", type_map = "TypeDefToMethodTableMap"; local_module = "DomainLocalModule",
        method_map = "MethodDefToDescMap", field_map = "FieldDefToDescMap",
        type_ref_map = "TypeRefToMethodTableMap",
        emitted = "DynamicMetadata", emitted_buffer = "DynamicMetadataBuffer", emitted_code = "DynamicILBlobTable"
    }
    EmittedCodeLayout = "DynamicILBlobTable" { ; table = "Table", count = "TableSize", size = "Size", token = "EntryMethodToken", code = "EntryIL" }
    LookupMapLayout = "ModuleLookupMap" { next = "Next", table = "TableData", count = "Count", flags = "SupportedFlagsMask" }
    PeAssemblyLayout = "PEAssembly" { image = "PEImage" }
    PeImageLayout = "PEImage" { loaded = "LoadedImageLayout"; flat = "FlatImageLayout", path = "Path" }
    TextLayout = "SString" { size = "Size", flags = "Flags", buffer = "Buffer" }
    PeLayoutLayout = "PEImageLayout" { base = "Base", flags = "Flags" }
    ThreadStoreLayout = "ThreadStore" { first = "FirstThreadLink", count = "ThreadCount" }
    ThreadLayout = "Thread" {
        state = "State", id = "Id", link = "LinkNext", os_id = "OSId", exposed = "ExposedObject";
        stack_base = "CachedStackBase",
        locals = "RuntimeThreadLocals", alloc_context = "AllocContext", tls = "ThreadLocalDataPtr",
        frame = "Frame", cooperative = "PreemptiveGCDisabled"
    }
    FrameLayout = "Frame" { next = "Next" }
    HijackLayout = "HijackFrame" { return_address = "ReturnAddress", thread = "Thread", arguments = "HijackArgs" }
    InlinedCallLayout = "InlinedCallFrame" { call_site = "CallSiteSP", return_address = "CallerReturnAddress", frame_pointer = "CalleeSavedFP" }
    HelperLayout = "HelperMethodFrame" { ; thread = "Thread", frame_pointer = "CapturedRbp", ip = "CaptureRip", stack_pointer = "CaptureRsp" }
    GcVarsLayout = "GcDacVars" {
        major = "Major", generation_size = "GenerationSize", generation_count = "TotalGenerationCount",
        generation_table = "GenerationTable", ephemeral = "EphemeralHeapSegment", alloc_allocated = "AllocAllocated",
        heap_count = "HeapCount", heaps = "Heaps", invalid_count = "StructureInvalidCount", handle_map = "HandleTableMap",
        heap_fields = "GCHeapFieldOffsets", generation_fields = "GenerationFieldOffsets"; finalize_queue = "FinalizeQueue", background_state = "CurrentGCState",
        background_highest = "BackgroundHighest"
    }
    GenerationLayout = "Generation" { context = "AllocationContext", start_segment = "StartSegment" }
    SegmentLayout = "HeapSegment" { allocated = "Allocated", mem = "Mem", flags = "Flags", next = "Next" }
    AllocContextLayout = "GCAllocContext" { pointer = "Pointer", limit = "Limit" }
    FragmentLayout = "RangeSectionFragment" { next = "Next", begin = "RangeBegin", end = "RangeEndOpen", section = "RangeSection" }
    RangeSectionLayout = "RangeSection" { begin = "RangeBegin", flags = "Flags", module = "R2RModule", heap_list = "HeapList" }
    CodeHeapLayout = "CodeHeapListNode" { map_base = "MapBase", header_map = "HeaderMap" }
    CodeHeaderLayout = "RealCodeHeader" {
        debug_info = "DebugInfo", method_desc = "MethodDesc"; unwind_count = "NumUnwindInfos", unwind_entries = "UnwindInfos"
    }
    BucketLayout = "Bucket" { keys = "Keys", values = "Values", size = "Size" }
    MethodDescLayout = "MethodDesc" { row = "Flags3AndTokenRemainder", chunk_index = "ChunkIndex", flags = "Flags" }
    ChunkLayout = "MethodDescChunk" { method_table = "MethodTable", row = "FlagsAndTokenRange", head = "HeadSize", next = "Next" }
    InstantiatedLayout = "InstantiatedMethodDesc" { args = "PerInstInfo", count = "NumGenericArgs" }
    DynamicMethodLayout = "DynamicMethodDesc" { flags = "ExtendedFlags", name = "MethodName" }
}

/// All layouts that the readers of this crate use, resolved once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    pub(crate) method_table: MethodTableLayout,
    pub(crate) class: ClassLayout,
    pub(crate) field_desc: FieldDescLayout,
    pub(crate) generics: GenericsLayout,
    pub(crate) module: ModuleLayout,
    pub(crate) emitted_code: EmittedCodeLayout,
    pub(crate) lookup_map: LookupMapLayout,
    pub(crate) pe_assembly: PeAssemblyLayout,
    pub(crate) pe_image: PeImageLayout,
    pub(crate) text: TextLayout,
    pub(crate) pe_layout: PeLayoutLayout,
    pub(crate) thread_store: ThreadStoreLayout,
    pub(crate) thread: ThreadLayout,
    pub(crate) frame: FrameLayout,
    pub(crate) hijack: HijackLayout,
    pub(crate) inlined_call: InlinedCallLayout,
    pub(crate) helper: HelperLayout,
    pub(crate) gc_vars: GcVarsLayout,
    pub(crate) generation: GenerationLayout,
    pub(crate) segment: SegmentLayout,
    pub(crate) alloc_context: AllocContextLayout,
    pub(crate) fragment: FragmentLayout,
    pub(crate) range_section: RangeSectionLayout,
    pub(crate) code_heap: CodeHeapLayout,
    pub(crate) code_header: CodeHeaderLayout,
    pub(crate) bucket: BucketLayout,
    pub(crate) method_desc: MethodDescLayout,
    pub(crate) chunk: ChunkLayout,
    pub(crate) instantiated: InstantiatedLayout,
    pub(crate) dynamic_method: DynamicMethodLayout,
}

impl Offsets {
    pub(crate) fn resolve(layout: &Layout) -> Result<Self, MissingField> {
        Ok(Self {
            method_table: MethodTableLayout::resolve(layout)?,
            class: ClassLayout::resolve(layout)?,
            field_desc: FieldDescLayout::resolve(layout)?,
            generics: GenericsLayout::resolve(layout)?,
            module: ModuleLayout::resolve(layout)?,
            emitted_code: EmittedCodeLayout::resolve(layout)?,
            lookup_map: LookupMapLayout::resolve(layout)?,
            pe_assembly: PeAssemblyLayout::resolve(layout)?,
            pe_image: PeImageLayout::resolve(layout)?,
            text: TextLayout::resolve(layout)?,
            pe_layout: PeLayoutLayout::resolve(layout)?,
            thread_store: ThreadStoreLayout::resolve(layout)?,
            thread: ThreadLayout::resolve(layout)?,
            frame: FrameLayout::resolve(layout)?,
            hijack: HijackLayout::resolve(layout)?,
            inlined_call: InlinedCallLayout::resolve(layout)?,
            helper: HelperLayout::resolve(layout)?,
            gc_vars: GcVarsLayout::resolve(layout)?,
            generation: GenerationLayout::resolve(layout)?,
            segment: SegmentLayout::resolve(layout)?,
            alloc_context: AllocContextLayout::resolve(layout)?,
            fragment: FragmentLayout::resolve(layout)?,
            range_section: RangeSectionLayout::resolve(layout)?,
            code_heap: CodeHeapLayout::resolve(layout)?,
            code_header: CodeHeaderLayout::resolve(layout)?,
            bucket: BucketLayout::resolve(layout)?,
            method_desc: MethodDescLayout::resolve(layout)?,
            chunk: ChunkLayout::resolve(layout)?,
            instantiated: InstantiatedLayout::resolve(layout)?,
            dynamic_method: DynamicMethodLayout::resolve(layout)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_table_parses_and_resolves() {
        let platforms = [("linux", "x64"), ("linux", "arm64"), ("windows", "x64")];
        let tables: Vec<_> = platforms
            .iter()
            .flat_map(|(os, arch)| Layout::built_in(os, arch))
            .collect();
        assert_eq!(tables.len(), TABLES.len());
        for table in tables {
            Offsets::resolve(&table).unwrap_or_else(|e| panic!("{}: {e}", table.name()));
            assert!(
                !table.evidence().is_empty(),
                "{} names no evidence",
                table.name()
            );
        }
    }

    #[test]
    fn a_table_takes_whole_structures_from_the_one_it_is_like() {
        let tables = Layout::built_in("windows", "x64");
        let table = tables.iter().find(|t| t.name() == "win-x64-8.0").unwrap();
        assert_eq!(table.get("PEImage", "LoadedImageLayout"), Some(120));
        assert_eq!(table.get("Thread", "OSId"), Some(440));
        assert_eq!(table.get("ThreadStore", "DeadCount"), None);
    }

    #[test]
    fn the_descriptor_wins_over_the_table_and_differences_are_counted() {
        let mut table = Layout::built_in("linux", "x64").remove(2);
        let said = BTreeMap::from([(
            "Thread".to_owned(),
            BTreeMap::from([("OSId".to_owned(), 7), ("State".to_owned(), 0)]),
        )]);
        assert_eq!(table.lay_over_descriptor(said), 1);
        assert_eq!(table.get("Thread", "OSId"), Some(7));
        assert_eq!(table.from_descriptor(), 2);
    }
}
