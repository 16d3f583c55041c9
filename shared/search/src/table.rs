//! What an engine asks of a table: exact keys in, decided or open entries out, never waiting.

use crate::numbers::Numbers;

/// An exact table key: 160 bits that a game fills with the whole state, so that equal keys mean equal claims. Never a hash.
///
/// ```text
/// words[0], words[1]   the state: cells, houses, stones (128 bits)
/// tag, low 16 bits     the rest of the state: width and heap of a couple, mover, margin
/// tag, high 16 bits    the namespace (game, rules, board) as numbered by the table
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Key {
    /// 128 bits of state.
    pub words: [u64; 2],
    /// The rest of the state and the namespace.
    pub tag: u32,
}

/// The number by which a table knows a namespace (see `ClaimRules::namespace`); the high half of a [`Key::tag`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Namespace(pub u16);

impl Key {
    /// Joins state and namespace.
    pub fn new(words: [u64; 2], rest: u16, namespace: Namespace) -> Self {
        Self { words, tag: u32::from(rest) | u32::from(namespace.0) << 16 }
    }

    /// What the key's state is of.
    pub fn namespace(&self) -> Namespace {
        Namespace((self.tag >> 16) as u16)
    }

    /// The part of the tag that belongs to the state.
    pub fn rest(&self) -> u16 {
        (self.tag & 0xffff) as u16
    }
}

/// What a table holds for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The knowledge itself.
    pub known: Known,
    /// Nodes searched below this key in total: what losing the entry would cost. Tables may round it down to a power of two.
    pub work: u64,
}

/// The two kinds of knowledge in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Proof and disproof numbers of a claim; a decided claim has one of them 0.
    Numbers(Numbers),
    /// The exact value of a position (a nimber). A game keeps it under a `rest` of its own, apart from its claims.
    Value(i16),
}

impl Entry {
    /// Whether the entry can never change: a decided claim or an exact value.
    pub fn is_final(&self) -> bool {
        match self.known {
            Known::Numbers(numbers) => numbers.truth().is_some(),
            Known::Value(_) => true,
        }
    }
}

/// A transposition table shared by threads.
///
/// It may forget anything at any time. What it returns is what was stored under exactly that key.
/// Neither call waits for a disk or a lock.
pub trait Table: Sync + Send {
    /// The entry stored for the key, if it is still there.
    fn probe(&self, key: &Key) -> Option<Entry>;

    /// Says that the key will be probed soon, so that memory can be on its way while something else is done.
    fn prefetch(&self, key: &Key) {
        let _ = key;
    }

    /// Offers an entry. The table keeps it or what it has, by work; a final entry is never replaced by one of the same key that is not.
    fn store(&self, key: &Key, entry: Entry);
}

impl<T: Table + ?Sized> Table for std::sync::Arc<T> {
    fn probe(&self, key: &Key) -> Option<Entry> {
        (**self).probe(key)
    }

    fn prefetch(&self, key: &Key) {
        (**self).prefetch(key);
    }

    fn store(&self, key: &Key, entry: Entry) {
        (**self).store(key, entry);
    }
}
