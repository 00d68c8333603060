//! Where the runtime keeps things: .NET 10.0.15, linux-x64. Offsets in bytes, as measured in real processes.

/// Indices in `g_dacTable`.
pub(crate) mod dac {
    pub(crate) const THREAD_STORE: u64 = 15;
    pub(crate) const SUSPENSION_THREAD: u64 = 17;
    pub(crate) const GC_DAC_VARS: u64 = 19;
    pub(crate) const APP_DOMAIN: u64 = 20;
    pub(crate) const OBJECT: u64 = 42;
    pub(crate) const STRING: u64 = 45;
    pub(crate) const FREE: u64 = 56;
    pub(crate) const ENTRIES: u64 = 100;
}

pub(crate) mod method_table {
    pub(crate) const FLAGS: u64 = 0;
    pub(crate) const BASE_SIZE: u64 = 4;
    /// The row of the definition stands in the upper 24 bits.
    pub(crate) const FLAGS2: u64 = 8;
    pub(crate) const PARENT: u64 = 16;
    pub(crate) const MODULE: u64 = 24;
    pub(crate) const CLASS: u64 = 40;
    pub(crate) const PER_INST: u64 = 48;
    pub(crate) const SIZE: u64 = 64;

    pub(crate) const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;
    pub(crate) const CONTAINS_REFERENCES: u32 = 0x0100_0000;
    pub(crate) const VALUE_TYPE: u32 = 0x0004_0000;
    pub(crate) const VECTOR: u32 = 0x000a_0000;
    pub(crate) const GENERIC_INSTANCE: u32 = 0x10;
}

pub(crate) mod class {
    pub(crate) const METHOD_TABLE: u64 = 16;
    pub(crate) const FIELDS: u64 = 24;
    pub(crate) const INSTANCE_FIELDS: u64 = 50;
    pub(crate) const SIZE: u64 = 64;
}

pub(crate) mod field_desc {
    pub(crate) const DWORD1: u64 = 8;
    pub(crate) const DWORD2: u64 = 12;
    pub(crate) const SIZE: u64 = 16;
    /// The CorElementType stands above the offset.
    pub(crate) const TYPE_SHIFT: u32 = 27;
}

pub(crate) mod module {
    pub(crate) const PE_ASSEMBLY: u64 = 216;
    pub(crate) const TYPE_MAP: u64 = 416;
    pub(crate) const METHOD_MAP: u64 = 448;
    pub(crate) const FIELD_MAP: u64 = 512;
    pub(crate) const SIZE: u64 = 864;
    /// A lookup map.
    pub(crate) const MAP_TABLE: u64 = 8;
    pub(crate) const MAP_COUNT: u64 = 16;
    pub(crate) const PE_ASSEMBLY_IMAGE: u64 = 8;
    pub(crate) const IMAGE_LOADED: u64 = 128;
    pub(crate) const LAYOUT_BASE: u64 = 8;
    pub(crate) const LAYOUT_SIZE: u64 = 16;
    pub(crate) const LAYOUT_FLAGS: u64 = 20;
    /// As the loader laid it out.
    pub(crate) const MAPPED: u32 = 1;
}

pub(crate) mod thread {
    pub(crate) const STATE: u64 = 0;
    pub(crate) const ID: u64 = 16;
    pub(crate) const LOCALS: u64 = 32;
    pub(crate) const LINK: u64 = 112;
    pub(crate) const STACK_BASE: u64 = 120;
    pub(crate) const OS_ID: u64 = 296;
    pub(crate) const EXPOSED: u64 = 304;
    pub(crate) const SIZE: u64 = 768;
    /// In the thread's locals, behind a combined limit.
    pub(crate) const ALLOC_CONTEXT: u64 = 8;
    /// Of the thread store.
    pub(crate) const STORE_FIRST: u64 = 88;
    pub(crate) const STORE_COUNT: u64 = 112;
    pub(crate) const STORE_SIZE: u64 = 160;
}

pub(crate) mod gc {
    pub(crate) const GENERATION_SIZE: u64 = 8;
    pub(crate) const GENERATION_COUNT: u64 = 16;
    pub(crate) const GENERATIONS: u64 = 48;
    pub(crate) const EPHEMERAL: u64 = 80;
    pub(crate) const ALLOC_ALLOCATED: u64 = 120;
    pub(crate) const INVALID_COUNT: u64 = 192;
    pub(crate) const GENERATION_FIELDS: u64 = 248;
    pub(crate) const VARS_SIZE: u64 = 256;
    /// Of one generation.
    pub(crate) const START_SEGMENT: u64 = 56;
    pub(crate) const GENERATION_BYTES: u64 = 160;
    /// Of a region.
    pub(crate) const ALLOCATED: u64 = 0;
    pub(crate) const MEM: u64 = 32;
    pub(crate) const NEXT: u64 = 48;
    pub(crate) const REGION_SIZE: u64 = 96;
    pub(crate) const PINNED: usize = 4;
}

/// Bits of `Task.m_stateFlags`.
pub(crate) mod task {
    pub(crate) const PROMISE: u32 = 0x400;
    pub(crate) const WAITING_FOR_ACTIVATION: u32 = 0x200_0000;
    pub(crate) const RAN_TO_COMPLETION: u32 = 0x100_0000;
}
