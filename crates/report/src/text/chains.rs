//! Groups of chains: the wait in the headline, then each frame outwards, the root at the end.
//!
//! A chain has no branches, so its frames stand below each other without ever deeper indentation.

use super::page::{Page, Span};
use super::style::Role;
use super::words::{beside, bytes, count, duration, several, verb};
use crate::{
    ChainGroup, Confidence, Frame, LeafKind, Local, Member, Report, RootKind, VerdictState,
};

/// Frames of one chain above which its middle is folded without `-v`.
const MANY_FRAMES: usize = 40;
/// Frames that stay at either end of a folded chain.
const ENDS: usize = 12;
/// Completers listed without `-v`.
const FEW_COMPLETERS: usize = 2;
/// Members listed without `-v`.
const FEW_MEMBERS: usize = 3;

/// All groups; those that wait as they should come last and in one line each.
pub(super) fn section(page: &mut Page<'_>, report: &Report) {
    let (quiet, loud): (Vec<&ChainGroup>, Vec<&ChainGroup>) =
        by_count(report).into_iter().partition(|c| is_quiet(c));
    if !loud.is_empty() {
        page.heading(
            "Chains",
            "each from its innermost wait outwards; awaits are counted from 0",
        );
        let shown = page.options.cap(loud.len());
        for (i, group) in loud.iter().take(shown).enumerate() {
            if i > 0 {
                page.blank();
            }
            one(page, group);
        }
        rest(page, loud.get(shown..).unwrap_or_default());
    }
    if !quiet.is_empty() {
        page.heading("Idle and unreachable chains", "not blamed");
        let shown = page.options.cap(quiet.len());
        for group in quiet.iter().take(shown) {
            if page.verbose() {
                page.blank();
                one(page, group);
            } else {
                brief(page, group);
            }
        }
        rest(page, quiet.get(shown..).unwrap_or_default());
    }
}

fn by_count(report: &Report) -> Vec<&ChainGroup> {
    let mut groups: Vec<&ChainGroup> = report.chains.iter().collect();
    groups.sort_by_key(|c| std::cmp::Reverse(c.count));
    groups
}

/// Whether a group waits as it should, or not at all any more.
fn is_quiet(group: &ChainGroup) -> bool {
    group.leaf.kind == LeafKind::Unreachable
        || group
            .verdict
            .as_ref()
            .is_some_and(|v| v.state == VerdictState::Idle)
}

fn rest(page: &mut Page<'_>, groups: &[&ChainGroup]) {
    let chains = groups.iter().map(|c| c.count).fold(0, u64::saturating_add);
    if !groups.is_empty() {
        page.blank();
        let more = format!(
            "{} of {} not shown: --all",
            several(groups.len() as u64, "more group"),
            several(chains, "chain")
        );
        let spans = [page.span(Role::Dim, more)];
        page.line("", "", &spans);
    }
}

/// The wait, the frames outwards, the root.
pub(super) fn without_members(page: &mut Page<'_>, group: &ChainGroup) {
    headline(page, group);
    waiting(page, group);
    completers(page, group);
    frames(page, &group.frames);
    if let Some(root) = group
        .root
        .as_ref()
        .filter(|r| r.kind != RootKind::None || !r.text.is_empty())
    {
        let spans = [
            page.span(Role::Good, root.kind.as_str()),
            page.span(
                Role::Strong,
                format!("  {}", beside(root.kind.as_str(), &root.text)),
            ),
        ];
        page.line("    └ ", "        ", &spans);
    } else {
        let spans = [page.span(Role::Dim, "nothing waits for it")];
        page.line("    └ ", "        ", &spans);
    }
}

pub(super) fn one(page: &mut Page<'_>, group: &ChainGroup) {
    without_members(page, group);
    if let Some(kept) = group.retained_bytes.filter(|b| *b > 0) {
        let each = if group.count > 1 { "in all" } else { "alone" };
        let text = format!("keeps {} alive {each}", bytes(kept));
        page.line("    ", "      ", &[page.span(Role::Dim, text)]);
    }
    members(page, group);
    if page.verbose() {
        let evidence = group.leaf.evidence.as_deref().unwrap_or_default();
        for (name, text) in [("leaf", evidence), ("signature", &group.signature)] {
            if !text.is_empty() {
                let spans = [page.span(Role::Dim, format!("{name}  {text}"))];
                page.line("    ", "      ", &spans);
            }
        }
    }
}

