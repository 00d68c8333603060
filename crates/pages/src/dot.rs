//! The wait-for graph for Graphviz: `dot -Tsvg`.

use asynctriage_report::{Confidence, Report, WaitEdge, WaitNode, WaitNodeKind, printable};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The wait-for graph in the DOT language; an edge leads from who waits to what it waits for.
#[must_use]
pub fn dot(report: &Report) -> String {
    let graph = &report.waits;
    let circles: BTreeSet<&str> = graph.cycles.iter().flatten().map(String::as_str).collect();
    let mut out = String::from(
        "digraph waits {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=9];\n",
    );
    if graph.left_out > 0 {
        let _ = writeln!(out, "  label=\"{} more are left out\";", graph.left_out);
    }
    for node in &graph.nodes {
        node_line(&mut out, node, circles.contains(node.id.as_str()));
    }
    for edge in &graph.edges {
        edge_line(&mut out, edge);
    }
    out.push_str("}\n");
    out
}

fn node_line(out: &mut String, node: &WaitNode, in_circle: bool) {
    let shape = match node.kind {
        WaitNodeKind::Thread => "box3d",
        WaitNodeKind::Lock | WaitNodeKind::Semaphore => "diamond",
        WaitNodeKind::Remote => "component",
        WaitNodeKind::Timer | WaitNodeKind::Source => "ellipse",
        WaitNodeKind::Queue | WaitNodeKind::Channel => "cds",
        WaitNodeKind::Chain | WaitNodeKind::Completer | WaitNodeKind::Other => "box",
    };
    let chain = node.chain.as_ref().map(|c| format!(" {c}"));
    let count = (node.count > 1).then(|| format!(" x{}", node.count));
    let head = format!(
        "{}{}{}",
        node.kind,
        chain.unwrap_or_default(),
        count.unwrap_or_default()
    );
    let color = if in_circle {
        ", color=red, penwidth=2"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "  {} [shape={shape}, label={}{color}];",
        quoted(&node.id),
        quoted_lines(&[&head, &node.text]),
    );
}

fn edge_line(out: &mut String, edge: &WaitEdge) {
    let count = if edge.count > 1 {
        format!(" x{}", edge.count)
    } else {
        String::new()
    };
    let style = if edge.confidence == Confidence::Possible {
        ", style=dashed"
    } else {
        ""
    };
    let color = if edge.in_cycle {
        ", color=red, penwidth=2"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "  {} -> {} [label={}{style}{color}];",
        quoted(&edge.from),
        quoted(&edge.to),
        quoted(&format!("{}{count}", edge.text)),
    );
}

/// A text of DOT; inside of quotes only quotes and backslashes mean something.
fn quoted(text: &str) -> String {
    quoted_lines(&[text])
}

fn quoted_lines(lines: &[&str]) -> String {
    let escape = |line: &&str| printable(line).replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines.iter().map(escape).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_deadlock_as_dot() {
        insta::assert_snapshot!(dot(&samples::deadlock()));
    }

    #[test]
    fn names_end_no_text() {
        assert_eq!(quoted("a\"b\\"), "\"a\\\"b\\\\\"");
        assert_eq!(quoted_lines(&["a\nb", "c"]), "\"a\\\\nb\\nc\"");
    }
}
