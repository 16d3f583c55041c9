//! The shared transposition table in memory: fixed size, exact keys, no locks.
//!
//! A bucket is one 64-byte cache line of eight atomic words, so a probe costs one cache miss:
//!
//! ```text
//! word 0      bits 0..48 sequence: odd while a writer is in the bucket, two more after each write
//!             bits 48..64 marks: which costly keys were here and had to go, by four bits of their mix
//! words 1, 2  key words of slot 0        words 3, 4  key words of slot 1
//! word 5      data of slot 0             word 6      data of slot 1       (see `entry`)
//! word 7      tags: slot 0 in the low half, slot 1 in the high half
//! ```
//!
//! # Why a torn entry is never returned
//!
//! The sequence word makes each bucket a seqlock, written wholly in atomics as in Boehm, "Can seqlocks get along with
//! programming language memory models?" (MSPC 2012). A writer enters by compare-exchange from even `s` to `s + 1`
//! (acquire), passes a release fence, changes words (relaxed), leaves by storing `s + 2` (release). A reader loads the
//! sequence (acquire), reads words (relaxed), passes an acquire fence, and loads the sequence again. It trusts what it
//! read only if both loads gave the same even `s`:
//!
//! - *Nothing newer.* Had it read a word of the writer that made `s + 1` or later, then that writer's release fence
//!   and the reader's acquire fence would synchronise, and the second load would have to see `s + 1` or later.
//! - *Nothing older.* The first load read `s` from the release store of the writer that left it (or the initial zero), so
//!   all of that writer's words happen before the reader's.
//!
//! Writers exclude each other by the compare-exchange, whose acquire makes the previous writer's words visible to
//! the next. A writer that finds another inside drops its store, and a reader that keeps meeting writers reports a miss:
//! forgetting is allowed, waiting is not. The sequence wraps after 2^47 writes to one bucket, which a reader would have to
//! sleep through exactly. Marks change in a writer's hands only, so comparing the whole word compares the sequence.
//!
//! # Replacement
//!
//! A newcomer always gets in, since the search needs soon what it has just found: under its own key, else in an empty
//! slot, else in the slot of lower `priority`. The other slot ages a little each time, so the costlier entry of
//! a bucket stays for a number of stores that grows with its cost, and not for ever. If it was costly enough to be on
//! disk, its going leaves a mark, so that a later miss, in the same cache line, knows that asking the disk may pay.

use crate::entry::{aged, contradict, is_final, pack, priority, unpack};
use crate::error::StorageError;
use crate::options::TierOptions;
use grundy_search::memory;
use grundy_search::table::{Entry, Key, Table};
use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use zerocopy::FromZeros;

/// Words of a bucket.
const WORDS: usize = 8;
/// Bytes of a bucket: one cache line.
pub const BUCKET_BYTES: usize = WORDS * 8;
/// Entries of a bucket.
const SLOTS: usize = 2;

const SEQUENCE: usize = 0;
const KEYS: usize = 1;
const DATA: usize = 5;
const TAGS: usize = 7;

/// Reads of a bucket in which writers keep appearing before it counts as a miss.
const READ_TRIES: usize = 8;
/// The surviving slot ages at every this many stores into its bucket (a power of two).
const STORES_PER_AGE: u64 = 4;
/// Buckets that `len` looks at.
const SAMPLE: usize = 4096;

/// The marks' bits in the sequence word.
const MARKS: u64 = !0 << 48;

type Bucket = [AtomicU64; WORDS];

/// What a probe found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// The key's entry.
    Found(Entry),
    /// Nothing, and nothing costly is known to have been here.
    Absent,
    /// Nothing, but an entry of this key or one like it was here and had to go.
    Evicted,
}

/// A transposition table of fixed size in memory, shared by threads.
pub struct RamTable {
    /// The buckets, from word `start` on.
    words: Box<[AtomicU64]>,
    /// Words to skip so that buckets lie on cache lines.
    start: usize,
    buckets: usize,
    /// What leaves a mark when it is evicted; nothing while there is no disk to ask.
    marked: Option<TierOptions>,
}

/// What became of an entry offered to a [`RamTable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// It is in, and nothing else had to go.
    Stored,
    /// It is in, and this one is out.
    Evicted(Key, Entry),
    /// It is not in: an entry of the same key stays that is final, or costlier.
    Kept,
    /// It is not in: what is there is worth more. Only for entries from disk.
    Refused,
    /// It is not in: another thread was writing to the bucket.
    Busy,
    /// It is not in: this final entry of the same key says the opposite.
    Contradicts(Entry),
}

