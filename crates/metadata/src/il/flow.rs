//! Where the values on the evaluation stack come from, followed through a method's code from its begin to its end.
//!
//! One pass in the order of the code: what compilers make of an await needs no more. Where ways meet that bring
//! different values, the value has two origins, or none that is known.

use super::effect::{effect, ends_block, is_branch};
use super::{Instruction, SWITCH, instructions};
use crate::token::Token;
use std::collections::HashMap;

/// Values of the stack that are followed; deeper ones are not known.
const MAX_STACK: usize = 256;
/// Stacks at the targets of branches that are kept.
const MAX_SNAPSHOTS: usize = 1 << 12;
/// Targets of branches that are looked at between a store to a local and a load of it.
const MAX_JOINS: usize = 64;

/// What a value is, or what made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    #[default]
    Unknown,
    Null,
    Number(i32),
    Argument(u16),
    /// What this method returned.
    Call(Token),
    /// Made by this constructor.
    New(Token),
    /// What this field holds.
    Field(Token),
}

/// A value on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) origin: Origin,
    /// What else it can be.
    pub(super) or: Option<Origin>,
    /// The local whose address it is; `origin` is that of what stands in the local then.
    local: Option<u16>,
}

/// How a call changes the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallShape {
    /// How many values it takes, the object among them.
    pub(super) takes: usize,
    /// Whether the first of them is an object.
    pub(super) has_this: bool,
    /// Whether it returns something.
    pub(super) returns: bool,
    /// Whether what it returns is but another face of its first value: the awaiter of a task.
    pub(super) passes_on: bool,
}

/// What instructions refer to.
pub(super) trait Context {
    /// How a call of a method changes the stack; of a constructor as if it were called on an object. `None` when its
    /// signature cannot be read.
    fn shape(&mut self, method: Token) -> Option<CallShape>;
    /// The same for a call through a pointer, without the pointer itself.
    fn indirect_shape(&mut self, signature: Token) -> Option<CallShape>;
    /// A method is called with these values.
    fn called(&mut self, at: u32, method: Token, values: &[Value]);
    /// A field is set.
    fn stored(&mut self, next: u32, field: Token, value: Value);
}

/// Goes through a method's code.
pub(super) fn follow(code: &[u8], context: &mut impl Context) {
    let mut flow = Flow {
        jumps: Jumps::of(code),
        stack: Vec::new(),
        locals: HashMap::new(),
        snapshots: HashMap::new(),
        context,
    };
    let mut falls_through = true;
    for instruction in instructions(code) {
        flow.arrive(instruction.at, falls_through);
        flow.execute(&instruction);
        falls_through = !ends_block(instruction.opcode);
    }
}

struct Flow<'a, C> {
    jumps: Jumps,
    stack: Vec<Value>,
    /// By local: what was stored last, and where.
    locals: HashMap<u16, (Value, u32)>,
    /// Stacks that branches bring to their targets; empty ones are left out.
    snapshots: HashMap<u32, Vec<Value>>,
    context: &'a mut C,
}

