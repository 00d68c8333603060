//! The answer to `why`: from one request, object or thread inwards, to what it waits for in the end.

use super::kinds::words;
use super::views::current;
use super::{Address, Confidence, Gap, is_zero};
use serde::{Deserialize, Serialize};

words! {
    /// What a step of the story is about.
    #[derive(Default)]
    WhyKind {
        /// A group of chains.
        #[default]
        Chain = "chain",
        /// A thread.
        Thread = "thread",
        /// What chains wait for: an object, a server, a time.
        Wait = "wait",
        /// Somebody who would complete it and is neither a chain nor a thread: a static table, a timer, queued work.
        Completer = "completer",
        /// The thread pool.
        Pool = "pool",
    } or Other
}

words! {
    /// How a step follows from the one that it hangs on.
    #[derive(Default)]
    WhyRelation {
        /// What was asked about.
        #[default]
        Asked = "asked",
        /// The one above waits for it.
        WaitsFor = "waits-for",
        /// It would complete what the one above is.
        CompletedBy = "completed-by",
        /// It holds what the one above is: a lock, a place in a semaphore, a connection.
        HeldBy = "held-by",
        /// It runs what the one above is.
        RunsOn = "runs-on",
    }
}

words! {
    /// Where a branch of the story ends.
    #[derive(Default)]
    WhyEnd {
        /// Code that runs now.
        Runs = "runs",
        /// Another process or machine.
        Remote = "remote",
        /// A time that will come.
        Clock = "clock",
        /// The next piece of work: a connection to accept, an element to read.
        Work = "work",
        /// Itself: the branch comes back to where it was.
        Cycle = "cycle",
        /// Nothing that could end the wait is left in the process.
        Nothing = "nothing",
        /// The dump does not tell who ends it.
        #[default]
        Unknown = "unknown",
    }
}

/// What something waits for, and that, and so on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhyReport {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The dump, as the user gave it.
    pub dump: String,
    /// What was asked about, in words.
    pub subject: String,
    /// One sentence for each way in which the story ends.
    pub conclusions: Vec<String>,
    /// The steps, each behind the one that it hangs on.
    pub steps: Vec<WhyStep>,
    /// Steps above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps_left_out: u64,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for WhyReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            dump: String::new(),
            subject: String::new(),
            conclusions: Vec::new(),
            steps: Vec::new(),
            steps_left_out: 0,
            gaps: Vec::new(),
        }
    }
}

/// A step of the story.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhyStep {
    /// Its number, from 1.
    pub number: u64,
    /// How many steps it is away from what was asked about.
    pub depth: u64,
    /// How it follows from the step that it hangs on.
    pub relation: WhyRelation,
    /// What it is about.
    pub kind: WhyKind,
    /// What a person would call it, and what it does.
    pub text: String,
    /// Methods of it, outermost first, each with the place where it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// The group of chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The thread (id of the operating system).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// How sure the step is; left out when the dump leaves no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// How it would complete what the step above is: `Loader at await 0, which calls SetResult behind its await`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
    /// What shows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Where the branch ends with this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<WhyEnd>,
    /// How sure that end is: as sure as the weakest step on the way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_confidence: Option<Confidence>,
    /// The earlier step that is about the same: the branch goes on there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<u64>,
}
