//! Frame lists, each kept once: programs suspend in few places, millions of times.

use crate::Family;
use crate::bytes::Cursor;
use rustc_hash::FxHashMap;

/// A frame of a logical chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Runtime-async: the address inside the method where it goes on, 0 for an awaited task or `ValueTask` source.
    /// State machines: where the code of `MoveNext` begins.
    pub address: u64,
    /// Number of the await of a state machine, from 0; −1 while it runs.
    pub state: Option<i32>,
}

/// Number of a list in [`FrameLists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameListId(u32);

/// Frames as one call stack record holds them, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameList {
    /// The family of the record.
    pub family: Family,
    /// The frames; at most 255.
    pub frames: Vec<Frame>,
    /// Call stack records that hold exactly these.
    pub uses: u64,
}

impl FrameList {
    /// Whether an address is 0 elsewhere than in the first place.
    pub(crate) fn has_inner_zero(&self) -> bool {
        self.frames.iter().skip(1).any(|f| f.address == 0)
    }
}

/// All frame lists of a recording.
#[derive(Clone, Debug, Default)]
pub struct FrameLists<'a> {
    lists: Vec<FrameList>,
    /// By the bytes of the wire, one map for each family. The bytes of a list are its encoding without the count, which
    /// they determine.
    by_bytes: [FxHashMap<&'a [u8], FrameListId>; 2],
    /// The list of each family that was met last: a chain is resumed with the frames that it suspended with.
    last: [Option<(&'a [u8], u8, FrameListId)>; 2],
    /// By content: two encodings of the same frames are one list.
    by_frames: FxHashMap<(Family, Vec<Frame>), FrameListId>,
}

impl<'a> FrameLists<'a> {
    /// The list of that number.
    #[must_use]
    pub fn get(&self, id: FrameListId) -> Option<&FrameList> {
        self.lists.get(usize::try_from(id.0).ok()?)
    }

    /// All of them, in the order in which they were met.
    pub fn iter(&self) -> impl Iterator<Item = &FrameList> {
        self.lists.iter()
    }

    /// The frames of that number; none for one of another recording.
    #[must_use]
    pub fn frames(&self, id: FrameListId) -> &[Frame] {
        self.get(id).map_or(&[], |list| &list.frames)
    }

    /// The list that `bytes` encode, which must be `count` frames and nothing else.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        family: Family,
        count: u8,
        bytes: &'a [u8],
    ) -> Option<FrameListId> {
        let index = family.index();
        match self.last.get(index)? {
            Some((last, frames, id)) if *frames == count && *last == bytes => return Some(*id),
            _ => {}
        }
        let id = self.find(family, count, bytes)?;
        *self.last.get_mut(index)? = Some((bytes, count, id));
        Some(id)
    }

    fn find(&mut self, family: Family, count: u8, bytes: &'a [u8]) -> Option<FrameListId> {
        let known = self.by_bytes.get(family.index())?.get(bytes).copied();
        if let Some(id) = known {
            let list = self.get(id)?;
            return (list.frames.len() == usize::from(count)).then_some(id);
        }
        let frames = decode(family, count, bytes)?;
        let id = self.number(family, frames)?;
        self.by_bytes.get_mut(family.index())?.insert(bytes, id);
        Some(id)
    }

    fn number(&mut self, family: Family, frames: Vec<Frame>) -> Option<FrameListId> {
        let next = FrameListId(u32::try_from(self.lists.len()).ok()?);
        let key = (family, frames);
        if let Some(id) = self.by_frames.get(&key) {
            return Some(*id);
        }
        self.lists.push(FrameList {
            family,
            frames: key.1.clone(),
            uses: 0,
        });
        self.by_frames.insert(key, next);
        Some(next)
    }

    /// Whether two lists are the same as far as both go, where a shorter one may have been cut.
    pub(crate) fn may_be_same(&self, one: FrameListId, other: FrameListId, cut_at: usize) -> bool {
        let (one, other) = (self.frames(one), self.frames(other));
        let shorter = one.len().min(other.len());
        shorter >= cut_at && one.get(..shorter) == other.get(..shorter)
    }

    #[inline]
    pub(crate) fn used(&mut self, id: FrameListId) {
        let place = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let Some(list) = self.lists.get_mut(place) {
            list.uses = list.uses.saturating_add(1);
        }
    }
}

/// Frames that a call stack never exceeds.
const MOST_FRAMES: usize = 255;
/// Buffers of at least this many bytes hold a call stack of 255 frames.
const ROOMY_BUFFER: u32 = 2_650;
/// Bytes of a small buffer that frames cannot have.
const BUFFER_OVERHEAD: u32 = 73;
/// Bytes of a frame at most.
const FRAME_BYTES: u32 = 10;

/// How many frames a call stack has at least that was cut, with the smallest buffer of the session.
pub(crate) fn cut_at(buffer: Option<u32>) -> usize {
    let small = buffer.filter(|size| *size < ROOMY_BUFFER).map(|size| {
        let frames = size
            .saturating_sub(BUFFER_OVERHEAD)
            .checked_div(FRAME_BYTES);
        usize::try_from(frames.unwrap_or(0)).unwrap_or(MOST_FRAMES)
    });
    small.unwrap_or(MOST_FRAMES).clamp(1, MOST_FRAMES)
}

fn decode(family: Family, count: u8, bytes: &[u8]) -> Option<Vec<Frame>> {
    let mut cursor = Cursor::new(bytes);
    let mut frames = Vec::with_capacity(usize::from(count));
    let mut address = 0_u64;
    for index in 0..count {
        address = if index == 0 {
            cursor.u64()?
        } else {
            address.wrapping_add_signed(cursor.i64()?)
        };
        let state = match family {
            Family::RuntimeAsync => None,
            Family::StateMachine => Some(cursor.i32()?),
        };
        frames.push(Frame { address, state });
    }
    cursor.is_empty().then_some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first call stack of a real recording: Middle, Outer, ArticleMain.
    const REAL: &[u8] = &[
        0xa1, 0xa1, 0xad, 0xae, 0xa9, 0xfe, 0x1f, 0xe7, 0x08, 0xe7, 0x09,
    ];

    #[test]
    fn the_first_address_is_absolute_the_others_are_differences() {
        let mut lists = FrameLists::default();
        let id = lists.intern(Family::RuntimeAsync, 3, REAL).unwrap();
        let addresses: Vec<u64> = lists.frames(id).iter().map(|f| f.address).collect();
        assert_eq!(
            addresses,
            [0x7ff2_95cb_50a1, 0x7ff2_95cb_4e6d, 0x7ff2_95cb_4bf9]
        );
        assert_eq!(lists.intern(Family::RuntimeAsync, 3, REAL), Some(id));
        assert_eq!(lists.intern(Family::RuntimeAsync, 2, REAL), None);
        assert_eq!(lists.intern(Family::RuntimeAsync, 4, REAL), None);
        assert_eq!(lists.iter().count(), 1);
    }

    #[test]
    fn states_belong_to_state_machines() {
        let mut lists = FrameLists::default();
        let id = lists
            .intern(Family::StateMachine, 2, &[0x10, 0x04, 0x01, 0x01])
            .unwrap();
        let frame = |address, state| Frame {
            address,
            state: Some(state),
        };
        assert_eq!(lists.frames(id), [frame(0x10, 2), frame(0xf, -1)]);
        assert_eq!(
            lists.intern(Family::StateMachine, 2, &[0x10, 0x04, 0x01]),
            None
        );
    }

    #[test]
    fn two_encodings_of_the_same_frames_are_one_list() {
        let mut lists = FrameLists::default();
        let short = lists.intern(Family::RuntimeAsync, 1, &[0x10]);
        assert_eq!(lists.intern(Family::RuntimeAsync, 1, &[0x90, 0x00]), short);
        assert_ne!(lists.intern(Family::RuntimeAsync, 0, &[]), short);
        assert_eq!(lists.iter().count(), 2);
    }
}