impl<C: Context> Flow<'_, C> {
    fn arrive(&mut self, at: u32, falls_through: bool) {
        if !falls_through {
            self.stack.clear();
        }
        let Some(brought) = self.snapshots.remove(&at) else {
            return;
        };
        if !falls_through {
            self.stack = brought;
        } else if brought.len() == self.stack.len() {
            for (mine, other) in self.stack.iter_mut().zip(brought) {
                *mine = merge(*mine, other);
            }
        } else {
            self.stack.clear();
        }
    }

    fn execute(&mut self, i: &Instruction<'_>) {
        match i.opcode {
            0x27 | 0x2a | 0xfe1a => {}
            0x25 => {
                let top = self.pop();
                self.push(top);
                self.push(top);
            }
            0x6f | 0x28 => self.call(i),
            0x29 => self.indirect(i),
            0x73 => self.construct(i),
            0x7b..=0x7e => self.field(i),
            // castclass, isinst, box, unbox.any, ldobj: still the same thing
            0x71 | 0x74 | 0x75 | 0x8c | 0xa5 => {
                let value = self.pop();
                self.push(Value {
                    local: None,
                    ..value
                });
            }
            0xfe15 => {
                let local = self.pop().local;
                self.forget(local);
            }
            0xdc..=0xde => self.stack.clear(),
            opcode => {
                if !self.variable(i) && !self.constant(i) {
                    self.plain(opcode);
                }
            }
        }
        self.branch(i);
    }

    fn plain(&mut self, opcode: u16) {
        match effect(opcode) {
            Some((takes, leaves)) => {
                for _ in 0..takes {
                    self.pop();
                }
                for _ in 0..leaves {
                    self.push(Value::default());
                }
            }
            // a branch without a condition, or no instruction at all
            None if is_branch(opcode) => {}
            None => self.stack.clear(),
        }
    }

    /// Arguments and locals; whether it was one.
    fn variable(&mut self, i: &Instruction<'_>) -> bool {
        let short = |from: u16| i.opcode.saturating_sub(from);
        let operand = || match *i.operand {
            [byte] => byte.into(),
            [low, high, ..] => u16::from_le_bytes([low, high]),
            [] => 0,
        };
        match i.opcode {
            0x02..=0x05 => self.push_argument(short(0x02)),
            0x0e | 0x0f | 0xfe09 | 0xfe0a => self.push_argument(operand()),
            0x06..=0x09 => self.load(short(0x06), i.at, false),
            0x11 | 0xfe0c => self.load(operand(), i.at, false),
            0x12 | 0xfe0d => self.load(operand(), i.at, true),
            0x0a..=0x0d => self.store(short(0x0a), i.at),
            0x13 | 0xfe0e => self.store(operand(), i.at),
            0x10 | 0xfe0b => {
                self.pop();
            }
            _ => return false,
        }
        true
    }

    fn constant(&mut self, i: &Instruction<'_>) -> bool {
        let origin = match i.opcode {
            0x14 => Origin::Null,
            0x15..=0x1e => Origin::Number(i32::from(i.opcode).saturating_sub(0x16)),
            0x1f => Origin::Number(i.operand.first().map_or(0, |b| b.cast_signed().into())),
            0x20 => Origin::Number(
                i.operand
                    .first_chunk()
                    .map_or(0, |b| i32::from_le_bytes(*b)),
            ),
            _ => return false,
        };
        self.push_origin(origin);
        true
    }

    fn push_argument(&mut self, number: u16) {
        self.push_origin(Origin::Argument(number));
    }

    fn push_origin(&mut self, origin: Origin) {
        self.push(Value {
            origin,
            ..Value::default()
        });
    }

    fn load(&mut self, local: u16, at: u32, address: bool) {
        let known = self.locals.get(&local);
        let value = known
            .filter(|(_, stored)| !self.jumps.meet(*stored, at))
            .map_or_else(Value::default, |(value, _)| *value);
        self.push(Value {
            local: address.then_some(local),
            ..value
        });
    }

    fn store(&mut self, local: u16, at: u32) {
        let value = self.pop();
        let value = Value {
            local: None,
            ..value
        };
        self.locals.insert(local, (value, at));
    }

    /// Somebody else may have written to a local.
    fn forget(&mut self, local: Option<u16>) {
        if let Some(local) = local {
            self.locals.remove(&local);
        }
    }

    fn field(&mut self, i: &Instruction<'_>) {
        let Some(token) = i.token() else { return };
        if i.opcode == 0x7d {
            let value = self.pop();
            self.pop();
            self.context.stored(i.next, token, value);
            return;
        }
        if i.opcode != 0x7e {
            self.pop();
        }
        self.push_origin(Origin::Field(token));
    }

    fn call(&mut self, i: &Instruction<'_>) {
        let Some(method) = i.token() else { return };
        let Some(shape) = self.context.shape(method) else {
            self.stack.clear();
            return;
        };
        let values = self.take(shape.takes);
        self.context.called(i.at, method, &values);
        // by reference: out and ref arguments; a structure that is called keeps what it is
        for value in values.iter().skip(usize::from(shape.has_this)) {
            self.forget(value.local.filter(|_| !shape.passes_on));
        }
        if shape.returns {
            let first = values.first().copied().filter(|_| shape.passes_on);
            let value = first.unwrap_or(Value {
                origin: Origin::Call(method),
                ..Value::default()
            });
            self.push(Value {
                local: None,
                ..value
            });
        }
    }

    fn indirect(&mut self, i: &Instruction<'_>) {
        let shape = i.token().and_then(|t| self.context.indirect_shape(t));
        let Some(shape) = shape else {
            self.stack.clear();
            return;
        };
        self.pop();
        for value in self.take(shape.takes) {
            self.forget(value.local);
        }
        if shape.returns {
            self.push(Value::default());
        }
    }

    fn construct(&mut self, i: &Instruction<'_>) {
        let Some(constructor) = i.token() else { return };
        match self.context.shape(constructor) {
            Some(shape) => {
                for value in self.take(shape.takes.saturating_sub(1)) {
                    self.forget(value.local);
                }
            }
            None => self.stack.clear(),
        }
        self.push_origin(Origin::New(constructor));
    }

    /// Keeps the stack for the targets of a branch.
    fn branch(&mut self, i: &Instruction<'_>) {
        if self.stack.is_empty() {
            return;
        }
        let target = is_branch(i.opcode).then(|| i.target()).flatten();
        let cases = (i.opcode == SWITCH).then(|| i.cases());
        for target in target.into_iter().chain(cases.into_iter().flatten()) {
            if target < i.next || self.snapshots.len() >= MAX_SNAPSHOTS {
                continue;
            }
            match self.snapshots.get_mut(&target) {
                Some(known) if known.len() == self.stack.len() => {
                    for (mine, other) in known.iter_mut().zip(&self.stack) {
                        *mine = merge(*mine, *other);
                    }
                }
                Some(known) => known.clear(),
                None => {
                    self.snapshots.insert(target, self.stack.clone());
                }
            }
        }
    }

    /// The last `count` values, in the order in which they were pushed.
    fn take(&mut self, count: usize) -> Vec<Value> {
        let count = count.min(MAX_STACK);
        let missing = count.saturating_sub(self.stack.len());
        let mut values = vec![Value::default(); missing];
        let keep = self.stack.len().saturating_sub(count);
        values.extend(self.stack.drain(keep..));
        values
    }

    fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    fn push(&mut self, value: Value) {
        if self.stack.len() >= MAX_STACK {
            self.stack.clear();
        }
        self.stack.push(value);
    }
}

