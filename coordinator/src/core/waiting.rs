//! The workers that wait for a task, in the order in which they came.
//!
//! Every event of every worker comes by here, so nothing that it asks may take a look at all who wait.

use super::api::{Millis, Session, Token};
use grundy_tables::jobs::record::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// A worker that waits for a task.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Who is to be answered.
    pub token: Token,
    /// Who waits.
    pub session: Session,
    /// Up to where it has read each job's facts.
    pub cursors: BTreeMap<JobId, u64>,
    /// When it has waited long enough.
    pub until: Millis,
}

/// A place in the queue; those who came later have greater ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place(u64);

impl Place {
    /// The place behind this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// All who wait.
#[derive(Default, Debug)]
pub struct Queue {
    places: BTreeMap<Place, Waiting>,
    by_worker: BTreeMap<String, BTreeSet<Place>>,
    by_token: BTreeMap<Token, Place>,
    by_end: BTreeSet<(Millis, Place)>,
    next: Place,
}

impl Queue {
    /// One more comes, and waits behind all others.
    pub fn push(&mut self, waiting: Waiting) {
        let place = self.next;
        self.next = place.next();
        self.by_worker.entry(waiting.session.worker.clone()).or_default().insert(place);
        self.by_token.insert(waiting.token, place);
        self.by_end.insert((waiting.until, place));
        self.places.insert(place, waiting);
    }

    /// Who has a place.
    pub fn get(&self, place: Place) -> Option<&Waiting> {
        self.places.get(&place)
    }

    /// The first place, from this one on.
    pub fn first_from(&self, from: Place) -> Option<Place> {
        self.places.range(from..).next().map(|(place, _)| *place)
    }

    /// A worker's first place, from this one on.
    pub fn first_of(&self, worker: &str, from: Place) -> Option<Place> {
        self.by_worker.get(worker)?.range(from..).next().copied()
    }

    /// How many calls of a worker wait.
    pub fn count_of(&self, worker: &str) -> usize {
        self.by_worker.get(worker).map_or(0, BTreeSet::len)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.places.values()
    }

    /// Takes one out.
    pub fn remove(&mut self, place: Place) -> Option<Waiting> {
        let waiting = self.places.remove(&place)?;
        if let Some(places) = self.by_worker.get_mut(&waiting.session.worker) {
            places.remove(&place);
            if places.is_empty() {
                self.by_worker.remove(&waiting.session.worker);
            }
        }
        self.by_token.remove(&waiting.token);
        self.by_end.remove(&(waiting.until, place));
        Some(waiting)
    }

    /// Takes out the one that is answered by this token.
    pub fn remove_token(&mut self, token: Token) -> Option<Waiting> {
        let place = self.by_token.get(&token).copied()?;
        self.remove(place)
    }

    /// Takes out all of a worker's.
    pub fn remove_worker(&mut self, worker: &str) -> Vec<Waiting> {
        let places = self.by_worker.get(worker).cloned().unwrap_or_default();
        places.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes out those who have waited long enough, in their order.
    pub fn remove_over(&mut self, now: Millis) -> Vec<Waiting> {
        let over = self.by_end.iter().take_while(|(until, _)| *until <= now);
        let over: BTreeSet<Place> = over.map(|(_, place)| *place).collect();
        over.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes out everybody.
    pub fn remove_all(&mut self) -> Vec<Waiting> {
        let next = self.next;
        std::mem::replace(self, Self { next, ..Self::default() }).places.into_values().collect()
    }

    /// Checks that all ways to find a place agree.
    ///
    /// # Errors
    /// The first place that they do not agree on, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (place, waiting) in &self.places {
            let worker = &waiting.session.worker;
            let found = self.by_worker.get(worker).is_some_and(|places| places.contains(place))
                && self.by_token.get(&waiting.token) == Some(place)
                && self.by_end.contains(&(waiting.until, *place));
            if !found {
                return Err(format!("'{worker}' waits at {place:?}, where it is not found"));
            }
        }
        let by_worker: usize = self.by_worker.values().map(BTreeSet::len).sum();
        let counts = [by_worker, self.by_token.len(), self.by_end.len()];
        if counts != [self.places.len(); 3] {
            return Err(format!("{} wait, but {counts:?} are found", self.places.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_tables::jobs::record::Epoch;

    fn queue() -> Queue {
        let mut queue = Queue::default();
        for (token, worker, until) in [(7, "a", 30), (3, "b", 20), (5, "a", 10), (1, "c", 20)] {
            let session = Session { epoch: Epoch(1), worker: worker.to_owned(), incarnation: 1 };
            let (token, until) = (Token(token), Millis(until));
            queue.push(Waiting { token, session, cursors: BTreeMap::new(), until });
        }
        queue
    }

    fn tokens(waiting: impl IntoIterator<Item = Waiting>) -> Vec<u64> {
        waiting.into_iter().map(|waiting| waiting.token.0).collect()
    }

    #[test]
    fn everybody_keeps_the_order_in_which_they_came() {
        assert_eq!(tokens(queue().iter().cloned()), [7, 3, 5, 1]);
        assert_eq!(tokens(queue().remove_all()), [7, 3, 5, 1]);
        assert_eq!(tokens(queue().remove_worker("a")), [7, 5]);
        // Not in the order in which their waits end.
        assert_eq!(tokens(queue().remove_over(Millis(20))), [3, 5, 1]);
        assert!(queue().remove_over(Millis(9)).is_empty());
    }

    #[test]
    fn who_is_taken_out_is_found_no_more() -> Result<(), String> {
        let mut queue = queue();
        let first = queue.first_from(Place::default()).ok_or("somebody waits")?;
        assert_eq!(
            queue.first_of("a", first.next()).and_then(|place| Some(queue.get(place)?.token)),
            Some(Token(5))
        );
        assert_eq!(tokens(queue.remove_token(Token(5))), [5]);
        queue.check_invariants()?;
        assert_eq!((queue.count_of("a"), queue.first_of("a", first.next())), (1, None));
        assert_eq!(tokens(queue.remove(first)), [7]);
        assert_eq!(tokens(queue.remove_over(Millis(40))), [3, 1]);
        queue.check_invariants()?;
        assert_eq!(queue.first_from(Place::default()), None);
        Ok(())
    }
}
