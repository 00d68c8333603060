//! The header by which a call says which trace and span it is part of (W3C Trace Context, version 00).

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// Its name.
const HEADER: &str = "traceparent";
/// Words of a message's headers that are looked at: a pair each.
const MAX_WORDS: u64 = 256;
/// Digits of a trace's id and of a span's.
const TRACE_DIGITS: usize = 32;
const SPAN_DIGITS: usize = 16;

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
}

impl TraceParent {
    /// Reads `00-TRACE-SPAN-FLAGS`; later versions may say more behind that.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-').skip(1);
        let (trace, span) = (parts.next()?, parts.next()?);
        let is_id =
            |id: &str, digits| id.len() == digits && id.bytes().all(|b| b.is_ascii_hexdigit());
        (is_id(trace, TRACE_DIGITS) && is_id(span, SPAN_DIGITS)).then(|| Self {
            trace_id: trace.to_owned(),
            span_id: span.to_owned(),
        })
    }

    /// That of a message of HttpClient. Its headers stand in an array of pairs while they are few, else in a dictionary;
    /// what has no type of its own is kept as text on both sides (8.0 to 11.0).
    pub(crate) fn of_message(rt: &Runtime<'_>, message: Addr) -> Option<Self> {
        let headers = rt.reference(message, "_headers")?;
        let store = rt.reference(headers, "_headerStore")?;
        let array = rt.reference(store, "_entries").unwrap_or(store);
        let (start, stride, count) = rt.vector(array)?;
        let words = stride.checked_div(8)?;
        for index in 0..count.min(MAX_WORDS) {
            let entry = start.element(index, stride);
            let texts: Vec<String> = (0..words.min(8))
                .filter_map(|i| rt.text(rt.memory().ptr(entry.element(i, 8))?.non_null()?))
                .collect();
            if texts.iter().any(|t| t == HEADER) {
                return texts.iter().find_map(|t| Self::parse(t));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

    #[test]
    fn only_whole_ids_are_read() {
        let header = "00-8a61592b102a931c1d58cabbc27f73f8-5a8634b637715bdc-02";
        let parsed = TraceParent::parse(header).expect("a header");
        assert_eq!(parsed.trace_id, "8a61592b102a931c1d58cabbc27f73f8");
        assert_eq!(parsed.span_id, "5a8634b637715bdc");
        for broken in [
            "",
            "00-8a61-5a86-02",
            &header[..40],
            "00-8a61592b102a931c1d58cabbc27f73fx-5a8634b637715bdc-02",
        ] {
            assert_eq!(TraceParent::parse(broken), None, "{broken}");
        }
    }
}
