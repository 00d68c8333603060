//! Stacks, which events name by number.

use crate::cursor::Cursor;

/// Addresses of a call stack, the innermost first. Stacks of EventPipe hold managed frames only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    bytes: &'a [u8],
    pointer_size: u8,
}

impl<'a> Stack<'a> {
    /// The addresses.
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'a {
        let chunks = self.bytes.chunks_exact(self.pointer_size.max(1).into());
        chunks.map(|chunk| {
            let bytes = chunk.iter().rev();
            bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
        })
    }

    /// How many addresses there are.
    pub fn len(self) -> usize {
        self.bytes
            .len()
            .checked_div(self.pointer_size.into())
            .unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// The stacks of one block.
#[derive(Clone, Debug)]
struct Chunk<'a> {
    first: u32,
    stacks: Vec<&'a [u8]>,
}

/// The stacks since the last sequence point; numbers mean other stacks behind it.
#[derive(Clone, Debug)]
pub(crate) struct Stacks<'a> {
    chunks: Vec<Chunk<'a>>,
    pointer_size: u8,
}

impl<'a> Stacks<'a> {
    pub(crate) fn new(pointer_size: u8) -> Self {
        Self {
            chunks: Vec::new(),
            pointer_size,
        }
    }

    /// A block of stacks: the first number, a count, then each with its size. Taken as a whole or not at all.
    pub(crate) fn add(&mut self, mut body: Cursor<'a>) -> Result<(), &'static str> {
        let mut read = || {
            let (first, count) = (body.u32()?, body.length()?);
            let mut stacks = Vec::new();
            for _ in 0..count {
                let size = body.length()?;
                stacks.push(body.take(size)?);
            }
            body.is_empty().then_some(Chunk { first, stacks })
        };
        let chunk = read().ok_or("its stacks do not end at its end")?;
        self.chunks.push(chunk);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// `None` for number 0 and for numbers that no block since the last sequence point has.
    pub(crate) fn get(&self, id: u32) -> Option<Stack<'a>> {
        if id == 0 {
            return None;
        }
        let of_chunk = |chunk: &Chunk<'a>| {
            let index = id.checked_sub(chunk.first)?;
            chunk.stacks.get(usize::try_from(index).ok()?).copied()
        };
        Some(Stack {
            bytes: self.chunks.iter().rev().find_map(of_chunk)?,
            pointer_size: self.pointer_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(first: u32, stacks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = first.to_le_bytes().to_vec();
        bytes.extend((stacks.len() as u32).to_le_bytes());
        for stack in stacks {
            bytes.extend((stack.len() as u32).to_le_bytes());
            bytes.extend(*stack);
        }
        bytes
    }

    #[test]
    fn stacks_are_found_by_number_until_they_are_cleared() {
        let (a, b) = (
            block(1, &[&[1, 0, 0, 0, 2, 1, 0, 0], &[]]),
            block(3, &[&[9, 0, 0, 0]]),
        );
        let mut stacks = Stacks::new(4);
        for bytes in [&a, &b] {
            stacks.add(Cursor::new(bytes, 0)).unwrap();
        }
        let found =
            |stacks: &Stacks<'_>, id| stacks.get(id).map(|s| s.addresses().collect::<Vec<_>>());
        assert_eq!(found(&stacks, 1), Some(vec![1, 0x102]));
        assert_eq!(found(&stacks, 2), Some(vec![]));
        assert_eq!(found(&stacks, 3), Some(vec![9]));
        assert_eq!((found(&stacks, 0), found(&stacks, 4)), (None, None));
        stacks.clear();
        assert_eq!(found(&stacks, 1), None);
    }

    #[test]
    fn a_block_that_ends_elsewhere_is_refused_as_a_whole() {
        let mut bytes = block(1, &[&[1, 2, 3, 4]]);
        bytes.push(0);
        let mut stacks = Stacks::new(4);
        assert!(stacks.add(Cursor::new(&bytes, 0)).is_err());
        assert!(stacks.add(Cursor::new(&bytes[..12], 0)).is_err());
        assert_eq!(stacks.get(1), None);
    }
}
