//! Lists of suspension points besides the one that comes with the tool: made from the files of a runtime, kept in files.

use super::image_points::{ImagePoint, image_points};
use super::known_points::{List, await_in, find_in, pack, unpack};
use asynctriage_dump::{Addr, Fault, FaultReason, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::Metadata;

/// How a file with a list begins.
const MAGIC: &[u8] = b"asynctriage suspension points 1\n";

/// The suspension points of one image file.
#[derive(Clone, Debug)]
pub struct ImageFile {
    /// Simple name of the assembly.
    pub name: String,
    /// Module version id, in the byte order of the file.
    pub mvid: [u8; 16],
    /// The points, by the address of their ResumeInfo; none for images without runtime-async methods.
    pub points: Vec<ImagePoint>,
}

impl ImageFile {
    /// Reads an assembly. `None` for other files and for those too damaged to tell.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let file = FileBytes(bytes);
        let image = PeImage::parse(&file, Addr::NULL, PeLayout::Flat).ok()?;
        let (at, len) = image.metadata()?;
        let metadata = Metadata::parse(file.slice(at, len.into())?).ok()?;
        let points = image_points(&file, &image, &metadata, Addr(image.preferred_base));
        Some(Self {
            name: metadata.assembly_name().unwrap_or_default(),
            mvid: metadata.mvid()?,
            points,
        })
    }
}

/// Suspension points by image, from files that [`PointLists::file`] made.
#[derive(Clone, Debug, Default)]
pub struct PointLists(List);

impl PointLists {
    /// Adds what the bytes of a file hold; whether they are such a file.
    pub fn add(&mut self, file: &[u8]) -> bool {
        let list = file.strip_prefix(MAGIC).and_then(unpack);
        let is_list = list.is_some();
        self.0.extend(list.unwrap_or_default());
        is_list
    }

    /// Images and how many points each has, by module version id.
    #[must_use]
    pub fn images(&self) -> Vec<([u8; 16], usize)> {
        let images = self.0.iter().map(|(mvid, points)| (*mvid, points.len()));
        let mut all: Vec<_> = images.collect();
        all.sort_unstable();
        all
    }

    /// The point whose ResumeInfo is at an RVA of an image.
    pub(super) fn find(&self, mvid: &[u8; 16], info: u32) -> Option<ImagePoint> {
        find_in(&self.0, mvid, info)
    }

    /// Which await of a method stands at an IL offset.
    pub(super) fn await_at(&self, mvid: &[u8; 16], rid: u32, il: u32) -> Option<u32> {
        await_in(&self.0, mvid, rid, il)
    }

    /// The bytes of a file with the points of some images.
    ///
    /// # Errors
    /// Never in practice: it is written to memory.
    pub fn file(images: &[ImageFile]) -> std::io::Result<Vec<u8>> {
        let pairs: Vec<_> = images.iter().map(|i| (i.mvid, i.points.clone())).collect();
        let mut out = MAGIC.to_vec();
        out.extend(pack(&pairs)?);
        Ok(out)
    }
}

/// A file as if it were the memory of a process from address 0 on.
struct FileBytes<'b>(&'b [u8]);

impl Memory for FileBytes<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: u8, infos: &[u32]) -> ImageFile {
        let points = infos.iter().map(|info| ImagePoint {
            info: *info,
            ..ImagePoint::default()
        });
        ImageFile {
            name: format!("Image{id}"),
            mvid: [id; 16],
            points: points.collect(),
        }
    }

    #[test]
    fn lists_of_several_files_add_up() {
        let mut lists = PointLists::default();
        for id in [2, 1] {
            let file = PointLists::file(&[image(id, &[8, 24])]).unwrap();
            assert!(lists.add(&file));
        }
        assert_eq!(lists.images(), [([1; 16], 2), ([2; 16], 2)]);
        assert_eq!(lists.find(&[2; 16], 24).map(|p| p.info), Some(24));
        assert_eq!(lists.find(&[2; 16], 16), None);
        assert_eq!(lists.find(&[3; 16], 8), None);
    }

    #[test]
    fn other_files_add_nothing() {
        let mut lists = PointLists::default();
        let file = PointLists::file(&[image(1, &[8])]).unwrap();
        for bytes in [&b"MZ"[..], b"", MAGIC, &file[1..], &file[..file.len() - 6]] {
            assert!(!lists.add(bytes), "{} bytes", bytes.len());
        }
        assert!(lists.images().is_empty());
    }

    #[test]
    fn files_that_are_no_assemblies_have_no_points() {
        assert!(ImageFile::read(b"").is_none());
        assert!(ImageFile::read(&[0x4d, 0x5a, 0, 0]).is_none());
    }
}
