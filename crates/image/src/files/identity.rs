//! Whether a file is the one that the process had mapped, and where its bytes belong.

use super::bundle::Bundle;
use super::changed::{Range, Writable, page_size, variables};
use super::lacks;
use super::memory::FileMemory;
use super::relocate;
use crate::elf::ElfImage;
use crate::pe::{PeImage, PeLayout};
use asynctriage_dump::{Addr, Dump, HostFile, ImageStamp, MappedFile, Under};
use std::collections::BTreeMap;

/// What belongs where and what shows it, or what shows that it is another file.
pub(super) type Verdict = Result<(Vec<Under>, String), String>;

/// A file that the dump lacks parts of.
#[derive(Debug)]
pub(super) struct Wanted<'d> {
    /// Its path in the process.
    pub(super) path: &'d str,
    mappings: Vec<&'d MappedFile>,
}

impl<'d> Wanted<'d> {
    /// All files with absent parts, by path.
    pub(super) fn all(dump: &'d Dump) -> Vec<Self> {
        let mut by_path: BTreeMap<&str, Vec<&MappedFile>> = BTreeMap::new();
        for file in &dump.files {
            by_path.entry(&file.path).or_default().push(file);
        }
        let wanted = by_path
            .into_iter()
            .filter(|(_, mappings)| mappings.iter().any(|f| lacks(dump, f)));
        wanted
            .map(|(path, mappings)| Self { path, mappings })
            .collect()
    }

    /// Whether `file` is the one, and where its bytes belong; `None` when it is no image at all.
    pub(super) fn examine(
        &self,
        dump: &Dump,
        writable: &Writable,
        file: &HostFile,
    ) -> Option<Verdict> {
        let stamped = self.mappings.iter().find_map(|m| Some((m.start, m.stamp?)));
        Some(match (stamped, file.get(..4)?) {
            (Some((base, stamp)), _) => loaded_by_windows(dump, writable, file, base, stamp),
            (None, [b'M', b'Z', ..]) => self.mapped_assembly(dump, writable, file),
            (None, [0x7F, b'E', b'L', b'F']) => self.mapped_elf(dump, writable, file),
            _ => return None,
        })
    }

    /// A managed assembly on Linux: the dump does not show its header, so the size of the file has to do; whoever reads
    /// its metadata compares the numbers of types, methods and fields.
    fn mapped_assembly(&self, dump: &Dump, writable: &Writable, file: &HostFile) -> Verdict {
        let memory = FileMemory(file);
        let image =
            PeImage::parse(&memory, Addr::NULL, PeLayout::Flat).map_err(|e| e.to_string())?;
        let starts = self.mappings.iter().filter(|m| m.file_offset == 0);
        let shown = starts
            .filter_map(|m| PeImage::parse(&dump.memory, m.start, PeLayout::Flat).ok())
            .next();
        if let Some(shown) = shown {
            same_stamp(&image, shown.time_date_stamp, shown.size_of_image)?;
            return Ok((
                writable.keep_out(&self.parts(file), &[]),
                "its time stamp and size are those of the header in the dump".into(),
            ));
        }
        let len = (file.len() as u64).checked_next_multiple_of(page_size(dump));
        let mapped = self.mappings.iter().map(|m| {
            m.file_offset
                .saturating_add(m.end.since(m.start).unwrap_or(0))
        });
        if mapped.max() != len {
            return Err("its size differs from what the process had mapped".into());
        }
        Ok((
            writable.keep_out(&self.parts(file), &[]),
            "its size is that of the mapped file".into(),
        ))
    }

    fn mapped_elf(&self, dump: &Dump, writable: &Writable, file: &HostFile) -> Verdict {
        let memory = FileMemory(file);
        let there = ElfImage::parse(&memory, Addr::NULL).map_err(|e| e.to_string())?;
        let there = there
            .build_id(&memory)
            .ok_or("it has no build id to compare")?;
        let starts = self.mappings.iter().filter(|m| m.file_offset == 0);
        let (image, here) = starts
            .filter_map(|m| {
                let image = ElfImage::parse(&dump.memory, m.start).ok()?;
                let id = image.build_id(&dump.memory)?;
                Some((image, id))
            })
            .next()
            .ok_or("the dump does not show the build id of the process's file")?;
        if here != there {
            return Err("its build id differs".into());
        }
        let because = self.bundled(&image, dump, file)?;
        let variables = variables(&image, page_size(dump));
        let parts = writable.keep_out(&self.parts(file), &variables);
        Ok((parts, because.into()))
    }

    /// What shows that `file`, whose build id is the right one, is the process's: a single-file application shares the
    /// id with all of its version.
    fn bundled(
        &self,
        image: &ElfImage,
        dump: &Dump,
        file: &HostFile,
    ) -> Result<&'static str, String> {
        let behind = self.mappings.iter().copied();
        let behind = behind.filter(|m| m.file_offset >= image.file_size());
        if behind.clone().next().is_none() {
            return Ok("its build id is that in the dump");
        }
        let bundle = Bundle::of(file, image.file_size())
            .ok_or("the process had more of it mapped than its segments, and it bundles nothing")?;
        if bundle.has(behind, page_size(dump)) {
            Ok("its build id is that in the dump, and what it bundles is where the process had it")
        } else {
            Err("its build id is that of every single-file application of its .NET version, and what it bundles is elsewhere than the process had it".into())
        }
    }

    /// Each mapping from its place in the file on.
    fn parts(&self, file: &HostFile) -> Vec<Under> {
        let part = |m: &&MappedFile| Under {
            start: m.start,
            file: file.clone(),
            offset: m.file_offset,
            len: m.end.since(m.start).unwrap_or(0),
        };
        self.mappings.iter().map(part).collect()
    }
}

/// A module of a minidump, which states what tells its builds apart.
fn loaded_by_windows(
    dump: &Dump,
    writable: &Writable,
    file: &HostFile,
    base: Addr,
    stamp: ImageStamp,
) -> Verdict {
    let memory = FileMemory(file);
    let image = PeImage::parse(&memory, Addr::NULL, PeLayout::Flat).map_err(|e| e.to_string())?;
    same_stamp(&image, stamp.time_date_stamp, stamp.size_of_image)?;
    let mut parts = relocate::pages(dump, &image, &memory, base);
    parts.push(Under {
        start: base,
        file: file.clone(),
        offset: 0,
        len: image.header_size().into(),
    });
    parts.extend(image.sections.iter().map(|s| Under {
        start: base + u64::from(s.range.rva),
        file: file.clone(),
        offset: s.file_offset.into(),
        len: s.file_size.min(s.range.size).into(),
    }));
    let sections = image.sections.iter().filter(|s| s.writable);
    let mut variables: Vec<Range> = sections
        .map(|s| {
            let start = base + u64::from(s.range.rva);
            (start, start + u64::from(s.range.size))
        })
        .collect();
    variables.sort_unstable();
    Ok((
        writable.keep_out(&parts, &variables),
        "its time stamp and size are those of the module list".into(),
    ))
}

fn same_stamp(image: &PeImage, time_date_stamp: u32, size_of_image: u32) -> Result<(), String> {
    let (stamp, size) = (image.time_date_stamp, image.size_of_image);
    if (stamp, size) == (time_date_stamp, size_of_image) {
        return Ok(());
    }
    Err(format!(
        "its time stamp and size are {stamp:08X} {size:x}, the process had {time_date_stamp:08X} {size_of_image:x}"
    ))
}
