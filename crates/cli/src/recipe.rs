//! Which events show async work, by the version of the runtime.

use crate::args::EventArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use asynctriage_diagnostics::Provider;

/// The async profiler of .NET 11.
pub(crate) const ASYNC_PROFILER: &str = "System.Runtime.CompilerServices.AsyncProfilerEventSource";
/// All of its events: 0x3FF for runtime-async methods, 0x3FC00 for state machines. The framework of .NET 11 is compiled
/// as runtime-async, so that both kinds occur in every process (seen with 11.0.0).
const BOTH_FAMILIES: u64 = 0x3_FFFF;
const INFORMATIONAL: u32 = 4;
const VERBOSE: u32 = 5;

/// What to ask a runtime for, and what the user should know of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// The events of async work.
    pub(crate) events: Vec<Provider>,
    /// Events that give methods their names.
    pub(crate) names: Vec<Provider>,
    /// Whether threads keep the last events in buffers of their own until they are asked for them.
    pub(crate) buffered: bool,
    pub(crate) warning: Option<&'static str>,
}

impl Recipe {
    /// All of it.
    pub(crate) fn providers(&self) -> Vec<Provider> {
        [self.events.as_slice(), &self.names].concat()
    }
}

/// The events that were asked for, or those that show async work in a runtime of this major version.
pub(crate) fn choose(args: &EventArgs, major: Option<u32>) -> Result<Recipe, CliError> {
    if let Some(old) = major.filter(|m| *m < 8) {
        return Err(CliError::new(
            Exit::NoRuntime,
            format!("the process runs .NET {old}, which is too old"),
            "record .NET 8 to 11",
        ));
    }
    if !args.providers.is_empty() {
        let providers = args.providers.clone();
        let buffered = providers
            .iter()
            .any(|p| p.name.eq_ignore_ascii_case(ASYNC_PROFILER));
        return Ok(Recipe {
            events: providers,
            names: Vec::new(),
            buffered,
            warning: None,
        });
    }
    if args.tpl {
        return Ok(Recipe {
            events: vec![Provider::new(
                "System.Threading.Tasks.TplEventSource",
                0x1FF,
                VERBOSE,
            )],
            names: Vec::new(),
            buffered: false,
            warning: Some(
                "the events of tasks slow a program down that awaits much: 48 times on one that did nothing else",
            ),
        });
    }
    match major {
        Some(11..) => Ok(Recipe {
            events: vec![async_profiler()],
            names: vec![compiled_methods()],
            buffered: true,
            warning: None,
        }),
        _ => Err(CliError::new(
            Exit::NoRuntime,
            match major {
                Some(major) => format!("the process runs .NET {major}; the async profiler came with .NET 11"),
                None => "the process does not say which .NET it runs; the async profiler came with .NET 11".into(),
            },
            "add --tpl for the events of tasks (costly: 48 times slower where a program only awaits), or take a dump",
        )),
    }
}

fn async_profiler() -> Provider {
    Provider::new(ASYNC_PROFILER, BOTH_FAMILIES, INFORMATIONAL)
}

/// Methods as they are compiled, for names; also of code that is gone before the rundown.
fn compiled_methods() -> Provider {
    Provider::new("Microsoft-Windows-DotNETRuntime", 0x10, VERBOSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(providers: &[&str], tpl: bool) -> EventArgs {
        EventArgs {
            providers: providers
                .iter()
                .map(|p| p.parse().expect("a provider"))
                .collect(),
            tpl,
            buffer_mb: 1,
        }
    }

    fn names(args: &EventArgs, major: Option<u32>) -> Result<(Vec<String>, bool), String> {
        choose(args, major)
            .map(|r| {
                let names = r.providers().iter().map(ToString::to_string).collect();
                (names, r.buffered)
            })
            .map_err(|e| e.render())
    }

    #[test]
    fn net_11_has_the_async_profiler() {
        let (providers, buffered) = names(&args(&[], false), Some(11)).expect("a recipe");
        assert!(buffered);
        assert_eq!(
            providers,
            [
                format!("{ASYNC_PROFILER}:0x3FFFF:4"),
                "Microsoft-Windows-DotNETRuntime:0x10:5".into()
            ]
        );
    }

    #[test]
    fn older_runtimes_need_a_word_about_the_cost() {
        for major in [Some(8), Some(10), None] {
            let error = names(&args(&[], false), major).expect_err("no profiler");
            assert!(error.contains("--tpl") && error.contains("48"), "{error}");
            let recipe = choose(&args(&[], true), major).expect("asked for");
            assert!(recipe.warning.is_some() && !recipe.buffered);
        }
        let error = names(&args(&["A"], false), Some(7)).expect_err("too old");
        assert!(error.contains(".NET 7"));
    }

    #[test]
    fn what_is_asked_for_is_taken() {
        let (providers, buffered) = names(&args(&["A:1:2"], false), Some(9)).expect("asked for");
        assert_eq!((providers, buffered), (vec!["A:0x1:2".into()], false));
        let own = args(&[&ASYNC_PROFILER.to_lowercase()], false);
        assert!(choose(&own, Some(11)).expect("asked for").buffered);
    }
}
