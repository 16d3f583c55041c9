//! Nodes a second over the last seconds.

use super::api::Millis;
use super::options::RATE_WINDOW_MS;
use std::collections::VecDeque;

/// Samples of a growing total.
#[derive(Debug, Default, Clone)]
pub struct Rate(VecDeque<(Millis, u64)>);

impl Rate {
    /// Notes the total at a moment, and forgets what is older than the window.
    pub fn sample(&mut self, now: Millis, total: u64) {
        self.0.push_back((now, total));
        while self.0.len() > 2 && self.0.front().is_some_and(|(at, _)| now.since(*at) > RATE_WINDOW_MS) {
            self.0.pop_front();
        }
    }

    /// The growth a second between the oldest and the newest sample.
    pub fn per_second(&self) -> f64 {
        match (self.0.front(), self.0.back()) {
            (Some((start, before)), Some((end, after))) if end > start => {
                after.saturating_sub(*before) as f64 * 1000.0 / end.since(*start) as f64
            }
            _ => 0.0,
        }
    }
}
