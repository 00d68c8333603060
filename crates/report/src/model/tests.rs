use super::*;

#[test]
fn an_empty_object_with_a_version_is_a_report() {
    let report: Report = serde_json::from_str(r#"{"schema_version":"1.7","unknown":[1]}"#).unwrap();
    assert_eq!(report.schema_version, "1.7");
    assert!(report.chains.is_empty() && report.pool.is_none());
    assert!(serde_json::from_str::<Report>("{}").is_err());
}

#[test]
fn what_is_left_out_is_read_back_as_its_default() {
    let frame = Frame {
        method: "A.B".into(),
        await_index: Some(3),
        ..Frame::default()
    };
    let json = serde_json::to_string(&frame).unwrap();
    assert_eq!(
        json,
        r#"{"method":"A.B","kind":"state-machine","await_index":3}"#
    );
    assert_eq!(serde_json::from_str::<Frame>(&json).unwrap(), frame);
}

#[test]
fn addresses_are_sixteen_digits() {
    let address = Address(0x7f12_3456_7890);
    assert_eq!(
        serde_json::to_string(&address).unwrap(),
        r#""0x00007f1234567890""#
    );
    for text in [
        "0x00007f1234567890",
        "7f1234567890",
        "0X7F1234567890",
        "00007f12`34567890",
    ] {
        assert_eq!(text.parse(), Ok(address), "{text}");
    }
    for text in ["", "0x", "+1", "0x1_0", "g", "0x10000000000000000", "-1"] {
        assert!(text.parse::<Address>().is_err(), "{text}");
    }
}

/// The word lists of the contract, as it prints them.
#[test]
fn words_are_those_of_the_contract() {
    let words = |all: Vec<&str>| all.join(", ");
    assert_eq!(
        words(FrameKind::ALL.iter().map(|k| k.as_str()).collect()),
        "state-machine, runtime-async, async-iterator, value-task-source, combinator, continue-with, work-item, thread, callback"
    );
    assert_eq!(
        words(LeafKind::ALL.iter().map(|k| k.as_str()).collect()),
        "task-completion-source, delay, periodic-timer, timeout, semaphore, async-lock, channel-read, channel-write, pipe-read, \
         pipe-write, socket-receive, socket-send, socket-accept, socket-connect, dns, tls-handshake, http-connection-pool, \
         http-response, http-body, http-request-body, database, database-connection-pool, cache, message-broker, grpc, file, process-exit, \
         value-task-source, task-running, task-queued, sync-context-post, ready, thread-blocked, cycle, unreachable, unknown"
    );
    assert_eq!(
        words(RootKind::ALL.iter().map(|k| k.as_str()).collect()),
        "http-request, grpc-call, signalr-invocation, hosted-service, timer-callback, queue-consumer, job, activity, async-void, \
         main, thread, none"
    );
    assert_eq!(
        words(FindingKind::ALL.iter().map(|k| k.as_str()).collect()),
        "thread-blocked-on-task, threadpool-starvation, queue-depth, lock-deadlock, lock-contention, monitor-wait, await-cycle, \
         mixed-deadlock, sync-context-deadlock, semaphore-deadlock, scheduler-deadlock, cancellation-deadlock, \
         type-initializer-deadlock, semaphore-exhausted, http-pool-exhausted, channel-full, bottleneck, \
         never-completes, ready-not-running, unhandled-exception, faulted-tasks, cancelled-tasks, retained-by-state-machine, \
         completed-not-collected, idle"
    );
}

#[test]
fn words_are_written_and_read_as_json() {
    for kind in LeafKind::ALL {
        let json = serde_json::to_string(kind).unwrap();
        assert_eq!(json, format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<LeafKind>(&json).unwrap(), *kind);
    }
    // kinds are open lists, degrees are not
    let later = serde_json::from_str::<LeafKind>("\"coffee\"");
    assert_eq!(later.unwrap(), LeafKind::Other);
    assert!(serde_json::from_str::<Severity>("\"fatal\"").is_err());
}

#[test]
fn severities_and_confidences_are_ordered() {
    assert!(Severity::Info < Severity::Warning && Severity::Warning < Severity::Critical);
    assert!(Confidence::Possible < Confidence::Likely && Confidence::Likely < Confidence::Certain);
}

#[test]
fn a_frame_tells_its_place_as_far_as_it_is_known() {
    let frame = Frame {
        await_index: Some(2),
        ..Frame::default()
    };
    assert_eq!(frame.place().as_deref(), Some("await 2"));
    let least = Frame {
        await_index_least: true,
        ..frame
    };
    assert_eq!(least.place().as_deref(), Some("await 2 or later"));
    let offset = Frame {
        il_offset: Some(46),
        ..Frame::default()
    };
    assert_eq!(offset.place().as_deref(), Some("await at IL 0x2e"));
    assert!(offset.stands_at_await() && !Frame::default().stands_at_await());
}
