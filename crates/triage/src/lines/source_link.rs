//! Source Link: where the source files of a module are published, as its symbols say.
//!
//! The symbols hold a JSON text: `{"documents": {"/src/*": "https://host/repository/revision/*", ...}}`. A `*` ends a
//! path and stands for the rest of it; in the address it is replaced by that rest.

use serde_json::Value;

/// Entries that are looked at.
const MAX_ENTRIES: usize = 4096;
/// Bytes of an address at most.
const MAX_URL: usize = 4096;

/// What maps source files to addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceMap {
    /// Path and address, the longest path first.
    entries: Vec<(String, String)>,
}

impl SourceMap {
    /// Reads the text; empty when it is no such map.
    pub(super) fn parse(text: &str) -> Self {
        // editors of Windows begin files with a mark
        let text = text.trim_start_matches('\u{feff}');
        let Ok(Value::Object(mut root)) = serde_json::from_str(text) else {
            return Self::default();
        };
        let Some(Value::Object(documents)) = root.remove("documents") else {
            return Self::default();
        };
        let pairs = documents.into_iter().take(MAX_ENTRIES);
        let mut entries: Vec<(String, String)> = pairs
            .filter_map(|(path, url)| Some((path, plain_url(url.as_str()?)?)))
            .collect();
        entries.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        Self { entries }
    }

    /// The address of a source file: that of its own entry, else that of the longest path that it lies below.
    pub(super) fn url(&self, file: &str) -> Option<String> {
        let exact = self.entries.iter().find(|(path, _)| same(path, file));
        if let Some((_, url)) = exact {
            return Some(url.clone());
        }
        self.entries.iter().find_map(|(path, url)| {
            let folder = path.strip_suffix('*')?;
            let rest = file
                .split_at_checked(folder.len())
                .filter(|(begin, _)| same(begin, folder))?
                .1;
            let url = url.replacen('*', &escaped(&rest.replace('\\', "/")), 1);
            (url.len() <= MAX_URL).then_some(url)
        })
    }
}

/// Paths are compared as Windows does: the compiler may have been told another case than the map.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// An address of the web without the name and password that may stand in it; `None` for others.
fn plain_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end)?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_plain = !url.chars().any(char::is_control) && !host.is_empty() && url.len() <= MAX_URL;
    (is_web && is_plain).then(|| format!("{scheme}://{host}{path}"))
}

/// A path as it stands in an address.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/+".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(documents: &str) -> SourceMap {
        SourceMap::parse(&format!("{{\"documents\":{{{documents}}}}}"))
    }

    #[test]
    fn the_rest_of_a_path_stands_for_the_star() {
        let map = map(
            r#""/src/*":"https://host/r/*","/src/gen/*":"https://other/*?v=1","C:\\a\\*":"https://w/*""#,
        );
        let url = |file| map.url(file);
        assert_eq!(
            url("/src/b/C d.cs").as_deref(),
            Some("https://host/r/b/C%20d.cs")
        );
        assert_eq!(
            url("/src/gen/E.cs").as_deref(),
            Some("https://other/E.cs?v=1")
        );
        assert_eq!(url(r"c:\A\b\F.cs").as_deref(), Some("https://w/b/F.cs"));
        assert_eq!(url("/elsewhere/G.cs"), None);
        assert_eq!(url("/sr"), None);
    }

    #[test]
    fn an_entry_of_its_own_comes_first() {
        let map = map(r#""/a/*":"https://host/*","/a/b.cs":"https://host/special""#);
        assert_eq!(map.url("/a/b.cs").as_deref(), Some("https://host/special"));
    }

    #[test]
    fn addresses_neither_carry_passwords_nor_run_programs() {
        let map = map(
            r#""/a/*":"https://me:secret@host/*","/b/*":"file:///etc/*","/c/*":"javascript:*","/d/*":"https://x\u001b[31m/*","/e/*":7"#,
        );
        assert_eq!(map.url("/a/f.cs").as_deref(), Some("https://host/f.cs"));
        for file in ["/b/f", "/c/f", "/d/f", "/e/f"] {
            assert_eq!(map.url(file), None, "{file}");
        }
    }

    #[test]
    fn other_texts_are_empty_maps() {
        for text in ["", "[]", "{}", r#"{"documents":[]}"#, "{\"documents\":"] {
            assert_eq!(SourceMap::parse(text), SourceMap::default(), "{text}");
        }
        let marked = "\u{feff}{\"documents\":{\"/a/*\":\"https://h/*\"}}";
        assert!(SourceMap::parse(marked).url("/a/b").is_some());
        assert_eq!(map("\"/\u{e9}*\":\"https://h/*\"").url("/a"), None);
    }
}
