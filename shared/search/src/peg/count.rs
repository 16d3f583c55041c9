//! Counting in one process, on several threads and within a memory.
//!
//! The steps are those of a distributed count but for two things. Parts of a level are the buckets that its sums were made in,
//! so nothing is sorted or merged. And the last level is never made: the boards of the near level are expanded once more, and the
//! complement of each board behind a jump is looked up in the level that mirrors the last but one.

use super::accumulate::{Buckets, Dealer, Full, Slot, Sums, Table, Ways, Wide};
use super::counter::{Counter, Entry, Halt, LevelSize, Method};
use super::error::CountError;
use super::shelf::{Counts, Part, Shelf, Spill};
use crate::engine::{Limits, POLL_NODES};
use grundy_games::peg::{Hole, Images, Problem};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Levels of fewer entries are done before a second thread has begun.
const ENTRIES_PER_THREAD: usize = 1 << 12;

/// The growth that is expected of the first level. Later ones grow by less than the one before, once there are many boards.
const GROWTH: usize = 4;

/// The most steps for a level. Each reads the whole level before, so more would take long to find that it does not fit at all.
const STEPS_MAX: usize = 1 << 5;

/// Levels take this part of the memory before they spill: tables of the next level need the rest more, since each step that they do
/// not fit in reads the level before once more.
const SHELF_PART: usize = 4;

/// What a count in one process found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The number of jump sequences that solve the problem.
    pub total: u128,
    /// The same by finish, for those that have any, ordered by hole.
    pub finishes: Vec<(Hole, u128)>,
    /// The levels that were made, from level 0.
    pub levels: Vec<LevelSize>,
}

/// What a count in one process may use.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Threads; 0 count as 1.
    pub threads: usize,
    /// About how many bytes levels and their tables may take. Where a level's tables do not fit beside the level before, it is made in
    /// several steps, for a share of its boards each.
    pub memory: usize,
    /// Where levels go that do not fit.
    pub spill: Option<&'a dyn Spill>,
    /// Told of each level that has been made, in order: its number, and its boards up to symmetry.
    pub made: &'a (dyn Fn(u32, u64) + Sync),
}

impl Means<'_> {
    /// So many threads, and whatever memory it takes.
    pub fn threads(threads: usize) -> Self {
        Self { threads, memory: usize::MAX, spill: None, made: &|_, _| {} }
    }
}

/// The number of jump sequences that solve the problem, with the cheapest method and whatever memory it takes; 0 threads count as 1.
///
/// # Errors
/// As [`count_within`].
pub fn count(problem: &Problem, threads: usize, limits: &Limits<'_>) -> Result<u128, CountError> {
    count_within(&Counter::new(problem), Means::threads(threads), limits).map(|counted| counted.total)
}

/// Counts with this counter's method.
///
/// `limits.stop` ends the count early and `limits.progress` counts boards up to symmetry, none again when a level is made anew;
/// the other limits do not apply.
///
/// # Errors
/// [`CountError`]: counts beyond 128 bits, too little memory, a spill that fails, or the count was stopped.
pub fn count_within(counter: &Counter, means: Means<'_>, limits: &Limits<'_>) -> Result<Counted, CountError> {
    let shelf = &Shelf::new(means.memory / SHELF_PART, means.spill);
    Driver { counter, means, limits, shelf }.run()
}

/// A level on the shelf.
#[derive(Clone, Copy)]
struct Level {
    number: u32,
    parts: usize,
    entries: usize,
    /// Whether some counts need more than 64 bits.
    wide: bool,
}

struct Driver<'a> {
    counter: &'a Counter,
    means: Means<'a>,
    limits: &'a Limits<'a>,
    shelf: &'a Shelf<'a>,
}

