//! The wait-for graph as a picture.

use crate::layout::{HEIGHT, Layout, Placed, WIDTH};
use asynctriage_report::{Confidence, WaitEdge, WaitGraph, WaitNodeKind, printable};
use maud::{Markup, html};

/// Room around the picture.
const MARGIN: u32 = 8;
/// Letters of a name that have room in a box.
const LETTERS: usize = 35;

/// The picture, and what it leaves out.
pub(super) fn section(graph: &WaitGraph) -> Markup {
    let layout = Layout::of(graph);
    if layout.nodes.is_empty() {
        return html! { p.dim { "No thread and no chain waits for anything that could be named." } };
    }
    let (width, height) = (
        layout.width.saturating_add(2 * MARGIN),
        layout.height.saturating_add(2 * MARGIN).saturating_add(24),
    );
    let box_of = format!("-{MARGIN} -{MARGIN} {width} {height}");
    let hidden = (layout.hidden as u64).saturating_add(graph.left_out);
    html! {
        div.card.scroll {
            svg width=(width) height=(height) viewBox=(box_of) role="group" aria-label="wait-for graph" {
                defs {
                    (arrow("head", "head"))
                    (arrow("head-cycle", "head in-cycle"))
                }
                @for (from, to, edge) in &layout.edges {
                    @if let (Some(from), Some(to)) = (layout.nodes.get(*from), layout.nodes.get(*to)) {
                        (line(from, to, edge))
                    }
                }
                @for placed in &layout.nodes { (node(placed)) }
            }
        }
        @if hidden > 0 {
            p.dim { (hidden) " more nodes are not drawn." }
        }
    }
}

fn arrow(id: &str, class: &str) -> Markup {
    html! {
        marker id=(id) viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse" {
            path class=(class) d="M0,0 L8,4 L0,8 z" {}
        }
    }
}

fn node(placed: &Placed<'_>) -> Markup {
    let node = placed.node;
    let text = printable(&node.text);
    let (id, chain) = (&node.id, node.chain.as_deref());
    let class = if placed.in_cycle {
        format!("{} in-cycle", node.kind)
    } else {
        node.kind.to_string()
    };
    // the head says that it is a thread
    let shown = text.strip_prefix("thread ").unwrap_or(&text);
    let count = if node.count > 1 {
        format!("  ×{}", node.count)
    } else {
        String::new()
    };
    let head = match (node.kind, chain) {
        (WaitNodeKind::Chain, Some(chain)) => format!("chain {chain}{count}"),
        _ => format!("{}{count}", node.kind),
    };
    let target = match (node.kind, node.thread, chain) {
        (WaitNodeKind::Thread, Some(id), _) => Some(format!("#T{id}")),
        (WaitNodeKind::Chain, _, Some(chain)) => Some(format!("#{chain}")),
        _ => None,
    };
    let address = node.address.map(|a| format!("\n{a}")).unwrap_or_default();
    let inside = html! {
        rect.box x=(placed.x) y=(placed.y) width=(WIDTH) height=(HEIGHT) rx="6" {}
        text.kind x=(placed.x.saturating_add(10)) y=(placed.y.saturating_add(16)) { (head) }
        text x=(placed.x.saturating_add(10)) y=(placed.y.saturating_add(34)) { (cut(shown)) }
        title { (text) (address) }
    };
    html! {
        g id=(id) class=(class) {
            @if let Some(target) = target { a href=(target) { (inside) } } @else { (inside) }
        }
    }
}

/// The end of a name tells more than its beginning: namespaces go first.
fn cut(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= LETTERS {
        return text.to_owned();
    }
    let is_name = !text.contains(' ');
    let kept = LETTERS.saturating_sub(1);
    if is_name {
        let end: String = text.chars().skip(letters.saturating_sub(kept)).collect();
        format!("…{end}")
    } else {
        let start: String = text.chars().take(kept).collect();
        format!("{start}…")
    }
}

fn line(from: &Placed<'_>, to: &Placed<'_>, edge: &WaitEdge) -> Markup {
    let half = HEIGHT / 2;
    let (x1, y1) = (from.x.saturating_add(WIDTH), from.y.saturating_add(half));
    let (x2, y2) = (to.x, to.y.saturating_add(half));
    let path = if x2 > x1 {
        let middle = x1.midpoint(x2);
        format!("M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}")
    } else {
        // back to the left, or to itself: below the boxes
        let below = from.y.max(to.y).saturating_add(HEIGHT).saturating_add(26);
        let (right, left) = (x1.saturating_add(36), i64::from(x2).saturating_sub(36));
        format!("M{x1},{y1} C{right},{below} {left},{below} {x2},{y2}")
    };
    let mut class = "edge".to_owned();
    if edge.confidence == Confidence::Possible {
        class.push_str(" possible");
    }
    if edge.in_cycle {
        class.push_str(" in-cycle");
    }
    let head = if edge.in_cycle {
        "url(#head-cycle)"
    } else {
        "url(#head)"
    };
    let (lx, ly) = if x2 > x1 {
        (x1.midpoint(x2), y1.midpoint(y2).saturating_sub(4))
    } else {
        let below = from.y.max(to.y).saturating_add(HEIGHT).saturating_add(12);
        (x1.midpoint(x2), below)
    };
    let label = short(edge);
    html! {
        path class=(class) d=(path) marker-end=(head) {
            title {
                (edge.text) ", " (edge.confidence)
                @if !edge.how.is_empty() { "\n" (printable(&edge.how)) }
            }
        }
        @if !label.is_empty() { text.label x=(lx) y=(ly) text-anchor="middle" { (label) } }
    }
}

/// What has room between two boxes; the rest is told by what appears over the line.
fn short(edge: &WaitEdge) -> String {
    let text = match edge.text.as_str() {
        // what most lines mean
        "waits for" if edge.count == 1 => "",
        "waits for a free connection to" => "free connection",
        other => other,
    };
    if edge.count > 1 {
        format!("{text} ×{}", edge.count)
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_namespaces_and_long_sentences_their_end() {
        let name = format!("{}.Type.Method", "Very.Long.Namespace".repeat(4));
        assert!(cut(&name).starts_with('…') && cut(&name).ends_with("Type.Method"));
        let sentence = "SemaphoreSlim (0 of 2 free) with some more words behind it";
        assert!(cut(sentence).starts_with("SemaphoreSlim") && cut(sentence).ends_with('…'));
        assert_eq!(cut("short"), "short");
    }
}
