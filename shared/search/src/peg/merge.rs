//! Merging sorted runs of entries.

use super::counter::Entry;
use super::error::CountError;

/// Merges runs, each strictly sorted by board, into one, adding the counts of equal boards.
///
/// Neighbouring runs are merged in pairs until one is left: the logarithm of the number of runs in passes over the data. The
/// result does not depend on the order of the runs.
///
/// # Errors
/// [`CountError::BoardOverflow`].
pub fn merge(mut runs: Vec<Vec<Entry>>) -> Result<Vec<Entry>, CountError> {
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(first) = rest.next() {
            merged.push(match rest.next() {
                Some(second) => merge_two(first, second)?,
                None => first,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge_two(first: Vec<Entry>, second: Vec<Entry>) -> Result<Vec<Entry>, CountError> {
    debug_assert!(is_sorted(&first) && is_sorted(&second));
    if first.is_empty() || second.is_empty() {
        return Ok(if first.is_empty() { second } else { first });
    }
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut a, mut b) = (first.iter().peekable(), second.iter().peekable());
    while let (Some(&&left), Some(&&right)) = (a.peek(), b.peek()) {
        let mut entry = if left.board <= right.board { left } else { right };
        if left.board == right.board {
            entry.ways =
                left.ways.checked_add(right.ways).ok_or(CountError::BoardOverflow { board: entry.board })?;
        }
        a.next_if(|entry| entry.board <= right.board);
        b.next_if(|entry| entry.board <= left.board);
        merged.push(entry);
    }
    merged.extend(a.chain(b));
    Ok(merged)
}

/// Whether the boards increase strictly.
fn is_sorted(run: &[Entry]) -> bool {
    run.windows(2).all(|pair| pair[0].board < pair[1].board)
}
