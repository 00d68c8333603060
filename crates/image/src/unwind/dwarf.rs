//! From a frame to its caller by one row of `.eh_frame`.
//!
//! gimli decodes it. What it says is done for all registers, and what cannot be done ends the walk: a step by the frame
//! pointer instead would not be proved.

use super::Break;
use asynctriage_dump::{Addr, Memory};
use gimli::{
    CfaRule, EhFrame, Encoding, EndianSlice, EvaluationResult, LittleEndian, Register,
    RegisterRule, UnwindExpression, Value,
};

pub(super) type Bytes<'m> = EndianSlice<'m, LittleEndian>;

/// Operations of one expression: compilers write ten, and no loops.
const MAX_OPERATIONS: u32 = 256;

/// What holds at one instruction.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cfa: CfaRule<usize>,
    pub(super) rules: Vec<(Register, RegisterRule<usize>)>,
    pub(super) return_register: Register,
    pub(super) encoding: Encoding,
    /// Whether the frame is what the system pushed to call a handler of a signal.
    pub(super) is_signal: bool,
}

/// The caller of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// Where it goes on; `None` when there is none.
    pub(super) ip: Option<u64>,
    /// Its stack pointer, unless `saved` has another.
    pub(super) sp: u64,
    /// Registers by their DWARF numbers, as far as a rule speaks of them; `None` for those that are lost.
    pub(super) saved: Vec<(u16, Option<u64>)>,
    /// Whether the system interrupted it.
    pub(super) is_interrupted: bool,
}

/// Where to read from.
pub(super) struct Frame<'a, 'm> {
    pub(super) memory: &'a dyn Memory,
    pub(super) frames: &'a EhFrame<Bytes<'m>>,
    /// A register by its DWARF number, when it is known.
    pub(super) register: &'a dyn Fn(u16) -> Option<u64>,
}

impl Frame<'_, '_> {
    /// The caller. `link`: whether the return address is a register that calls set (arm64), so that it is still there
    /// when no rule speaks of it.
    pub(super) fn leave(&self, row: &Row, link: bool) -> Result<Caller, Break> {
        let sp = self.cfa(row)?;
        let mut saved = Vec::with_capacity(row.rules.len());
        let mut ip = None;
        let mut is_told = false;
        for (register, rule) in &row.rules {
            let value = self.value(row, *register, rule, sp)?;
            if *register == row.return_register {
                is_told = true;
                // a caller that does not exist has no place to go on
                let has_caller = *rule != RegisterRule::Undefined;
                ip = has_caller
                    .then(|| value.ok_or(Break::UnknownRegister))
                    .transpose()?;
            }
            saved.push((register.0, value));
        }
        if !is_told {
            let kept = link
                .then(|| (self.register)(row.return_register.0))
                .flatten();
            ip = Some(kept.ok_or(Break::BadEntry)?);
        }
        Ok(Caller {
            ip,
            sp,
            saved,
            is_interrupted: row.is_signal,
        })
    }

    fn cfa(&self, row: &Row) -> Result<u64, Break> {
        match &row.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = (self.register)(register.0).ok_or(Break::UnknownRegister)?;
                Ok(base.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(row, expression, None),
        }
    }

    /// The value that a register had in the caller; `None` when it is lost.
    fn value(
        &self,
        row: &Row,
        register: Register,
        rule: &RegisterRule<usize>,
        cfa: u64,
    ) -> Result<Option<u64>, Break> {
        let read = |at: u64| {
            let value = self.memory.u64(Addr(at));
            value.ok_or(Break::NoStack(Addr(at))).map(Some)
        };
        match rule {
            RegisterRule::Undefined | RegisterRule::Architectural => Ok(None),
            RegisterRule::SameValue => Ok((self.register)(register.0)),
            RegisterRule::Offset(offset) => read(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Ok(Some(cfa.wrapping_add_signed(*offset))),
            RegisterRule::Register(other) => Ok((self.register)(other.0)),
            RegisterRule::Expression(e) => read(self.evaluate(row, e, Some(cfa))?),
            RegisterRule::ValExpression(e) => self.evaluate(row, e, Some(cfa)).map(Some),
            RegisterRule::Constant(value) => Ok(Some(*value)),
        }
    }

    fn evaluate(
        &self,
        row: &Row,
        expression: &UnwindExpression<usize>,
        cfa: Option<u64>,
    ) -> Result<u64, Break> {
        let expression = expression.get(self.frames).map_err(|_| Break::BadEntry)?;
        let mut evaluation = expression.evaluation(row.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        // expressions of registers begin with the frame's address on the stack
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate();
        for _ in 0..MAX_OPERATIONS {
            result = match result.map_err(|_| Break::BadEntry)? {
                EvaluationResult::Complete => {
                    let value = evaluation.value_result().ok_or(Break::BadEntry)?;
                    return value.to_u64(u64::MAX).map_err(|_| Break::BadEntry);
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = (self.register)(register.0).ok_or(Break::UnknownRegister)?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory {
                    address, size: 8, ..
                } => {
                    let at = Addr(address);
                    let value = self.memory.u64(at).ok_or(Break::NoStack(at))?;
                    evaluation.resume_with_memory(Value::Generic(value))
                }
                _ => return Err(Break::BadEntry),
            };
        }
        Err(Break::BadEntry)
    }
}
