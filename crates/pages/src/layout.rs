//! Where the nodes of the wait-for graph stand on a page: in columns, who waits to the left of what it waits for.
//!
//! Parts of the graph that are not connected stand below each other, deadlocks first, then what most chains wait for.

use asynctriage_report::{WaitEdge, WaitGraph, WaitNode};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of one drawing; a larger one tells nobody anything.
const MAX_NODES: usize = 90;
/// Times that the columns are put in order by their neighbours.
const SWEEPS: usize = 4;

pub(crate) const WIDTH: u32 = 262;
pub(crate) const HEIGHT: u32 = 44;
const GAP_X: u32 = 110;
const GAP_Y: u32 = 14;
const GAP_PARTS: u32 = 26;

/// A node with its place: the upper left corner of its box.
#[derive(Debug)]
pub(crate) struct Placed<'g> {
    pub(crate) node: &'g WaitNode,
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) in_cycle: bool,
}

/// A drawing.
#[derive(Debug, Default)]
pub(crate) struct Layout<'g> {
    pub(crate) nodes: Vec<Placed<'g>>,
    /// Edges with the places of their ends among the nodes.
    pub(crate) edges: Vec<(usize, usize, &'g WaitEdge)>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Nodes that are not drawn.
    pub(crate) hidden: usize,
}

/// The graph by numbers.
struct Numbers<'g> {
    graph: &'g WaitGraph,
    edges: Vec<(usize, usize, &'g WaitEdge)>,
}

impl<'g> Layout<'g> {
    pub(crate) fn of(graph: &'g WaitGraph) -> Self {
        let ids: BTreeMap<&str, usize> = (0..)
            .zip(&graph.nodes)
            .map(|(i, n)| (n.id.as_str(), i))
            .collect();
        let place = |id: &String| ids.get(id.as_str()).copied();
        let edges = graph.edges.iter();
        let numbers = Numbers {
            graph,
            edges: edges
                .filter_map(|e| Some((place(&e.from)?, place(&e.to)?, e)))
                .collect(),
        };
        let circles: BTreeSet<usize> = graph.cycles.iter().flatten().filter_map(place).collect();
        let mut out = Self::default();
        let mut at: BTreeMap<usize, usize> = BTreeMap::new();
        for part in numbers.parts(&circles) {
            // a part larger than the room is drawn as far as it goes, in the order of the report
            let room = MAX_NODES.saturating_sub(out.nodes.len());
            let drawn: Vec<usize> = part.iter().copied().take(room).collect();
            out.hidden = out
                .hidden
                .saturating_add(part.len().saturating_sub(drawn.len()));
            if !drawn.is_empty() {
                out.add(&numbers, &drawn, &circles, &mut at);
            }
        }
        let known = |(from, to, edge): &(usize, usize, &'g WaitEdge)| {
            Some((*at.get(from)?, *at.get(to)?, *edge))
        };
        out.edges = numbers.edges.iter().filter_map(known).collect();
        out
    }

    /// Puts a part below what is there.
    fn add(
        &mut self,
        numbers: &Numbers<'g>,
        part: &[usize],
        circles: &BTreeSet<usize>,
        at: &mut BTreeMap<usize, usize>,
    ) {
        let top = if self.height == 0 {
            0
        } else {
            self.height.saturating_add(GAP_PARTS)
        };
        let columns = numbers.columns(part);
        let tallest = columns.iter().map(Vec::len).max().unwrap_or(0);
        let height = |rows: usize| span(rows, HEIGHT, GAP_Y);
        for (column, nodes) in (0_u32..).zip(&columns) {
            let x = column.saturating_mul(WIDTH.saturating_add(GAP_X));
            // shorter columns stand in the middle of the tallest
            let above = height(tallest).saturating_sub(height(nodes.len())) / 2;
            let mut y = top.saturating_add(above);
            for index in nodes {
                let Some(node) = numbers.graph.nodes.get(*index) else {
                    continue;
                };
                at.insert(*index, self.nodes.len());
                self.nodes.push(Placed {
                    node,
                    x,
                    y,
                    in_cycle: circles.contains(index),
                });
                y = y.saturating_add(HEIGHT).saturating_add(GAP_Y);
            }
        }
        self.height = top.saturating_add(height(tallest));
        self.width = self.width.max(span(columns.len(), WIDTH, GAP_X));
    }
}

