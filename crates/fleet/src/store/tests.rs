//! Rows that come, go and are packed.

use super::*;
use asynctriage_report::{ChainGroup, Finding, FindingKind, OutgoingCall, Request, Severity};
use parquet::file::reader::{FileReader, SerializedFileReader};

fn report(service: &str) -> Report {
    let mut report = Report::default();
    report.dump.time = Some("2026-03-14T03:14:00Z".into());
    report.dump.process_id = Some(7);
    report.process.entry_assembly = Some(service.into());
    report.chains.push(ChainGroup {
        id: "C1".into(),
        count: 3,
        ..ChainGroup::default()
    });
    report.requests.push(Request {
        id: "R1".into(),
        age_seconds: Some(1.5),
        calls: vec![OutgoingCall::default(); 2],
        ..Request::default()
    });
    let mut finding = Finding::new(FindingKind::Bottleneck, Severity::Critical, "title");
    finding.signature = "s1".into();
    report.findings.push(finding);
    report
}

fn origin(id: &str, store: &Store) -> Origin {
    Origin {
        id: id.into(),
        path: format!("/d/{id}.dmp"),
        shard: store.shard(),
        ..Origin::default()
    }
}

/// How many rows each Parquet file of a table holds.
fn packed(root: &Path, table: Table) -> Vec<(String, i64)> {
    let mut out = Vec::new();
    let top = root.join("parquet").join(table.name());
    for day in names(&top).unwrap() {
        for service in names(&top.join(&day)).unwrap() {
            for file in files(&top.join(&day).join(&service)).unwrap() {
                let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
                let rows = reader.metadata().file_metadata().num_rows();
                let name = file.strip_prefix(&top).unwrap().display().to_string();
                out.push((name, rows));
            }
        }
    }
    out
}

#[test]
fn rows_of_dumps_lie_by_day_and_service() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), (0, 1)).unwrap();
    store
        .put(&origin("a", &store), &report("Shop/x"), None)
        .unwrap();
    store
        .put(&origin("b", &store), &report("Shop/x"), None)
        .unwrap();
    store.pack().unwrap();
    let part = "day=2026-03-14/service=Shop%2Fx/part-0-of-1.parquet".to_owned();
    assert_eq!(packed(folder.path(), Table::Dumps), [(part.clone(), 2)]);
    assert_eq!(packed(folder.path(), Table::Calls), [(part.clone(), 4)]);
    assert_eq!(packed(folder.path(), Table::Waits), [(part, 0)]);
    let done = store.done().unwrap();
    let ids: Vec<&str> = done.iter().map(|d| d.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let common = store.common().unwrap();
    assert_eq!((common.read, common.signatures.len()), (2, 1));
    assert_eq!(
        (common.signatures[0].dumps, common.signatures[0].processes),
        (2, 1)
    );
}

#[test]
fn cells_are_the_same_in_both_forms() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), (0, 1)).unwrap();
    store
        .put(&origin("a", &store), &report("Shop"), None)
        .unwrap();
    store.pack().unwrap();
    for table in Table::ALL {
        let lines = store
            .lines(*table, "day=2026-03-14/service=Shop")
            .join("a.ndjson");
        if !lines.exists() {
            continue;
        }
        let mut rows = Vec::new();
        rows_of(&lines, &mut |row| {
            rows.push(Value::Object(row));
            Ok(())
        })
        .unwrap();
        let part = store.part(*table, "day=2026-03-14/service=Shop");
        let reader = SerializedFileReader::new(File::open(part).unwrap()).unwrap();
        let packed: Vec<Value> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|r| {
                let row = r.unwrap();
                let cells = row.get_column_iter().map(|(name, field)| {
                    use parquet::record::Field;
                    let value = match field {
                        Field::Null => Value::Null,
                        Field::Str(text) => Value::from(text.as_str()),
                        Field::Long(number) => Value::from(*number),
                        Field::Double(number) => Value::from(*number),
                        Field::Bool(is) => Value::from(*is),
                        other => panic!("{other:?}"),
                    };
                    (name.clone(), value)
                });
                Value::Object(cells.collect())
            })
            .collect();
        assert_eq!(packed, rows, "{}", table.name());
    }
}

#[test]
fn parts_of_a_run_hold_each_dump_once_and_the_only_part_takes_all() {
    let folder = tempfile::tempdir().unwrap();
    let first = Store::open(folder.path(), (0, 2)).unwrap();
    let second = Store::open(folder.path(), (1, 2)).unwrap();
    first
        .put(&origin("a", &first), &report("Shop"), None)
        .unwrap();
    second
        .put(&origin("b", &second), &report("Shop"), None)
        .unwrap();
    // a copy of the same file that the other part came across
    second
        .put(&origin("a", &second), &report("Shop"), None)
        .unwrap();
    first.pack().unwrap();
    second.pack().unwrap();
    let name = |part: &str| format!("day=2026-03-14/service=Shop/part-{part}.parquet");
    let parts = [(name("0-of-2"), 1), (name("1-of-2"), 1)];
    assert_eq!(packed(folder.path(), Table::Dumps), parts);
    let all = Store::open(folder.path(), (0, 1)).unwrap();
    all.pack().unwrap();
    assert_eq!(packed(folder.path(), Table::Dumps), [(name("0-of-1"), 2)]);
    assert_eq!(packed(folder.path(), Table::Chains), [(name("0-of-1"), 2)]);
}

#[test]
fn what_failed_makes_room_and_what_was_cut_is_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), (0, 1)).unwrap();
    let failed = Origin {
        status: Status::Failed,
        ..origin("a", &store)
    };
    store.put(&failed, &Report::default(), None).unwrap();
    store.pack().unwrap();
    let before = store.done().unwrap();
    assert!(before[0].failed);
    store
        .put(&origin("a", &store), &report("Shop"), before.first())
        .unwrap();
    store.pack().unwrap();
    let after = store.done().unwrap();
    assert_eq!((after.len(), after[0].failed), (1, false));
    let part = "day=2026-03-14/service=Shop/part-0-of-1.parquet".to_owned();
    assert_eq!(packed(folder.path(), Table::Dumps), [(part, 1)]);
    fs::write(&after[0].file, "{\"dump_id\":").unwrap();
    assert!(store.done().unwrap().is_empty());
    assert!(matches!(store.common(), Err(StoreError::Damaged(_))));
}

#[test]
fn a_folder_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.json"), "{\"version\":\"0.9\"}").unwrap();
    let error = Store::open(folder.path(), (0, 1)).unwrap_err();
    assert!(matches!(error, StoreError::Version(_, version) if version == "0.9"));
}
