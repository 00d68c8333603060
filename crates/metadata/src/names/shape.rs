//! The shapes of generated names.
//!
//! Roslyn writes `<METHOD>X__ORDINALS`: X is `d` for state machines, `b` for lambdas, `g` for local functions and `c`
//! for closure classes. METHOD can be generated itself, so the brackets nest. Edit and Continue appends `#GENERATION`.

use std::borrow::Cow;

/// What kind of type a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypeShape<'a> {
    /// Holds lambdas and what they capture; not in the source.
    Closure,
    /// The state machine of this method.
    StateMachine(MethodShape<'a>),
    /// A type of the source.
    Plain(&'a str),
}

/// A method of the source, or something inside it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MethodShape<'a> {
    /// Name of the method of the source; an explicit one has dots. Empty when not known.
    pub(super) method: Cow<'a, str>,
    /// Which part of the method it is.
    pub(super) part: Part<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Whole,
    Lambda,
    /// A local function of this name.
    Local(&'a str),
}

/// A name without the arity (`` `2``) and the generation (`#1`) at its end, and the arity. What would be left empty
/// stays whole.
pub(super) fn split_suffixes(name: &str) -> (&str, usize) {
    let (rest, arity) = split_number(name, '`').unwrap_or((name, 0));
    let (rest, _) = split_number(rest, '#').unwrap_or((rest, 0));
    (rest, arity)
}

fn split_number(name: &str, mark: char) -> Option<(&str, usize)> {
    let (head, digits) = name.rsplit_once(mark)?;
    let plain = !head.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    Some((head, digits.parse().ok().filter(|_| plain)?))
}

/// The inside of the angle brackets that a name begins with, and what follows them.
pub(super) fn bracketed(name: &str) -> Option<(&str, &str)> {
    let close = closing_bracket(name)?;
    Some((name.get(1..close)?, name.get(close.checked_add(1)?..)?))
}

/// Brackets that enclose more than this do not count: looking for each one's end must not take long.
const MAX_BRACKETED: usize = 4096;

/// Where the bracket closes that `text` begins with.
pub(super) fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().take(MAX_BRACKETED) {
        match byte {
            b'<' => depth = depth.checked_add(1)?,
            b'>' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then_some(at);
        }
    }
    None
}

impl<'a> TypeShape<'a> {
    /// `name` comes without its suffixes.
    pub(super) fn of(name: &'a str) -> Self {
        if name == "<>c" || name.starts_with("<>c__") || name.starts_with("_Closure$__") {
            return Self::Closure;
        }
        if let Some(method) = state_machine(name) {
            return Self::StateMachine(method);
        }
        Self::Plain(file_local(name).unwrap_or(name))
    }
}

/// The method of `<METHOD>d__N`, `<METHOD>d`, `VB$StateMachine_N_METHOD` or `FUNCTION@LINE`.
fn state_machine(name: &str) -> Option<MethodShape<'_>> {
    if let Some(rest) = name.strip_prefix("VB$StateMachine_") {
        let (ordinal, method) = rest.split_once('_')?;
        let fits = ordinal.bytes().all(|b| b.is_ascii_digit()) && !method.is_empty();
        return fits.then(|| MethodShape::of(method));
    }
    if let Some(function) = function_at_line(name) {
        return Some(MethodShape::of(function));
    }
    let (method, rest) = bracketed(name)?;
    let ordinal = rest.strip_prefix('d')?;
    let digits = ordinal.strip_prefix("__").unwrap_or(ordinal);
    if method.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut shape = MethodShape::of(method);
    // Dots in the names of types would look like namespaces, so Roslyn writes dashes.
    if shape.method.contains('-') {
        shape.method = Cow::Owned(shape.method.replace('-', "."));
    }
    Some(shape)
}

/// The function of `FUNCTION@LINE` or `FUNCTION@LINE-K`: machines and closures of F#, by the line that they begin at.
fn function_at_line(name: &str) -> Option<&str> {
    let (function, place) = name.rsplit_once('@')?;
    let (line, number) = place.split_once('-').unwrap_or((place, "0"));
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    (!function.is_empty() && is_number(line) && is_number(number)).then_some(function)
}

/// The name of a C# file-local type: `<File>F` and a hash of 64 digits stand in front of it.
fn file_local(name: &str) -> Option<&str> {
    let (_, rest) = bracketed(name)?;
    let (hash, name) = rest.strip_prefix('F')?.split_once("__")?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hash && !name.is_empty()).then_some(name)
}

impl<'a> MethodShape<'a> {
    /// `name` comes without its suffixes.
    pub(super) fn of(name: &'a str) -> Self {
        if name.starts_with("_Lambda$__") {
            return Self {
                method: Cow::Borrowed(""),
                part: Part::Lambda,
            };
        }
        let whole = Self {
            method: Cow::Borrowed(top_level_main(name)),
            part: Part::Whole,
        };
        let Some((outer, rest)) = bracketed(name).filter(|(outer, _)| !outer.is_empty()) else {
            return whole;
        };
        let part = if rest.starts_with("b__") {
            Part::Lambda
        } else if let Some((local, _)) = rest
            .strip_prefix("g__")
            .and_then(|rest| rest.split_once('|'))
        {
            Part::Local(local)
        } else {
            return whole;
        };
        Self {
            method: Cow::Borrowed(top_level_main(outer)),
            part,
        }
    }
}

/// `Main` for the method of top-level statements (`<Main>$`) and the entry point around an async one (`<Main>`).
fn top_level_main(name: &str) -> &str {
    if matches!(name, "<Main>$" | "<Main>") {
        "Main"
    } else {
        name
    }
}
