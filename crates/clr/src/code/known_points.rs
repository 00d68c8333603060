//! The suspension points of .NET's own images, for dumps that lack the images' data.
//!
//! The list is made by `cargo xtask r2r-table` from the files of a runtime. Per image: its MVID, the number of points,
//! then five numbers for each point, all of variable length with seven bits in a byte, differences to the point before
//! where that is shorter. The whole is packed.

use super::image_points::ImagePoint;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rustc_hash::FxHashMap;
use std::io::{Read, Write};
use std::sync::OnceLock;

const PACKED: &[u8] = include_bytes!("../../tables/suspension-points.bin");
/// Unpacked bytes; the list of 11.0.0 has 30 KB.
const MAX_BYTES: u64 = 16 << 20;

pub(super) type List = FxHashMap<[u8; 16], Vec<ImagePoint>>;

/// The list that comes with the tool.
fn built_in() -> &'static List {
    static LIST: OnceLock<List> = OnceLock::new();
    LIST.get_or_init(|| unpack(PACKED).unwrap_or_default())
}

/// The point whose ResumeInfo is at an RVA of the image with this MVID.
pub(super) fn find(mvid: &[u8; 16], info: u32) -> Option<ImagePoint> {
    find_in(built_in(), mvid, info)
}

/// Which await of a method stands at an IL offset, when the image's own code suspends there, too.
pub(super) fn await_at(mvid: &[u8; 16], rid: u32, il: u32) -> Option<u32> {
    await_in(built_in(), mvid, rid, il)
}

pub(super) fn find_in(list: &List, mvid: &[u8; 16], info: u32) -> Option<ImagePoint> {
    let points = list.get(mvid)?;
    let at = points.binary_search_by_key(&info, |p| p.info).ok()?;
    points.get(at).copied()
}

pub(super) fn await_in(list: &List, mvid: &[u8; 16], rid: u32, il: u32) -> Option<u32> {
    let mut points = list.get(mvid)?.iter();
    let here = points.find(|p| p.rid == rid && p.il_offset == Some(il) && rid != 0)?;
    here.await_index
}

pub(super) fn unpack(packed: &[u8]) -> Option<List> {
    let mut bytes = Vec::new();
    let unpacker = ZlibDecoder::new(packed);
    unpacker.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let mut reader = Reader(&bytes);
    let mut list = List::default();
    while !reader.0.is_empty() {
        let (mvid, rest) = reader.0.split_first_chunk::<16>()?;
        reader.0 = rest;
        let mut points = Vec::new();
        let mut last = ImagePoint::default();
        for _ in 0..reader.number()? {
            last = reader.point(&last)?;
            points.push(last);
        }
        list.insert(*mvid, points);
    }
    Some(list)
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u32> {
        let mut value = 0_u32;
        for shift in (0..32).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn difference(&mut self, from: u32) -> Option<u32> {
        let value = self.number()?;
        let distance = (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg();
        Some(from.wrapping_add_signed(distance))
    }

    fn optional(&mut self) -> Option<Option<u32>> {
        Some(self.number()?.checked_sub(1))
    }

    fn point(&mut self, last: &ImagePoint) -> Option<ImagePoint> {
        Some(ImagePoint {
            info: last.info.wrapping_add(self.number()?),
            ip: self.difference(last.ip)?,
            rid: self.difference(last.rid)?,
            il_offset: self.optional()?,
            await_index: self.optional()?,
        })
    }
}

/// The list as it comes with the tool: images by their MVID, points by the address of their ResumeInfo.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn pack(images: &[([u8; 16], Vec<ImagePoint>)]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (mvid, points) in images {
        bytes.extend_from_slice(mvid);
        put(&mut bytes, u32::try_from(points.len()).unwrap_or(u32::MAX));
        let mut last = ImagePoint::default();
        for point in points {
            put(&mut bytes, point.info.wrapping_sub(last.info));
            put_difference(&mut bytes, last.ip, point.ip);
            put_difference(&mut bytes, last.rid, point.rid);
            put(
                &mut bytes,
                point.il_offset.map_or(0, |il| il.wrapping_add(1)),
            );
            put(
                &mut bytes,
                point.await_index.map_or(0, |i| i.wrapping_add(1)),
            );
            last = *point;
        }
    }
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&bytes)?;
    packer.finish()
}

fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn put_difference(bytes: &mut Vec<u8>, from: u32, to: u32) {
    let distance = to.wrapping_sub(from).cast_signed();
    let sign = distance >> 31;
    put(bytes, (distance.wrapping_shl(1) ^ sign).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(info: u32, ip: u32, rid: u32, await_index: Option<u32>) -> ImagePoint {
        let il_offset = await_index.map(|i| i * 300);
        ImagePoint {
            info,
            ip,
            rid,
            il_offset,
            await_index,
        }
    }

    #[test]
    fn what_is_packed_comes_out() {
        let points = vec![
            point(0x10_0000, 0x5000, 7, Some(0)),
            point(0x10_0010, 0x4000, 7, Some(9)),
            point(0x80_0000, 0xffff_fff0, 0, None),
        ];
        let images = [([1; 16], points.clone()), ([2; 16], Vec::new())];
        let list = unpack(&pack(&images).unwrap()).unwrap();
        assert_eq!(list.get(&[1; 16]), Some(&points));
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn the_list_that_comes_with_the_tool_is_whole_and_in_order() {
        let list = unpack(PACKED).unwrap();
        assert!(list.len() > 40, "{} images", list.len());
        for points in list.values() {
            assert!(points.is_sorted_by(|a, b| a.info < b.info));
        }
        let known = list.values().flatten().filter(|p| p.await_index.is_some());
        assert!(known.count() > 2000);
    }

    #[test]
    fn an_await_is_known_by_its_method_and_il_offset() {
        let points = vec![
            point(8, 0, 0, Some(2)),
            point(24, 0, 7, Some(1)),
            point(40, 0, 9, Some(1)),
            point(56, 0, 7, Some(2)),
        ];
        let list = List::from_iter([([1; 16], points)]);
        assert_eq!(await_in(&list, &[1; 16], 7, 600), Some(2));
        assert_eq!(await_in(&list, &[1; 16], 9, 600), None);
        // row 0 stands for methods of other images
        assert_eq!(await_in(&list, &[1; 16], 0, 600), None);
        assert_eq!(await_in(&list, &[2; 16], 7, 600), None);
    }

    #[test]
    fn damaged_lists_are_none() {
        assert!(unpack(&[1, 2, 3]).is_none());
        let cut = pack(&[([1; 16], vec![point(1, 2, 3, None)])]).unwrap();
        assert!(unpack(&cut[..cut.len() - 8]).is_none());
    }
}
