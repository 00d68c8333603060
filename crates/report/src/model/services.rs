//! Requests followed across processes: which call of one service is which request of another.

use super::{Confidence, SCHEMA_VERSION};
use serde::{Deserialize, Serialize};

fn current() -> String {
    SCHEMA_VERSION.to_owned()
}

/// Several dumps of one incident as one picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServicesReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The services, in the order of blame: those that most ways end in come first.
    pub services: Vec<Service>,
    /// The ways of the requests, from the entry service inwards.
    pub paths: Vec<RequestPath>,
    /// Calls to servers of which no dump was given.
    pub missing: Vec<MissingServer>,
    /// What could not be joined, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<super::Gap>,
}

impl Default for ServicesReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            services: Vec::new(),
            paths: Vec::new(),
            missing: Vec::new(),
            gaps: Vec::new(),
        }
    }
}

/// One dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Service {
    /// What it is called: the name of the dump's file up to the first dot.
    pub name: String,
    /// The dump's file.
    pub dump: String,
    /// Requests that it serves.
    pub requests: u64,
    /// Ways that end in it.
    pub ends: u64,
    /// What the requests that end here wait for, each once.
    pub waits_for: Vec<String>,
}

/// A request's way through the services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RequestPath {
    /// Id of the distributed trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// `certain` when the ids of all spans fit, `likely` when a hop rests on method and path.
    pub certainty: Confidence,
    /// The requests, from the entry service inwards.
    pub hops: Vec<Hop>,
}

/// A request of one service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Hop {
    /// The dump's file.
    pub dump: String,
    /// The service.
    pub service: String,
    /// Method and path.
    pub request: String,
    /// Id of the request's span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// Id of the span that it is part of: that of the call in the service before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// For how long it has run, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    /// What it waits for.
    pub waits_for: String,
    /// The group of chains that serves it, in the report of its dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
}

/// A server that is called and of which there is no dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MissingServer {
    /// Scheme, host and port.
    pub server: String,
    /// Calls to it that wait.
    pub calls: u64,
    /// The services that call it.
    pub from: Vec<String>,
}
