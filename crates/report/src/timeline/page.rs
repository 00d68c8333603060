//! How a time line becomes a page.

use super::encode::{near, numbers, rising, runs};
use super::{Timeline, TimelineOperation, TimelineState};
use crate::ChainStanding;
use crate::text::printable;
use crate::text::words::{count, several};
use std::fmt::Write;

/// A whole page: works from a file and fetches nothing. Its figures are drawn by its script, at whatever scale is asked
/// for; without scripts it says what it would show.
#[must_use]
pub fn timeline_html(line: &Timeline) -> String {
    let mut out = String::new();
    let file = escaped(&line.file);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{file}: time line</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<h1>{file}</h1>\n<p>{}</p>\n<p class=\"dim\">{}</p>\n\
         <noscript><p>The figures are drawn by a script of this page, and scripts are off.</p></noscript>\n</header>\n",
        include_str!("page.css"),
        escaped(&line.verdict),
        escaped(&about(line)),
    );
    out.push_str(
        "<main>\n<section>\n<div id=\"tools\">\n\
         <button id=\"in\" title=\"+\">zoom in</button><button id=\"out\" title=\"-\">zoom out</button>\
         <button id=\"left\" title=\"arrow left\" aria-label=\"earlier\">&#8592;</button>\
         <button id=\"right\" title=\"arrow right\" aria-label=\"later\">&#8594;</button>\
         <button id=\"all\" title=\"0\">all</button>\n\
         <input id=\"search\" type=\"search\" placeholder=\"method, #number or state ( / )\" aria-label=\"search operations\">\n\
         <select id=\"only\" aria-label=\"which operations\"><option value=\"\">all operations</option>\
         <option value=\"open\">not ended</option><option value=\"proved\">not ended, proved</option></select>\n\
         <span id=\"found\" class=\"dim\"></span>\n</div>\n<canvas id=\"axis\"></canvas>\n\
         <h2>Threads</h2>\n<canvas id=\"threads\"></canvas>\n<h2>Operations</h2>\n\
         <div id=\"room\"><canvas id=\"rows\"></canvas></div>\n</section>\n\
         <aside><div id=\"detail\" aria-live=\"polite\"></div></aside>\n</main>\n",
    );
    columns(&mut out, line);
    let _ = write!(
        out,
        "<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.js")
    );
    out
}

/// What is shown, how, and what is not.
fn about(line: &Timeline) -> String {
    let spans = (line.spans.len() as u64).saturating_add(line.added_up);
    let mut text = format!(
        "{}, {}, {}. A bar is a time between a resumption and the next suspension or end as the records tell it, not time on \
         a processor; where bars are thinner than a pixel, the darker it is the more of it was busy. Behind the horizon \
         (shaded) records may be missing. Ctrl and the wheel zoom, dragging moves, a click shows details.",
        several(line.threads.len() as u64, "thread"),
        several(
            (line.operations.len() as u64).saturating_add(line.operations_left_out),
            "operation"
        ),
        several(spans, "activation"),
    );
    if line.added_up > 0 {
        let _ = write!(
            text,
            " {} shorter than {} are only in the shade of their threads.",
            several(line.added_up, "activation"),
            time(line.shortest)
        );
    }
    if line.operations_left_out > 0 {
        let _ = write!(
            text,
            " {} are not listed.",
            several(line.operations_left_out, "ended operation")
        );
    }
    if !line.lost.is_empty() {
        let _ = write!(
            text,
            " Events are missing in {} (red).",
            several(line.lost.len() as u64, "place")
        );
    }
    if line.markers_left_out > 0 {
        let _ = write!(
            text,
            " {} markers are left out.",
            count(line.markers_left_out)
        );
    }
    text
}

/// The data: a small object, then a column for each fact of operations and activations.
fn columns(out: &mut String, line: &Timeline) {
    let data = object(line);
    let _ = writeln!(
        out,
        "<script type=\"application/json\" id=\"data\">{}</script>",
        data.to_string().replace('<', "\\u003c")
    );
    let mut column = |name: &str, text: String| {
        let _ = writeln!(
            out,
            "<script type=\"text/plain\" id=\"{name}\">{text}</script>"
        );
    };
    let end = line.end;
    let life = |o: &TimelineOperation| o.ended.unwrap_or(end).saturating_sub(o.from);
    let place = |p: Option<u32>| p.map_or(0, |p| u64::from(p).saturating_add(1));
    let operations = || line.operations.iter();
    column("op-id", near(operations().map(|o| o.id)));
    column("op-kind", numbers(operations().map(kind)));
    column("op-from", near(operations().map(|o| o.from.min(end))));
    column("op-life", numbers(operations().map(life)));
    column("op-parent", numbers(operations().map(|o| place(o.parent))));
    column("op-stack", numbers(operations().map(|o| place(o.stack))));
    column("op-runs", numbers(operations().map(|o| o.activations)));
    column("op-busy", numbers(operations().map(|o| o.busy)));
    let mut order: Vec<_> = line.spans.iter().collect();
    order.sort_by_key(|s| s.from);
    let spans = || order.iter();
    column("sp-from", rising(spans().map(|s| s.from.min(end))));
    let long = |s: &super::TimelineSpan| s.to.unwrap_or(end).min(end).saturating_sub(s.from);
    column("sp-long", numbers(spans().map(|s| long(s))));
    column("sp-thread", numbers(spans().map(|s| s.thread.into())));
    column("sp-op", numbers(spans().map(|s| place(s.operation))));
    column("sp-how", numbers(spans().map(|s| s.outcome as u64)));
    column("sp-batch", near(spans().map(|s| s.batch)));
    column("sp-index", numbers(spans().map(|s| s.index.into())));
    for (index, thread) in line.threads.iter().enumerate() {
        column(&format!("bins-{index}"), runs(&thread.busy));
    }
}

/// Family, state, standing and two facts of an operation in one number.
fn kind(o: &TimelineOperation) -> u64 {
    let standing = match o.standing {
        ChainStanding::Proved => 0,
        ChainStanding::Likely => 1,
        ChainStanding::Unknown => 2,
    };
    u64::from(o.state_machine)
        | ((o.state as u64) << 1)
        | (standing << 4)
        | (u64::from(o.is_created) << 6)
        | (u64::from(o.ended.is_none()) << 7)
}

fn object(line: &Timeline) -> serde_json::Value {
    let clean = |text: &String| printable(text);
    let words = TimelineState::ALL.map(TimelineState::text);
    let outcomes = TimelineState::ALL.map(|state| match state {
        TimelineState::Running => "still running",
        other => other.text(),
    });
    let end = line.end.max(1);
    let longest = line
        .spans
        .iter()
        .map(|s| s.to.unwrap_or(end).saturating_sub(s.from));
    let thread = |t: Option<u32>| t.map_or(-1, i64::from);
    serde_json::json!({
        "end": end,
        "horizon": line.horizon,
        "likely": line.likely_horizon,
        "lost": line.lost,
        "threads": line.threads.iter().map(|t| t.os_thread).collect::<Vec<_>>(),
        "names": line.names.iter().map(clean).collect::<Vec<_>>(),
        "stacks": line.stacks,
        "states": words,
        "outcomes": outcomes,
        "binned": line.added_up,
        "longest": longest.max().unwrap_or(0),
        "markers": line.markers.iter().map(|m| (m.at, thread(m.thread), clean(&m.text))).collect::<Vec<_>>(),
    })
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{:03} µs", ns / 1_000, ns % 1_000),
        _ => format!("{}.{:03} ms", ns / 1_000_000, ns % 1_000_000 / 1_000),
    }
}

/// Text of the trace, harmless inside elements and quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
