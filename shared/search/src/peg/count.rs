//! Counting in one process: the same steps as a distributed count, with threads for machines.

use super::counter::{Counter, Entry, Method};
use super::error::CountError;
use super::merge::merge;
use crate::engine::Limits;
use grundy_games::peg::Problem;
use std::panic::resume_unwind;
use std::thread;

/// The number of jump sequences that solve the problem. Each level is cut into as many parts as there are threads; 0 threads count as 1.
///
/// `limits.stop` ends the count early and `limits.progress` counts boards up to symmetry; the other limits do not apply.
///
/// # Errors
/// [`CountError`]: counts beyond 128 bits, or the count was stopped.
pub fn count(problem: &Problem, threads: usize, limits: &Limits<'_>) -> Result<u128, CountError> {
    let counter = Counter::new(problem);
    let parts = u32::try_from(threads.max(1)).unwrap_or(u32::MAX);
    let mut level = vec![Vec::new(); parts as usize];
    for start in counter.first() {
        level[counter.partition(start.board, parts) as usize].push(start);
    }
    let mut near = Vec::new();
    for number in 0..counter.levels() {
        let runs = in_parallel(level.iter().collect(), |part| counter.expand(part, parts, limits))?;
        let next = in_parallel(by_part(runs), merge)?;
        let before = std::mem::replace(&mut level, next);
        if counter.near_level() == Some(number) {
            near = before;
        }
    }
    let shares = match counter.method() {
        Method::Full => in_parallel(level.iter().collect(), |part| counter.total(part))?,
        Method::Half => {
            let near = if counter.near_level() == Some(counter.levels()) { &level } else { &near };
            in_parallel(near.iter().zip(&level).collect(), |(near, far)| counter.join(near, far))?
        }
    };
    shares.into_iter().try_fold(0, u128::checked_add).ok_or(CountError::TotalOverflow)
}

/// From one list of runs a source part to one a destination part.
fn by_part(runs: Vec<Vec<Vec<Entry>>>) -> Vec<Vec<Vec<Entry>>> {
    let mut parts: Vec<Vec<Vec<Entry>>> = Vec::new();
    for source in runs {
        parts.resize_with(source.len(), Vec::new);
        parts.iter_mut().zip(source).for_each(|(part, run)| part.push(run));
    }
    parts
}

/// Does the work on each item, with a thread for each but the first. The results are in the order of the items.
fn in_parallel<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, CountError> + Sync,
) -> Result<Vec<R>, CountError> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else {
        return Ok(Vec::new());
    };
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let first = work(first);
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // Collected in two steps: an error must not leave a thread that is not joined.
        std::iter::once(first).chain(others).collect::<Vec<_>>().into_iter().collect()
    })
}
