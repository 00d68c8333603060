//! Reports made by hand.

use super::incident::{findings, listener, pool_waiters, request, threads};
use crate::*;

pub(super) fn empty() -> Report {
    Report {
        dump: Dump {
            path: "shop-api.heap.dmp".into(),
            kind: "heap".into(),
            bytes: 1_288_490_189,
            time: Some("2026-11-29T18:14:02Z".into()),
            process_id: Some(4242),
            command_line: Some("dotnet Shop.Api.dll".into()),
            ..Dump::default()
        },
        runtime: Runtime {
            version: "10.0.15".into(),
            os: "linux".into(),
            arch: "x64".into(),
            flavor: "coreclr".into(),
            layouts: vec![LayoutFact {
                what: "version".into(),
                how: "contract descriptor of libcoreclr.so".into(),
                check: Some("CoreLib says the same".into()),
            }],
        },
        heap: Heap {
            objects: 1_204_331,
            bytes: 402_653_184,
            free_bytes: 9_437_184,
            tasks: 12,
            state_machines: 0,
            ..Heap::default()
        },
        tool: Tool {
            version: "0.0.0".into(),
            ..Tool::default()
        },
        ..Report::default()
    }
}

pub(super) fn frame(method: &str, await_index: u32) -> Frame {
    Frame {
        method: method.into(),
        await_index: Some(await_index),
        ..Frame::default()
    }
}

pub(super) fn framework(method: &str, await_index: u32) -> Frame {
    Frame {
        is_framework: true,
        ..frame(method, await_index)
    }
}

pub(super) fn one_chain() -> Report {
    let mut report = empty();
    report.chains.push(ChainGroup {
        id: "c1".into(),
        signature: "5f1c".into(),
        count: 1,
        frames: vec![
            Frame {
                address: Some(Address(0x7f12_0000_1000)),
                type_name: Some("Shop.Cart+<LoadAsync>d__4".into()),
                ..frame("Shop.Cart.LoadAsync", 0)
            },
            Frame {
                is_async_void: true,
                awaits: Some("Cart.LoadAsync".into()),
                locals: vec![
                    Local {
                        name: "lines".into(),
                        type_name: Some("List<String>".into()),
                        value: "0x00007f1200003000".into(),
                        bytes: Some(32),
                        retained_bytes: Some(1_184),
                        address: Some(Address(0x7f12_0000_3000)),
                    },
                    Local {
                        name: "count".into(),
                        value: "3".into(),
                        ..Local::default()
                    },
                ],
                file: Some("/src/Shop/Cart.cs".into()),
                line: Some(41),
                ..frame("Shop.Cart.OnClick", 2)
            },
        ],
        leaf: Leaf {
            kind: LeafKind::TaskCompletionSource,
            text: "TaskCompletionSource<Cart> 0x00007f1200002000".into(),
            evidence: Some("the task of no method, promise options set".into()),
            ..Leaf::default()
        },
        root: Some(Root {
            kind: RootKind::AsyncVoid,
            text: "Shop.Cart.OnClick".into(),
            ..Root::default()
        }),
        members: vec![member("c1.1", 0x7f12_0000_1000)],
        ..ChainGroup::default()
    });
    report
}

pub(super) fn member(id: &str, address: u64) -> Member {
    Member {
        id: id.into(),
        boxes: vec![Address(address)],
        ..Member::default()
    }
}