/// `c1  20 chains wait for http-connection-pool  http://inventory:8080 (16 of 16 connections in use)`.
fn headline(page: &mut Page<'_>, group: &ChainGroup) {
    let chains = format!(
        "{} {} for ",
        several(group.count, "chain"),
        verb(group.count, "waits", "wait")
    );
    let spans = [
        page.span(Role::Dim, format!("{:<3} ", group.id)),
        page.span(Role::Strong, chains),
        page.span(Role::Kind, group.leaf.kind.as_str()),
        page.span(
            Role::Plain,
            format!("  {}", beside(group.leaf.kind.as_str(), &group.leaf.text)),
        ),
        page.span(Role::Strong, age(page, group)),
    ];
    page.line("", "    ", &spans);
}

/// `  for 3.0 s to 5.0 s`; with `-v` the line below says more.
fn age(page: &Page<'_>, group: &ChainGroup) -> String {
    let waiting = group.waiting_seconds.as_ref().filter(|_| !page.verbose());
    waiting.map_or_else(String::new, |w| {
        // the clock may be that of the request, which began before the wait
        let at_most = if w.how.contains("may be younger") {
            "at most "
        } else {
            ""
        };
        match (duration(w.min), duration(w.max)) {
            (min, max) if min == max => format!("  for {at_most}{max}"),
            (min, max) => format!("  for {at_most}{min} to {max}"),
        }
    })
}

/// Who would complete what is waited for: the surest, all of them with `-v`.
fn completers(page: &mut Page<'_>, group: &ChainGroup) {
    let all = &group.leaf.completers;
    let shown = if page.verbose() {
        all.len()
    } else {
        FEW_COMPLETERS
    };
    for completer in all.iter().take(shown) {
        let sure = match completer.confidence {
            Confidence::Certain => "",
            Confidence::Likely => "likely ",
            Confidence::Possible => "possibly ",
        };
        let done = match group.leaf.kind {
            LeafKind::Ready | LeafKind::Unknown => "resumed",
            _ => "completed",
        };
        let how = format!("{sure}to be {done} by ");
        let chain = completer.chain.as_ref();
        let chain = chain.map_or_else(String::new, |c| format!(" ({c})"));
        let of = if completer.count < group.count {
            format!("  {} of {}", completer.count, group.count)
        } else {
            String::new()
        };
        let spans = [
            page.span(Role::Dim, how),
            page.span(Role::Strong, format!("{}{chain}", completer.text)),
            page.span(Role::Dim, of),
        ];
        page.line("    ", "      ", &spans);
        if page.verbose() {
            let evidence = page.span(Role::Dim, completer.evidence.clone());
            page.line("      ", "      ", &[evidence]);
        }
    }
}

/// For how long, and whether that is a hang.
fn waiting(page: &mut Page<'_>, group: &ChainGroup) {
    let mut spans = Vec::new();
    if let Some(waiting) = group.waiting_seconds.as_ref().filter(|_| page.verbose()) {
        let range = if duration(waiting.min) == duration(waiting.max) {
            format!("for {}", duration(waiting.max))
        } else {
            format!(
                "for {} to {}, half of them {} or more",
                duration(waiting.min),
                duration(waiting.max),
                duration(waiting.median)
            )
        };
        spans.push(page.span(Role::Plain, range));
        let how = if waiting.how.is_empty() {
            "  ".to_owned()
        } else {
            format!(" ({})  ", waiting.how)
        };
        spans.push(page.span(Role::Dim, how));
    }
    if let Some(time) = &group.first_seen {
        spans.push(page.span(Role::Dim, format!("since {time}  ")));
    }
    if let Some(verdict) = &group.verdict {
        let role = if verdict.state == VerdictState::Stuck {
            Role::Critical
        } else {
            Role::Plain
        };
        spans.push(page.span(role, verdict.state.as_str()));
        if !verdict.why.is_empty() {
            spans.push(page.span(Role::Plain, format!(": {}", verdict.why)));
        }
    }
    if !spans.is_empty() {
        page.line("    ", "    ", &spans);
    }
}

