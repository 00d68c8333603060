//! The parts of the sample of an incident.

use super::samples::{frame, framework, member};
use crate::*;

pub(super) fn pool_waiters() -> ChainGroup {
    ChainGroup {
        id: "c1".into(),
        signature: "a1b2".into(),
        app_signature: String::new(),
        names_incomplete: false,
        count: 20,
        first_seen: Some("2026-11-29T18:13:04Z".into()),
        waiting_seconds: Some(Waiting {
            min: 11.0,
            median: 35.0,
            max: 58.5,
            how: "start of the request's activity".into(),
        }),
        retained_bytes: Some(40_960),
        frames: vec![
            framework(
                "System.Net.Http.HttpConnectionPool.SendWithVersionDetectionAndRetryAsync",
                1,
            ),
            framework("System.Net.Http.HttpClient.SendAsync.Core", 0),
            frame("Inventory.Client.ReserveAsync", 0),
            Frame {
                file: Some("/src/Webhooks/InventoryWebhook.cs".into()),
                line: Some(41),
                ..frame("Webhooks.PaymentCallback.ProcessAsync", 2)
            },
        ],
        leaf: Leaf {
            kind: LeafKind::HttpConnectionPool,
            text: "http://inventory:8080 (16 of 16 connections in use)".into(),
            details: [("in_use".to_owned(), 16.into())].into(),
            evidence: Some("waiter queue of HttpConnectionPool".into()),
            confidence: None,
            completers: vec![
                Completer {
                    kind: CompleterKind::Thread,
                    text: "thread 'pump' (os id 17) in Inventory.Pool.Return, whose code calls TrySetResult".into(),
                    confidence: Confidence::Likely,
                    count: 19,
                    thread: Some(17),
                    evidence: "0x00007f1200002000 stands on its stack at 0x00007f1300001000".into(),
                    ..Completer::default()
                },
                Completer {
                    kind: CompleterKind::Static,
                    text: "whoever uses static Inventory.Pool.s_waiting[…]".into(),
                    confidence: Confidence::Possible,
                    count: 20,
                    path: Some("Inventory.Pool.s_waiting[3]".into()),
                    evidence: "0x00007f1200003010 names 0x00007f1200002000".into(),
                    ..Completer::default()
                },
            ],
        },
        root: Some(Root {
            kind: RootKind::HttpRequest,
            text: "POST /api/webhooks/payment-callback/N".into(),
            ..Root::default()
        }),
        members: (1..=5)
            .map(|n| member(&format!("c1.{n}"), 0x7f12_0000_1000 + n * 0x100))
            .collect(),
        members_left_out: 15,
        verdict: Some(Verdict {
            state: VerdictState::Stuck,
            why: "no connection became free since the oldest asked for one".into(),
        }),
    }
}

pub(super) fn listener() -> ChainGroup {
    ChainGroup {
        id: "c2".into(),
        count: 1,
        frames: vec![framework(
            "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.ConnectionDispatcher.AcceptConnectionsAsync",
            0,
        )],
        leaf: Leaf {
            kind: LeafKind::SocketAccept,
            text: "0.0.0.0:5000".into(),
            ..Leaf::default()
        },
        verdict: Some(Verdict {
            state: VerdictState::Idle,
            why: "a listener waits for connections".into(),
        }),
        ..ChainGroup::default()
    }
}

pub(super) fn findings() -> Vec<Finding> {
    let mut idle = Finding::new(
        FindingKind::FaultedTasks,
        Severity::Info,
        "2 tasks ended with TimeoutException",
    );
    idle.id = "f2".into();
    let exhausted = Finding {
        id: "f1".into(),
        text: "All 16 connections to http://inventory:8080 are in use and 20 requests wait for one. The oldest has waited for 58 s; the 16 that \
               hold a connection wait for headers of the response."
            .into(),
        confidence: Confidence::Certain,
        evidence: vec![Evidence {
            what: "16 of 16 connections in use".into(),
            address: Some(Address(0x7f12_0000_0400)),
            how: "HttpConnectionPool._associatedHttp11ConnectionCount".into(),
            ..Evidence::default()
        }],
        chains: vec!["c1".into()],
        next_step: Some("Look at inventory:8080 first: it accepts connections and does not answer. Then raise MaxConnectionsPerServer.".into()),
        runbook: Some("runbooks/hang.md#http-pool".into()),
        ..Finding::new(FindingKind::HttpPoolExhausted, Severity::Critical, "Every connection to http://inventory:8080 is in use")
    };
    vec![idle, exhausted]
}

pub(super) fn threads() -> Vec<Thread> {
    let blocked = Thread {
        runs: None,
        os_id: 4251,
        managed_id: Some(7),
        name: Some(".NET TP Worker".into()),
        state: "blocked".into(),
        frames: [
            "System.Threading.Monitor.Wait",
            "System.Threading.ManualResetEventSlim.Wait",
            "System.Threading.Tasks.Task.InternalWait",
            "Webhooks.Audit.Write",
            "Webhooks.Audit.Flush",
            "Program.Main",
        ]
        .map(|method| ThreadFrame {
            method: method.into(),
            is_framework: method.starts_with("System."),
            ..ThreadFrame::default()
        })
        .to_vec(),
        waits_on: Some(ObjectRef {
            text: "Task of Inventory.Client.ReserveAsync".into(),
            address: Some(Address(0x7f12_0000_1100)),
            type_name: None,
        }),
        chain: Some("c1".into()),
        holds: vec![ObjectRef {
            text: "lock on Webhooks.Audit".into(),
            address: Some(Address(0x7f12_0000_7000)),
            type_name: None,
        }],
        request: Some("POST /api/webhooks/payment-callback/7".into()),
    };
    let idle = Thread {
        os_id: 4252,
        managed_id: Some(8),
        state: "idle".into(),
        ..Thread::default()
    };
    vec![blocked, idle]
}

pub(super) fn request(n: u32, age: f64) -> Request {
    Request {
        method: "POST".into(),
        path: format!("/api/webhooks/payment-callback/{n}"),
        route: Some("/api/webhooks/payment-callback/{id}".into()),
        age_seconds: Some(age),
        trace_id: Some(format!("{n:032x}")),
        chain: Some("c1".into()),
        connection: None,
        details: Details::new(),
        ..Request::default()
    }
}