/// 40 consumers of one shared task, and a `WhenAll`.
pub(super) fn fan_in() -> Report {
    let mut report = empty();
    let shared = Leaf {
        kind: LeafKind::Delay,
        text: "Task.Delay due in 58 s".into(),
        ..Leaf::default()
    };
    let load = framework(
        "System.Threading.Tasks.Lazy.LoadAsync<Dictionary<String,Guid>>",
        1,
    );
    report.chains.push(ChainGroup {
        id: "c1".into(),
        count: 40,
        frames: vec![load.clone(), frame("Shop.Catalog.GetAsync", 0)],
        leaf: shared.clone(),
        members: (1..=5)
            .map(|n| member(&format!("c1.{n}"), 0x7f12_0000_1000 + n * 0x40))
            .collect(),
        members_left_out: 35,
        ..ChainGroup::default()
    });
    let when_all = Frame {
        kind: FrameKind::Combinator,
        ..Frame {
            await_index: None,
            ..frame("Task.WhenAll", 0)
        }
    };
    report.chains.push(ChainGroup {
        id: "c2".into(),
        count: 2,
        frames: vec![
            load,
            frame("Shop.Warmup lambda#2", 0),
            when_all,
            frame("Program.Main", 3),
        ],
        leaf: shared,
        root: Some(Root {
            kind: RootKind::Main,
            text: "Program.Main".into(),
            ..Root::default()
        }),
        members: vec![
            member("c2.1", 0x7f12_0000_9000),
            member("c2.2", 0x7f12_0000_9100),
        ],
        ..ChainGroup::default()
    });
    report
}

/// 120 different frames around one that calls itself 1,000 times.
pub(super) fn deep() -> Report {
    let mut report = one_chain();
    let group = &mut report.chains[0];
    group.frames = (0..60)
        .map(|n| frame(&format!("Deep.Inner{n}.RunAsync"), 0))
        .collect();
    group.frames.push(Frame {
        repeat: 1_000,
        ..frame("Deep.Recursion.DescendAsync", 1)
    });
    group
        .frames
        .extend((0..60).map(|n| frame(&format!("Deep.Outer{n}.RunAsync"), 0)));
    report
}

/// The incident that the tool was made for.
pub(super) fn incident() -> Report {
    let mut report = empty();
    report.chains = vec![pool_waiters(), listener()];
    report.findings = findings();
    report.threads = threads();
    report.pool = Some(Pool {
        workers: Some(8),
        min: Some(8),
        max: Some(32_767),
        idle: Some(0),
        blocked: Some(2),
        goal: Some(9),
        queued: QueuedWork {
            global: 300,
            high_priority: 0,
            local: 12,
            by_kind: vec![
                QueuedKind {
                    kind: "Webhooks.PaymentCallback.ProcessAsync".into(),
                    count: 290,
                    resumes: Some("a1b2".into()),
                },
                QueuedKind {
                    kind: "System.Threading.QueueUserWorkItemCallback".into(),
                    count: 22,
                    resumes: None,
                },
            ],
            left_out: 0,
        },
    });
    report.requests = (0..20)
        .map(|n| request(n, f64::from(n) * 2.5 + 11.0))
        .collect();
    report.rejected = vec![Rejected {
        address: Address(0x7f12_0100_0000),
        type_name: "Shop.Cart+<LoadAsync>d__4".into(),
        reason: "free space".into(),
    }];
    report.rejected_by_reason = [
        ("free space".into(), 3),
        ("method table unreadable".into(), 1),
    ]
    .into();
    report.timings = vec![
        Timing {
            phase: "walk the heap".into(),
            milliseconds: 412.34,
        },
        Timing {
            phase: "link chains".into(),
            milliseconds: 3.0,
        },
    ];
    report
}

pub(super) fn gaps() -> Report {
    let mut report = empty();
    report.dump.truncated = true;
    report.heap.invalid_objects = 3;
    report.heap.skipped_bytes = 4_096;
    report.heap.gc_in_progress = true;
    report.heap.collection = Some(Collection {
        stage: CollectionStage::Moving,
        thread: Some(4_243),
        evidence: "the collector says that the heap's structures are not valid".into(),
        ..Collection::default()
    });
    report.gaps = vec![Gap {
        id: "truncated".into(),
        kind: "heap-memory".into(),
        section: "heap".into(),
        place: "0x00007f1234000000-0x00007f1238000000".into(),
        why: "the file ends before 64.0 MiB of the heap".into(),
        remedy: "Take the dump again on a disk with 1.3 GB free: dotnet-dump collect --type Heap -p 4242".into(),
        only_names: false,
    }];
    report
}

