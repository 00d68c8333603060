//! C# names of types and methods, those that compilers generate among them.
//!
//! | in metadata | here |
//! | --- | --- |
//! | ``Ns.Store`1+<GetAsync>d__3`` | `Ns.Store<String>.GetAsync` |
//! | `Ns.Store+<>c__DisplayClass1_0+<<Run>b__0>d` | `Ns.Store.Run lambda` |
//! | `Ns.Store+<<Run>g__Local\|2_0>d` | `Ns.Store.Run.Local` |
//! | `Ns.Store+<Ns-IStore-GetAsync>d__1` | `Ns.Store.Ns.IStore.GetAsync` |
//! | `Program+<<Main>$>d__0` | `Program.Main` |
//! | `Ns.Store+VB$StateMachine_3_GetAsync` | `Ns.Store.GetAsync` |
//!
//! A name of any other shape stays as it is: no function here fails, and none answers with nothing.

mod around;
mod local;
mod shape;
mod text;

pub use local::{LocalName, hoisted_local};
pub use text::simple_type_name;

use crate::types::TypePath;
use shape::{MethodShape, Part, TypeShape, split_suffixes};
use text::explicit_name;

/// What a type or method without any name is called.
const UNNAMED: &str = "<unnamed>";
const LAMBDA: &str = " lambda";

/// A method's name as a C# programmer would write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// `Namespace.Type<Guid>.Method<String>`; a lambda is `Namespace.Type.Method lambda`.
    pub text: String,
    /// Whether it is a lambda; `text` ends with ` lambda` then.
    pub is_lambda: bool,
    /// Whether the type is the state machine of a method, as C# and Visual Basic name them.
    pub is_state_machine: bool,
}

impl MethodName {
    /// The name of the `number`th lambda of its method, from 1: `lambda`, `lambda#2`, `lambda#3`. Names of methods that
    /// are no lambdas do not change.
    #[must_use]
    pub fn numbered(&self, number: usize) -> String {
        if self.is_lambda && number > 1 {
            format!("{}#{number}", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// The method that a state machine type was made for.
///
/// `args` are the generic arguments of the exact type in their order, as simple names; leave them out when they are
/// not known. They go to the segments by the arity that each has in its name; those of a closure go to the method
/// around the lambda. A type that is no state machine is named itself.
#[must_use]
pub fn state_machine_method(path: &TypePath, args: &[String]) -> MethodName {
    state_machine_around(path, args, 0)
}

/// The same, where the machine may be that of a local function: the compiler gives it the arguments of the generic
/// method around it first, `around` many ([`Metadata::params_around_local`](crate::Metadata::params_around_local)).
#[must_use]
pub fn state_machine_around(path: &TypePath, args: &[String], around: usize) -> MethodName {
    let written = Written::of(path, args, around);
    MethodName {
        is_lambda: written.last == Last::StateMachine { lambda: true },
        is_state_machine: matches!(written.last, Last::StateMachine { .. }),
        text: written.finish(path),
    }
}

/// A plain method of a type: also a lambda, a local function, or `MoveNext` of a state machine, which is named after
/// the method in the source.
///
/// `args` and `method_args` are the generic arguments of the type and of the method, as simple names.
#[must_use]
pub fn method(
    path: &TypePath,
    args: &[String],
    method_name: &str,
    method_args: &[String],
) -> String {
    method_around(path, args, method_name, method_args, 0)
}

/// The same, where the method may be a local function, whose first `around` arguments are those of the generic method
/// around it.
#[must_use]
pub fn method_around(
    path: &TypePath,
    args: &[String],
    method_name: &str,
    method_args: &[String],
    around: usize,
) -> String {
    let mut written = Written::of(path, args, around);
    let is_machine = matches!(written.last, Last::StateMachine { .. });
    let is_move_next = method_name == "MoveNext" || method_name.ends_with(".MoveNext");
    if !(is_machine && is_move_next) {
        let (bare, _) = split_suffixes(method_name);
        written.add_method(&MethodShape::of(bare), method_args);
    }
    written.finish(path)
}

/// What the last written segment is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Type,
    StateMachine { lambda: bool },
}

/// The parts of a name that will stand between dots.
struct Written<'a> {
    parts: Vec<String>,
    /// Arguments of closures: they belong to the generic method that the closure was made for.
    of_closures: Vec<&'a str>,
    /// Arguments of a local function that belong to the method around it.
    around: usize,
    last: Last,
}

impl<'a> Written<'a> {
    fn of(path: &TypePath, args: &'a [String], around: usize) -> Self {
        let mut written = Self {
            parts: Vec::new(),
            of_closures: Vec::new(),
            around,
            last: Last::Type,
        };
        let mut args = args;
        for (i, segment) in path.segments.iter().enumerate() {
            let (bare, arity) = split_suffixes(segment);
            let innermost = i.checked_add(1) == Some(path.segments.len());
            // Languages that write no arities leave all arguments to the last segment.
            let count = if innermost {
                args.len()
            } else {
                arity.min(args.len())
            };
            let (own, rest) = args.split_at_checked(count).unwrap_or((args, &[]));
            args = rest;
            written.add_type(bare, segment, own);
        }
        written
    }

    fn add_type(&mut self, bare: &str, raw: &str, args: &'a [String]) {
        match TypeShape::of(bare) {
            TypeShape::Closure => self.of_closures.extend(args.iter().map(String::as_str)),
            TypeShape::StateMachine(method) => {
                self.add_method(&method, args);
                self.last = Last::StateMachine {
                    lambda: method.part == Part::Lambda,
                };
            }
            TypeShape::Plain(name) => {
                let name = if name.is_empty() { raw } else { name };
                self.parts
                    .push(with_args(name, args.iter().map(String::as_str)));
                self.last = Last::Type;
            }
        }
    }

    fn add_method(&mut self, shape: &MethodShape<'_>, args: &[String]) {
        let outer = std::mem::take(&mut self.of_closures);
        let mut own = args.iter().map(String::as_str);
        let name = explicit_name(&shape.method);
        match shape.part {
            Part::Whole if name.is_empty() => {}
            Part::Whole => self
                .parts
                .push(with_args(&name, outer.into_iter().chain(own))),
            Part::Local(local) if outer.is_empty() => {
                let outer = with_args(&name, own.by_ref().take(self.around));
                self.parts.extend([outer, with_args(local, own)]);
            }
            Part::Local(local) => self
                .parts
                .extend([with_args(&name, outer.into_iter()), with_args(local, own)]),
            Part::Lambda => {
                let method = with_args(&name, outer.into_iter().chain(own));
                match self.parts.last_mut() {
                    // Visual Basic does not say which method its lambda stands in.
                    Some(ty) if method.is_empty() => ty.push_str(LAMBDA),
                    _ => self.parts.push(method + LAMBDA),
                }
            }
        }
    }

    fn finish(self, path: &TypePath) -> String {
        let text = self.parts.join(".");
        match (text.is_empty(), path.namespace.is_empty()) {
            (false, true) => text,
            (false, false) => format!("{}.{text}", path.namespace),
            (true, _) => Some(path.to_string())
                .filter(|raw| !raw.is_empty())
                .unwrap_or_else(|| UNNAMED.to_owned()),
        }
    }
}

/// `name<A, B>`.
fn with_args<'a>(name: &str, args: impl Iterator<Item = &'a str>) -> String {
    let args = args.collect::<Vec<_>>();
    if args.is_empty() {
        name.to_owned()
    } else {
        format!("{name}<{}>", args.join(", "))
    }
}

#[cfg(test)]
mod tests;
