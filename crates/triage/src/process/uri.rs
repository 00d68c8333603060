//! Addresses of the web as far as they may be shown.

/// Characters of a segment of a path from which on it is taken for a value.
const MAX_SEGMENT: usize = 30;

/// Scheme and authority of an address; `None` for a relative one.
pub(crate) fn origin_text(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    Some(format!("{scheme}://{host}"))
}

/// `http://user:secret@host/` shows as `http://host/`.
pub(crate) fn without_credentials(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let (authority, path) = rest
        .split_once('/')
        .map_or((rest, None), |(a, p)| (a, Some(p)));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    match path {
        Some(path) => format!("{scheme}://{host}/{path}"),
        None => format!("{scheme}://{host}"),
    }
}

/// An address whose segments of the path that look like values (with a digit, an escape, or long) are left out: ids of
/// customers and the like. Calls of one kind read the same then.
pub(crate) fn without_values(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let mut parts = rest.split('/');
    let mut out = format!("{scheme}://{}", parts.next().unwrap_or_default());
    for part in parts {
        out.push('/');
        let version = part.strip_prefix(['v', 'V']).is_some_and(|n| {
            !n.is_empty() && n.len() <= 3 && n.chars().all(|c| c.is_ascii_digit() || c == '.')
        });
        let value = part.len() > MAX_SEGMENT
            || part.contains(|c: char| c.is_ascii_digit() || "%@=;".contains(c));
        out.push_str(if value && !version { "…" } else { part });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{origin_text, without_credentials, without_values};

    #[test]
    fn values_in_paths_are_left_out() {
        assert_eq!(
            without_values("http://h:1/stock/SKU-0"),
            "http://h:1/stock/…"
        );
        assert_eq!(
            without_values("http://h/api/v2/users/me"),
            "http://h/api/v2/users/me"
        );
        assert_eq!(without_values("http://h/a%20b/x@y/"), "http://h/…/…/");
        assert_eq!(without_values("https://10.0.0.1"), "https://10.0.0.1");
        assert_eq!(without_values("/relative"), "/relative");
    }

    #[test]
    fn credentials_never_show() {
        assert_eq!(without_credentials("http://u:p@h:1/x@y"), "http://h:1/x@y");
        assert_eq!(without_credentials("https://h"), "https://h");
        assert_eq!(without_credentials("/relative"), "/relative");
    }

    #[test]
    fn an_origin_has_no_usual_port() {
        assert_eq!(origin_text("http://h:80/a?b").as_deref(), Some("http://h"));
        assert_eq!(origin_text("https://h?x").as_deref(), Some("https://h"));
        assert_eq!(
            origin_text("http://h:8080").as_deref(),
            Some("http://h:8080")
        );
        assert_eq!(origin_text("/relative"), None);
    }
}
