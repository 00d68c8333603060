//! The stacks of all threads as one tree.

use super::views::current;
use super::{Report, Thread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames of a stack that are merged, from its outermost end; what lies further in is one frame.
const MAX_DEPTH: usize = 4096;
/// Threads that one row names.
const MAX_NAMED: usize = 32;

/// Stacks merged from their outermost frames on, with how many threads go through each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MergedStacks {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The dump, as the user gave it.
    pub dump: String,
    /// Threads that have a stack.
    pub threads: u64,
    /// The parts of the tree, each behind the one that it hangs on; those of most threads first.
    pub rows: Vec<MergedRow>,
}

impl Default for MergedStacks {
    fn default() -> Self {
        Self {
            schema_version: current(),
            dump: String::new(),
            threads: 0,
            rows: Vec::new(),
        }
    }
}

/// Frames that the same threads go through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MergedRow {
    /// How many rows it is away from the outermost.
    pub depth: u64,
    /// How many threads go through it.
    pub count: u64,
    /// The frames, outermost first.
    pub frames: Vec<MergedFrame>,
    /// Threads whose stacks end here (ids of the operating system), capped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub end: Vec<u64>,
}

/// A method on merged stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MergedFrame {
    /// The method.
    pub method: String,
    /// Whether it is native code.
    #[serde(skip_serializing_if = "super::is_false")]
    pub native: bool,
    /// Whether it is code of .NET rather than of the program or of its libraries.
    #[serde(skip_serializing_if = "super::is_false")]
    pub is_framework: bool,
}

impl MergedStacks {
    /// Merges the stacks of a report's threads.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let stacks: Vec<Stack> = report
            .threads
            .iter()
            .filter(|t| !t.frames.is_empty())
            .map(Stack::of)
            .collect();
        let threads = stacks.len() as u64;
        let mut rows = Vec::new();
        // each with its depth, the place of its next frame, and its threads
        let mut todo = vec![(0_u64, 0_usize, stacks.iter().collect::<Vec<_>>())];
        while let Some((depth, from, group)) = todo.pop() {
            let mut at = from;
            // as long as all of them go the same way
            while let Some(frame) = group.first().and_then(|s| s.frames.get(at))
                && group.iter().all(|s| s.frames.get(at) == Some(frame))
            {
                at = at.saturating_add(1);
            }
            let first = group.first();
            let common = first
                .and_then(|s| s.frames.get(from..at))
                .unwrap_or_default();
            let ends = group.iter().filter(|s| s.frames.len() == at);
            let deeper = if common.is_empty() {
                depth
            } else {
                depth.saturating_add(1)
            };
            if !common.is_empty() {
                rows.push(MergedRow {
                    depth,
                    count: group.len() as u64,
                    frames: common.to_vec(),
                    end: ends.map(|s| s.thread).take(MAX_NAMED).collect(),
                });
            }
            let mut by_next: BTreeMap<&MergedFrame, Vec<&Stack>> = BTreeMap::new();
            for stack in &group {
                if let Some(next) = stack.frames.get(at) {
                    by_next.entry(next).or_default().push(stack);
                }
            }
            let mut groups: Vec<_> = by_next.into_values().collect();
            groups.sort_by_key(Vec::len);
            todo.extend(groups.into_iter().map(|g| (deeper, at, g)));
        }
        Self {
            dump: report.dump.path.clone(),
            threads,
            rows,
            ..Self::default()
        }
    }
}

/// A thread's frames, outermost first.
struct Stack {
    thread: u64,
    frames: Vec<MergedFrame>,
}

impl Stack {
    fn of(thread: &Thread) -> Self {
        let frames = thread.frames.iter().rev().take(MAX_DEPTH);
        // places in one native function differ from thread to thread
        let name = |method: &str| match method.rsplit_once('+') {
            Some((function, _)) if method.contains('!') => function.to_owned(),
            _ => method.to_owned(),
        };
        Self {
            thread: thread.os_id,
            frames: frames
                .map(|f| MergedFrame {
                    method: if f.native {
                        name(&f.method)
                    } else {
                        f.method.clone()
                    },
                    native: f.native,
                    is_framework: f.is_framework,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadFrame;

    fn report(stacks: &[(u64, &str)]) -> Report {
        let thread = |(os_id, frames): &(u64, &str)| Thread {
            os_id: *os_id,
            frames: frames
                .chars()
                .map(|c| ThreadFrame {
                    method: c.to_string(),
                    ..ThreadFrame::default()
                })
                .collect(),
            ..Thread::default()
        };
        Report {
            threads: stacks.iter().map(thread).collect(),
            ..Report::default()
        }
    }

    fn drawn(stacks: &[(u64, &str)]) -> Vec<String> {
        let merged = MergedStacks::of(&report(stacks));
        let row = |r: &MergedRow| {
            let frames: String = r.frames.iter().map(|f| f.method.as_str()).collect();
            format!(
                "{}{frames} {} {:?}",
                " ".repeat(r.depth as usize),
                r.count,
                r.end
            )
        };
        merged.rows.iter().map(row).collect()
    }

    #[test]
    fn stacks_share_their_outer_frames() {
        // innermost first, as reports have them
        let stacks = [
            (1, "wqm"),
            (2, "wqm"),
            (3, "xqm"),
            (4, "zy"),
            (5, "qm"),
            (6, ""),
        ];
        assert_eq!(
            drawn(&stacks),
            ["mq 4 [5]", " w 2 [1, 2]", " x 1 [3]", "yz 1 [4]"]
        );
        assert!(drawn(&[]).is_empty());
    }
}
