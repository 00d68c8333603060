//! Traces of real processes; how they were made stands in `testdata/README.md`.

use std::collections::BTreeMap;
use std::io::Read as _;

use super::read;
use crate::runtime::{Methods, RuntimeEvent};
use crate::tpl::TplEvent;
use crate::{End, Trace, Value};

pub(super) fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

pub(super) fn killed() -> Vec<u8> {
    unpack(include_bytes!("../../testdata/killed-11.0.0.nettrace.gz"))
}

pub(super) fn live_methods() -> Vec<u8> {
    unpack(include_bytes!("../../testdata/livejit-11.0.0.nettrace.gz"))
}

pub(super) fn tpl() -> Vec<u8> {
    unpack(include_bytes!("../../testdata/tpl-10.0.15.nettrace.gz"))
}

#[test]
fn a_killed_process_leaves_whole_blocks_and_no_end() {
    let file = killed();
    let (events, summary) = read(&file);
    assert_eq!(events.len(), 605);
    let cut = summary.truncation().unwrap();
    assert_eq!((cut.offset, cut.bytes), (file.len() as u64, 0));
    assert_eq!(summary.events_by_provider["Asynctriage-Markers"], 600);
    let async_profiler = "System.Runtime.CompilerServices.AsyncProfilerEventSource";
    assert_eq!(summary.events_by_provider[async_profiler], 5);
    let blocks: Vec<_> = summary.blocks.into_iter().collect();
    assert_eq!(
        blocks,
        [
            ("EventBlock", 5),
            ("MetadataBlock", 1),
            ("StackBlock", 3),
            ("Trace", 1)
        ]
    );
    assert_eq!(
        (summary.metadata, summary.lost.events, summary.damages.count),
        (4, 0, 0)
    );
    let markers: Vec<_> = events.iter().filter(|e| e.kind.name == "Stage").collect();
    assert_eq!(markers.len(), 400);
    assert_eq!(markers[0].value("op"), Some(Value::Signed(0)));
    assert_eq!(markers[0].value("stage"), Some(Value::Signed(1)));
}

#[test]
fn a_killed_process_that_does_not_stream_leaves_a_header() {
    let file = include_bytes!("../../testdata/killed-nonstreaming.nettrace");
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.header().processors, Some(2));
    let (events, summary) = read(file);
    assert!(events.is_empty() && matches!(summary.end, End::Cut(_)));
}

#[test]
fn live_methods_are_found_by_address() {
    let file = live_methods();
    let mut methods = Methods::default();
    let (events, summary) = read(&file);
    assert_eq!((summary.lost.events, summary.end), (0, End::Tag));
    let taken = events.iter().filter(|e| methods.add(e)).count();
    assert_eq!(
        (taken, methods.events(), methods.live(), methods.rundown()),
        (174, 174, 174, 0)
    );
    assert_eq!(methods.distinct_ranges(), 174);
    let found = methods
        .ranges()
        .iter()
        .find(|m| m.full_name().as_deref() == Some("Program.C"));
    let found = found.unwrap().clone();
    assert!(
        found
            .origin
            .loaded
            .is_some_and(|loaded| found.was_there(loaded) && !found.was_there(loaded - 1))
    );
    let ranges = methods.into_ranges();
    for (address, hits) in [
        (found.start, 1),
        (found.start + u64::from(found.size) - 1, 1),
        (0, 0),
    ] {
        assert_eq!(ranges.candidates(address).count(), hits);
    }
    assert_eq!(ranges.candidates(found.start).next(), Some(&found));
    assert_eq!(ranges.by_method(found.method), Some(&found));
}

#[test]
fn rundown_names_methods_modules_and_the_runtime() {
    let file = tpl();
    let (events, summary) = read(&file);
    assert_eq!(
        (summary.events, summary.metadata, summary.end),
        (1259, 18, End::Tag)
    );
    let mut methods = Methods::default();
    for event in &events {
        methods.add(event);
    }
    assert_eq!(
        (methods.events(), methods.live(), methods.rundown()),
        (1114, 0, 1114)
    );
    assert_eq!(methods.distinct_ranges(), 1114);
    let modules: Vec<_> = methods.module_names().into_iter().collect();
    let expected = [
        "Microsoft.Win32.Primitives.dll",
        "System.Console.dll",
        "System.Linq.dll",
        "System.Private.CoreLib.dll",
        "System.Runtime.InteropServices.dll",
        "System.Runtime.dll",
        "System.Threading.dll",
        "Truth.dll",
    ];
    assert_eq!(modules, expected);
    let main = methods
        .ranges()
        .iter()
        .find(|m| m.full_name().as_deref() == Some("Program.Main"))
        .unwrap();
    assert!(
        methods
            .module(main.module)
            .is_some_and(|path| path.ends_with("Truth.dll"))
    );
    let decoded = || events.iter().filter_map(RuntimeEvent::decode);
    let version = decoded().find_map(|event| match event {
        RuntimeEvent::Runtime(runtime) => Some((runtime.libraries, runtime.path.to_string())),
        _ => None,
    });
    let (libraries, path) = version.unwrap();
    assert_eq!(libraries, [10, 0, 15, 0]);
    assert!(path.ends_with("libcoreclr.so"));
    let of_main = decoded().find_map(|event| match event {
        RuntimeEvent::IlMap(map) if map.method == main.method => {
            Some(map.pairs().collect::<Vec<_>>())
        }
        _ => None,
    });
    let of_main = of_main.unwrap();
    assert_eq!(of_main[0], (-2, 0), "the prolog comes first");
    assert!(of_main.iter().all(|(_, native)| *native <= main.size));
}

#[test]
fn waits_of_tasks_are_typed() {
    let file = tpl();
    let (events, _) = read(&file);
    let mut names = BTreeMap::<String, u32>::new();
    let mut waits = 0;
    let mut others = 0;
    for event in events
        .iter()
        .filter(|e| e.kind.provider == crate::tpl::PROVIDER)
    {
        match TplEvent::decode(event).unwrap() {
            TplEvent::OperationBegin { name, .. } => {
                *names.entry(name.to_string()).or_default() += 1;
            }
            TplEvent::WaitBegin {
                task, continues, ..
            } => {
                assert!(task > 0 && continues > 0);
                waits += 1;
            }
            _ => others += 1,
        }
    }
    let names: Vec<_> = names
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        names,
        [
            ("Async: <F1>d__23", 5),
            ("Async: <F2>d__24", 5),
            ("Async: <F3>d__25", 5)
        ]
    );
    assert_eq!((waits, others), (15, 25));
}
