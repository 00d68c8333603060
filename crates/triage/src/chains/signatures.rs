//! Signatures: texts that are equal for equal chains and findings, so that dumps can be compared and counted.

use asynctriage_report::{ChainGroup, Finding, Frame, FrameKind, LeafKind, RootKind};
use std::collections::BTreeSet;

/// FNV-1a of a text: the same in every dump and on every machine.
pub(super) fn signature(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A signature of the program's own part of chains.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnSignature {
    pub(super) text: String,
    /// Whether one of its methods has no name.
    pub(super) names_incomplete: bool,
}

/// The program's own part of chains: what the framework does between differs by its version.
pub(super) fn of_chains(frames: &[Frame], leaf: LeafKind, root: Option<RootKind>) -> OwnSignature {
    let mut out = format!("{leaf}|{}", root.unwrap_or_default());
    let mut last = String::new();
    let mut names_incomplete = false;
    for frame in frames.iter().filter(|f| is_own(f)) {
        names_incomplete |= is_token(&frame.method);
        let name = plain(&frame.method);
        // how often a method follows itself is a matter of data
        if name != last {
            out.push('|');
            out.push_str(&name);
            last = name;
        }
    }
    OwnSignature {
        text: signature(&out),
        names_incomplete,
    }
}

/// A finding by its kind and the innermost methods of its chains; without chains by its title, whose numbers are data.
pub(crate) fn of_finding(finding: &Finding, groups: &[ChainGroup]) -> String {
    let chains = groups.iter().filter(|g| finding.chains.contains(&g.id));
    let innermost = chains.filter_map(|g| g.frames.iter().find(|f| is_own(f)));
    let methods: BTreeSet<String> = innermost.map(|f| plain(&f.method)).collect();
    let mut text = finding.kind.to_string();
    if methods.is_empty() {
        text.push('|');
        text.push_str(&without_numbers(&finding.title));
    }
    for method in methods {
        text.push('|');
        text.push_str(&method);
    }
    signature(&text)
}

/// A method of the program or of its libraries.
fn is_own(frame: &Frame) -> bool {
    let is_method = !matches!(frame.kind, FrameKind::Thread | FrameKind::Combinator);
    is_method && !frame.is_framework
}

/// A method that is called by its token, for want of a name.
fn is_token(method: &str) -> bool {
    method.contains("!0x0")
}

/// The method without generic arguments: shared code does not tell them in every dump.
fn plain(method: &str) -> String {
    let mut depth = 0_usize;
    let mut out = String::with_capacity(method.len());
    for c in method.chars() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

fn without_numbers(title: &str) -> String {
    let mut out = String::with_capacity(title.len());
    for c in title.chars() {
        match c {
            _ if !c.is_ascii_digit() => out.push(c),
            _ if out.ends_with('#') => {}
            _ => out.push('#'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_report::{FindingKind, Severity};

    fn frame(method: &str, is_framework: bool) -> Frame {
        Frame {
            method: method.into(),
            is_framework,
            ..Frame::default()
        }
    }

    fn own(frames: &[Frame]) -> OwnSignature {
        of_chains(frames, LeafKind::Delay, Some(RootKind::Main))
    }

    #[test]
    fn the_framework_between_and_generic_arguments_do_not_count() {
        let classic = [
            frame("System.Net.Http.HttpClient.SendAsync", true),
            frame("Shop.Cart<String>.LoadAsync", false),
            frame("Shop.Cart<String>.LoadAsync", false),
            frame("Program.Main", false),
        ];
        let other = [
            frame("Shop.Cart<__Canon>.LoadAsync", false),
            frame("Program.Main", false),
        ];
        assert_eq!(own(&classic), own(&other));
        assert_ne!(own(&classic), own(&other[..1]));
        let without_root = of_chains(&classic, LeafKind::Delay, None);
        assert_ne!(own(&classic), without_root);
    }

    #[test]
    fn methods_without_names_are_marked() {
        assert!(own(&[frame("Shop!0x02000012", false)]).names_incomplete);
        assert!(!own(&[frame("System.Net!0x02000012", true)]).names_incomplete);
    }

    #[test]
    fn findings_differ_by_methods_and_not_by_counts() {
        let group = |id: &str, method: &str| ChainGroup {
            id: id.into(),
            frames: vec![frame(method, false)],
            ..ChainGroup::default()
        };
        let groups = [group("C1", "A.Run"), group("C2", "B.Run")];
        let finding = |title: &str, chains: &[&str]| {
            let mut finding = Finding::new(FindingKind::Bottleneck, Severity::Critical, title);
            finding.chains = chains.iter().map(|c| (*c).to_owned()).collect();
            of_finding(&finding, &groups)
        };
        assert_eq!(
            finding("5 of 6 wait", &["C1"]),
            finding("7 of 9 wait", &["C1"])
        );
        assert_ne!(
            finding("5 of 6 wait", &["C1"]),
            finding("5 of 6 wait", &["C2"])
        );
        assert_eq!(finding("5 of 6 wait", &[]), finding("17 of 29 wait", &[]));
    }
}
