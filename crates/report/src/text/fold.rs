//! Runs of frames that are not the program's, in one line.

use super::words::several;
use unicode_width::UnicodeWidthStr;

/// Libraries that one line names.
const MAX_NAMED: usize = 3;

/// `… 6 frames of System.Net.Http: HttpConnection.InitialFillAsync … HttpClient.SendAsync`; without the methods where
/// they do not fit `room` columns.
pub(crate) fn methods(names: &[&str], room: usize) -> String {
    let head = of(names, "frame", library);
    let ends = match names {
        [first, .., last] => format!(": {} … {}", short(first), short(last)),
        _ => String::new(),
    };
    if head.width().saturating_add(ends.width()) <= room {
        head + &ends
    } else {
        head
    }
}

/// `… 12 native frames of libc.so.6 and libcoreclr.so`.
pub(crate) fn natives(names: &[&str]) -> String {
    of(names, "native frame", |name| {
        name.split('!').next().unwrap_or(name).to_owned()
    })
}

fn of(names: &[&str], noun: &str, owner: impl Fn(&str) -> String) -> String {
    let mut owners: Vec<String> = Vec::new();
    for name in names {
        let owner = owner(name);
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let more = owners.len().saturating_sub(MAX_NAMED);
    owners.truncate(MAX_NAMED);
    if more > 0 {
        owners.push(format!("{more} more"));
    }
    let list = match owners.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    };
    format!("… {} of {list}", several(names.len() as u64, noun))
}

/// The library of a method of .NET, by the namespaces that its name begins with.
fn library(method: &str) -> String {
    let parts = match method {
        m if m.starts_with("System.Net.") || m.starts_with("Microsoft.Extensions.") => 3,
        _ => 2,
    };
    // the last two words are the class and the method
    let words: Vec<&str> = method.split('.').collect();
    let most = words.len().saturating_sub(2).max(1);
    let name: Vec<&str> = words.into_iter().take(parts.min(most)).collect();
    name.join(".")
}

/// `HttpClient.SendAsync` of the whole name.
fn short(method: &str) -> &str {
    // generic arguments have dots of their own
    let name = method.split('<').next().unwrap_or(method);
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    let at = dots.nth(1).map_or(0, |at| at.saturating_add(1));
    name.get(at..).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_by_its_libraries() {
        let names = [
            "System.Net.Http.HttpConnection.InitialFillAsync",
            "System.Net.Http.HttpClient.SendAsync.Core",
        ];
        assert_eq!(
            methods(&names, 120),
            "… 2 frames of System.Net.Http: HttpConnection.InitialFillAsync … SendAsync.Core"
        );
        assert_eq!(methods(&names, 40), "… 2 frames of System.Net.Http");
        let mixed = [
            "Microsoft.AspNetCore.Http.X.Run<A.B>",
            "System.Threading.Monitor.Wait",
        ];
        assert_eq!(
            methods(&mixed, 90),
            "… 2 frames of Microsoft.AspNetCore and System.Threading: X.Run … Monitor.Wait"
        );
        assert_eq!(
            natives(&["libc.so.6!+0x1", "libcoreclr.so!f+0x2", "libc.so.6!g+0x3"]),
            "… 3 native frames of libc.so.6 and libcoreclr.so"
        );
    }
}
