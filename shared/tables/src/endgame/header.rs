//! The header of a sealed file: what it is a database of, and where the payload is.

use super::EndgameError;
use std::path::Path;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 128;

/// Bytes of payload under one checksum; the last block may have less.
pub const BLOCK_BYTES: usize = 1 << 20;

/// The payload starts at a multiple of this: a page, so that no page holds both checksums and entries.
pub const PAGE_BYTES: u64 = 4096;

/// The first bytes of every sealed file.
const MAGIC: [u8; 8] = *b"GRUNDYDB";

/// The layout that this program writes and reads.
const FORMAT: u32 = 1;

/// Bytes of a kind's name.
const KIND_BYTES: usize = 16;

/// Parameters of a database.
pub const PARAMETERS: usize = 8;

/// No payload is larger: what a program of 64 bits can map, with room.
const PAYLOAD_BYTES_MAX: u64 = 1 << 46;

/// What a sealed file is a database of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the payload is, such as `cram-pairs`: at most 16 bytes of ASCII, the rest 0.
    pub kind: Kind,
    /// Its extent. Each kind says what they mean; those it does not use are 0.
    pub parameters: [u64; PARAMETERS],
    /// A checksum of whatever else decides what the payload's bytes mean, such as the numbering of positions.
    pub fingerprint: u32,
    /// Bytes of the payload, at least 1.
    pub payload_bytes: u64,
}

/// The name of what a payload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind([u8; KIND_BYTES]);

impl Kind {
    /// A kind of this name, of which at most 16 bytes count.
    pub const fn new(name: &str) -> Self {
        let (name, mut bytes, mut at) = (name.as_bytes(), [0; KIND_BYTES], 0);
        while at < name.len() && at < KIND_BYTES {
            bytes[at] = name[at];
            at += 1;
        }
        Self(bytes)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(String::from_utf8_lossy(&self.0).trim_end_matches('\0'))
    }
}

impl Header {
    /// How many blocks the payload has.
    pub fn blocks(&self) -> usize {
        self.payload_bytes.div_ceil(BLOCK_BYTES as u64) as usize
    }

    /// Where the payload starts: behind the header and a checksum for each block, on a page of its own.
    pub fn payload_offset(&self) -> u64 {
        (HEADER_BYTES as u64 + 4 * self.blocks() as u64).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.payload_offset() + self.payload_bytes
    }

    /// The header's bytes; `table_crc` is the CRC-32C of the block checksums.
    pub(super) fn encode(&self, table_crc: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        bytes.extend_from_slice(&self.kind.0);
        self.parameters.iter().for_each(|parameter| bytes.extend_from_slice(&parameter.to_le_bytes()));
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        bytes.extend_from_slice(&table_crc.to_le_bytes());
        bytes.extend_from_slice(&self.payload_offset().to_le_bytes());
        bytes.extend_from_slice(&self.payload_bytes.to_le_bytes());
        bytes.resize(HEADER_BYTES - 4, 0);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// Reads a header, and the CRC-32C of the block checksums.
    ///
    /// # Errors
    /// [`EndgameError::Damaged`]; [`EndgameError::Other`] for an intact header of another format.
    pub(super) fn decode(path: &Path, bytes: &[u8; HEADER_BYTES]) -> Result<(Self, u32), EndgameError> {
        let damaged = |place: &str, reason: String| EndgameError::damaged(path, place, reason);
        if bytes[..8] != MAGIC {
            let found = String::from_utf8_lossy(&bytes[..8]).escape_default().to_string();
            return Err(damaged("header", format!("it starts with '{found}' instead of 'GRUNDYDB'")));
        }
        let (stored, computed) =
            (u32_at(bytes, HEADER_BYTES - 4), crc32c::crc32c(&bytes[..HEADER_BYTES - 4]));
        if stored != computed {
            let reason = format!("its checksum is {computed:#010x}, written was {stored:#010x}");
            return Err(damaged("header", reason));
        }
        let (format, block) = (u32_at(bytes, 8), u32_at(bytes, 12));
        if (format, block) != (FORMAT, BLOCK_BYTES as u32) {
            return Err(EndgameError::Other {
                path: path.to_owned(),
                field: "format",
                found: format!("{format} with blocks of {block} bytes"),
                expected: format!("{FORMAT} with blocks of {BLOCK_BYTES} bytes"),
            });
        }
        let mut kind = [0; KIND_BYTES];
        kind.copy_from_slice(&bytes[16..32]);
        let header = Self {
            kind: Kind(kind),
            parameters: std::array::from_fn(|index| u64_at(bytes, 32 + 8 * index)),
            fingerprint: u32_at(bytes, 96),
            payload_bytes: u64_at(bytes, 112),
        };
        if !(1..=PAYLOAD_BYTES_MAX).contains(&header.payload_bytes)
            || u64_at(bytes, 104) != header.payload_offset()
        {
            let reason = format!("no payload has {} bytes from {}", header.payload_bytes, u64_at(bytes, 104));
            return Err(damaged("header", reason));
        }
        Ok((header, u32_at(bytes, 100)))
    }

    /// Checks that a file is what is looked for.
    ///
    /// # Errors
    /// [`EndgameError::Other`] names the first field that differs.
    pub fn check_is(&self, path: &Path, expected: &Self) -> Result<(), EndgameError> {
        let differs = |field, found: String, expected: String| {
            Err(EndgameError::Other { path: path.to_owned(), field, found, expected })
        };
        if self.kind != expected.kind {
            return differs("kind", self.kind.to_string(), expected.kind.to_string());
        }
        if self.parameters != expected.parameters {
            let words = |header: &Self| format!("{:?}", header.parameters);
            return differs("parameters", words(self), words(expected));
        }
        if self.fingerprint != expected.fingerprint {
            let words = |header: &Self| format!("{:#010x}", header.fingerprint);
            return differs("fingerprint", words(self), words(expected));
        }
        if self.payload_bytes != expected.payload_bytes {
            return differs("length", self.payload_bytes.to_string(), expected.payload_bytes.to_string());
        }
        Ok(())
    }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[offset + index]))
}

fn u64_at(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[offset + index]))
}
