//! All chains as one tree, from the roots inwards, with the number of chains at each node.
//!
//! Only a branch goes deeper to the right; frames with one successor stand below each other. So a chain of a thousand
//! frames does not run off the screen.

use super::TextOptions;
use super::page::{Page, Span};
use super::style::Role;
use super::words::{beside, count, several};
use super::{closing, opening};
use crate::{ChainGroup, Frame, Leaf, Report, Root, RootKind};
use std::collections::BTreeMap;

/// Nodes of a run without branches above which its middle is folded without `-v`.
const MANY: usize = 40;
/// Nodes that stay at either end of a folded run.
const ENDS: usize = 12;

/// The chains of a report as a tree whose branches are where they differ, seen from the root.
#[must_use]
pub fn tree(report: &Report, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    opening::header(&mut page, report);
    opening::summary(&mut page, report);
    let trie = Trie::of(&report.chains);
    for root in trie.by_count(0) {
        page.blank();
        trie.write(&mut page, root);
    }
    closing::gaps(&mut page, &report.gaps);
    closing::left_out(&mut page, report);
    page.finish()
}

/// What a node shows. Equal labels below one node are one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    /// The kind of a root or a leaf.
    kind: &'static str,
    text: String,
    notes: String,
    dim: bool,
}

impl Label {
    fn root(root: Option<&Root>) -> Self {
        let known = root.filter(|r| r.kind != RootKind::None || !r.text.is_empty());
        let (kind, text) = known.map_or(("none", "nothing waits for these"), |r| {
            (r.kind.as_str(), beside(r.kind.as_str(), &r.text))
        });
        Self {
            kind,
            text: text.to_owned(),
            ..Self::default()
        }
    }

    fn frame(frame: &Frame) -> Self {
        let index = frame.place();
        let repeat = (frame.repeat > 1).then(|| format!("×{}", count(frame.repeat)));
        let notes: Vec<String> = [index, repeat].into_iter().flatten().collect();
        Self {
            kind: "",
            text: frame.method.clone(),
            notes: notes.join("  "),
            dim: frame.is_framework,
        }
    }

    fn leaf(leaf: &Leaf) -> Self {
        Self {
            kind: leaf.kind.as_str(),
            text: beside(leaf.kind.as_str(), &leaf.text).to_owned(),
            ..Self::default()
        }
    }

    fn spans(&self, page: &Page<'_>) -> Vec<Span> {
        let role = if self.dim { Role::Dim } else { Role::Plain };
        let mut spans = Vec::new();
        if !self.kind.is_empty() {
            spans.push(page.span(Role::Kind, format!("{}  ", self.kind)));
        }
        spans.push(page.span(role, &self.text));
        if !self.notes.is_empty() {
            spans.push(page.span(Role::Dim, format!("  {}", self.notes)));
        }
        spans
    }
}

#[derive(Debug, Default)]
struct Node {
    label: Label,
    count: u64,
    children: Vec<usize>,
}

/// Node 0 stands above the roots and is not shown.
#[derive(Debug)]
struct Trie {
    nodes: Vec<Node>,
}

impl Trie {
    fn of(groups: &[ChainGroup]) -> Self {
        let mut trie = Self {
            nodes: vec![Node::default()],
        };
        let mut known: BTreeMap<(usize, Label), usize> = BTreeMap::new();
        for group in groups {
            let mut at = 0;
            let frames = group.frames.iter().rev().map(Label::frame);
            for label in std::iter::once(Label::root(group.root.as_ref()))
                .chain(frames)
                .chain([Label::leaf(&group.leaf)])
            {
                at = match known.get(&(at, label.clone())) {
                    Some(child) => *child,
                    None => trie.add(&mut known, at, label),
                };
                if let Some(node) = trie.nodes.get_mut(at) {
                    node.count = node.count.saturating_add(group.count);
                }
            }
        }
        trie
    }

    fn add(
        &mut self,
        known: &mut BTreeMap<(usize, Label), usize>,
        parent: usize,
        label: Label,
    ) -> usize {
        let child = self.nodes.len();
        self.nodes.push(Node {
            label: label.clone(),
            ..Node::default()
        });
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children.push(child);
        }
        known.insert((parent, label), child);
        child
    }

    /// The children of a node, the heaviest first.
    fn by_count(&self, node: usize) -> Vec<usize> {
        let mut children = self
            .nodes
            .get(node)
            .map(|n| n.children.clone())
            .unwrap_or_default();
        children.sort_by_key(|c| std::cmp::Reverse(self.nodes.get(*c).map_or(0, |n| n.count)));
        children
    }

    /// Writes what hangs below a root, and the root.
    fn write(&self, page: &mut Page<'_>, root: usize) {
        let column = self.nodes.get(root).map_or(0, |n| count(n.count).len());
        // node, what stands before its first line, what stands before all others
        let mut open = vec![(root, String::new(), String::new())];
        while let Some((node, first, rest)) = open.pop() {
            let last = self.write_run(page, column, node, &first, &rest);
            // deep branching stays on the screen: below half of its width the lines do not move any further right
            let deep = rest.chars().count() > page.width() / 2;
            let children = self.by_count(last);
            for (i, child) in children.iter().enumerate().rev() {
                let is_last = i.saturating_add(1) == children.len();
                let (mark, bar) = if is_last {
                    ("└ ", "  ")
                } else {
                    ("├ ", "│ ")
                };
                let base = if deep { "" } else { &*rest };
                open.push((*child, format!("{base}{mark}"), format!("{base}{bar}")));
            }
        }
    }

    /// Writes nodes up to the next branch; that node is the answer.
    fn write_run(
        &self,
        page: &mut Page<'_>,
        column: usize,
        node: usize,
        first: &str,
        rest: &str,
    ) -> usize {
        let mut run = vec![node];
        let mut last = node;
        while let Some([only]) = self.nodes.get(last).map(|n| n.children.as_slice()) {
            run.push(*only);
            last = *only;
        }
        let fold = run.len() > MANY && !page.verbose();
        let hidden = if fold {
            ENDS..run.len().saturating_sub(ENDS)
        } else {
            0..0
        };
        for (i, node) in run.iter().filter_map(|n| self.nodes.get(*n)).enumerate() {
            let before = if i == 0 { first } else { rest };
            if !hidden.contains(&i) {
                let spans = node.label.spans(page);
                let number = format!("{:>column$}", count(node.count));
                page.line(
                    &format!("{number}  {before}"),
                    &format!("{:column$}  {rest}  ", ""),
                    &spans,
                );
            } else if i == hidden.start {
                let spans = [page.span(
                    Role::Dim,
                    format!("… {} not shown: -v", several(hidden.len() as u64, "frame")),
                )];
                page.line(&format!("{:column$}  {before}", ""), "", &spans);
            }
        }
        last
    }
}
