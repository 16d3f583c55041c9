//! A sorted run of entries as bytes.
//!
//! ```text
//! varint   number of entries
//! then for each entry, in increasing order of boards:
//! varint   board minus the board before it (the first: minus 0), at least 1, at most 64 bits
//! varint   ways, at least 1, at most 128 bits
//! ```
//!
//! A varint holds seven bits a byte, the lowest first; the top bit of a byte says that more follow (LEB128). Only the shortest
//! form is allowed, so that equal runs have equal bytes. Magic, version and checksum are for whoever stores or sends the bytes.

use super::counter::{Counter, Entry};
use super::error::RunError;

/// The bytes of a run. The entries must be strictly sorted by board, without board 0.
pub fn encode_run(entries: &[Entry]) -> Vec<u8> {
    // Seldom more: boards of a level lie close, and counts stay far below 128 bits.
    let mut bytes = Vec::with_capacity(10 + entries.len() * 8);
    push_varint(&mut bytes, entries.len() as u128);
    let mut before = 0;
    for entry in entries {
        debug_assert!(entry.board > before && entry.ways > 0);
        push_varint(&mut bytes, u128::from(entry.board.wrapping_sub(before)));
        push_varint(&mut bytes, entry.ways);
        before = entry.board;
    }
    bytes
}

/// How many entries a run announces, checked against its length: an entry takes two bytes at least.
///
/// # Errors
/// [`RunError`] when there is no number, or one that the bytes cannot hold.
pub fn run_entries(bytes: &[u8]) -> Result<u64, RunError> {
    Reader::new(bytes).entries()
}

impl Counter {
    /// Reads a run back, and checks that it could be one of this problem: strictly sorted canonical boards within the holes,
    /// counts of at least 1, and no byte more or less. Allocates in proportion to the bytes, whatever they announce.
    ///
    /// # Errors
    /// [`RunError`] names the entry or the byte.
    pub fn decode_run(&self, bytes: &[u8]) -> Result<Vec<Entry>, RunError> {
        let mut reader = Reader::new(bytes);
        let entries = reader.entries()?;
        let mut run = Vec::with_capacity(entries as usize);
        let mut before = 0u64;
        for entry in 0..entries {
            reader.entry = entry;
            let step = reader.varint(u64::BITS)? as u64;
            let ways = reader.varint(u128::BITS)?;
            let board = before.checked_add(step).filter(|_| step > 0).ok_or(RunError::Unsorted { entry })?;
            if board & !self.holes() != 0 {
                return Err(RunError::OutsideHoles { entry, board, holes: self.holes() });
            }
            let canonical = self.canonical(board);
            if board != canonical {
                return Err(RunError::NotCanonical { entry, board, canonical });
            }
            if ways == 0 {
                return Err(RunError::NoWays { entry });
            }
            run.push(Entry { board, ways });
            before = board;
        }
        if reader.offset < bytes.len() {
            return Err(RunError::TrailingBytes { offset: reader.offset, bytes: bytes.len() });
        }
        Ok(run)
    }
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u128) {
    // Nearly all numbers fit 64 bits, whose shifts are single instructions.
    if let Ok(mut value) = u64::try_from(value) {
        while value >= 0x80 {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        return;
    }
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads numbers, and knows where it is for the error message.
struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    entry: u64,
    entries: u64,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, entry: 0, entries: 0 }
    }

    /// The number of entries, with which a run begins.
    fn entries(&mut self) -> Result<u64, RunError> {
        let entries = self.varint(u64::BITS)? as u64;
        if entries > self.bytes.len() as u64 / 2 {
            return Err(RunError::TooManyEntries { entries, bytes: self.bytes.len() });
        }
        self.entries = entries;
        Ok(entries)
    }

    /// The next number of at most `bits` bits.
    fn varint(&mut self, bits: u32) -> Result<u128, RunError> {
        debug_assert!(bits >= 63);
        let start = self.offset;
        // Up to nine bytes fit 64 bits, and any type that is asked for. What is wrong is left to the loop below.
        let mut short = 0u64;
        for (index, &byte) in self.bytes[start..].iter().take(9).enumerate() {
            short |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    break;
                }
                self.offset = start + index + 1;
                return Ok(short.into());
            }
        }
        let too_long = RunError::Number { offset: start, bits };
        let (mut value, mut shift) = (0u128, 0);
        loop {
            let Some(&byte) = self.bytes.get(self.offset) else {
                return Err(RunError::Truncated {
                    offset: self.offset,
                    entry: self.entry,
                    entries: self.entries,
                });
            };
            self.offset += 1;
            let payload = u128::from(byte & 0x7f);
            // What is left of the type above `shift` must hold the payload, and a last byte of 0 adds nothing.
            let fits = shift < bits && (bits - shift >= 7 || payload >> (bits - shift) == 0);
            if !fits || (byte == 0 && shift > 0) {
                return Err(too_long);
            }
            value |= payload << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }
}