impl Driver<'_> {
    fn run(&self) -> Result<Counted, CountError> {
        let first: Vec<Slot<u64>> =
            self.counter.first().iter().map(|entry| Slot { board: entry.board, ways: 1 }).collect();
        let mut level = Level { number: 0, parts: 1, entries: first.len(), wide: false };
        self.shelf.put(0, 0, Part::Narrow(first))?;
        let near_level = self.counter.near_level();
        // With a jump between the two levels of the join, the last one is not needed.
        let jumps = near_level.is_some_and(|near| near < self.counter.levels());
        let last = self.counter.levels() - u32::from(jumps);
        let (mut levels, mut near, mut growth) = (Vec::new(), level, GROWTH as f64);
        while level.number < last {
            if near_level == Some(level.number) {
                near = level;
            }
            let (next, size) = self.expand(level, (level.entries as f64 * growth) as usize)?;
            growth = (next.entries as f64 / level.entries.max(1) as f64).min(GROWTH as f64);
            levels.push(size);
            (self.means.made)(next.number, next.entries as u64);
            if near_level != Some(level.number) {
                self.shelf.clear(level.number);
            }
            level = next;
        }
        if near_level == Some(last) {
            near = level;
        }
        let finishes = match self.counter.method() {
            Method::Full => {
                levels.push(self.measure(level)?);
                self.finishes(level)?
            }
            Method::Half => {
                let (total, size) = match level.wide {
                    false => self.join::<u64>(near, level, jumps)?,
                    true => self.join::<Wide>(near, level, jumps)?,
                };
                levels.push(if near.number == level.number { size } else { self.measure(level)? });
                self.counter.all_at_the_finish(total)
            }
        };
        let total = finishes.iter().try_fold(0u128, |total, (_, ways)| total.checked_add(*ways));
        let total = total.ok_or(CountError::TotalOverflow)?;
        Ok(Counted { total, finishes, levels })
    }

    /// Makes the next level, of about so many entries, and measures this one.
    fn expand(&self, level: Level, expected: usize) -> Result<(Level, LevelSize), CountError> {
        let buckets = Buckets::for_entries(expected);
        let mut steps = match level.wide {
            false => self.steps::<u64>(level, buckets, expected),
            true => self.steps::<Wide>(level, buckets, expected),
        };
        let mut next = Level { number: level.number + 1, parts: buckets.len(), entries: 0, wide: level.wide };
        let mut again = false;
        loop {
            let done = match next.wide {
                false => self.expand_in::<u64>(level, buckets, steps, again),
                true => self.expand_in::<Wide>(level, buckets, steps, again),
            };
            match done {
                Ok((entries, size)) => {
                    next.entries = entries;
                    return Ok((next, size));
                }
                Err(Halt::Error(error)) => return Err(error),
                Err(Halt::Full(Full::Count(board))) if next.wide => {
                    return Err(CountError::BoardOverflow { board });
                }
                Err(Halt::Full(Full::Count(_))) => next.wide = true,
                Err(Halt::Full(Full::Memory)) if steps >= buckets.len().min(STEPS_MAX) => {
                    return Err(CountError::Memory { bytes: self.means.memory });
                }
                Err(Halt::Full(Full::Memory)) => steps *= 2,
            }
            self.shelf.clear(next.number);
            again = true;
        }
    }

    /// In how many steps a level of so many entries should fit: an attempt that fails takes time too.
    fn steps<W: Counts>(&self, level: Level, buckets: Buckets, entries: usize) -> usize {
        let most = buckets.len().min(STEPS_MAX);
        let fits = |steps: usize| match self.room::<W>(level, buckets.len().div_ceil(steps)) {
            // A table of a power of two of slots is more than half full most of the time, but never more than three quarters.
            Ok(room) => entries.div_ceil(steps).saturating_mul(2 * size_of::<Slot<W>>()) <= room,
            Err(_) => false,
        };
        std::iter::successors(Some(1), |steps| Some(steps * 2))
            .take_while(|steps| *steps < most)
            .find(|steps| fits(*steps))
            .unwrap_or(most)
    }

    /// Makes the next level in steps, each for a share of the buckets.
    fn expand_in<W: Counts>(
        &self,
        level: Level,
        buckets: Buckets,
        steps: usize,
        again: bool,
    ) -> Result<(usize, LevelSize), Halt> {
        let mut whole = LevelSize::default();
        let entries = AtomicUsize::new(0);
        for step in 0..steps {
            let report = step == 0 && !again;
            let wanted = share(buckets.len(), step, steps);
            let room = self.room::<W>(level, wanted.len())?;
            let sums = Sums::<W>::new(wanted.clone(), room);
            let sizes = self.in_parallel(level.entries, |queue| {
                let mut dealer = Dealer::new(buckets, wanted.clone());
                let mut add = |bucket, batch: &[Slot<W>]| sums.add(bucket, batch);
                let size = self.each_board(level, queue, report, |slot: Slot<W>, images| {
                    let deal =
                        |after: &Images| dealer.deal(after.least(), slot.ways, &mut add).map_err(Halt::from);
                    self.counter.successors(images, deal)
                })?;
                dealer.finish(&mut add)?;
                Ok(size)
            })?;
            if step == 0 {
                whole = sum(&sizes);
            }
            self.in_parallel(level.entries, |queue| {
                for bucket in queue.up_to(wanted.len()).map(|index| wanted.start + index) {
                    let slots = sums.take(bucket);
                    entries.fetch_add(slots.len(), Ordering::Relaxed);
                    self.shelf.put(level.number + 1, bucket, W::part(slots))?;
                }
                Ok(())
            })?;
        }
        Ok((entries.into_inner(), whole))
    }

    /// The bytes left for tables beside the shelf, the threads' buffers and the part that each of them reads.
    fn room<W: Counts>(&self, level: Level, wanted: usize) -> Result<usize, Halt> {
        let part = level.entries / level.parts * size_of::<Slot<Wide>>();
        let each = Dealer::<W>::bytes(wanted).saturating_add(part);
        let used = self.shelf.bytes().saturating_add(each.saturating_mul(self.workers(level.entries)));
        self.means.memory.checked_sub(used).ok_or(Halt::Full(Full::Memory))
    }

    /// Gives each board of the level, with its images, to one thread. `W` must hold its counts.
    fn each_board<W: Ways>(
        &self,
        level: Level,
        queue: &Queue,
        report: bool,
        mut take: impl FnMut(Slot<W>, &Images) -> Result<(), Halt>,
    ) -> Result<LevelSize, Halt> {
        let orbits = self.counter.orbits();
        let mut size = LevelSize::default();
        for part in queue.up_to(level.parts) {
            let part = self.shelf.get(level.number, part)?;
            for start in (0..part.len()).step_by(POLL_NODES as usize) {
                if self.limits.stopped() {
                    return Err(Halt::Error(CountError::Stopped));
                }
                let end = part.len().min(start + POLL_NODES as usize);
                for index in start..end {
                    let slot = part.get::<W>(index).ok_or(Full::Count(0))?;
                    let images = orbits.images(slot.board);
                    size.orbits += 1;
                    size.boards += u64::from(orbits.size(&images));
                    take(slot, &images)?;
                }
                if report {
                    self.limits.progress.fetch_add((end - start) as u64, Ordering::Relaxed);
                }
            }
        }
        Ok(size)
    }

    /// The answer from the near level and the level that mirrors it: `far` itself, or with `jumps` the one after `far`. And the
    /// size of the near level.
    ///
    /// See [`Counter::join`] for the sum. With a jump from `d` to `e` between the two levels, `far` holds the complement of `e`.
    /// The same jump leads from there to the complement of `d`, so when both levels are one, each pair is met from either side
    /// with equal products; then only one of the two is looked up, and counts twice.
    fn join<W: Counts>(&self, near: Level, far: Level, jumps: bool) -> Result<(u128, LevelSize), CountError> {
        let buckets = far.parts;
        let mut steps = 1;
        let bytes = |steps: usize| {
            let table = |part| Table::<W>::bytes(self.shelf.entries(far.number, part));
            (0..steps).map(|step| share(buckets, step, steps).map(table).sum::<usize>()).max()
        };
        while bytes(steps) > self.room::<W>(near, buckets.div_ceil(steps)).ok() {
            if steps >= buckets {
                return Err(CountError::Memory { bytes: self.means.memory });
            }
            steps *= 2;
        }
        let (mut total, mut whole) = (0u128, LevelSize::default());
        for step in 0..steps {
            let wanted = share(buckets, step, steps);
            let (found, size) =
                self.join_step::<W>(near, far, jumps, wanted, step == 0).map_err(|halt| match halt {
                    Halt::Error(error) => error,
                    Halt::Full(_) => CountError::TotalOverflow,
                })?;
            total = total.checked_add(found).ok_or(CountError::TotalOverflow)?;
            if step == 0 {
                whole = size;
            }
        }
        Ok((total, whole))
    }

    fn join_step<W: Counts>(
        &self,
        near: Level,
        far: Level,
        jumps: bool,
        wanted: Range<usize>,
        first: bool,
    ) -> Result<(u128, LevelSize), Halt> {
        let (counter, orbits) = (self.counter, self.counter.orbits());
        let parts = self.in_parallel(far.entries, |queue| {
            let parts = queue.up_to(wanted.len()).map(|index| {
                let part = self.shelf.get(far.number, wanted.start + index)?;
                let slots = (0..part.len()).map(|entry| part.get::<W>(entry).unwrap_or_default());
                Ok((index, Table::of(slots)))
            });
            parts.collect::<Result<Vec<_>, Halt>>()
        })?;
        let tables: BTreeMap<usize, Table<W>> = parts.into_iter().flatten().collect();
        let tables: Vec<Table<W>> = tables.into_values().collect();
        let twice = jumps && near.number == far.number;
        let buckets = match far.parts {
            // Level 0 is a single part, of no buckets; its board is looked up in a table of its own.
            1 => None,
            _ => Some(Buckets::of_count(far.parts)),
        };
        let shares = self.in_parallel(near.entries, |queue| {
            let (mut total, mut own) = (0u128, 0u128);
            let mut look_up = |bucket: usize, batch: &[Slot<W>]| -> Result<(), Halt> {
                let table = &tables[bucket - wanted.start];
                table.prefetch(batch);
                for wanted in batch {
                    let Some(ways) = table.get(wanted.board).map(Ways::wide) else { continue };
                    let product = product(*wanted, ways, orbits.size(&orbits.images(wanted.board)))?;
                    total = total.checked_add(product).ok_or(CountError::TotalOverflow)?;
                }
                Ok(())
            };
            let mut dealer = buckets.map(|buckets| Dealer::new(buckets, wanted.clone()));
            let report = first && near.number == far.number;
            let size = self.each_board(near, queue, report, |slot: Slot<W>, images| {
                let mut want = |other: &Images| -> Result<(), Halt> {
                    let board = counter.holes() ^ other.greatest();
                    if twice && board <= slot.board {
                        if board == slot.board && first {
                            let ways = product(slot, slot.ways.wide(), orbits.size(images))?;
                            own = own.checked_add(ways).ok_or(CountError::TotalOverflow)?;
                        }
                        return Ok(());
                    }
                    let wanted = Slot { board, ways: slot.ways };
                    match &mut dealer {
                        Some(dealer) => dealer.deal(board, wanted.ways, &mut look_up),
                        None => look_up(0, &[wanted]),
                    }
                };
                if jumps { counter.successors(images, want) } else { want(images) }
            })?;
            if let Some(dealer) = dealer {
                dealer.finish(&mut look_up)?;
            }
            let total = if twice {
                total.checked_mul(2).and_then(|total| total.checked_add(own))
            } else {
                Some(total)
            };
            Ok((total.ok_or(CountError::TotalOverflow)?, size))
        })?;
        let total = shares.iter().try_fold(0u128, |total, share| total.checked_add(share.0));
        let sizes: Vec<LevelSize> = shares.iter().map(|share| share.1).collect();
        Ok((total.ok_or(CountError::TotalOverflow)?, sum(&sizes)))
    }

    /// The answer under [`Method::Full`], by finish, from the last level.
    fn finishes(&self, last: Level) -> Result<Vec<(Hole, u128)>, CountError> {
        let mut finishes = Vec::new();
        for part in 0..last.parts {
            let part = self.shelf.get(last.number, part)?;
            let entries = (0..part.len()).filter_map(|index| part.get::<Wide>(index)).map(Entry::from);
            finishes.extend(self.counter.finishes(entries)?);
        }
        // An orbit is one entry, so no finish is met twice.
        finishes.sort_unstable();
        Ok(finishes)
    }

    /// The size of a level that is not expanded.
    fn measure(&self, level: Level) -> Result<LevelSize, CountError> {
        let sizes = self.in_parallel(level.entries, |queue| {
            self.each_board(level, queue, false, |_: Slot<Wide>, _| Ok(()))
        });
        match sizes {
            Ok(sizes) => Ok(sum(&sizes)),
            Err(Halt::Error(error)) => Err(error),
            Err(Halt::Full(_)) => Err(CountError::TotalOverflow),
        }
    }

    /// How many threads are worth it for this many entries.
    fn workers(&self, entries: usize) -> usize {
        self.means.threads.max(1).min(entries / ENTRIES_PER_THREAD + 1)
    }

    /// Does the work on some threads, which share a queue; this thread is one of them.
    fn in_parallel<R: Send>(
        &self,
        entries: usize,
        work: impl Fn(&Queue) -> Result<R, Halt> + Sync,
    ) -> Result<Vec<R>, Halt> {
        let (work, queue) = (&work, &Queue::default());
        thread::scope(|scope| {
            let others: Vec<_> =
                (1..self.workers(entries)).map(|_| scope.spawn(move || work(queue))).collect();
            let own = work(queue);
            let others =
                others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            // Collected in two steps: an error must not leave a thread that is not joined.
            std::iter::once(own).chain(others).collect::<Vec<_>>().into_iter().collect()
        })
    }
}

