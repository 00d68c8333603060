//! What could not be read, said so that a person can do something about it.

use asynctriage_dump::Cut;

/// Something that is missing from an answer. Layers return what they could read and a list of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    /// What is missing or in doubt.
    pub kind: GapKind,
    /// Which object, module, address or structure.
    pub place: String,
    /// Why it could not be read.
    pub why: String,
    /// What would help, as an instruction.
    pub remedy: String,
}

impl Gap {
    /// A loop that was left because the analysis was to end.
    pub(crate) fn of_cut(cut: Cut) -> Self {
        let left = cut.left.map_or_else(
            || "not all of them were".into(),
            |left| format!("{left} of them were not"),
        );
        Self {
            kind: GapKind::Ended,
            place: cut.what.into(),
            why: format!(
                "the analysis was ended {}: {left} looked at, and what hangs on them is missing",
                cut.why
            ),
            remedy: "run it again with more: --max-time and --max-memory, 0 for no limit".into(),
        }
    }
}

/// The part of an answer that a gap affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// The file itself.
    Dump,
    /// What is known of the runtime and its layouts.
    Runtime,
    /// Objects.
    Heap,
    /// Names of types and methods.
    Names,
    /// Threads and their stacks.
    Threads,
    /// What waits for what.
    Chains,
    /// Variables of suspended methods.
    Locals,
    /// What the garbage collector starts at.
    Roots,
    /// What is concluded from all of it.
    Findings,
    /// What was left when the analysis was ended before its time.
    Limits,
}

impl Section {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dump => "dump",
            Self::Runtime => "runtime",
            Self::Heap => "heap",
            Self::Names => "names",
            Self::Threads => "threads",
            Self::Chains => "chains",
            Self::Locals => "locals",
            Self::Roots => "roots",
            Self::Findings => "findings",
            Self::Limits => "limits",
        }
    }
}

/// Each kind of gap once: variant, name in reports, section, meaning.
macro_rules! kinds {
    ($($variant:ident $name:literal $section:ident $doc:literal,)*) => {
        /// What a gap is about. All layers share the list, so that a gap of any of them is told by its kind and never by
        /// its words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum GapKind {
            $(#[doc = $doc] $variant,)*
        }

        impl GapKind {
            /// Its name in reports; it stays the same from release to release.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether only names or lines are missing, and nothing that waits, blocks or is found.
            #[must_use]
            pub fn is_only_names(self) -> bool {
                matches!(self, Self::Awaited | Self::Symbols)
            }

            /// The part of an answer that lacks something.
            #[must_use]
            pub fn section(self) -> Section {
                match self { $(Self::$variant => Section::$section,)* }
            }
        }
    };
}

kinds! {
    PackedFile "packed-file" Dump "The checks of a packed file speak against it.",
    CutFile "cut-file" Dump "The file ends early.",
    MemoryList "memory-list" Dump "The file's list of memory contradicts itself.",
    Layouts "layouts" Runtime "What was read contradicts the layouts in use.",
    Prerelease "prerelease" Runtime "A build before the release, read by the layouts of the release.",
    HeapList "heap-list" Heap "A list of the heap's parts could not be read.",
    HeapMemory "heap-memory" Heap "The dump was written without parts of the heap.",
    HeapObjects "heap-objects" Heap "Places of the heap hold no object that can be recognised.",
    HeapSegments "heap-segments" Heap "Objects that must exist are in no segment that could be walked.",
    HeapMoving "heap-moving" Heap "A garbage collection was moving objects.",
    Metadata "metadata" Names "Modules whose metadata is not in the dump.",
    DamagedMetadata "damaged-metadata" Names "Modules whose metadata cannot be found, or holds no text where names are.",
    ThreadNotes "thread-notes" Threads "Notes of a core are damaged.",
    ThreadList "thread-list" Threads "The list of threads is shorter or longer than the runtime counts.",
    Registers "registers" Threads "Threads without registers.",
    Stack "stack" Threads "Stacks that could not be followed to their end.",
    UnknownCode "unknown-code" Threads "Managed code of threads that no table knows.",
    TaskFields "task-fields" Chains "The fields of Task are not known.",
    LinkDenied "link-denied" Chains "Links that one end tells and the other denies.",
    LinkDangling "link-dangling" Chains "Links that lead to no object.",
    LinkTorn "link-torn" Chains "Links that a moving collection has torn.",
    SharedFrames "shared-frames" Chains "Frames of suspended methods that belong to two tasks.",
    ImpossibleTask "impossible-task" Chains "Tasks in states that no task can have.",
    ImpossibleSemaphore "impossible-semaphore" Chains "Semaphores that contradict themselves.",
    ImpossibleField "impossible-field" Chains "Fields that name what cannot be there.",
    RejectedMethod "rejected-method" Chains "Objects that look like waiting methods and are not read.",
    RuntimeAsyncPreview "runtime-async-preview" Chains "Methods compiled as runtime-async for .NET 10.",
    UnnamedFrames "unnamed-frames" Chains "Suspended runtime-async methods without a name.",
    FSharpAsync "fsharp-async" Chains "Computations of F# that nothing known resumes.",
    PathLimit "path-limit" Chains "More paths than can be listed.",
    HolderLimit "holder-limit" Chains "More suspended methods than were searched for what they hold.",
    CompleterLimit "completer-limit" Chains "More objects are waited for, or leads to them, than were searched for completers.",
    Awaited "awaited" Chains "Awaited calls that are not known, for the IL is missing.",
    Symbols "symbols" Chains "Files and lines that are not known, for the symbols are missing.",
    Retained "retained" Locals "What variables keep alive could not be worked out.",
    Roots "roots" Roots "Roots of the garbage collector that the dump does not hold.",
    Unsaid "unsaid" Findings "Findings that are not made, for leftovers of objects look like them.",
    Ended "ended" Limits "What was not looked at, for the analysis was ended by a limit or a user.",
}
