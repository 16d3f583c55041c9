//! A sealed file that is open: checked, mapped, read only.

use super::header::{BLOCK_BYTES, HEADER_BYTES, Header};
use super::{EndgameError, map, plain};
use memmap2::Mmap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sealed file. Its header, its length and its block checksums are right; its blocks are so far as somebody checks them.
pub struct SealedFile {
    path: PathBuf,
    header: Header,
    map: Mmap,
}

/// The payload of a sealed file that is kept open.
pub struct Payload(pub Arc<SealedFile>);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.0.payload()
    }
}

impl SealedFile {
    /// Opens a file; `None` if there is none of the name.
    ///
    /// # Errors
    /// [`EndgameError::Damaged`] if header, length, checksums of the blocks or padding are not as sealed.
    pub fn open(path: &Path) -> Result<Option<Self>, EndgameError> {
        let failed = |error: std::io::Error| EndgameError::io(path, "read", &error);
        let file = match plain::open(OpenOptions::new().read(true), path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let length = file.metadata().map_err(failed)?.len();
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let reason = format!("the file ends at byte {length}, the header at byte {HEADER_BYTES}");
                return Err(EndgameError::damaged(path, "header", reason));
            }
            Err(error) => return Err(failed(error)),
        }
        let (header, table_crc) = Header::decode(path, &bytes)?;
        // Before the map is read: what lies beyond a file's end cannot be.
        if length != header.file_bytes() {
            let reason = format!("the file has {length} bytes instead of {}", header.file_bytes());
            return Err(EndgameError::damaged(path, "length", reason));
        }
        let map = map::sealed(&file).map_err(failed)?;
        let sealed = Self { path: path.to_owned(), header, map };
        let computed = crc32c::crc32c(sealed.table());
        if computed != table_crc {
            let reason = format!("its checksum is {computed:#010x}, written was {table_crc:#010x}");
            return Err(EndgameError::damaged(path, "table of block checksums", reason));
        }
        let padding = &sealed.map[sealed.table_end()..header.payload_offset() as usize];
        if let Some(at) = padding.iter().position(|byte| *byte != 0) {
            let place = format!("byte {}", sealed.table_end() + at);
            return Err(EndgameError::damaged(path, place, "the padding before the payload is not 0"));
        }
        Ok(Some(sealed))
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is a database of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The database itself.
    pub fn payload(&self) -> &[u8] {
        &self.map[self.header.payload_offset() as usize..]
    }

    fn table_end(&self) -> usize {
        HEADER_BYTES + 4 * self.header.blocks()
    }

    fn table(&self) -> &[u8] {
        &self.map[HEADER_BYTES..self.table_end()]
    }

    /// The checksum that a block was sealed with.
    fn sealed_checksum(&self, block: usize) -> u32 {
        let bytes = &self.table()[4 * block..];
        u32::from_le_bytes(std::array::from_fn(|index| bytes[index]))
    }

    /// The error for a block that is not as it was sealed.
    fn damaged_block(&self, block: usize) -> EndgameError {
        let start = self.header.payload_offset() + (block * BLOCK_BYTES) as u64;
        let end = self.header.file_bytes().min(start + BLOCK_BYTES as u64);
        let place = format!("block {block} (bytes {start} to {end})");
        EndgameError::damaged(&self.path, place, "its checksum is not the one it was sealed with")
    }

    /// Checks all blocks, on so many threads, and gives an error for each that is damaged, in order.
    pub fn check_all_blocks(&self, threads: usize) -> Vec<EndgameError> {
        let checksums = block_checksums(self.payload(), threads);
        let damaged =
            checksums.iter().enumerate().filter(|(block, crc)| **crc != self.sealed_checksum(*block));
        damaged.map(|(block, _)| self.damaged_block(block)).collect()
    }
}

/// The CRC-32C of each block of a payload.
pub(super) fn block_checksums(payload: &[u8], threads: usize) -> Vec<u32> {
    let blocks = payload.len().div_ceil(BLOCK_BYTES);
    let each = blocks.div_ceil(threads.max(1)).max(1);
    let mut checksums = vec![0; blocks];
    std::thread::scope(|scope| {
        for (checksums, payload) in checksums.chunks_mut(each).zip(payload.chunks(each * BLOCK_BYTES)) {
            scope.spawn(move || {
                for (checksum, block) in checksums.iter_mut().zip(payload.chunks(BLOCK_BYTES)) {
                    *checksum = crc32c::crc32c(block);
                }
            });
        }
    });
    checksums
}

/// So many numbers below `end`, at least 1, by SplitMix64 from a seed.
pub(super) fn sample(end: usize, count: usize, seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    (0..count).map(move |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * end as u128) >> 64) as usize
    })
}
