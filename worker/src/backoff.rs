//! When to try an unreachable coordinator again: one policy, shared by all threads of the process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The wait after the first failure: a coordinator that is being restarted is back within a second or so.
const FIRST: Duration = Duration::from_millis(200);

/// The longest wait: thousands of workers that wait for one coordinator make some hundred calls a second at most.
const LONGEST: Duration = Duration::from_secs(15);

/// How long a coordinator is tried that was never reached: longer than it takes to start, short enough to notice a wrong address.
const FIRST_CONTACT: Duration = Duration::from_secs(60);

/// The wait after the `failures`th failure in a row: doubled each time up to 15 s, the upper half of it random, so that
/// workers that lost the coordinator together do not come back together. `random` is in `0.0..1.0`.
pub fn delay(failures: u32, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = LONGEST.min(FIRST * (1 << doublings));
    full / 2 + (full / 2).mul_f64(random.clamp(0.0, 1.0))
}

/// A random number in `0.0..1.0` for [`delay`].
pub fn jitter() -> f64 {
    // Without randomness all workers would wait equally long, which is no reason to fail.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / (f64::from(u32::MAX) + 1.0)
}

/// What follows from a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Try again after this long.
    Wait {
        /// How long.
        wait: Duration,
        /// Failures in a row, over all threads; calls that failed while others waited count once.
        failures: u32,
        /// Whether this failure is the first of its round: the one to log.
        first_of_round: bool,
    },
    /// It was tried for long enough.
    GiveUp {
        /// How long.
        waited: Duration,
    },
}

/// The state of contact with the coordinator.
#[derive(Debug)]
pub struct Reconnect {
    give_up_after: Option<Duration>,
    contact: Mutex<Contact>,
}

#[derive(Debug, Default)]
struct Contact {
    /// Whether any call ever succeeded.
    made: bool,
    failures: u32,
    down_since: Option<Instant>,
    /// The end of the current wait: failures before it belong to the same round.
    round_ends: Option<Instant>,
}

impl Reconnect {
    /// A policy. `give_up_after` bounds the time in a row without contact; `None` bounds only the time to the first contact, by a
    /// minute.
    pub fn new(give_up_after: Option<Duration>) -> Self {
        Self { give_up_after, contact: Mutex::default() }
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call was answered. Gives how long the coordinator had been away, if it had.
    pub fn succeeded(&self, now: Instant) -> Option<Duration> {
        let mut contact = self.contact();
        let away = contact.down_since.map(|since| now.saturating_duration_since(since));
        *contact = Contact { made: true, ..Contact::default() };
        away
    }

    /// A call failed in a way that [`judge`](crate::retry::judge) calls worth a retry.
    pub fn failed(&self, now: Instant, random: f64) -> Next {
        let mut contact = self.contact();
        let waited = now.saturating_duration_since(*contact.down_since.get_or_insert(now));
        let limit = self.give_up_after.or((!contact.made).then_some(FIRST_CONTACT));
        if limit.is_some_and(|limit| waited >= limit) {
            return Next::GiveUp { waited };
        }
        let first_of_round = contact.round_ends.is_none_or(|end| now >= end);
        if first_of_round {
            contact.failures = contact.failures.saturating_add(1);
        }
        let wait = delay(contact.failures, random);
        if first_of_round {
            contact.round_ends = Some(now + wait);
        }
        // The last try comes right at the limit instead of a long wait past it.
        let wait = limit.map_or(wait, |limit| wait.min(limit - waited));
        Next::Wait { wait, failures: contact.failures, first_of_round }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_keep_half_random() {
        let mut before = Duration::ZERO;
        for failures in 1..40 {
            let (least, most) = (delay(failures, 0.0), delay(failures, 1.0));
            assert_eq!(least * 2, most, "after {failures} failures");
            assert!(most >= before && most <= LONGEST, "after {failures} failures: {most:?}");
            before = most;
        }
        assert_eq!(delay(1, 1.0), FIRST);
        assert_eq!(before, LONGEST);
        let drawn: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(
            drawn.iter().all(|x| (0.0..1.0).contains(x)) && drawn.iter().any(|x| *x != drawn[0]),
            "{drawn:?}"
        );
    }

    fn wait(next: Next) -> (Duration, u32, bool) {
        match next {
            Next::Wait { wait, failures, first_of_round } => (wait, failures, first_of_round),
            Next::GiveUp { waited } => panic!("gave up after {waited:?}"),
        }
    }

    #[test]
    fn failures_of_one_round_count_once() {
        let (reconnect, start) = (Reconnect::new(None), Instant::now());
        assert_eq!(wait(reconnect.failed(start, 1.0)), (FIRST, 1, true));
        for _ in 0..30 {
            assert_eq!(wait(reconnect.failed(start + FIRST / 2, 1.0)), (FIRST, 1, false));
        }
        assert_eq!(wait(reconnect.failed(start + FIRST, 1.0)), (FIRST * 2, 2, true));
        assert_eq!(reconnect.succeeded(start + FIRST * 3), Some(FIRST * 3));
        assert_eq!(reconnect.succeeded(start + FIRST * 4), None);
        assert_eq!(wait(reconnect.failed(start + FIRST * 5, 1.0)), (FIRST, 1, true));
    }

    #[test]
    fn a_coordinator_never_reached_is_given_up_and_a_known_one_is_not() {
        let (reconnect, start) = (Reconnect::new(None), Instant::now());
        wait(reconnect.failed(start, 0.0));
        assert_eq!(reconnect.failed(start + FIRST_CONTACT, 0.0), Next::GiveUp { waited: FIRST_CONTACT });
        reconnect.succeeded(start);
        wait(reconnect.failed(start, 0.0));
        wait(reconnect.failed(start + FIRST_CONTACT * 1000, 0.0));

        let hasty = Reconnect::new(Some(Duration::ZERO));
        hasty.succeeded(start);
        assert_eq!(hasty.failed(start, 0.0), Next::GiveUp { waited: Duration::ZERO });
        let patient = Reconnect::new(Some(FIRST / 4));
        assert_eq!(wait(patient.failed(start, 1.0)).0, FIRST / 4);
    }
}