fn frames(page: &mut Page<'_>, frames: &[Frame]) {
    let fold = frames.len() > MANY_FRAMES && !page.verbose();
    let tail = if fold {
        frames.len().saturating_sub(ENDS)
    } else {
        frames.len()
    };
    let head = if fold { ENDS } else { frames.len() };
    let ends = [
        frames.get(..head).unwrap_or_default(),
        frames.get(tail..).unwrap_or_default(),
    ];
    let column = method_column(page, ends.iter().copied().flatten());
    let has_own = frames.iter().any(|f| !is_plumbing(f));
    for (i, part) in ends.into_iter().enumerate() {
        if i == 1 && fold {
            folded(page, frames.get(head..tail).unwrap_or_default());
        }
        for run in part.chunk_by(|a, b| is_plumbing(a) && is_plumbing(b)) {
            match run {
                [first, _, ..] if has_own && is_plumbing(first) && !page.verbose() => {
                    plumbing(page, run);
                }
                run => run.iter().for_each(|f| frame(page, f, column)),
            }
        }
    }
}

/// Whether a frame is a method of .NET with nothing of the program to show.
fn is_plumbing(frame: &Frame) -> bool {
    use crate::FrameKind::{RuntimeAsync, StateMachine};
    frame.is_framework
        && frame.locals.is_empty()
        && matches!(frame.kind, RuntimeAsync | StateMachine)
}

/// A run of .NET's own frames in one line.
fn plumbing(page: &mut Page<'_>, run: &[Frame]) {
    let names: Vec<&str> = run.iter().map(|f| f.method.as_str()).collect();
    let text = super::fold::methods(&names, page.width().saturating_sub(8));
    let spans = [page.span(Role::Dim, text)];
    page.line("    │ ", "    │   ", &spans);
}

fn folded(page: &mut Page<'_>, hidden: &[Frame]) {
    let times = hidden.iter().map(|f| f.repeat).fold(0, u64::saturating_add);
    let repeats = if times > hidden.len() as u64 {
        format!(" ({} with repetitions)", count(times))
    } else {
        String::new()
    };
    let spans = [page.span(
        Role::Dim,
        format!(
            "… {}{repeats} not shown: -v",
            several(hidden.len() as u64, "frame")
        ),
    )];
    page.line("    │ ", "    │   ", &spans);
}

/// Where the awaits stand: behind the longest method of the program, when all its frames then fit a line; else behind
/// each method.
fn method_column<'f>(page: &Page<'_>, frames: impl Iterator<Item = &'f Frame>) -> usize {
    let own = frames.filter(|f| !f.is_framework);
    let widths = own.map(|f| {
        let method = page.span(Role::Plain, &f.method).width();
        (method, page.span(Role::Plain, notes(page, f)).width())
    });
    let (method, rest) = widths.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
    let whole = method.saturating_add(rest).saturating_add(8);
    if whole <= page.width() { method } else { 0 }
}

fn frame(page: &mut Page<'_>, frame: &Frame, column: usize) {
    let (role, column) = if frame.is_framework {
        (Role::Dim, 0)
    } else {
        (Role::Strong, column)
    };
    let method = page.span(role, &frame.method);
    let pad = " ".repeat(column.saturating_sub(method.width()).saturating_add(2));
    let about = if frame.is_framework {
        Role::Dim
    } else {
        Role::Plain
    };
    let notes = [
        page.span(Role::Plain, pad),
        page.span(about, notes(page, frame)),
    ];
    let spans: Vec<Span> = std::iter::once(method).chain(notes).collect();
    page.line("    │ ", "    │   ", &spans);
    for local in &frame.locals {
        let spans = [page.span(Role::Dim, local_text(local))];
        page.line("    │     ", "    │       ", &spans);
    }
    if page.verbose() {
        let object = [
            frame.address.map(|a| a.to_string()),
            frame.type_name.clone(),
            frame.source_url.clone(),
            frame.evidence.clone(),
        ];
        let object: Vec<String> = object.into_iter().flatten().collect();
        if !object.is_empty() {
            let spans = [page.span(Role::Dim, object.join("  "))];
            page.line("    │     ", "    │       ", &spans);
        }
    }
}

