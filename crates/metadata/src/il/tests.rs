//! Made-up method bodies.

use super::*;

#[test]
fn headers_tell_where_the_code_is() {
    assert_eq!(body_extent(&[0x1e]), Some((1, 7)));
    let fat = [0x13, 0x30, 8, 0, 0x34, 0x12, 0, 0, 1, 0, 0, 0x11];
    assert_eq!(body_extent(&fat), Some((12, 0x1234)));
    assert_eq!(body_extent(&fat[..7]), None);
    assert_eq!(body_extent(&[0]), None);
}

#[test]
fn calls_are_found_behind_operands_that_look_like_them() {
    let code = [
        0x20, 0x28, 0x28, 0x28, 0x28, // ldc.i4
        0x45, 1, 0, 0, 0, 0x28, 0, 0, 0, // switch with one target
        0xfe, 0x06, 0x28, 0, 0, 6, // ldftn
        0x28, 1, 0, 0, 0x0a, // call
        0x6f, 2, 0, 0, 6, // callvirt
        0x28, 3, 0, // cut off
    ];
    let found: Vec<_> = calls(&code).collect();
    assert_eq!(found, [(20, Token(0x0a00_0001)), (25, Token(0x0600_0002))]);
}

#[test]
fn a_switch_longer_than_the_code_ends_it() {
    assert_eq!(calls(&[0x45, 0xff, 0xff, 0xff, 0xff, 0]).count(), 0);
}
