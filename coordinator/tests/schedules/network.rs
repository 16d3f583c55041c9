//! A network with a virtual clock: messages are delayed, reordered, doubled and lost.

use rand::{Rng, RngExt};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How badly the network and its hosts behave.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The longest delay of a message, in milliseconds.
    pub delay_ms_max: u64,
    /// Of 1,000 messages, how many are lost.
    pub lost_permille: u32,
    /// Of 1,000 messages, how many arrive twice.
    pub doubled_permille: u32,
}

impl Weather {
    /// Nothing is lost, nothing is late.
    pub const CALM: Self = Self { delay_ms_max: 3, lost_permille: 0, doubled_permille: 0 };
}

/// Deliveries in order of time; among equals in order of sending.
pub struct Network<M> {
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    messages: std::collections::BTreeMap<u64, M>,
    sent: u64,
    /// The present weather.
    pub weather: Weather,
}

impl<M: Clone> Network<M> {
    /// An empty network.
    pub fn new(weather: Weather) -> Self {
        Self { queue: BinaryHeap::new(), messages: std::collections::BTreeMap::new(), sent: 0, weather }
    }

    /// Delivers at exactly this time.
    pub fn at(&mut self, time: u64, message: M) {
        self.queue.push(Reverse((time, self.sent)));
        self.messages.insert(self.sent, message);
        self.sent += 1;
    }

    /// Sends through the weather.
    pub fn send(&mut self, now: u64, message: M, rng: &mut impl Rng) {
        let Weather { delay_ms_max, lost_permille, doubled_permille } = self.weather;
        if rng.random_ratio(lost_permille, 1000) {
            return;
        }
        if rng.random_ratio(doubled_permille, 1000) {
            let delay = rng.random_range(1..=delay_ms_max);
            self.at(now + delay, message.clone());
        }
        let delay = rng.random_range(1..=delay_ms_max);
        self.at(now + delay, message);
    }

    /// The next delivery.
    pub fn next(&mut self) -> Option<(u64, M)> {
        let Reverse((time, number)) = self.queue.pop()?;
        Some((time, self.messages.remove(&number)?))
    }
}
