//! Stacks of threads: the frames that tell most, with recursion folded.

use super::page::Page;
use super::style::Role;
use super::words::{count, several};
use crate::{FrameStanding, Thread, ThreadFrame};

/// Frames of one stack on a page that is not verbose.
const FEW_FRAMES: usize = 4;
/// Methods that call each other in turn, at most.
const LONGEST_TURN: usize = 8;
/// Turns from which on they are folded.
const FEW_TURNS: usize = 4;

/// Frames that stand on a page together.
struct Turn<'f> {
    frames: &'f [ThreadFrame],
    /// How often they follow one another.
    times: usize,
}

/// Writes the frames of a thread.
pub(super) fn stack(page: &mut Page<'_>, thread: &Thread) {
    let all = thread.frames.as_slice();
    if page.options.fold {
        folded(page, all);
        return;
    }
    let written = if page.verbose() {
        in_turns(page, all, usize::MAX)
    } else {
        in_turns(page, telling(all), FEW_FRAMES)
    };
    let hidden = all.len().saturating_sub(written) as u64;
    if hidden > 0 {
        let text = format!("… {} not shown: -v", several(hidden, "frame"));
        let spans = [page.span(Role::Dim, text)];
        page.line("    │ ", "    │   ", &spans);
    }
}

/// Writes frames with recursion folded, at most `room` lines of them; how many frames that were.
fn in_turns(page: &mut Page<'_>, frames: &[ThreadFrame], mut room: usize) -> usize {
    let mut written = 0_usize;
    for turn in turns(frames) {
        if room == 0 {
            break;
        }
        let frames = turn.frames.get(..room).unwrap_or(turn.frames);
        for one in frames {
            frame(page, one);
        }
        room = room.saturating_sub(frames.len());
        let is_whole = frames.len() == turn.frames.len();
        written = written.saturating_add(if is_whole {
            frames.len().saturating_mul(turn.times)
        } else {
            frames.len()
        });
        if is_whole && turn.times > 1 {
            again(page, &turn);
        }
    }
    written
}

/// The whole stack with runs of native frames and of .NET's own in one line each.
fn folded(page: &mut Page<'_>, frames: &[ThreadFrame]) {
    let is_one_run = |a: &ThreadFrame, b: &ThreadFrame| {
        is_framework(a) == is_framework(b) && a.native == b.native
    };
    for run in frames.chunk_by(is_one_run) {
        let names: Vec<&str> = run.iter().map(|f| f.method.as_str()).collect();
        let text = match run {
            [first, _, ..] if first.native => super::fold::natives(&names),
            [first, _, ..] if first.is_framework => {
                super::fold::methods(&names, page.width().saturating_sub(8))
            }
            run => {
                in_turns(page, run, usize::MAX);
                continue;
            }
        };
        let spans = [page.span(Role::Dim, text)];
        page.line("    │ ", "    │   ", &spans);
    }
}

/// Frames whose methods follow one another again and again count once.
fn turns(frames: &[ThreadFrame]) -> Vec<Turn<'_>> {
    let mut out: Vec<Turn<'_>> = Vec::new();
    let mut rest = frames;
    while !rest.is_empty() {
        let found = (1..=LONGEST_TURN).find_map(|len| {
            let times = times(rest, len);
            (times >= FEW_TURNS).then_some((len, times))
        });
        let (len, times) = found.unwrap_or((1, 1));
        let Some((frames, _)) = rest.split_at_checked(len) else {
            break;
        };
        out.push(Turn { frames, times });
        rest = rest.get(len.saturating_mul(times)..).unwrap_or_default();
    }
    out
}

/// How often the first frames are followed by the same ones.
fn times(frames: &[ThreadFrame], len: usize) -> usize {
    let Some((first, _)) = frames.split_at_checked(len) else {
        return 0;
    };
    let same = |turn: &&[ThreadFrame]| {
        let mut pairs = first.iter().zip(turn.iter());
        turn.len() == len && pairs.all(|(a, b)| a.method == b.method && a.standing == b.standing)
    };
    frames.chunks(len).take_while(same).count()
}

fn again(page: &mut Page<'_>, turn: &Turn<'_>) {
    let more = count(turn.times.saturating_sub(1) as u64);
    let text = match turn.frames.len() {
        1 => format!("… {more} times more"),
        n => format!("… these {n} frames {more} times more"),
    };
    let spans = [page.span(Role::Dim, text)];
    page.line("    │ ", "    │   ", &spans);
}

fn frame(page: &mut Page<'_>, frame: &ThreadFrame) {
    let source = frame.file.as_ref().map(|file| match frame.line {
        Some(line) => format!("  {file}:{line}"),
        None => format!("  {file}"),
    });
    let code = frame
        .address
        .filter(|_| page.verbose())
        .map(|a| format!("  {a}"));
    let standing = match frame.standing {
        Some(FrameStanding::Possible) => "  possible",
        Some(FrameStanding::Inlined) => "  inlined",
        _ => "",
    };
    let notes = format!(
        "{standing}{}{}",
        source.unwrap_or_default(),
        code.unwrap_or_default()
    );
    let (role, about) = if is_framework(frame) {
        (Role::Dim, Role::Dim)
    } else {
        (Role::Strong, Role::Plain)
    };
    let spans = [page.span(role, &frame.method), page.span(about, notes)];
    page.line("    │ ", "    │   ", &spans);
}

/// The frames that tell most: from the call into the framework on that blocks, outwards.
fn telling(frames: &[ThreadFrame]) -> &[ThreadFrame] {
    let own = frames.iter().position(|f| !is_framework(f)).unwrap_or(0);
    frames.get(own.saturating_sub(1)..).unwrap_or_default()
}

fn is_framework(frame: &ThreadFrame) -> bool {
    frame.native || frame.is_framework
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many frames each turn has, and how often it follows.
    fn folded(methods: &str) -> Vec<(usize, usize)> {
        let frame = |method: char| ThreadFrame {
            method: method.to_string(),
            ..ThreadFrame::default()
        };
        let frames: Vec<_> = methods.chars().map(frame).collect();
        let turns = turns(&frames);
        turns.iter().map(|t| (t.frames.len(), t.times)).collect()
    }

    #[test]
    fn methods_that_call_each_other_are_folded() {
        assert_eq!(folded("abbbbbc"), [(1, 1), (1, 5), (1, 1)]);
        assert_eq!(folded("ababababc"), [(2, 4), (1, 1)]);
        assert_eq!(folded("aaab"), [(1, 1); 4]);
        assert_eq!(folded(""), []);
    }

    #[test]
    fn deep_stacks_are_folded_in_one_pass() {
        let deep = "x".repeat(20_000);
        assert_eq!(folded(&deep), [(1, 20_000)]);
    }
}
