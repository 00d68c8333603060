use super::*;
use crate::samples::{self, HOSTILE};

#[test]
fn nothing_of_the_dump_becomes_markup() {
    let page = html(&samples::deadlock()).unwrap();
    assert!(!page.contains(HOSTILE) && !page.contains("<img"), "{page}");
    assert!(!page.contains('\u{202e}'));
    // two scripts and no third that a name began
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn nothing_is_fetched_and_only_its_own_script_runs() {
    let page = html(&samples::deadlock()).unwrap();
    let policy = policy();
    assert!(!policy.contains("unsafe") && policy.starts_with("default-src 'none'"));
    // attributes escape quotes
    assert!(page.contains(&policy) || page.contains(&policy.replace('\'', "&#39;")));
    for source in [" src=\"", "@import", "url(http", "<link", "<iframe"] {
        assert!(!page.contains(source), "{source}");
    }
    // a style in an attribute would be blocked
    assert!(!page.contains(" style=\""));
}

#[test]
fn every_id_has_its_anchor() {
    let report = samples::deadlock();
    let page = html(&report).unwrap();
    for id in [
        "F1", "E1", "G1", "W1", "W6", "findings", "chains", "threads",
    ] {
        assert!(page.contains(&format!(" id=\"{id}\"")), "{id}");
    }
    // those that the script draws
    for id in ["C1", "C1.1", "R1"] {
        assert!(page.contains(&format!("\"id\":\"{id}\"")), "{id}");
    }
}

#[test]
fn an_empty_report_is_a_page_too() {
    let page = html(&Report::default()).unwrap();
    assert!(page.contains("No finding") && page.contains("0 chains wait"));
}
