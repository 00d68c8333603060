//! Names of recorded frames, by the file's own method ranges.

use crate::paths::DispatcherFrame;
use asynctriage_async_trace::Frame;
use asynctriage_clr::ships_with_dotnet;
use asynctriage_metadata::TypePath;
use asynctriage_metadata::names::{method, simple_type_name};
use asynctriage_nettrace::runtime::{Method, MethodRanges};
use asynctriage_report as report;
use rustc_hash::FxHashMap;

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resolution {
    One,
    Many,
    Zero,
    Unknown,
}

impl Resolution {
    /// Its word in the counts.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::One => "resolved_one",
            Self::Many => "resolved_many",
            Self::Zero => "unresolved_zero",
            Self::Unknown => "unresolved_unknown",
        }
    }
}

pub(super) fn resolution(methods: &MethodRanges, address: u64) -> Resolution {
    match (address, methods.candidates(address).count()) {
        (0, _) => Resolution::Zero,
        (_, 0) => Resolution::Unknown,
        (_, 1) => Resolution::One,
        _ => Resolution::Many,
    }
}

/// The name in the file; all of them when it has several, the address when it has none.
pub(super) fn raw(methods: &MethodRanges, address: u64) -> String {
    let mut names: Vec<String> = methods
        .candidates(address)
        .filter_map(Method::full_name)
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        format!("{address:#x}")
    } else {
        names.join(" | ")
    }
}

/// A frame with all that is known of it.
pub(super) fn frame(methods: &MethodRanges, frame: Frame) -> report::TraceFrame {
    let mut named: Vec<(String, String)> = methods
        .candidates(frame.address)
        .filter_map(|m| Some((m.full_name()?, csharp(&m.namespace, &m.name))))
        .collect();
    named.sort_unstable();
    named.dedup();
    let resolution = resolution(methods, frame.address);
    let method = match named.as_slice() {
        [] if resolution == Resolution::Zero => "0x0 (awaited task)".to_owned(),
        [] => format!("{:#x}", frame.address),
        all => all
            .iter()
            .map(|(_, name)| name.as_str())
            .collect::<Vec<_>>()
            .join(" | "),
    };
    report::TraceFrame {
        method,
        raw: raw(methods, frame.address),
        address: report::Address(frame.address),
        await_index: frame.state.and_then(|s| u32::try_from(s).ok()),
        candidates: if named.len() > 1 {
            named.into_iter().map(|(raw, _)| raw).collect()
        } else {
            Vec::new()
        },
        unresolved: why(methods, resolution),
        from_dump: false,
        is_framework: is_framework(methods, frame.address),
        progress: None,
    }
}

/// Whether all methods that the address may belong to come with .NET, as far as the paths of their modules tell.
fn is_framework(methods: &MethodRanges, address: u64) -> bool {
    let mut found = methods.candidates(address).peekable();
    found.peek().is_some()
        && found.all(|m| {
            let path = methods.methods().module(m.module).unwrap_or_default();
            let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
            let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
            ships_with_dotnet(Some(path), name, None)
        })
}

/// Methods by the names of their state machines' types, as the task library's events tell them: `<Load>d__8` without the
/// type around it.
pub(super) struct StateMachines(FxHashMap<String, Option<String>>);

impl StateMachines {
    /// Those that the recording names.
    pub(super) fn new(methods: &MethodRanges) -> Self {
        let mut all: FxHashMap<String, Option<String>> = FxHashMap::default();
        for method in methods.methods().ranges() {
            if &*method.name != "MoveNext" {
                continue;
            }
            let outer = method.namespace.split('[').next().unwrap_or_default();
            let Some((_, machine)) = outer.rsplit_once('+').filter(|(_, m)| m.starts_with('<'))
            else {
                continue;
            };
            let name = csharp(&method.namespace, &method.name);
            // several types may have a method of one name: then it is none of them
            all.entry(machine.to_owned())
                .and_modify(|known| {
                    if known.as_ref().is_some_and(|known| *known != name) {
                        *known = None;
                    }
                })
                .or_insert(Some(name));
        }
        Self(all)
    }

    /// `Async: <Load>d__8` as the method's name: with its type where only one type has such a method, else alone.
    pub(super) fn method(&self, operation: &str) -> String {
        let Some(machine) = operation.strip_prefix("Async: ") else {
            return operation.to_owned();
        };
        if let Some(Some(known)) = self.0.get(machine) {
            return known.clone();
        }
        let inner = machine
            .strip_prefix('<')
            .and_then(|rest| rest.rsplit_once('>'));
        match inner {
            Some((method, rest)) if rest.starts_with("d__") && !method.is_empty() => {
                method.to_owned()
            }
            _ => machine.to_owned(),
        }
    }
}

/// Names of the joined dump for what the file cannot name.
pub(super) fn complete(chains: &mut [report::TraceChain], names: &FxHashMap<u64, DispatcherFrame>) {
    let frames = chains.iter_mut().filter_map(|chain| chain.frames.as_mut());
    let is_unnamed = |f: &&mut report::TraceFrame| f.raw == format!("{:#x}", f.address.0);
    for frame in frames.flatten().filter(is_unnamed) {
        if let Some(known) = names.get(&frame.address.0) {
            frame.method = known.name.to_string();
            frame.is_framework = known.is_framework;
            (frame.from_dump, frame.unresolved) = (true, None);
        }
    }
}