/// Whether a newcomer may push out an entry that is worth more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It always gets in: the search will ask for it.
    Always,
    /// Only into an empty slot or over an entry worth less: warming up from disk.
    IfWorthMore,
}

impl RamTable {
    /// Makes an empty table of at most this many bytes, at least one bucket. The memory is zeroed by the system when it is first touched.
    ///
    /// # Errors
    /// [`StorageError::Memory`] when the system refuses that much.
    pub fn with_bytes(bytes: usize) -> Result<Self, StorageError> {
        let buckets = (bytes / BUCKET_BYTES).max(1);
        // One bucket more, to align the first.
        let length = (buckets + 1) * WORDS;
        // Zeroes straight from the allocator: pages that are never used are never touched.
        let words =
            <[AtomicU64]>::new_box_zeroed_with_elems(length).map_err(|_| StorageError::Memory { bytes })?;
        let start = words.as_ptr().align_offset(BUCKET_BYTES);
        // `align_offset` may in theory decline; buckets then straddle lines, which costs speed and nothing else.
        let start = if start < WORDS { start } else { 0 };
        Ok(Self { words, start, buckets, marked: None })
    }

    /// From now on, entries that these options cover leave a mark when they are evicted.
    pub(crate) fn mark_evicted(&mut self, options: TierOptions) {
        self.marked = Some(options);
    }

    /// Bytes of its buckets.
    pub fn bytes(&self) -> usize {
        self.buckets * BUCKET_BYTES
    }

    /// The most entries it can hold.
    pub fn capacity(&self) -> usize {
        self.buckets * SLOTS
    }

    /// How many entries it holds: exact up to 8192 of capacity, above that estimated from 4096 buckets.
    pub fn len(&self) -> usize {
        let step = self.buckets.div_ceil(SAMPLE);
        let sampled = self.all().iter().step_by(step);
        let (mut seen, mut occupied) = (0usize, 0usize);
        for bucket in sampled {
            seen += SLOTS;
            occupied += (0..SLOTS).filter(|slot| unpack(bucket[DATA + slot].load(Relaxed)).is_some()).count();
        }
        (occupied as u128 * self.capacity() as u128 / seen.max(1) as u128) as usize
    }

    /// Whether it holds nothing, as far as [`len`](Self::len) sees.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn all(&self) -> &[Bucket] {
        &self.words[self.start..].as_chunks::<WORDS>().0[..self.buckets]
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &Bucket {
        // The high half of the product is uniform over the buckets whatever their number (Lemire 2019).
        let index = (u128::from(hash) * self.buckets as u128) >> 64;
        &self.all()[index as usize]
    }

    /// Stores an entry and says what became of it.
    #[inline]
    pub fn insert(&self, key: &Key, entry: &Entry) -> Insertion {
        self.offer(key, entry, Admission::Always)
    }

    pub(crate) fn offer(&self, key: &Key, entry: &Entry, admission: Admission) -> Insertion {
        let hash = mix(key);
        let bucket = self.bucket(hash);
        let Some(entered) = enter(bucket) else {
            return Insertion::Busy;
        };
        let insertion = change(bucket, key, entry, admission, entered);
        let covered = |entry| self.marked.is_some_and(|options| options.covers(entry));
        let marks = match &insertion {
            Insertion::Evicted(key, entry) if covered(entry) => entered | mark(mix(key)),
            Insertion::Refused if covered(entry) => entered | mark(hash),
            _ => entered,
        };
        leave(bucket, entered, marks);
        insertion
    }

    /// Removes the mark of the key, and of keys like it: the disk has been asked.
    pub(crate) fn unmark(&self, key: &Key) {
        let hash = mix(key);
        let bucket = self.bucket(hash);
        if let Some(entered) = enter(bucket) {
            leave(bucket, entered, entered & !mark(hash));
        }
    }

    #[inline]
    pub(crate) fn look_up(&self, key: &Key) -> Lookup {
        let hash = mix(key);
        let bucket = self.bucket(hash);
        for _ in 0..READ_TRIES {
            let sequence = bucket[SEQUENCE].load(Acquire);
            if sequence & 1 == 1 {
                spin_loop();
                continue;
            }
            let Some(slot) = find(bucket, key) else {
                // A miss needs no second look: if it is a writer's doing, forgetting is allowed.
                return if sequence & mark(hash) == 0 { Lookup::Absent } else { Lookup::Evicted };
            };
            let data = bucket[DATA + slot].load(Relaxed);
            fence(Acquire);
            if bucket[SEQUENCE].load(Relaxed) == sequence {
                return unpack(data).map_or(Lookup::Absent, Lookup::Found);
            }
        }
        Lookup::Absent
    }
}

