//! The report as a whole, the dump and the runtime it speaks of, and what it could not see.

use super::{
    Address, ChainGroup, CollectionStage, DumpFormat, Finding, Pool, Request, Thread, WaitGraph,
    is_false, is_zero,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the model: the first number changes when a field changes its meaning, the second when one is added.
pub const SCHEMA_VERSION: &str = "1.0";

/// What one dump of a process says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: String,
    /// Who wrote it.
    #[serde(default)]
    pub tool: Tool,
    /// The file.
    #[serde(default)]
    pub dump: Dump,
    /// The process in it: which program, on which machine.
    #[serde(default, skip_serializing_if = "Process::is_unknown")]
    pub process: Process,
    /// The runtime in it.
    #[serde(default)]
    pub runtime: Runtime,
    /// What could not be read.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// The heap of the garbage collector.
    #[serde(default)]
    pub heap: Heap,
    /// The chains that wait, the largest group first.
    #[serde(default)]
    pub chains: Vec<ChainGroup>,
    /// The threads.
    #[serde(default)]
    pub threads: Vec<Thread>,
    /// The thread pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// The requests that the process serves.
    #[serde(default)]
    pub requests: Vec<Request>,
    /// What is wrong, the worst first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Who waits for whom.
    #[serde(default, skip_serializing_if = "WaitGraph::is_empty")]
    pub waits: WaitGraph,
    /// Objects that looked like state machines and are not shown.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// How many objects were rejected, by reason; counts also those that `rejected` leaves out.
    #[serde(default)]
    pub rejected_by_reason: BTreeMap<String, u64>,
    /// Counts of things that the report does not list one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statistics: BTreeMap<String, u64>,
    /// Where the time went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timings: Vec<Timing>,
    /// What options and limits kept out of the report.
    #[serde(default, skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            tool: Tool::default(),
            dump: Dump::default(),
            process: Process::default(),
            runtime: Runtime::default(),
            gaps: Vec::new(),
            heap: Heap::default(),
            chains: Vec::new(),
            threads: Vec::new(),
            pool: None,
            requests: Vec::new(),
            findings: Vec::new(),
            waits: WaitGraph::default(),
            rejected: Vec::new(),
            rejected_by_reason: BTreeMap::new(),
            statistics: BTreeMap::new(),
            timings: Vec::new(),
            left_out: LeftOut::default(),
        }
    }
}

/// The program that wrote a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for Tool {
    fn default() -> Self {
        Self {
            name: "asynctriage".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The dump file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Dump {
    /// As the user gave it.
    pub path: String,
    /// The container.
    pub format: DumpFormat,
    /// How much of the process it holds or who wrote it: `full`, `heap`, `mini`, `triage`, `gcore`, `kernel` and others.
    pub kind: String,
    /// Whether the file ends before its own tables say.
    pub truncated: bool,
    /// What the checks of a packed file say against it, such as a wrong checksum; absent when it passed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Size of the file.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Hash of the file, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// When it was taken, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Where `time` was read: an ELF core states none, and the newest clock in the process's memory tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_source: Option<String>,
    /// Whether the dump may have been taken later than `time`.
    #[serde(skip_serializing_if = "is_false")]
    pub time_is_floor: bool,
    /// The command line of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Number of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u64>,
}

/// Which program the process ran, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Process {
    /// The file that it was started from, without its folder: `dotnet`, or the program's own host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    /// The assembly with the program's `Main`, by its simple name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_assembly: Option<String>,
    /// Its informational version, as the build wrote it; else the version of the assembly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_version: Option<String>,
    /// Name of the machine, as the environment of the process says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Name of the container or pod, where the environment says that the process runs in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl Process {
    /// Whether nothing is known of it.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The .NET runtime of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Runtime {
    /// `10.0.15` and the like.
    pub version: String,
    /// `linux`, `linux-musl`, `windows`, `macos`.
    pub os: String,
    /// `x64`, `arm64`.
    pub arch: String,
    /// `coreclr` and the like.
    pub flavor: String,
    /// How the layouts of its structures were found and checked.
    pub layouts: Vec<LayoutFact>,
}

/// How one part of the runtime's layout was found, and what confirmed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LayoutFact {
    /// What was found: the version, the heap's segments, the threads.
    pub what: String,
    /// Where it was read.
    pub how: String,
    /// What agrees with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// Something that the dump or this version of the tool does not let the report say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Gap {
    /// Its id in this report, `G1`; in reports of `observe` a word for its kind.
    pub id: String,
    /// A word that names the kind of gap and is the same in every report: `registers`, `heap-memory`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The part of the report that lacks something: `heap`, `chains`, `threads`.
    pub section: String,
    /// The address range, module or object.
    #[serde(rename = "where")]
    pub place: String,
    /// What was in the way.
    pub why: String,
    /// What would help.
    pub remedy: String,
    /// Whether only names or lines are missing, and nothing that waits, blocks or is found.
    #[serde(skip_serializing_if = "is_false")]
    pub only_names: bool,
}

/// The heap of the garbage collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Heap {
    /// Kind of garbage collector, `workstation` or `server`, and how it keeps its memory, `regions` or `segments`:
    /// `server, regions`. Left out when no memory of it could be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc: Option<String>,
    /// Objects, free ones not counted.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Places where no object could be read and the walk had to find the next.
    pub invalid_objects: u64,
    /// Bytes that such places cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_bytes: u64,
    /// Objects that are free space.
    #[serde(skip_serializing_if = "is_zero")]
    pub free_objects: u64,
    /// Bytes of free space between the objects.
    #[serde(skip_serializing_if = "is_zero")]
    pub free_bytes: u64,
    /// Whether a garbage collection ran when the dump was taken; `collection` says which.
    #[serde(skip_serializing_if = "is_false")]
    pub gc_in_progress: bool,
    /// The garbage collection that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
    /// State machines and continuations, the rejected ones not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub state_machines: u64,
    /// Tasks of any kind.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks: u64,
}

/// A garbage collection that ran when the dump was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Collection {
    /// How far it had come.
    pub stage: CollectionStage,
    /// What it collects at least, by what it has marked: `generation 0`, `generation 1`, `generation 2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extent: Option<String>,
    /// The thread that had stopped all others for it: operating-system id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Objects with the collector's mark.
    #[serde(skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// What shows it.
    pub evidence: String,
}

/// An object that looked like a state machine and is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rejected {
    /// Where it is.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Why it is not shown; one of the keys of `rejected_by_reason`.
    pub reason: String,
}

/// The time of one phase of the analysis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Timing {
    /// The phase.
    pub phase: String,
    /// Wall time in milliseconds.
    pub milliseconds: f64,
}

/// What options and limits kept out of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LeftOut {
    /// Groups of chains that no filter matched.
    #[serde(skip_serializing_if = "is_zero")]
    pub groups: u64,
    /// Chains in those groups.
    #[serde(skip_serializing_if = "is_zero")]
    pub chains: u64,
    /// Threads without anything to say, or that no filter matched.
    #[serde(skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Requests above the limit, or that no filter matched.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Findings that no filter matched.
    #[serde(skip_serializing_if = "is_zero")]
    pub findings: u64,
    /// Rejected objects above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Why, in words for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

impl LeftOut {
    /// Whether the report holds everything.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}
