//! The list of suspension points of .NET's own images, from the files of a runtime.

use crate::shell::root;
use anyhow::{Context, Result, bail};
use asynctriage_clr::{ImageFile, pack_image_points};
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
            let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
            let image = ImageFile::read(&bytes).filter(|i| !i.points.is_empty());
            images.extend(image.map(|i| (i.mvid, i.points)));
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