/// One of two values.
fn merge(a: Value, b: Value) -> Value {
    let local = a.local.filter(|_| a.local == b.local);
    let of = |v: Value| Value { local, ..v };
    match (a.origin, b.origin) {
        _ if (a.origin, a.or) == (b.origin, b.or) => of(a),
        (Origin::Null, _) => of(b),
        (_, Origin::Null) => of(a),
        (Origin::Unknown, _) | (_, Origin::Unknown) => Value::default(),
        (first, second) if a.or.is_none() && b.or.is_none() => Value {
            origin: first,
            or: Some(second),
            local,
        },
        _ => Value::default(),
    }
}

/// All branches of a method, by target.
struct Jumps(Vec<(u32, u32)>);

impl Jumps {
    fn of(code: &[u8]) -> Self {
        let mut all = Vec::new();
        for i in instructions(code) {
            let target = is_branch(i.opcode).then(|| i.target()).flatten();
            all.extend(target.map(|t| (t, i.at)));
            if i.opcode == SWITCH {
                all.extend(i.cases().map(|t| (t, i.at)));
            }
        }
        all.sort_unstable();
        Self(all)
    }

    /// Whether another way than straight on may lead to `load` without passing `store`, or with another value.
    fn meet(&self, store: u32, load: u32) -> bool {
        let first = self.0.partition_point(|(target, _)| *target <= store);
        let between = self.0.get(first..).unwrap_or_default();
        let mut between = between
            .iter()
            .take_while(|(target, _)| *target <= load)
            .enumerate();
        between.any(|(n, (_, from))| n >= MAX_JOINS || *from < store || *from > load)
    }
}