/// One term of a join: the sequences to a wanted board, times those of one board of an orbit that has `ways` in all.
fn product<W: Ways>(wanted: Slot<W>, ways: u128, orbit: u32) -> Result<u128, CountError> {
    if !ways.is_multiple_of(u128::from(orbit)) {
        return Err(CountError::Uneven { board: wanted.board, ways, orbit });
    }
    wanted.ways.wide().checked_mul(ways / u128::from(orbit)).ok_or(CountError::TotalOverflow)
}

/// Numbers that threads take in turn.
#[derive(Default)]
struct Queue(AtomicUsize);

impl Queue {
    /// The numbers below `end` that nobody else takes.
    fn up_to(&self, end: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::from_fn(move || {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            (number < end).then_some(number)
        })
    }
}

/// The `step`-th of `steps` shares of the numbers below `end`.
fn share(end: usize, step: usize, steps: usize) -> Range<usize> {
    end * step / steps..end * (step + 1) / steps
}

fn sum(sizes: &[LevelSize]) -> LevelSize {
    sizes.iter().fold(LevelSize::default(), |sum, size| LevelSize {
        orbits: sum.orbits + size.orbits,
        boards: sum.boards + size.boards,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// Expands entries as a level of its own; gives the next level in order.
    fn expand(counter: &Counter, entries: &[Entry], memory: usize) -> Result<Vec<Entry>, CountError> {
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = &Limits::endless(&stop, &progress);
        let shelf = &Shelf::new(usize::MAX, None);
        let driver = Driver { counter, means: Means { memory, ..Means::threads(2) }, limits, shelf };
        let slots = entries
            .iter()
            .map(|entry| Slot { board: entry.board, ways: Wide::from_wide(entry.ways).unwrap_or_default() });
        shelf.put(0, 0, Part::Wide(slots.collect()))?;
        let level = Level { number: 0, parts: 1, entries: entries.len(), wide: false };
        let (next, size) = driver.expand(level, 1 << 20)?;
        assert_eq!(size, counter.level_size(entries));
        let mut after = Vec::new();
        for part in 0..next.parts {
            let part = shelf.get(next.number, part)?;
            after.extend((0..part.len()).filter_map(|index| part.get::<Wide>(index)).map(Entry::from));
        }
        assert_eq!(after.len(), next.entries);
        after.sort_unstable();
        Ok(after)
    }

    #[test]
    fn counts_beyond_64_bits_widen_and_beyond_128_are_errors() {
        // Two jumps lead to the middle board: one from either side.
        let problem = Problem::from_text("", "oo.|###|oo.", "finish any").expect("a problem");
        let counter = Counter::new(&problem);
        let sides = |ways| [0b100_011, 0b011_100].map(|board| Entry { board, ways });
        for ways in [1, u128::from(u64::MAX / 2), u128::from(u64::MAX), 1 << 64, u128::MAX / 2] {
            let after = Entry { board: 0b100_100, ways: 2 * ways };
            assert_eq!(expand(&counter, &sides(ways), usize::MAX), Ok(vec![after]), "{ways}");
        }
        let over = expand(&counter, &sides(u128::MAX / 2 + 1), usize::MAX);
        assert_eq!(over, Err(CountError::BoardOverflow { board: 0b100_100 }));
    }

    #[test]
    fn steps_within_a_memory_give_the_same_level() {
        let problem = Problem::named("english", None, None).expect("the board has this name");
        let counter = Counter::new(&problem);
        let whole = (0..8)
            .fold(counter.first(), |level, _| expand(&counter, &level, usize::MAX).expect("the counts fit"));
        let next = expand(&counter, &whole, usize::MAX).expect("the counts fit");
        let mut refused = 0;
        for kib in (200..2000).step_by(100) {
            match expand(&counter, &whole, kib << 10) {
                Ok(level) => assert!(level == next, "{kib} KiB"),
                Err(error) => {
                    assert_eq!(error, CountError::Memory { bytes: kib << 10 });
                    refused += 1;
                }
            }
        }
        assert!((1..18).contains(&refused), "{refused} of 18 refused");
    }
}