/// Names that try to take over the terminal, to look like other lines, or to be endless.
pub(super) fn hostile() -> Report {
    let mut report = one_chain();
    report.dump.path = "/tmp/\u{1b}[2J\u{1b}]0;owned\u{7}.dmp".into();
    let group = &mut report.chains[0];
    group.id = "c\u{9b}31m1".into();
    group.leaf.text = "fine\nc9  0 chains wait: all is well\r".into();
    group.frames = vec![
        frame("Evil.\u{202e}cnysA\u{202c}\u{200b}.Run", 0),
        frame(&format!("Long.{}", "x".repeat(5_000)), 1),
        frame(
            &format!(
                "Deep{}Int32{}",
                "<Dictionary<String,List".repeat(20),
                ">>".repeat(20)
            ),
            2,
        ),
        frame("Größe.名前空間.メソッドAsync", 3),
    ];
    report.threads = vec![Thread {
        os_id: 1,
        name: Some("\u{1b}[31mred\u{1b}[0m\t\u{0}".into()),
        waits_on: Some(ObjectRef {
            text: "\u{2066}x\u{e0041}".into(),
            ..ObjectRef::default()
        }),
        ..Thread::default()
    }];
    report
}

/// Two endpoints that share their inner half.
pub(super) fn branches() -> Report {
    let mut report = incident();
    let mut other = report.chains[0].clone();
    (other.id, other.count) = ("c3".into(), 4);
    other.leaf = Leaf {
        kind: LeafKind::HttpResponse,
        text: "http://inventory:8080/reserve".into(),
        ..Leaf::default()
    };
    other.frames.drain(..1);
    let mut third = report.chains[0].clone();
    (third.id, third.count) = ("c4".into(), 300);
    third.frames[2] = frame("Shop.Checkout.PayAsync", 5);
    third.root = Some(Root {
        kind: RootKind::HttpRequest,
        text: "POST /checkout".into(),
        ..Root::default()
    });
    report.chains.extend([other, third]);
    report
}

/// A request that goes through two services, one joined by its path, and a server without a dump.
pub(super) fn services() -> ServicesReport {
    let hop = |service: &str, request: &str, waits: &str| Hop {
        dump: format!("/dumps/{service}.dmp"),
        service: service.into(),
        request: request.into(),
        age_seconds: Some(5.8),
        waits_for: waits.into(),
        chain: Some("C1".into()),
        ..Hop::default()
    };
    let stock =
        "TaskCompletionSource, to be completed by whoever uses static Shop.Program.s_pending[…]";
    let path = |trace: Option<&str>, certainty, hops| RequestPath {
        trace_id: trace.map(str::to_owned),
        certainty,
        hops,
    };
    let gateway = hop("gateway", "GET /gateway/1", "a response");
    ServicesReport {
        services: vec![
            Service {
                name: "stock".into(),
                dump: "/dumps/stock.dmp".into(),
                requests: 2,
                ends: 2,
                waits_for: vec![stock.into()],
            },
            Service {
                name: "gateway".into(),
                dump: "/dumps/gateway.dmp".into(),
                requests: 2,
                ..Service::default()
            },
        ],
        paths: vec![
            path(
                Some("8a61592b102a931c1d58cabbc27f73f8"),
                Confidence::Certain,
                vec![gateway.clone(), hop("stock", "GET /stock/1", stock)],
            ),
            path(
                None,
                Confidence::Likely,
                vec![gateway, hop("stock", "GET /stock/2", stock)],
            ),
        ],
        missing: vec![MissingServer {
            server: "http://10.0.0.7:5432".into(),
            calls: 3,
            from: vec!["gateway".into()],
        }],
        ..ServicesReport::default()
    }
}
