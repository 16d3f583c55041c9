//! Lists of branches kept for the next visit.
//!
//! A depth-first proof-number search leaves a state when another looks better, and often comes back soon. In Konane, more than a third of all
//! visits are to states that were expanded before. What a state's branches are does not change, only their numbers do, so the lists
//! of the states left last are kept, and a visit that finds its own need not expand the state again.

use crate::dfpn::Branch;
use crate::table::Key;

/// A list of branches and whose it is.
type Kept<S> = Option<(Key, Vec<Branch<S>>)>;

/// Lists of branches by key. Each key has one place, where a newcomer takes it.
pub(crate) struct Shelf<S> {
    /// Empty until the first list is put there.
    places: Vec<Kept<S>>,
    /// How many places there are to be: a power of two, or none.
    size: usize,
}

impl<S> Shelf<S> {
    pub(crate) fn new(size: usize) -> Self {
        Self { places: Vec::new(), size }
    }

    /// The key's list, if it is still there; it is not any more.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Vec<Branch<S>>> {
        let place = self.places.get_mut(place(key, self.size))?;
        place.take_if(|(owner, _)| owner == key).map(|(_, branches)| branches)
    }

    /// Keeps a list. Gives back one that is not needed any more, if there is one.
    pub(crate) fn put(&mut self, key: Key, branches: Vec<Branch<S>>) -> Option<Vec<Branch<S>>> {
        if self.places.is_empty() {
            self.places.resize_with(self.size, || None);
        }
        match self.places.get_mut(place(&key, self.size)) {
            Some(place) => place.replace((key, branches)).map(|(_, branches)| branches),
            None => Some(branches),
        }
    }
}

/// The place of a key among `size`, a power of two or none.
fn place(key: &Key, size: usize) -> usize {
    let mixed = (key.words[0] ^ key.words[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 32 ^ u64::from(key.tag)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize & size.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;
    use crate::table::Namespace;
    use grundy_games::claim::Polarity;

    fn key(state: u64) -> Key {
        Key::new([state, 0], 0, Namespace(0))
    }

    fn list(state: u64) -> Vec<Branch<u64>> {
        vec![Branch { polarity: Polarity::Opposite, state, numbers: Numbers::UNKNOWN }]
    }

    fn states(list: Option<Vec<Branch<u64>>>) -> Option<Vec<u64>> {
        list.map(|list| list.iter().map(|branch| branch.state).collect())
    }

    #[test]
    fn a_list_is_given_to_its_key_once() {
        let mut shelf = Shelf::new(1);
        assert_eq!(states(shelf.take(&key(1))), None);
        assert_eq!(states(shelf.put(key(1), list(10))), None);
        assert_eq!(states(shelf.put(key(2), list(20))), Some(vec![10]));
        assert_eq!(states(shelf.take(&key(1))), None);
        assert_eq!(states(shelf.take(&key(2))), Some(vec![20]));
        assert_eq!(states(shelf.take(&key(2))), None);
    }

    #[test]
    fn a_shelf_without_places_keeps_nothing() {
        let mut shelf = Shelf::new(0);
        assert_eq!(states(shelf.put(key(1), list(10))), Some(vec![10]));
        assert_eq!(states(shelf.take(&key(1))), None);
    }
}
