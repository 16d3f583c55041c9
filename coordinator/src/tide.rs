//! How much workers tell each other of their tables: what a coordinator can pass on, and a worker can take in.
//!
//! What a worker tells goes to all others, so with many workers it is the coordinator's connection that runs full. From which
//! work on entries are told rises and falls with what was passed on lately.

/// The most entries that are passed on in a second, to all listeners together: some 50 MB.
const PASSED_ON_MAX: u64 = 2_000_000;

/// The most entries that one listener hears in a second: some 5 MB, and a fiftieth of a core.
const HEARD_MAX: u64 = 200_000;

/// The least work rises no further: nothing that costs this much is found so often.
const WORK_MIN_MAX: u64 = 1 << 32;

/// How long entries are counted before the work is changed.
const WINDOW_MS: u64 = 100;

/// From which work on entries are told.
#[derive(Clone, Debug)]
pub struct Tide {
    work_min: u64,
    /// When counting began.
    since_ms: u64,
    /// Entries passed on since then, once for each listener.
    passed_on: u64,
}

impl Tide {
    /// Everything is told at first.
    pub fn new(now_ms: u64) -> Self {
        Self { work_min: 1, since_ms: now_ms, passed_on: 0 }
    }

    /// Entries of this work and more are worth passing on now. Workers may know better for their game, and tell less.
    pub fn work_min(&self) -> u64 {
        self.work_min
    }

    /// Counts entries that are passed on to so many listeners; to be called now and then if there are none, or what has risen never falls. Whether the
    /// least work has changed.
    pub fn pass_on(&mut self, now_ms: u64, entries: u64, listeners: u64) -> bool {
        self.passed_on = self.passed_on.saturating_add(entries.saturating_mul(listeners));
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if elapsed_ms < WINDOW_MS {
            return false;
        }
        let most = PASSED_ON_MAX.min(HEARD_MAX.saturating_mul(listeners.max(1)));
        let a_second = u128::from(self.passed_on) * 1000 / u128::from(elapsed_ms);
        (self.since_ms, self.passed_on) = (now_ms, 0);
        let before = self.work_min;
        // Twice the work, about half the entries.
        if a_second > most.into() {
            self.work_min = (before * 2).min(WORK_MIN_MAX);
        } else if a_second < (most / 4).into() {
            self.work_min = (before / 2).max(1);
        }
        self.work_min != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets workers find so many entries of work 1 and more a second, half as many for each doubling; gives the least work that it comes to.
    fn settle(found_a_second: u64, listeners: u64) -> u64 {
        let mut tide = Tide::new(0);
        for now_ms in (10..20_000).step_by(10) {
            tide.pass_on(now_ms, found_a_second / 100 / tide.work_min(), listeners);
        }
        tide.work_min()
    }

    #[test]
    fn as_much_is_told_as_can_be_heard() {
        assert_eq!(settle(100_000, 1), 1, "that much goes through");
        // 16 workers find 8 million and each may hear 200,000.
        let few = settle(8_000_000, 15);
        assert!((16..=128).contains(&few), "{few}");
        // The more listeners, the less goes to each.
        let many = settle(8_000_000, 1023);
        assert!(many > 16 * few, "{many}");
    }

    #[test]
    fn it_falls_when_less_is_found() {
        let mut tide = Tide::new(0);
        (1..=50).for_each(|window| {
            tide.pass_on(window * WINDOW_MS, 1_000_000, 1);
        });
        let high = tide.work_min();
        (51..=100).for_each(|window| {
            tide.pass_on(window * WINDOW_MS, 10, 1);
        });
        assert_eq!((high, tide.work_min()), (WORK_MIN_MAX, 1));
    }
}
