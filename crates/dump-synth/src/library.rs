//! libcoreclr.so as the loader mapped it: a page of headers and tables, then its variables.

use crate::core_file::program_header;
use crate::layout::dac;
use crate::space::Space;

pub(crate) const PATH: &str = "/dotnet/shared/Microsoft.NETCore.App/10.0.15/libcoreclr.so";
pub(crate) const CORE_LIB_PATH: &str =
    "/dotnet/shared/Microsoft.NETCore.App/10.0.15/System.Private.CoreLib.dll";
pub(crate) const BASE: u64 = 0x7f10_0000_0000;
/// Tables of the loader.
const DYNAMIC: u64 = 0x200;
const SYMBOLS: u64 = 0x300;
const STRINGS: u64 = 0x400;
const HASH: u64 = 0x500;
/// `g_dacTable`, and behind it the variables that it points to.
const DATA: u64 = 0x1000;
const VARIABLES: u64 = DATA + dac::ENTRIES * 8;
/// Bytes in memory.
pub(crate) const SIZE: u64 = DATA + 0x1000;

/// Maps the library; its variables are null.
pub(crate) fn map(space: &mut Space) {
    let mut page = b"\x7fELF\x02\x01\x01".to_vec();
    page.resize(16, 0);
    // a shared object, for AMD64, version 1
    page.extend([3_u16, 62].map(u16::to_le_bytes).concat());
    page.extend(1_u32.to_le_bytes());
    page.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
    page.extend(0_u32.to_le_bytes());
    page.extend([64_u16, 56, 3, 0, 0, 0].map(u16::to_le_bytes).concat());
    page.extend(program_header(1, 5, 0, 0, DATA as usize));
    page.extend(program_header(1, 6, DATA as usize, DATA, 0x1000));
    page.extend(program_header(2, 4, DYNAMIC as usize, DYNAMIC, 64));
    page.resize(0x1000, 0);
    space.filled(BASE, page, 5);
    space.filled(BASE + DATA, vec![0; 0x1000], 6);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_NULL
    let dynamic = [4, HASH, 5, STRINGS, 6, SYMBOLS, 0, 0];
    for (i, value) in dynamic.into_iter().enumerate() {
        space.put_u64(BASE + DYNAMIC + 8 * i as u64, value);
    }
    // symbol 1: a global object in section 1
    space.put_u32(BASE + SYMBOLS + 24, 1);
    space.put(BASE + SYMBOLS + 28, &[0x11, 0, 1, 0]);
    space.put_u64(BASE + SYMBOLS + 32, DATA);
    space.put_u64(BASE + SYMBOLS + 40, dac::ENTRIES * 8);
    space.put(BASE + STRINGS, b"\0g_dacTable\0");
    // one bucket, two chains: the bucket names symbol 1, whose chain ends
    for (i, value) in [1_u32, 2, 1, 0, 0].into_iter().enumerate() {
        space.put_u32(BASE + HASH + 4 * i as u64, value);
    }
}

/// Sets a variable of the runtime.
pub(crate) fn set(space: &mut Space, index: u64, value: u64) {
    let variable = BASE + VARIABLES + index * 8;
    space.put_u64(BASE + DATA + index * 8, variable);
    space.put_u64(variable, value);
}
