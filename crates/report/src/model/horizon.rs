//! Up to when a recording proves what it says.

use super::{NotCompleted, is_zero};
use serde::{Deserialize, Serialize};

super::kinds::words! {
    /// How sure the state of a recorded chain is.
    #[derive(Default)]
    ChainStanding {
        /// Proved, as of the horizon.
        #[default]
        Proved = "proved",
        /// Nothing hints at missing records, but threads were not asked for theirs.
        Likely = "likely",
        /// Its last record lies behind the horizon: it may have gone on, and ended.
        Unknown = "unknown",
    }
}

/// A time up to which nothing is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceHorizon {
    /// Ticks of the recording's clock.
    pub ticks: u64,
    /// In UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Seconds before the end of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_before_end: Option<f64>,
    /// What it rests on.
    pub why: String,
    /// Why it is not later, when something is known to be missing behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
}

/// What is proved of the chains that had not ended, as of the horizon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AtHorizon {
    /// The horizon in ticks of the recording's clock; left out when nothing is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<u64>,
    /// The same in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Chains that waited then.
    pub waiting: u64,
    /// Chains that ran then.
    pub running: u64,
    /// Chains that likely wait, but threads were not asked for their buffers.
    #[serde(skip_serializing_if = "is_zero")]
    pub likely_waiting: u64,
    /// Chains that likely run.
    #[serde(skip_serializing_if = "is_zero")]
    pub likely_running: u64,
    /// Chains whose last record lies behind the horizon: they may have gone on, and ended.
    pub state_unknown: u64,
    /// Those that waited or ran then.
    pub chains: Vec<NotCompleted>,
}
