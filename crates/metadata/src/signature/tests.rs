use super::*;
use crate::table::Table;
use proptest::prelude::*;

fn class(rid: u32) -> SigType {
    SigType::Class(Token::new(Table::TypeDef, rid))
}

#[test]
fn reads_types() {
    let cases: &[(&[u8], SigType)] = &[
        (&[0x08], SigType::Primitive(Primitive::Int32)),
        (&[0x18], SigType::Primitive(Primitive::IntPtr)),
        (&[0x0e], SigType::String),
        (&[0x1c], SigType::Object),
        (&[0x16], SigType::TypedByRef),
        (&[0x12, 0x08], class(2)),
        (
            &[0x11, 0x80, 0x85],
            SigType::ValueType(Token::new(Table::TypeRef, 0x21)),
        ),
        (&[0x12, 0xc0, 0x04, 0x00, 0x00], class(0x1_0000)),
        (&[0x13, 0x01], SigType::Var(1)),
        (&[0x1e, 0x02], SigType::MVar(2)),
        (
            &[0x1d, 0x1d, 0x0e],
            SigType::SzArray(Box::new(SigType::SzArray(Box::new(SigType::String)))),
        ),
        (
            &[0x14, 0x0e, 2, 1, 5, 1, 0],
            SigType::Array {
                element: Box::new(SigType::String),
                rank: 2,
            },
        ),
        (
            &[0x0f, 0x01],
            SigType::Ptr(Box::new(SigType::Primitive(Primitive::Void))),
        ),
        (&[0x10, 0x1c], SigType::ByRef(Box::new(SigType::Object))),
        (&[0x20, 0x05, 0x1f, 0x09, 0x0e], SigType::String),
    ];
    for (bytes, expected) in cases {
        assert_eq!(SigType::parse(bytes).as_ref(), Some(expected), "{bytes:x?}");
    }
}

#[test]
fn reads_generic_instances() {
    let bytes = [0x15, 0x11, 0x04, 2, 0x0e, 0x15, 0x12, 0x08, 1, 0x13, 0];
    let inner = SigType::GenericInst {
        value_type: false,
        ty: Token::new(Table::TypeDef, 2),
        args: vec![SigType::Var(0)],
    };
    let outer = SigType::GenericInst {
        value_type: true,
        ty: Token::new(Table::TypeDef, 1),
        args: vec![SigType::String, inner],
    };
    assert_eq!(SigType::parse(&bytes), Some(outer));
}

#[test]
fn reads_methods_and_function_pointers() {
    let method = MethodSig::parse(&[0x20, 2, 0x01, 0x0e, 0x1b, 0x00, 1, 0x02, 0x08]).unwrap();
    assert!(method.has_this());
    assert_eq!(method.return_type, SigType::Primitive(Primitive::Void));
    let pointed = MethodSig {
        convention: 0,
        generic_params: 0,
        return_type: SigType::Primitive(Primitive::Boolean),
        params: vec![SigType::Primitive(Primitive::Int32)],
    };
    assert_eq!(
        method.params,
        [SigType::String, SigType::FnPtr(Box::new(pointed))]
    );
    assert_eq!(MethodSig::parse(&[0x06, 0x08]), None, "that is a field");
    assert_eq!(
        SigType::parse_field(&[0x20, 0, 0x01]),
        None,
        "that is a method"
    );
}

#[test]
fn nonsense_has_no_type() {
    let too_deep = [[0x1d; 100].as_slice(), &[0x08]].concat();
    let too_many = [0x15, 0x12, 0x08, 0xdf, 0xff, 0xff, 0xff]
        .into_iter()
        .chain([0x08; 10_000])
        .collect::<Vec<_>>();
    for bytes in [
        &[][..],
        &[0x15],
        &[0x15, 0x08],
        &[0x12, 0x07],
        &[0xff],
        &[0x12, 0xe0, 0, 0, 0],
        &too_deep,
        &too_many,
    ] {
        assert_eq!(SigType::parse(bytes), None);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(0_u8..0x48, 0..300)) {
        let _ = (SigType::parse(&bytes), SigType::parse_field(&bytes), MethodSig::parse(&bytes));
    }
}
