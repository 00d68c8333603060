//! Names of locals that a compiler made fields of.

use super::shape::bracketed;

/// What a field of a state machine or of a closure is in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LocalName {
    /// A local variable that lives across an await or a yield.
    Local(String),
    /// A parameter, or a variable that a lambda captures.
    Captured(String),
    /// The first value of an iterator's parameter, which each enumeration begins with.
    Original(String),
    /// The object whose method it is.
    This,
    /// The variables that the method shares with its lambdas.
    Closure,
    /// What the method awaits; one field for all awaiters of a type.
    Awaiter,
    /// The number of the await that it is suspended at.
    State,
    /// The builder, which holds the task.
    Builder,
    /// What an iterator yielded last.
    Current,
    /// Anything else that only the compiler knows.
    Temporary,
}

impl LocalName {
    /// The name that stands in the source, if any.
    #[must_use]
    pub fn source_name(&self) -> Option<&str> {
        match self {
            Self::Local(name) | Self::Captured(name) | Self::Original(name) => Some(name),
            Self::This => Some("this"),
            _ => None,
        }
    }
}

/// What the field of a state machine or closure stands for, by its name; `None` for a field that no C# or Visual Basic
/// compiler makes for a local.
#[must_use]
pub fn hoisted_local(field: &str) -> Option<LocalName> {
    if let Some(rest) = field.strip_prefix("CS$<>") {
        return rest.starts_with("8__").then_some(LocalName::Closure);
    }
    if field.starts_with('<') {
        return c_sharp(field);
    }
    if field.starts_with('$') {
        return visual_basic(field);
    }
    let is_name = field
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_')
        && field.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| LocalName::Captured(field.to_owned()))
}

/// `<name>N__rest`: N says what it is.
fn c_sharp(field: &str) -> Option<LocalName> {
    let (name, rest) = bracketed(field)?;
    let (kind, tail) = rest.split_once("__")?;
    Some(match (kind, name) {
        ("1", "") => LocalName::State,
        ("t", "") => LocalName::Builder,
        ("u", "") => LocalName::Awaiter,
        ("2", "") => LocalName::Current,
        ("4", "") => LocalName::This,
        ("8", "") => LocalName::Closure,
        ("3", "") if tail == "<>4__this" => LocalName::This,
        ("3", "") if !tail.is_empty() => LocalName::Original(tail.to_owned()),
        ("5", "") | ("7" | "s" | "l" | "v" | "w" | "x", _) => LocalName::Temporary,
        ("5", name) => LocalName::Local(name.to_owned()),
        _ => return None,
    })
}

fn visual_basic(field: &str) -> Option<LocalName> {
    match field {
        "$VB$Me" => return Some(LocalName::This),
        "$State" => return Some(LocalName::State),
        "$Builder" => return Some(LocalName::Builder),
        "$Current" => return Some(LocalName::Current),
        _ => {}
    }
    if let Some(name) = field.strip_prefix("$VB$Local_") {
        return Some(LocalName::Captured(name.to_owned())).filter(|_| !name.is_empty());
    }
    if let Some(rest) = field.strip_prefix("$VB$ResumableLocal_") {
        let name = rest.rsplit_once('$').map_or(rest, |(name, _)| name);
        return match name {
            "" => None,
            name if name.starts_with("$VB$") => Some(LocalName::Closure),
            name => Some(LocalName::Local(name.to_owned())),
        };
    }
    if field.starts_with("$VB$Closure_") || field.starts_with("$VB$NonLocal_") {
        return Some(LocalName::Closure);
    }
    let letter = field.strip_prefix('$')?;
    let number = letter.strip_prefix(['A', 'S', 'U', 'V'])?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(if letter.starts_with('A') {
        LocalName::Awaiter
    } else {
        LocalName::Temporary
    })
}
