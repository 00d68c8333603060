//! The tools: what each takes, and how it answers.

use crate::args::{BoundArgs, FileArgs, FilterArgs, McpArgs, Target};
use crate::ask;
use crate::commands::{analysed, object_of};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::filter;
use asynctriage_report::{self as report, MergedStacks, Part, Report, TextOptions};
use asynctriage_triage::{Options, Values};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Groups of chains that are shown unless more are asked for.
const GROUPS: u64 = 5;
/// Chains of a group, and fields of an object, that are listed.
const ROWS: usize = 20;

/// A tool's name, what it is for, and its arguments beside the dump: name, type, meaning, whether it must be given.
type Definition = (&'static str, &'static str, &'static [Argument]);
type Argument = (&'static str, &'static str, &'static str, bool);

const TOOLS: [Definition; 5] = [
    (
        "triage",
        "What hangs in a .NET process, why, who is affected and what to do: verdict, findings and first chains of a dump, as JSON of at most 8 KB.",
        &[],
    ),
    (
        "chains",
        "Async chains that wait in a dump, each from its innermost wait outwards: frames, what is waited for, what for.",
        &[
            (
                "id",
                "string",
                "Only this group of chains, or one chain of it: C3 or C3.1",
                false,
            ),
            (
                "method",
                "string",
                "Only chains through a method whose name contains this",
                false,
            ),
            (
                "leaf",
                "string",
                "Only chains that wait for something with this in its kind or description, such as semaphore",
                false,
            ),
            (
                "limit",
                "integer",
                "How many groups are shown; 5 when not given",
                false,
            ),
        ],
    ),
    (
        "threads",
        "Threads of a dump: what each waits for and holds, and its stack.",
        &[(
            "merged",
            "boolean",
            "All stacks merged as one tree, with counts",
            false,
        )],
    ),
    (
        "why",
        "Why something in a dump waits: who would end its wait, what those wait for, step by step to the end.",
        &[(
            "subject",
            "string",
            "A chain (C3), a thread (thread:4711) or an address (0x7f12000010a0)",
            true,
        )],
    ),
    (
        "show",
        "One object of the heap, or what an id of the report stands for.",
        &[(
            "target",
            "string",
            "An address, or an id: F2, E17, C3.1, R4, T4711, G1",
            true,
        )],
    ),
];

/// What clients are told of the tools.
pub(super) fn definitions() -> Vec<Value> {
    let definition = |(name, description, arguments): &Definition| {
        let dump = (
            "dump",
            "string",
            "Path of the dump: an ELF core or a minidump, .gz and .zst too",
            true,
        );
        let all = || std::iter::once(&dump).chain(arguments.iter());
        let properties: Map<String, Value> = all()
            .map(|(name, kind, what, _)| {
                (
                    (*name).to_owned(),
                    json!({ "type": kind, "description": what }),
                )
            })
            .collect();
        let required: Vec<&str> = all().filter(|a| a.3).map(|a| a.0).collect();
        json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    TOOLS.iter().map(definition).collect()
}

/// The tools with what they were started with, and the report that was asked for last.
pub(super) struct Tools<'a> {
    args: &'a McpArgs,
    files: FileArgs,
    roots: Vec<PathBuf>,
    last: Option<(Stamp, Report)>,
}

/// Which file a report is of: when it changes, the report is made again.
#[derive(PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

/// The arguments of a call.
struct Given<'c>(&'c Map<String, Value>);

impl Given<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl<'a> Tools<'a> {
    pub(super) fn new(args: &'a McpArgs) -> Result<Self, CliError> {
        let real = |root: &PathBuf| {
            root.canonicalize().map_err(|e| {
                let message = format!("--root {} cannot be opened", root.display());
                CliError::new(Exit::Usage, message, "check the path").because(e)
            })
        };
        let roots: Result<Vec<PathBuf>, CliError> = args.root.iter().map(real).collect();
        // the limits are those of a process, which here answers one question after the other
        let bounds = BoundArgs {
            max_time: Duration::ZERO,
            max_memory: Some(0),
        };
        Ok(Self {
            args,
            files: FileArgs {
                bounds,
                ..args.files.clone()
            },
            roots: roots?,
            last: None,
        })
    }

    /// Runs a tool. What goes wrong with a dump is an answer, too: the agent can do something about it.
    ///
    /// # Errors
    /// What is wrong with the call itself.
    pub(super) fn call(&mut self, params: &Value) -> Result<Value, String> {
        let name = params["name"].as_str().ok_or("no tool is named")?;
        let none = Map::new();
        let given = match &params["arguments"] {
            Value::Null => &none,
            Value::Object(given) => given,
            _ => return Err("the arguments are no object".into()),
        };
        check(name, given)?;
        let given = Given(given);
        let run = AssertUnwindSafe(|| self.run(name, &given));
        let answer = catch_unwind(run).unwrap_or_else(|_| {
            let message = "an error in asynctriage itself";
            Err(CliError::new(
                Exit::Internal,
                message,
                "see its standard error",
            ))
        });
        let (text, structure, failed) = match answer {
            Ok((text, structure)) => (text, structure, false),
            Err(error) => (error.render(), None, true),
        };
        let mut result = json!({
            "content": [{ "type": "text", "text": text }],
            "isError": failed,
        });
        if let Some(structure) = structure {
            result["structuredContent"] = structure;
        }
        Ok(result)
    }

    fn run(&mut self, name: &str, given: &Given<'_>) -> Result<(String, Option<Value>), CliError> {
        let dump = self.dump(given.text("dump").unwrap_or_default())?;
        let text = match name {
            "triage" => {
                let brief = report::brief(self.report(&dump)?);
                let text = report::json(&brief).unwrap_or_default();
                let structure = serde_json::from_str(&text).ok();
                return Ok((text, structure));
            }
            "chains" => self.chains(&dump, given)?,
            "threads" => self.threads(&dump, given)?,
            "why" => {
                let subject = given.text("subject").unwrap_or_default();
                let files = (&self.files, self.args.symbols.as_slice());
                report::why(
                    &ask::explained(&dump, files, subject, self.values())?,
                    &style(),
                )
            }
            _ => self.show(&dump, given)?,
        };
        Ok((cut(text, self.args.max_chars), None))
    }

    /// The dump at a path, when that may be opened.
    fn dump(&self, path: &str) -> Result<PathBuf, CliError> {
        let wrong =
            |message: String| CliError::new(Exit::Input, message, "give the path of a dump");
        let real = Path::new(path)
            .canonicalize()
            .map_err(|e| wrong(format!("{path} cannot be opened")).because(e))?;
        if !real.is_file() {
            return Err(wrong(format!("{path} is no file")));
        }
        if !self.roots.is_empty() && !self.roots.iter().any(|r| real.starts_with(r)) {
            return Err(wrong(format!(
                "{path} is in none of the folders given with --root"
            )));
        }
        Ok(real)
    }

    fn values(&self) -> Values {
        Values::shown(self.args.show_values)
    }

    fn report(&mut self, dump: &Path) -> Result<&Report, CliError> {
        let metadata = std::fs::metadata(dump).ok();
        let stamp = Stamp {
            path: dump.to_owned(),
            bytes: metadata.as_ref().map_or(0, std::fs::Metadata::len),
            modified: metadata.and_then(|m| m.modified().ok()),
        };
        if self.last.as_ref().is_none_or(|(of, _)| *of != stamp) {
            let options = Options {
                members: ROWS,
                values: self.values(),
                ..Options::default()
            };
            let made = analysed(dump, &self.files, &self.args.symbols, options)?;
            self.last = Some((stamp, made));
        }
        let none = || CliError::new(Exit::Internal, "the report is lost", "");
        self.last.as_ref().map(|(_, r)| r).ok_or_else(none)
    }

    fn chains(&mut self, dump: &Path, given: &Given<'_>) -> Result<String, CliError> {
        let word = |name| given.text(name).map(str::to_owned).into_iter().collect();
        let filters = FilterArgs {
            types: Vec::new(),
            methods: word("method"),
            leaves: word("leaf"),
        };
        let most = given
            .0
            .get("limit")
            .and_then(Value::as_u64)
            .unwrap_or(GROUPS);
        let all = self.report(dump)?;
        if let Some(id) = given.text("id") {
            return item(all, id);
        }
        let mut kept = all.clone();
        filter::report(&mut kept, &filters);
        let shown = usize::try_from(most).unwrap_or(usize::MAX);
        let mut out = format!("{}\n", report::headline(&kept));
        for group in kept.chains.iter().take(shown) {
            out.push('\n');
            out.push_str(&item(all, &group.id)?);
        }
        let left = kept.chains.len().saturating_sub(shown);
        if left > 0 {
            out.push_str(&format!("\n{left} more groups: raise `limit`, or filter\n"));
        }
        Ok(out)
    }

    fn threads(&mut self, dump: &Path, given: &Given<'_>) -> Result<String, CliError> {
        let merged = given.0.get("merged").and_then(Value::as_bool) == Some(true);
        let report = self.report(dump)?;
        Ok(if merged {
            report::merged(&MergedStacks::of(report), &style())
        } else {
            report::part(report, Part::Threads, &style())
        })
    }

    fn show(&mut self, dump: &Path, given: &Given<'_>) -> Result<String, CliError> {
        let word = given.text("target").unwrap_or_default();
        let target: Result<Target, _> = word.parse();
        match target {
            Ok(Target::Id(id)) => item(self.report(dump)?, &id),
            Ok(Target::Address(address)) => {
                let object = object_of(dump, &self.files, address, ROWS, self.values())?;
                Ok(report::object(&object, &style()))
            }
            Err(e) => {
                let message = format!("{word} is neither an address nor an id");
                Err(CliError::new(Exit::Usage, message, "give 0x7f12000010a0 or F2").because(e))
            }
        }
    }
}

/// What an id stands for, as text.
fn item(of: &Report, id: &str) -> Result<String, CliError> {
    report::item(of, id, &style()).ok_or_else(|| {
        let message = format!("the report has no {id}");
        CliError::new(
            Exit::Usage,
            message,
            "`triage` names the findings and chains",
        )
    })
}

/// Plain text of a common width.
fn style() -> TextOptions {
    TextOptions {
        width: 120,
        unicode: true,
        color: false,
        verbose: 0,
        fold: true,
        rows: Some(ROWS),
    }
}

/// Refuses tools that do not exist, and arguments that a tool does not have or that are of another type.
fn check(name: &str, given: &Map<String, Value>) -> Result<(), String> {
    let tool = TOOLS.iter().find(|t| t.0 == name);
    let (_, _, arguments) = tool.ok_or_else(|| format!("there is no tool {name}"))?;
    let dump = ("dump", "string", "", true);
    let all = || std::iter::once(&dump).chain(arguments.iter());
    if let Some(missing) = all().find(|a| a.3 && !given.contains_key(a.0)) {
        return Err(format!("{name} needs the argument {}", missing.0));
    }
    for (argument, value) in given {
        let known = all().find(|a| a.0 == argument);
        let kind = known
            .ok_or_else(|| format!("{name} has no argument {argument}"))?
            .1;
        let fits = match kind {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            _ => value.is_u64(),
        };
        if !fits {
            return Err(format!("the argument {argument} is no {kind}"));
        }
    }
    Ok(())
}

/// The first lines of a text, up to some characters, and how many were left out.
fn cut(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    let mut out = String::new();
    let mut used: usize = 0;
    for line in text.lines() {
        used = used.saturating_add(line.chars().count()).saturating_add(1);
        if used > most {
            break;
        }
        out.push_str(line);
        out.push('\n');
    }
    let left = text.lines().count().saturating_sub(out.lines().count());
    out.push_str(&format!(
        "({left} more lines: ask for less, or for one id)\n"
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_checked_against_the_definitions() {
        let given = |value: Value| value.as_object().cloned().unwrap_or_default();
        let check = |name, value| check(name, &given(value)).err().unwrap_or_default();
        assert_eq!(check("triage", json!({ "dump": "a.dmp" })), "");
        assert_eq!(check("chains", json!({ "dump": "a", "limit": 3 })), "");
        assert_eq!(
            check("why", json!({ "dump": "a" })),
            "why needs the argument subject"
        );
        assert_eq!(check("triage", json!({})), "triage needs the argument dump");
        assert_eq!(
            check("triage", json!({ "dump": 1 })),
            "the argument dump is no string"
        );
        assert_eq!(
            check(
                "show",
                json!({ "dump": "a", "target": "F1", "show_values": true })
            ),
            "show has no argument show_values"
        );
        assert_eq!(check("run", json!({})), "there is no tool run");
    }

    #[test]
    fn long_answers_end_at_a_line_and_say_so() {
        assert_eq!(cut("a\nb\n".into(), 10), "a\nb\n");
        let text = "one\ntwo\nthree\n".to_owned();
        assert_eq!(
            cut(text, 8),
            "one\ntwo\n(1 more lines: ask for less, or for one id)\n"
        );
    }
}