/// The bit of the sequence word that marks keys with this mix. Buckets are chosen by its high bits, marks by its low ones.
#[inline]
fn mark(hash: u64) -> u64 {
    1 << (48 + (hash & 15))
}

/// Becomes the bucket's writer, and returns its sequence word as it was; `None` while there is another.
#[inline]
fn enter(bucket: &Bucket) -> Option<u64> {
    let sequence = bucket[SEQUENCE].load(Relaxed);
    if sequence & 1 == 1
        || bucket[SEQUENCE].compare_exchange(sequence, sequence + 1, Acquire, Relaxed).is_err()
    {
        return None;
    }
    fence(Release);
    Some(sequence)
}

/// Ends being the bucket's writer.
#[inline]
fn leave(bucket: &Bucket, entered: u64, marks: u64) {
    bucket[SEQUENCE].store((entered + 2) & !MARKS | marks & MARKS, Release);
}

/// Changes a bucket whose writer the caller is.
#[inline]
fn change(bucket: &Bucket, key: &Key, entry: &Entry, admission: Admission, sequence: u64) -> Insertion {
    let data = [0, 1].map(|slot| bucket[DATA + slot].load(Relaxed));
    let word = pack(entry);
    if let Some(slot) = find(bucket, key) {
        let kept = data[slot];
        let insertion = match unpack(kept) {
            Some(old) if contradict(&old, entry) => Insertion::Contradicts(old),
            // Of two final entries the costlier stays, of a final and an open one the final.
            Some(old) if old.is_final() && (!is_final(word) || old.work >= entry.work) => Insertion::Kept,
            _ if admission == Admission::IfWorthMore && priority(kept) >= priority(word) => Insertion::Kept,
            _ => Insertion::Stored,
        };
        if insertion == Insertion::Stored {
            bucket[DATA + slot].store(word, Relaxed);
        }
        return insertion;
    }
    let (slot, insertion) = match data.map(unpack) {
        [None, _] => (0, Insertion::Stored),
        [_, None] => (1, Insertion::Stored),
        [Some(first), Some(second)] => {
            let (slot, entry) = if priority(data[0]) < priority(data[1]) { (0, first) } else { (1, second) };
            if admission == Admission::IfWorthMore && priority(data[slot]) >= priority(word) {
                return Insertion::Refused;
            }
            // Not by a random number: the sequence counts the bucket's stores already.
            if (sequence >> 1).is_multiple_of(STORES_PER_AGE) {
                bucket[DATA + (1 - slot)].store(aged(data[1 - slot]), Relaxed);
            }
            (slot, Insertion::Evicted(key_at(bucket, slot), entry))
        }
    };
    bucket[KEYS + 2 * slot].store(key.words[0], Relaxed);
    bucket[KEYS + 2 * slot + 1].store(key.words[1], Relaxed);
    let shift = 32 * slot as u32;
    let tags = bucket[TAGS].load(Relaxed) & !(0xffff_ffff << shift) | u64::from(key.tag) << shift;
    bucket[TAGS].store(tags, Relaxed);
    bucket[DATA + slot].store(word, Relaxed);
    insertion
}

#[inline]
fn key_at(bucket: &Bucket, slot: usize) -> Key {
    let words = [0, 1].map(|word| bucket[KEYS + 2 * slot + word].load(Relaxed));
    Key { words, tag: (bucket[TAGS].load(Relaxed) >> (32 * slot)) as u32 }
}

/// The occupied slot that holds the key.
#[inline]
fn find(bucket: &Bucket, key: &Key) -> Option<usize> {
    (0..SLOTS).find(|&slot| bucket[DATA + slot].load(Relaxed) & 1 == 1 && key_at(bucket, slot) == *key)
}

/// The 64-bit mix that places keys; fixed, so that measurements can be repeated. Each part of the key is multiplied by an
/// odd constant of its own, and the finalizer is variant 13 of Stafford's for MurmurHash3, as in SplitMix64.
#[inline]
pub(crate) fn mix(key: &Key) -> u64 {
    let mut hash = key.words[0].wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ key.words[1].wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31)
        ^ u64::from(key.tag).wrapping_mul(0x1656_67b1_9e37_79f9);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

impl Table for RamTable {
    #[inline]
    fn probe(&self, key: &Key) -> Option<Entry> {
        match self.look_up(key) {
            Lookup::Found(entry) => Some(entry),
            Lookup::Absent | Lookup::Evicted => None,
        }
    }

    #[inline]
    fn prefetch(&self, key: &Key) {
        memory::prefetch(self.bucket(mix(key)));
    }

    #[inline]
    fn store(&self, key: &Key, entry: Entry) {
        self.insert(key, &entry);
    }
}