fn why(methods: &MethodRanges, resolution: Resolution) -> Option<String> {
    let text = match resolution {
        Resolution::One => return None,
        Resolution::Many => "the ranges of several methods hold the address",
        Resolution::Zero => "a task or a ValueTask source has no frame of its own",
        Resolution::Unknown if methods.methods().rundown() == 0 => {
            "the file has no rundown, which names the methods that were compiled before the session and alone says where \
             their code lies: events of modules have paths and no addresses, so that module files cannot name it either; \
             a dump of the process can (--dump)"
        }
        Resolution::Unknown => "no method of the file has code at the address",
    };
    Some(text.to_owned())
}

/// As a C# programmer would write it.
fn csharp(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        return name.to_owned();
    }
    let (path, args) = parse(namespace);
    method(&path, &args, name, &[])
}

/// ``Ns.Outer`1+Inner[System.__Canon,System.Int32]`` as its path and its arguments' simple names.
fn parse(text: &str) -> (TypePath, Vec<String>) {
    let (path, args) = match outside_angles(text).find(|(_, c)| *c == '[') {
        Some((at, _)) => text.split_at_checked(at).unwrap_or((text, "")),
        None => (text, ""),
    };
    let first_end = outside_angles(path)
        .find(|(_, c)| *c == '+')
        .map(|(at, _)| at);
    let (first, nested) = first_end
        .and_then(|at| path.split_at_checked(at))
        .unwrap_or((path, ""));
    let dot = outside_angles(first)
        .filter(|(_, c)| *c == '.')
        .last()
        .map(|(at, _)| at)
        .filter(|at| *at > 0);
    let (namespace, outer) = dot
        .and_then(|at| Some((first.get(..at)?, first.get(at.checked_add(1)?..)?)))
        .unwrap_or(("", first));
    let mut segments = vec![outer.to_owned()];
    let mut from = 1;
    for (at, _) in outside_angles(nested).filter(|(at, c)| *c == '+' && *at > 0) {
        segments.extend(nested.get(from..at).map(str::to_owned));
        from = at.saturating_add(1);
    }
    segments.extend(nested.get(from..).map(str::to_owned));
    let path = TypePath {
        namespace: namespace.to_owned(),
        segments,
    };
    (path, arguments(args))
}

/// The characters that are not within the angle brackets of a generated name, with their places.
fn outside_angles(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0_u32;
    text.char_indices().filter(move |(_, c)| {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// `[System.__Canon,Ns.Pair[A,B]]`: the arguments at the outermost level.
fn arguments(text: &str) -> Vec<String> {
    let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Vec::new();
    };
    let (mut args, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                args.extend(inner.get(from..at));
                from = at.saturating_add(1);
            }
            _ => {}
        }
    }
    args.extend(inner.get(from..));
    let simple = args
        .into_iter()
        .map(|arg| simple_type_name(&in_angles(arg)));
    simple.collect()
}

/// ``Pair`2[A,B]`` as ``Pair`2<A,B>``; brackets of arrays stay.
fn in_angles(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut open, mut arity) = (Vec::new(), false);
    for c in text.chars() {
        match c {
            '[' => {
                open.push(arity);
                out.push(if arity { '<' } else { '[' });
            }
            ']' => out.push(if open.pop() == Some(true) { '>' } else { ']' }),
            _ => out.push(c),
        }
        arity = c == '`' || arity && c.is_ascii_digit();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::csharp;

    #[test]
    fn names_are_as_in_the_source() {
        let cases = [
            ("Program+Checkout", "Inner", "Program.Checkout.Inner"),
            ("Program+<S2>d__35", "MoveNext", "Program.S2"),
            (
                "System.Net.Http.SocketsHttpHandler",
                "<SendAsync>g__CreateHandlerAndSendAsync|122_0",
                "System.Net.Http.SocketsHttpHandler.SendAsync.CreateHandlerAndSendAsync",
            ),
            (
                "System.Threading.Tasks.TaskCompletionSourceWithCancellation`1[System.__Canon]",
                "WaitWithCancellationAsync",
                "System.Threading.Tasks.TaskCompletionSourceWithCancellation<__Canon>.WaitWithCancellationAsync",
            ),
            (
                "Ns.Outer`1+Inner`1[System.Int32,Ns.Pair`2[System.String,System.Guid]]",
                "Run",
                "Ns.Outer<Int32>.Inner<Pair<String, Guid>>.Run",
            ),
            ("Program+<<Main>$>d__0", "MoveNext", "Program.Main"),
            (
                "Ns.Store+<Ns.IStore.GetAsync>d__1",
                "MoveNext",
                "Ns.Store.Ns.IStore.GetAsync",
            ),
            ("", "Lonely", "Lonely"),
        ];
        for (namespace, name, expected) in cases {
            assert_eq!(csharp(namespace, name), expected);
        }
    }

    #[test]
    fn odd_names_stay_names() {
        for namespace in ["<", "+", "[", "]", ".", "a+", "a[", "a[b", "+[,]", ">.<+"] {
            assert!(csharp(namespace, "M").ends_with('M'), "{namespace}");
        }
    }
}
