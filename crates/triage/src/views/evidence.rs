//! A report together with what its statements rest on.

use super::claims::claims;
use crate::options::Options;
use crate::summary::analyse_and;
use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::Dump;
use asynctriage_report::{BundleModule, ClaimsReport, Report};
use std::path::PathBuf;

/// What a dump says, and how that can be checked.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The report.
    pub report: Report,
    /// What its statements rest on.
    pub claims: ClaimsReport,
    /// The managed modules of the process that were looked at.
    pub modules: Vec<BundleModule>,
    /// Symbol files of this machine that gave lines.
    pub symbols: Vec<PathBuf>,
}

/// Analyses a dump and keeps what every statement of the report rests on.
///
/// # Errors
/// When the dump has no .NET runtime that can be read.
pub fn evidence(dump: &Dump, options: &Options) -> Result<Evidence, RuntimeError> {
    let (report, (claims, modules, symbols)) = analyse_and(dump, options, |analysis, report| {
        (
            claims(analysis, report),
            modules(analysis.rt),
            analysis.lines.files(),
        )
    })?;
    Ok(Evidence {
        report,
        claims,
        modules,
        symbols,
    })
}

fn modules(rt: &Runtime<'_>) -> Vec<BundleModule> {
    let mut out: Vec<BundleModule> = rt
        .modules_seen()
        .iter()
        .map(|module| BundleModule {
            name: module.name.clone(),
            path: rt.module_path(module.addr).map(str::to_owned),
            mvid: module.metadata.as_ref().and_then(|m| m.mvid()).map(guid),
        })
        .collect();
    out.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    out
}

/// As people write it: the first three parts are little endian in files.
fn guid(bytes: [u8; 16]) -> String {
    let n = u128::from_be_bytes(bytes);
    let [a, b, c, d, e, f, g, h, ..] = bytes;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        u32::from_le_bytes([a, b, c, d]),
        u16::from_le_bytes([e, f]),
        u16::from_le_bytes([g, h]),
        n >> 48 & 0xffff,
        n & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::guid;

    #[test]
    fn a_guid_is_written_as_people_do() {
        let bytes = [
            0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
            0xee, 0xff,
        ];
        assert_eq!(guid(bytes), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
