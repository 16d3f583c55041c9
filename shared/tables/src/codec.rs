//! The frame of every persisted value, and the little-endian primitives inside it.
//!
//! ```text
//! format   u8       version of the record kind's layout
//! body     ...      self-delimiting fields, little-endian; lengths are u64
//! crc32c   u32 LE   over the kind, the key under which the value is filed, format and body
//! ```
//!
//! The checksum covers kind and key, so a value that turns up under another key is found out too. CRC-32C detects every burst
//! of up to 32 bits, so every flipped byte. Truncation does not rest on luck: fields are self-delimiting and the
//! body must be used up exactly, so no proper prefix of a record is a record.

/// What is wrong with bytes that should be a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes end too early.
    #[error("the record ends at byte {offset}, before the end of {expected}")]
    Truncated {
        /// Where the field would start.
        offset: usize,
        /// The field.
        expected: &'static str,
    },
    /// The bytes go on too long.
    #[error("{extra} bytes follow byte {offset}, where the record should end")]
    Trailing {
        /// Where the record should end.
        offset: usize,
        /// How many bytes follow.
        extra: usize,
    },
    /// The checksum fails.
    #[error("its checksum is {computed:#010x}, written was {stored:#010x}")]
    Checksum {
        /// The checksum of what was read.
        computed: u32,
        /// The checksum that was read with it.
        stored: u32,
    },
    /// An intact record of a layout that this program does not know.
    #[error("it has layout {found}, this program reads layout {expected}")]
    Format {
        /// The layout found.
        found: u8,
        /// The layout known.
        expected: u8,
    },
    /// A field out of its range.
    #[error("byte {offset}: {found} is no {expected}")]
    Invalid {
        /// Where the field starts.
        offset: usize,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: u64,
    },
    /// Text that is not UTF-8.
    #[error("byte {offset}: the {expected} is not UTF-8")]
    Text {
        /// Where the text starts.
        offset: usize,
        /// The field.
        expected: &'static str,
    },
}

/// The checksum's bytes at the end of each record.
const CHECKSUM_BYTES: usize = 4;

/// What a value is; part of its checksum, so that kinds cannot be mistaken for each other. Never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RecordKind {
    /// The coordinator's epoch.
    Epoch = 1,
    /// A job.
    Job = 2,
    /// What is known of a claim.
    Claim = 3,
    /// An open lease.
    Lease = 4,
    /// A finished part.
    Part = 5,
    /// A run of boards.
    Run = 6,
    /// A position table entry.
    Position = 7,
    /// A namespace's number.
    Namespace = 8,
    /// A result that is not acknowledged yet.
    Spooled = 9,
}

fn checksum(kind: RecordKind, key: &[u8], format_and_body: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&[kind as u8]);
    crc32c::crc32c_append(crc32c::crc32c_append(crc, key), format_and_body)
}

/// Appends fields of one record.
pub struct Writer {
    bytes: Vec<u8>,
}

macro_rules! write_numbers {
    ($($name:ident)*) => {$(
        /// Appends the number, little-endian.
        pub fn $name(&mut self, value: $name) -> &mut Self {
            self.bytes.extend_from_slice(&value.to_le_bytes());
            self
        }
    )*};
}

impl Writer {
    /// Starts a record of a layout.
    pub fn new(format: u8) -> Self {
        Self { bytes: vec![format] }
    }

    /// Starts a record that will hold about this many bytes.
    pub fn with_capacity(format: u8, bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(bytes + 1 + CHECKSUM_BYTES);
        buffer.push(format);
        Self { bytes: buffer }
    }

    write_numbers! { u8 u16 u32 u64 u128 i16 }

    /// Appends a yes or no as 1 or 0.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(value.into())
    }

    /// Appends bytes, their length first.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.u64(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// Appends text, its length in bytes first.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Ends the record: appends the checksum for its kind and the key it will be filed under.
    pub fn seal(mut self, kind: RecordKind, key: &[u8]) -> Vec<u8> {
        let crc = checksum(kind, key, &self.bytes);
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        self.bytes
    }
}

/// Takes fields off one record, in order.
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

macro_rules! read_numbers {
    ($($name:ident)*) => {$(
        /// Takes the number; the name of the field is for the error.
        pub fn $name(&mut self, expected: &'static str) -> Result<$name, CodecError> {
            Ok($name::from_le_bytes(self.array(expected)?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Checks a record's checksum and layout.
    ///
    /// # Errors
    /// [`CodecError::Truncated`] without room for layout and checksum, [`CodecError::Checksum`], [`CodecError::Format`].
    pub fn open(kind: RecordKind, format: u8, key: &[u8], record: &'a [u8]) -> Result<Self, CodecError> {
        let Some((bytes, crc)) =
            record.split_last_chunk::<CHECKSUM_BYTES>().filter(|(bytes, _)| !bytes.is_empty())
        else {
            return Err(CodecError::Truncated { offset: record.len(), expected: "the checksum" });
        };
        let (stored, computed) = (u32::from_le_bytes(*crc), checksum(kind, key, bytes));
        if stored != computed {
            return Err(CodecError::Checksum { computed, stored });
        }
        if bytes[0] != format {
            return Err(CodecError::Format { found: bytes[0], expected: format });
        }
        Ok(Self { bytes, offset: 1 })
    }

    /// Reads bytes without a frame: a key.
    pub fn of_key(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], CodecError> {
        let found = self.bytes[self.offset..].first_chunk::<N>();
        let array = *found.ok_or(CodecError::Truncated { offset: self.offset, expected })?;
        self.offset += N;
        Ok(array)
    }

    read_numbers! { u8 u16 u32 u64 u128 i16 }

    /// Takes a big-endian number, as keys have them.
    pub fn big_endian<const N: usize>(&mut self, expected: &'static str) -> Result<u64, CodecError> {
        let bytes = self.array::<N>(expected)?;
        Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Takes a yes or no.
    pub fn bool(&mut self, expected: &'static str) -> Result<bool, CodecError> {
        match self.u8(expected)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(self.invalid(1, expected, found.into())),
        }
    }

    /// Takes this many bytes.
    pub fn slice(&mut self, length: u64, expected: &'static str) -> Result<&'a [u8], CodecError> {
        let rest = &self.bytes[self.offset..];
        let length = usize::try_from(length).ok().filter(|&length| length <= rest.len());
        let length = length.ok_or(CodecError::Truncated { offset: self.offset, expected })?;
        self.offset += length;
        Ok(&rest[..length])
    }

    /// Takes bytes that carry their length.
    pub fn bytes(&mut self, expected: &'static str) -> Result<&'a [u8], CodecError> {
        let length = self.u64(expected)?;
        self.slice(length, expected)
    }

    /// Takes text.
    pub fn text(&mut self, expected: &'static str) -> Result<String, CodecError> {
        let offset = self.offset;
        let bytes = self.bytes(expected)?;
        let text = std::str::from_utf8(bytes).map_err(|_| CodecError::Text { offset, expected })?;
        Ok(text.to_owned())
    }

    /// The error for a field of `width` bytes that was just taken.
    pub fn invalid(&self, width: usize, expected: &'static str, found: u64) -> CodecError {
        CodecError::Invalid { offset: self.offset - width, expected, found }
    }

    /// Ends the record.
    ///
    /// # Errors
    /// [`CodecError::Trailing`] when bytes are left.
    pub fn finish(self) -> Result<(), CodecError> {
        match self.bytes.len() - self.offset {
            0 => Ok(()),
            extra => Err(CodecError::Trailing { offset: self.offset, extra }),
        }
    }
}
