//! The list of suspension points of .NET's own images, from the files of a runtime.

use crate::shell::root;
use anyhow::{Context, Result, bail};
use asynctriage_clr::{ImagePoint, image_points, pack_image_points};
use asynctriage_dump::{Addr, Fault, FaultReason, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::Metadata;
use std::path::{Path, PathBuf};

const FILE: &str = "crates/clr/tables/suspension-points.bin";

pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.is_empty() {
        bail!(
            "usage: cargo xtask r2r-table DIR... (folders with the assemblies of a runtime, as shared/Microsoft.NETCore.App/11.0.0)"
        )
    }
    let mut images = Vec::new();
    for dir in args {
        for file in assemblies(Path::new(dir))? {
            let found = of_file(&file).with_context(|| file.display().to_string())?;
            images.extend(found.filter(|(_, points)| !points.is_empty()));
        }
    }
    images.sort_unstable_by_key(|(mvid, _)| *mvid);
    images.dedup_by_key(|(mvid, _)| *mvid);
    let packed = pack_image_points(&images)?;
    let points = images.iter().flat_map(|(_, points)| points);
    println!(
        "{} images, {} points, {} of them awaits whose number is known, {} bytes",
        images.len(),
        points.clone().count(),
        points.filter(|p| p.await_index.is_some()).count(),
        packed.len()
    );
    let path = root().join(FILE);
    std::fs::write(&path, packed).with_context(|| FILE.to_owned())
}

fn assemblies(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut files = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "dll"));
    files.sort();
    Ok(files)
}

/// MVID and points of one file; `None` for files without managed code.
fn of_file(path: &Path) -> Result<Option<([u8; 16], Vec<ImagePoint>)>> {
    let file = FileBytes(std::fs::read(path)?);
    let Ok(image) = PeImage::parse(&file, Addr::NULL, PeLayout::Flat) else {
        return Ok(None);
    };
    let bytes = image
        .metadata()
        .and_then(|(at, len)| file.slice(at, len.into()));
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let metadata = Metadata::parse(bytes)?;
    let mvid = metadata.mvid().context("an assembly without MVID")?;
    let points = image_points(&file, &image, &metadata, Addr(image.preferred_base));
    Ok(Some((mvid, points)))
}

/// A file as if it were the memory of a process from address 0 on.
struct FileBytes(Vec<u8>);

impl Memory for FileBytes {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        let from = usize::try_from(addr.0).ok()?;
        self.0.get(from..)?.get(..usize::try_from(len).ok()?)
    }

    fn run(&self, addr: Addr) -> u64 {
        (self.0.len() as u64).saturating_sub(addr.0)
    }

    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault> {
        let reason = FaultReason::Unmapped;
        self.slice(addr, len)
            .is_none()
            .then_some(Fault { addr, len, reason })
    }
}
