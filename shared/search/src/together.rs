//! Threads that search one claim together: where they are, so that they spread out.
//!
//! Threads share what they find by the table alone. Without more they would all go down the same line, so each marks the states it
//! is in, and the others see these as harder to prove than they are ([`Crowd::virtual_proof`]): virtual proof numbers (Kaneko, "Parallel
//! depth first proof number search", 2010; Pawlewicz and Hayward, "Scalable parallel DFPN search", 2013). Only the choice of
//! the next branch uses them; what is stored and what decides a state are the numbers themselves.

use crate::numbers::{FINITE_MAX, INFINITE};
use crate::table::Key;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Two to this many marks: far more than threads times plies, so that two states seldom share one. Sharing costs a detour.
const MARKS_LOG2: u32 = 16;

/// The threads of this process that search, and where.
pub(crate) struct Crowd {
    searches: AtomicUsize,
    marks: [AtomicU16; 1 << MARKS_LOG2],
}

/// The one crowd of the process: claims of different jobs only share marks by chance.
pub(crate) static CROWD: Crowd =
    Crowd { searches: AtomicUsize::new(0), marks: [const { AtomicU16::new(0) }; 1 << MARKS_LOG2] };

/// A search that others can see, until it is dropped.
pub(crate) struct Presence(&'static AtomicUsize);

/// A state that a thread is in, until it is dropped.
pub(crate) struct Mark(&'static AtomicU16);

impl Crowd {
    /// Begins a search.
    pub(crate) fn join(&'static self) -> Presence {
        self.searches.fetch_add(1, Ordering::Relaxed);
        Presence(&self.searches)
    }

    /// Whether more than one thread searches.
    pub(crate) fn is_many(&self) -> bool {
        self.searches.load(Ordering::Relaxed) > 1
    }

    /// Marks a state.
    pub(crate) fn enter(&'static self, key: &Key) -> Mark {
        let mark = &self.marks[slot(key)];
        mark.fetch_add(1, Ordering::Relaxed);
        Mark(mark)
    }

    /// Whether a thread is in a state, or in one that shares its mark.
    pub(crate) fn is_inside(&self, key: &Key) -> bool {
        self.marks[slot(key)].load(Ordering::Relaxed) > 0
    }

    /// A branch's proof number as it counts for a choice: half as much again, and one, for each thread that is in it.
    pub(crate) fn virtual_proof(&self, key: Option<&Key>, proof: u32) -> u32 {
        let inside = key.map_or(0, |key| u32::from(self.marks[slot(key)].load(Ordering::Relaxed)));
        if inside == 0 || proof >= INFINITE {
            return proof;
        }
        proof.saturating_add(inside.saturating_mul(proof / 2 + 1)).min(FINITE_MAX)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn slot(key: &Key) -> usize {
    let mixed = (key.words[0] ^ key.words[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 32 ^ u64::from(key.tag)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - MARKS_LOG2)) as usize
}
