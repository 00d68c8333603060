//! Reports for tests.

use asynctriage_report::{
    ChainGroup, Confidence, Evidence, Finding, FindingKind, Frame, Gap, Leaf, LeafKind, Member,
    ObjectRef, Report, Request, Root, RootKind, Severity, Thread, ThreadFrame, WaitEdge, WaitGraph,
    WaitNode, WaitNodeKind, Waiting,
};

/// A name that a hostile program could have.
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>`|\"'&\u{202e}";

/// Two threads in a deadlock, and requests that wait for a server.
pub(crate) fn deadlock() -> Report {
    let mut finding = Finding::new(
        FindingKind::LockDeadlock,
        Severity::Critical,
        "Deadlock: thread 'a' and thread 'b' wait for each other over locks",
    );
    finding.id = "F1".into();
    finding.text = format!("thread 'a' waits for a lock held by {HOSTILE}.");
    finding.confidence = Confidence::Certain;
    finding.next_step = Some("restart the process".into());
    finding.runbook = Some("lock-deadlock".into());
    finding.evidence = vec![Evidence {
        id: "E1".into(),
        what: "thread 'a' waits for the lock".into(),
        address: Some(0x7f00_0000_1000.into()),
        how: "header of the object".into(),
    }];
    let mut report = Report {
        findings: vec![finding],
        chains: vec![chain()],
        requests: vec![request()],
        threads: ["a", "b"].into_iter().zip(10..).map(thread).collect(),
        waits: waits(),
        gaps: vec![Gap {
            id: "G1".into(),
            kind: "metadata".into(),
            section: "names".into(),
            place: "a.dll".into(),
            why: "its metadata is not in the dump".into(),
            remedy: "--module-path".into(),
            only_names: false,
        }],
        ..Report::default()
    };
    report.dump.path = "hang.dmp".into();
    report.runtime.version = "10.0.15".into();
    // a change of the version is none of the pages
    report.tool.version = "0.0.0".into();
    report
}

fn chain() -> ChainGroup {
    ChainGroup {
        id: "C1".into(),
        signature: "0123456789abcdef".into(),
        count: 3,
        waiting_seconds: Some(Waiting {
            min: 1.0,
            median: 2.0,
            max: 65.0,
            how: "start of the request".into(),
        }),
        frames: vec![
            Frame {
                method: "Shop.Client.SendAsync".into(),
                await_index: Some(1),
                file: Some("Client.cs".into()),
                line: Some(12),
                ..Frame::default()
            },
            Frame {
                method: HOSTILE.into(),
                is_framework: true,
                ..Frame::default()
            },
        ],
        leaf: Leaf {
            kind: LeafKind::HttpResponse,
            text: format!("HttpClient: GET http://stock/ {HOSTILE}"),
            ..Leaf::default()
        },
        root: Some(Root {
            kind: RootKind::HttpRequest,
            text: "GET /checkout".into(),
            ..Root::default()
        }),
        members: vec![Member {
            id: "C1.1".into(),
            boxes: vec![0x7f00_0000_2000.into()],
            ..Member::default()
        }],
        members_left_out: 2,
        ..ChainGroup::default()
    }
}

fn request() -> Request {
    Request {
        id: "R1".into(),
        method: "GET".into(),
        path: "/checkout".into(),
        age_seconds: Some(65.0),
        chain: Some("C1".into()),
        ..Request::default()
    }
}

fn thread((name, os_id): (&str, u64)) -> Thread {
    Thread {
        os_id,
        name: Some(name.into()),
        state: "blocked".into(),
        frames: vec![ThreadFrame {
            method: "Shop.Orders.Lock".into(),
            ..ThreadFrame::default()
        }],
        waits_on: Some(ObjectRef {
            text: "the lock of System.Object".into(),
            address: Some(0x7f00_0000_1000.into()),
            type_name: None,
        }),
        ..Thread::default()
    }
}

fn waits() -> WaitGraph {
    let node = |id: &str, kind, text: &str| WaitNode {
        id: id.into(),
        kind,
        text: text.into(),
        ..WaitNode::default()
    };
    let edge = |from: &str, to: &str, text: &str, in_cycle| WaitEdge {
        from: from.into(),
        to: to.into(),
        text: text.into(),
        confidence: Confidence::Certain,
        in_cycle,
        ..WaitEdge::default()
    };
    WaitGraph {
        nodes: vec![
            node("W1", WaitNodeKind::Thread, "thread 'a' (os id 10)"),
            node("W2", WaitNodeKind::Lock, "the lock of System.Object"),
            node("W3", WaitNodeKind::Thread, "thread 'b' (os id 11)"),
            node("W4", WaitNodeKind::Lock, "another lock"),
            WaitNode {
                chain: Some("C1".into()),
                count: 3,
                ..node("W5", WaitNodeKind::Chain, "Shop.Client.SendAsync")
            },
            node("W6", WaitNodeKind::Remote, HOSTILE),
        ],
        edges: vec![
            edge("W1", "W2", "waits for", true),
            edge("W2", "W3", "held by", true),
            edge("W3", "W4", "waits for", true),
            edge("W4", "W1", "held by", true),
            WaitEdge {
                count: 3,
                confidence: Confidence::Possible,
                ..edge("W5", "W6", "waits for", false)
            },
        ],
        cycles: vec![["W1", "W2", "W3", "W4"].map(str::to_owned).to_vec()],
        ..WaitGraph::default()
    }
}
