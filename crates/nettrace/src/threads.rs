//! Threads of version 6, where events name them by an index.

use rustc_hash::FxHashMap;

use crate::cursor::Cursor;

/// Threads that are kept. In memory one takes many times the bytes that it has in the file.
const MAX_THREADS: usize = 1 << 20;

/// What a version 6 file says of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: Option<String>,
    /// Id of its process; such files may hold several.
    pub pid: Option<u64>,
    /// Its id in the operating system.
    pub os_id: Option<u64>,
    /// Whatever else is said.
    pub properties: Vec<(String, String)>,
}

/// The threads that are declared and not removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    by_index: FxHashMap<u64, Thread>,
}

impl Threads {
    pub(crate) fn get(&self, index: u64) -> Option<&Thread> {
        self.by_index.get(&index)
    }

    pub(crate) fn remove(&mut self, index: u64) {
        self.by_index.remove(&index);
    }

    pub(crate) fn clear(&mut self) {
        self.by_index.clear();
    }

    /// A block of threads; taken as a whole or not at all.
    pub(crate) fn add(&mut self, mut body: Cursor<'_>) -> Result<(), &'static str> {
        let mut found = Vec::new();
        while !body.is_empty() {
            let row = body.u16().and_then(|size| body.part(size.into()));
            found.push(
                row.and_then(thread)
                    .ok_or("a row of its threads is damaged")?,
            );
            if self.by_index.len().saturating_add(found.len()) > MAX_THREADS {
                return Err("more threads than are kept");
            }
        }
        self.by_index.extend(found);
        Ok(())
    }
}

fn thread(mut row: Cursor<'_>) -> Option<(u64, Thread)> {
    let index = row.varuint64()?;
    let mut thread = Thread::default();
    while !row.is_empty() {
        match row.u8()? {
            1 => thread.name = Some(row.utf8()?),
            2 => thread.pid = Some(row.varuint64()?),
            3 => thread.os_id = Some(row.varuint64()?),
            4 => thread.properties.push((row.utf8()?, row.utf8()?)),
            // of unknown length, so what stands behind it cannot be found
            _ => break,
        }
    }
    Some((index, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_declared_by_rows() {
        let row = [
            7, 1, 2, b'i', b'o', 2, 0x80, 0x01, 3, 9, 4, 1, b'k', 1, b'v',
        ];
        let mut block = vec![row.len() as u8, 0];
        block.extend(row);
        block.extend([1, 0, 8]);
        let mut threads = Threads::default();
        threads.add(Cursor::new(&block, 0)).unwrap();
        let expected = Thread {
            name: Some("io".into()),
            pid: Some(128),
            os_id: Some(9),
            properties: vec![("k".into(), "v".into())],
        };
        assert_eq!(threads.get(7), Some(&expected));
        assert_eq!(threads.get(8), Some(&Thread::default()));
        threads.remove(7);
        assert_eq!(threads.get(7), None);
        assert!(threads.add(Cursor::new(&block[..10], 0)).is_err());
    }
}