/// So many boxes with gaps between them.
fn span(count: usize, size: u32, gap: u32) -> u32 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let gaps = count.saturating_sub(1).saturating_mul(gap);
    count.saturating_mul(size).saturating_add(gaps)
}

impl Numbers<'_> {
    /// The connected parts: deadlocks first, then by chains; single nodes that nothing leads to are left out.
    fn parts(&self, circles: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let mut near: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to, _) in &self.edges {
            near.entry(*from).or_default().push(*to);
            near.entry(*to).or_default().push(*from);
        }
        let mut seen = BTreeSet::new();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for start in near.keys() {
            let mut part = Vec::new();
            let mut todo = vec![*start];
            while let Some(at) = todo.pop() {
                if seen.insert(at) {
                    part.push(at);
                    todo.extend(near.get(&at).into_iter().flatten());
                }
            }
            if !part.is_empty() {
                part.sort_unstable();
                parts.push(part);
            }
        }
        let weight = |part: &Vec<usize>| {
            let nodes = part.iter().filter_map(|i| self.graph.nodes.get(*i));
            let chains = nodes.map(|n| n.count).fold(0, u64::saturating_add);
            (part.iter().any(|i| circles.contains(i)), chains)
        };
        parts.sort_by_key(|p| std::cmp::Reverse(weight(p)));
        parts
    }

    /// The nodes of a part by columns, each column in an order that keeps edges short.
    fn columns(&self, part: &[usize]) -> Vec<Vec<usize>> {
        let depth = self.depths(part);
        let mut columns: Vec<Vec<usize>> = Vec::new();
        for index in part {
            let column = depth.get(index).copied().unwrap_or(0);
            while columns.len() <= column {
                columns.push(Vec::new());
            }
            if let Some(nodes) = columns.get_mut(column) {
                nodes.push(*index);
            }
        }
        columns.retain(|c| !c.is_empty());
        for _ in 0..SWEEPS {
            self.order(&mut columns);
        }
        columns
    }

    /// Puts each column in the order of the middle of its neighbours.
    fn order(&self, columns: &mut [Vec<usize>]) {
        let mut row: BTreeMap<usize, usize> = BTreeMap::new();
        for column in columns.iter() {
            row.extend(column.iter().copied().zip(0..));
        }
        for column in columns.iter_mut() {
            let middle = |node: usize| {
                let ends = self.edges.iter().filter_map(|(from, to, _)| {
                    let other = match (*from == node, *to == node) {
                        (true, false) => to,
                        (false, true) => from,
                        _ => return None,
                    };
                    row.get(other).copied()
                });
                let (sum, count) = ends.fold((0_usize, 0_usize), |(sum, count), at| {
                    (sum.saturating_add(at), count.saturating_add(1))
                });
                sum.saturating_mul(100).checked_div(count)
            };
            let own = |node: usize| row.get(&node).map_or(0, |r| r.saturating_mul(100));
            column.sort_by_key(|n| middle(*n).unwrap_or_else(|| own(*n)));
            row.extend(column.iter().copied().zip(0..));
        }
    }

    /// The column of each node: one more than that of the last one that waits for it. Edges that close a circle do not
    /// count.
    fn depths(&self, part: &[usize]) -> BTreeMap<usize, usize> {
        let inside: BTreeSet<usize> = part.iter().copied().collect();
        let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut entered: BTreeSet<usize> = BTreeSet::new();
        for (from, to, _) in &self.edges {
            if from != to && inside.contains(from) && inside.contains(to) {
                next.entry(*from).or_default().push(*to);
                entered.insert(*to);
            }
        }
        // who is waited for by nobody comes first, then the rest: what a walk from these comes back to closes a circle
        let (inner, outer): (Vec<usize>, Vec<usize>) =
            part.iter().partition(|n| entered.contains(n));
        let mut done: Vec<usize> = Vec::new();
        let mut state: BTreeMap<usize, bool> = BTreeMap::new();
        let mut forward: Vec<(usize, usize)> = Vec::new();
        for start in outer.into_iter().chain(inner) {
            if state.contains_key(&start) {
                continue;
            }
            state.insert(start, false);
            let mut stack = vec![(start, 0_usize)];
            while let Some((node, child)) = stack.pop() {
                let Some(to) = next.get(&node).and_then(|n| n.get(child)).copied() else {
                    state.insert(node, true);
                    done.push(node);
                    continue;
                };
                stack.push((node, child.saturating_add(1)));
                match state.get(&to) {
                    Some(false) => {}
                    Some(true) => forward.push((node, to)),
                    None => {
                        forward.push((node, to));
                        state.insert(to, false);
                        stack.push((to, 0));
                    }
                }
            }
        }
        let mut edges: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in forward {
            edges.entry(from).or_default().push(to);
        }
        let mut depth: BTreeMap<usize, usize> = BTreeMap::new();
        for node in done.into_iter().rev() {
            let own = *depth.entry(node).or_default();
            for to in edges.get(&node).into_iter().flatten() {
                let at = depth.entry(*to).or_default();
                *at = (*at).max(own.saturating_add(1));
            }
        }
        depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize)], nodes: usize) -> WaitGraph {
        let id = |n: usize| format!("W{n}");
        WaitGraph {
            nodes: (0..nodes)
                .map(|n| WaitNode {
                    id: id(n),
                    ..WaitNode::default()
                })
                .collect(),
            edges: edges
                .iter()
                .map(|(from, to)| WaitEdge {
                    from: id(*from),
                    to: id(*to),
                    ..WaitEdge::default()
                })
                .collect(),
            ..WaitGraph::default()
        }
    }

    fn place(layout: &Layout<'_>, id: &str) -> (u32, u32) {
        let placed = layout.nodes.iter().find(|p| p.node.id == id).unwrap();
        (placed.x, placed.y)
    }

    #[test]
    fn who_waits_stands_to_the_left_of_what_it_waits_for() {
        let graph = graph(&[(0, 1), (1, 2), (0, 2), (3, 2)], 5);
        let layout = Layout::of(&graph);
        // node 4 waits for nothing and nothing waits for it
        assert_eq!((layout.nodes.len(), layout.edges.len()), (4, 4));
        for (from, to, _) in &layout.edges {
            assert!(layout.nodes[*from].x < layout.nodes[*to].x);
        }
    }

    #[test]
    fn circles_end() {
        let graph = graph(&[(0, 1), (1, 2), (2, 0), (3, 3)], 4);
        let layout = Layout::of(&graph);
        assert_eq!(layout.nodes.len(), 4);
        assert!(place(&layout, "W0").0 < place(&layout, "W1").0);
    }

    #[test]
    fn no_two_boxes_overlap_and_all_are_inside() {
        let edges: Vec<(usize, usize)> = (1..60).map(|n| (n, n / 3)).collect();
        let graph = graph(&edges, 60);
        let layout = Layout::of(&graph);
        for (i, a) in layout.nodes.iter().enumerate() {
            assert!(a.x + WIDTH <= layout.width && a.y + HEIGHT <= layout.height);
            for b in &layout.nodes[i + 1..] {
                assert!(a.x.abs_diff(b.x) >= WIDTH || a.y.abs_diff(b.y) >= HEIGHT);
            }
        }
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let edges: Vec<(usize, usize)> = (0..300).map(|n| (n, n + 1)).collect();
        let graph = graph(&edges, 301);
        let layout = Layout::of(&graph);
        assert_eq!(
            (layout.nodes.len(), layout.hidden),
            (MAX_NODES, 301 - MAX_NODES)
        );
    }
}