/// What stands behind the method: which await, how often, where in the source, what kind.
fn notes(page: &Page<'_>, frame: &Frame) -> String {
    use crate::FrameKind::{RuntimeAsync, StateMachine};
    let mut notes = Vec::new();
    notes.extend(await_text(frame));
    notes.extend((frame.repeat > 1).then(|| format!("×{}", count(frame.repeat))));
    notes.extend(
        frame
            .file
            .as_ref()
            .map(|file| source(page, file, frame.line)),
    );
    notes.extend(frame.is_async_void.then(|| "async void".to_owned()));
    notes.extend(frame.delegate.clone());
    if page.verbose() || !matches!(frame.kind, StateMachine | RuntimeAsync) {
        notes.push(frame.kind.to_string());
    }
    notes.join("  ")
}

/// `lines = 0x00007f1200002000 (List<String>, 32 B)`.
fn local_text(local: &Local) -> String {
    let size = local.bytes.map(bytes);
    // what nothing else leads to is the same size when it is the object alone
    let keeps = local.retained_bytes.filter(|r| Some(*r) != local.bytes);
    let keeps = keeps.map(|r| match r {
        0 => "kept by others, too".to_owned(),
        r => format!("keeps {}", bytes(r)),
    });
    let about: Vec<String> = local
        .type_name
        .clone()
        .into_iter()
        .chain(size)
        .chain(keeps)
        .collect();
    let value = if local.value.is_empty() {
        "?"
    } else {
        &local.value
    };
    if about.is_empty() {
        format!("{} = {value}", local.name)
    } else {
        format!("{} = {value} ({})", local.name, about.join(", "))
    }
}

/// `await 2: Client.SendAsync`.
fn await_text(frame: &Frame) -> Option<String> {
    match (frame.place(), &frame.awaits) {
        (Some(number), Some(call)) => Some(format!("{number}: {call}")),
        (None, Some(call)) => Some(format!("await {call}")),
        (number, None) => number,
    }
}

/// `File.cs:41`; the whole path with `-v`.
fn source(page: &Page<'_>, file: &str, line: Option<u32>) -> String {
    let name = if page.verbose() {
        file
    } else {
        file.rsplit(['/', '\\']).next().unwrap_or(file)
    };
    line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"))
}

/// The innermost object of each chain, which is what `show` is given next.
fn members(page: &mut Page<'_>, group: &ChainGroup) {
    let few = if page.verbose() || page.options.rows.is_none() {
        group.members.len()
    } else {
        FEW_MEMBERS
    };
    if page.verbose()
        && group
            .members
            .iter()
            .any(|m| m.leaf.is_some() || m.root.is_some() || m.waiting_seconds.is_some())
    {
        for member in &group.members {
            let spans = [page.span(Role::Dim, describe(member))];
            page.line("    ", "      ", &spans);
        }
    } else {
        let mut names: Vec<String> = group
            .members
            .iter()
            .take(few)
            .filter_map(first_box)
            .collect();
        let left = group.count.saturating_sub(names.len() as u64);
        if names.is_empty() {
            return;
        }
        if left > 0 {
            names.push(format!("{} more", count(left)));
        }
        let spans = [page.span(Role::Dim, format!("members {}", names.join(", ")))];
        page.line("    ", "            ", &spans);
    }
}

fn first_box(member: &Member) -> Option<String> {
    member.boxes.first().map(ToString::to_string)
}

fn describe(member: &Member) -> String {
    let waiting = member
        .waiting_seconds
        .map(|s| format!("for {}", duration(s)));
    let parts = [
        Some(member.id.clone()),
        first_box(member),
        waiting,
        member.leaf.clone(),
        member.root.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// A group in one line.
fn brief(page: &mut Page<'_>, group: &ChainGroup) {
    let outermost = group
        .frames
        .last()
        .map(|f| f.method.clone())
        .unwrap_or_default();
    let why = group
        .verdict
        .as_ref()
        .map(|v| format!("  {}", v.why))
        .unwrap_or_default();
    let spans = [
        page.span(Role::Dim, format!("{:<3} ", group.id)),
        page.span(Role::Plain, several(group.count, "chain")),
        page.span(Role::Kind, format!("  {}", group.leaf.kind)),
        page.span(
            Role::Plain,
            format!("  {}", beside(group.leaf.kind.as_str(), &group.leaf.text)),
        ),
        page.span(Role::Dim, format!("  {outermost}{why}")),
    ];
    page.line("", "      ", &spans);
}
