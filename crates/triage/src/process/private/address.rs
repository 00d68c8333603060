//! Addresses and paths: the server always shows, credentials and queries never do, and of a path the words that are known
//! beforehand.

use super::Values;

/// Words that name resources and actions of services everywhere, in order. What is shown is in this list: any rule over the
/// shape of a segment lets some name, code or password through.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "_bulk", "_count", "_doc", "_msearch", "_search", "about", "account", "accounts", "actions", "activity", "actuator",
    "addresses", "admin", "alerts", "all", "analytics", "api", "app", "apps", "archive", "assets", "async", "audit",
    "auth", "authorize", "backup", "balance", "bank", "basket", "baskets", "batch", "billing", "blobs", "bookings",
    "cache", "calc", "calendar", "callback", "cancel", "cards", "cart", "carts", "catalog", "categories", "category",
    "chat", "check", "checkout", "clients", "comments", "companies", "compute", "config", "confirm", "connect",
    "contacts", "content", "convert", "copy", "count", "create", "credit", "customer", "customers", "dashboard", "data",
    "db", "delay", "delete", "delivery", "details", "devices", "diagnostics", "docs", "documents", "download",
    "downloads", "echo", "edit", "email", "employees", "events", "execute", "export", "favicon.ico", "features", "feed",
    "fetch", "file", "files", "find", "forecast", "get", "graphql", "groups", "grpc", "hang", "health", "healthz",
    "hello", "help", "history", "home", "hub", "hubs", "identity", "images", "import", "inbox", "index", "index.html",
    "info", "internal", "inventory", "invoice", "invoices", "issues", "item", "items", "job", "jobs", "keys", "list",
    "live", "livez", "locations", "lock", "login", "logout", "logs", "lookup", "mail", "maps", "mcp", "me", "media",
    "merge", "message", "messages", "metrics", "move", "negotiate", "new", "news", "notifications", "notify", "oauth",
    "oauth2", "odata", "order", "orders", "organizations", "outbox", "pages", "pay", "payment", "payments", "people",
    "permissions", "ping", "plans", "poll", "post", "posts", "price", "prices", "print", "private", "process",
    "product", "products", "profile", "projects", "public", "publish", "push", "query", "queue", "queues", "quote",
    "quotes", "rates", "ready", "readyz", "recommendations", "refresh", "register", "render", "report", "reports",
    "request", "requests", "reset", "resources", "restore", "reviews", "roles", "rpc", "rules", "run", "save", "schema",
    "schemas", "search", "send", "sensors", "service", "services", "session", "sessions", "settings", "shipments",
    "shipping", "signalr", "signin", "signout", "signup", "sleep", "slow", "sms", "sse", "start", "static", "stats",
    "status", "stock", "stop", "store", "stores", "stream", "streams", "submit", "subscribe", "subscriptions",
    "support", "swagger", "sync", "system", "tags", "task", "tasks", "teams", "tenants", "test", "tickets", "time",
    "token", "tokens", "topics", "trace", "traces", "transactions", "transfer", "transfers", "update", "upload",
    "uploads", "user", "userinfo", "users", "validate", "values", "verify", "version", "wait", "wallet", "weather",
    "weatherforecast", "webhook", "webhooks", "work", "workers", "ws",
];

/// Methods of HTTP, WebDAV and caches; whatever else a client sent is its own text.
const METHODS: [&str; 19] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "QUERY",
    "PURGE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
];

/// Whether a request's method is one that everybody knows.
pub(crate) fn is_known_method(method: &str) -> bool {
    METHODS.contains(&method)
}

/// Scheme and server of an address, without credentials and the scheme's usual port; `None` for a relative one.
pub(crate) fn origin(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let host = host.strip_suffix(usual).unwrap_or(host);
    Some(format!("{scheme}://{host}"))
}

/// An address or a plain name that the program gave something, without credentials and query.
pub(crate) fn without_secrets(name: &str) -> String {
    match origin(name) {
        Some(origin) => {
            let rest = name.split_once("://").map_or("", |(_, rest)| rest);
            format!("{origin}{}", without_query(segments_of(rest)))
        }
        None => without_query(name).to_owned(),
    }
}

/// What follows the server: path, query and fragment.
pub(super) fn segments_of(rest: &str) -> &str {
    rest.find(['/', '\\', '?', '#'])
        .and_then(|at| rest.get(at..))
        .unwrap_or_default()
}

fn without_query(text: &str) -> &str {
    text.split(['?', '#']).next().unwrap_or_default()
}

/// A path of which only known words and versions show; without query and fragment.
pub(super) fn path(text: &str, values: Values) -> String {
    let text = without_query(text);
    if values == Values::Shown {
        return text.to_owned();
    }
    let parts = text.split(['/', '\\']);
    let shown = parts.map(|part| if is_known(part) { part } else { "…" });
    shown.collect::<Vec<_>>().join("/")
}

fn is_known(segment: &str) -> bool {
    let version = segment.strip_prefix(['v', 'V']).is_some_and(|n| {
        n.len() <= 3
            && n.starts_with(|c: char| c.is_ascii_digit())
            && n.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    let lower = segment.to_ascii_lowercase();
    segment.is_empty() || version || WORDS.binary_search(&&*lower).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_searched() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn of_paths_only_known_words_show() {
        let shown = |text| path(text, Values::Hidden);
        assert_eq!(shown("/api/v2/Users/me"), "/api/v2/Users/me");
        assert_eq!(shown("/stock/SKU-0"), "/stock/…");
        assert_eq!(shown("/reset/hunter/x?token=y"), "/reset/…/…");
        assert_eq!(shown("/a%20b/x@y/"), "/…/…/");
        assert_eq!(shown("/v1234/v/vx"), "/…/…/…");
        assert_eq!(shown(""), "");
        assert_eq!(path("/reset/hunter?t=y", Values::Shown), "/reset/hunter");
    }

    #[test]
    fn an_origin_has_no_credentials_and_no_usual_port() {
        assert_eq!(origin("http://h:80/a?b").as_deref(), Some("http://h"));
        assert_eq!(origin("https://u:p@h?x").as_deref(), Some("https://h"));
        assert_eq!(origin("http://h:8080").as_deref(), Some("http://h:8080"));
        assert_eq!(origin("http://h/x@y").as_deref(), Some("http://h"));
        assert_eq!(origin("/relative"), None);
        assert_eq!(
            without_secrets("rabbitmq://u:p@h/queue?x=y"),
            "rabbitmq://h/queue"
        );
        assert_eq!(without_secrets("nightly report"), "nightly report");
    }

    #[test]
    fn methods_are_those_that_everybody_knows() {
        assert!(is_known_method("GET"));
        assert!(!is_known_method("SECRET"));
    }
}
