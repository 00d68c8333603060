//! The method that a delegate calls.
//!
//! A delegate keeps the address of code: that of the method, or that of a stub which jumps there (8.0 to 11.0, x64). The
//! stub's data lies beside its code: the target, and the MethodDesc, which is there before the method is compiled.

use super::method::MethodRef;
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};

/// Static methods stand in the second field; the first one has the code that drops the object then.
const CODE: [&str; 2] = ["_methodPtrAux", "_methodPtr"];
/// `jmp [rip + n]`.
const JUMP: [u8; 2] = [0xff, 0x25];
const JUMP_LENGTH: u64 = 6;
/// `mov r10, [rip + n]`: the MethodDesc, for what compiles the method.
const LOAD: [u8; 3] = [0x4c, 0x8b, 0x15];
const LOAD_LENGTH: u64 = 7;

impl Runtime<'_> {
    /// The method that a delegate calls; `None` where its code is a stub of another kind.
    #[must_use]
    pub fn delegate_method(&self, delegate: Addr) -> Option<MethodRef> {
        let code = CODE.iter().filter_map(|f| self.reference(delegate, f));
        code.into_iter()
            .find_map(|ip| self.method_at(ip).or_else(|| self.method_of_stub(ip)))
    }

    fn method_of_stub(&self, ip: Addr) -> Option<MethodRef> {
        let m = self.memory;
        let starts = |bytes: &[u8]| {
            let mut all = bytes.iter().zip(0_u64..);
            all.all(|(byte, n)| m.u8(ip + n) == Some(*byte))
        };
        if starts(&LOAD) {
            return self.described(m.ptr(slot(m, ip, LOAD_LENGTH)?)?);
        }
        if !starts(&JUMP) {
            return None;
        }
        let target = slot(m, ip, JUMP_LENGTH)?;
        let code = m.ptr(target).and_then(|code| self.method_at(code));
        code.or_else(|| self.described(m.ptr(target + 8)?))
    }

    /// The method of a MethodDesc, when its module has a method of that row.
    fn described(&self, desc: Addr) -> Option<MethodRef> {
        let method = self.method_of_desc(desc.non_null()?)?;
        self.method_definition(&method).map(|_| method)
    }
}

/// Where an instruction of `length` bytes reads that ends with a distance from its own end.
fn slot(m: &dyn Memory, ip: Addr, length: u64) -> Option<Addr> {
    let next = ip + length;
    let distance = m.u32(next.back(4))?.cast_signed();
    let size = u64::from(distance.unsigned_abs());
    Some(if distance < 0 {
        next.back(size)
    } else {
        next + size
    })
}
