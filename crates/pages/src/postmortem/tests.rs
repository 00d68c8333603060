use super::*;
use crate::samples;
use asynctriage_report::find;
use std::collections::BTreeSet;

#[test]
fn a_draft() {
    insta::assert_snapshot!(postmortem(&samples::deadlock()));
}

#[test]
fn every_id_resolves() {
    let report = samples::deadlock();
    let text = postmortem(&report);
    let ids: BTreeSet<&str> = text
        .split('[')
        .skip(1)
        .filter_map(|t| Some(t.split_once(']')?.0))
        .collect();
    assert!(ids.len() > 5, "{ids:?}");
    for id in ids {
        assert!(find(&report, id).is_some(), "{id} is nowhere in the report");
    }
}

#[test]
fn every_line_with_a_fact_has_a_source() {
    let text = postmortem(&samples::deadlock());
    for line in text
        .lines()
        .skip(3)
        .filter(|l| l.chars().any(|c| c.is_ascii_digit()))
    {
        assert!(line.contains('['), "{line}");
    }
}
