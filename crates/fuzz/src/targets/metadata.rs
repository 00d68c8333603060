//! Metadata of arbitrary bytes: every table is walked, every signature and attribute decoded.

use asynctriage_metadata::{Metadata, MethodSig, SigType, Table, Token};

/// Rows of a table that are looked at; a header may promise millions.
const MAX_ROWS: u32 = 64;

pub(crate) fn run(bytes: &[u8]) {
    let _ = SigType::parse(bytes);
    let _ = SigType::parse_field(bytes);
    let _ = MethodSig::parse(bytes);
    let Ok(metadata) = Metadata::parse(bytes.to_vec()) else {
        return;
    };
    let _ = (
        metadata.module_name(),
        metadata.mvid(),
        metadata.assembly_name(),
        metadata.assembly_version(),
    );
    let rows = |table| 1..=metadata.rows(table).min(MAX_ROWS);
    for rid in rows(Table::TypeDef) {
        let _ = (
            metadata.type_def(rid),
            metadata.full_name(rid),
            metadata.enclosing(rid),
        );
        let _ = metadata.nested_types(rid).take(8).count();
        for field in metadata.field_rids_of_type(rid).take(8) {
            let _ = (metadata.field(field), metadata.field_owner(field));
            let _ = metadata.field_type(field).map(|t| metadata.type_text(&t));
        }
        for method in metadata.method_rids_of_type(rid).take(8) {
            let _ = (
                metadata.method(method),
                metadata.method_owner(method),
                metadata.method_signature(method),
            );
        }
        let token = Token::new(Table::TypeDef, rid);
        let _ = metadata.generic_params(token).take(8).count();
        for attribute in metadata.custom_attributes(token).take(8) {
            let _ = metadata.attribute_args(&attribute);
        }
    }
    for rid in rows(Table::TypeRef) {
        let _ = (
            metadata.type_ref_full_name(rid),
            metadata.type_ref_assembly(rid),
        );
    }
    for rid in rows(Table::MemberRef) {
        let _ = metadata.member_ref(rid);
    }
    for rid in rows(Table::TypeSpec) {
        let _ = metadata.type_spec(rid).map(|t| metadata.type_text(&t));
    }
    let _ = metadata.find_type("System", "String");
}
