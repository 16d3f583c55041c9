//! The steps of a count: expansion of a level, its parts, and how the last levels give the answer.

use super::accumulate::{Buckets, Dealer, Full, Slot, Sums, Ways, Wide};
use super::error::CountError;
use crate::engine::{Limits, POLL_NODES};
use grundy_games::peg::{Finish, Hole, Images, JumpTable, Orbits, Problem};
use std::sync::atomic::Ordering;

/// One orbit of boards of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Entry {
    /// The canonical board of the orbit; never 0, since a jump needs a peg that stays.
    pub board: u64,
    /// The number of jump sequences from the start to any board of the orbit; never 0. Each board of the orbit has an equal
    /// share, because the symmetries leave the start as it is.
    pub ways: u128,
}

/// How many levels a count needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Method {
    /// Down to a single peg.
    Full,
    /// To the middle. The finish is the complement of the start, so playing backwards is playing forwards on complements:
    /// as many sequences lead from a board to the finish as from the start to the board's complement.
    Half,
}

/// The size of a level, or of a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct LevelSize {
    /// Boards up to the problem's symmetries.
    pub orbits: u64,
    /// Boards.
    pub boards: u64,
}

/// Counts the solutions of one problem, step by step. Immutable, so threads share it.
#[derive(Clone, Debug)]
pub struct Counter {
    start: u64,
    finish: Finish,
    method: Method,
    levels: u32,
    near: Option<u32>,
    /// All holes, as a board and in order.
    holes: u64,
    hole_list: Vec<Hole>,
    orbits: Orbits,
    jumps: JumpTable,
    /// For each jump the images of the three holes it changes.
    changes: Vec<Images>,
    /// Whether the position class of the start leaves any hope.
    class_allows: bool,
}

impl Counter {
    /// A counter with the cheapest method that answers the problem.
    pub fn new(problem: &Problem) -> Self {
        Self::joined(problem, u32::MAX).unwrap_or_else(|| Self::full(problem))
    }

    /// A counter that joins level `near`, or the level in the middle if that comes before, with the level that mirrors it. `None`
    /// unless the finish is the complement of the start. All levels give the same answer; the middle takes the least work.
    pub fn joined(problem: &Problem, near: u32) -> Option<Self> {
        let full = Self::full(problem);
        // From all holes but one to one peg in n holes takes n - 2 jumps. With a single hole the start would have no peg, and
        // with two there is nothing to jump over.
        let jumps = full.holes.count_ones().saturating_sub(2);
        let near = near.min(jumps / 2);
        problem.is_complement().then(|| Self {
            method: Method::Half,
            levels: jumps - near,
            near: Some(near),
            ..full
        })
    }

    /// A counter that goes through every level down to the last peg, whatever the problem.
    pub fn full(problem: &Problem) -> Self {
        let (geometry, orbits) = (problem.geometry(), problem.orbits());
        Self {
            start: problem.start(),
            finish: problem.finish(),
            method: Method::Full,
            levels: problem.start().count_ones().saturating_sub(1),
            near: None,
            holes: geometry.full(),
            hole_list: geometry.holes().collect(),
            jumps: JumpTable::new(geometry),
            changes: geometry.jumps().iter().map(|jump| orbits.images(jump.changes())).collect(),
            orbits,
            class_allows: problem.class_allows(),
        }
    }

    /// The method that [`Counter::new`] chose.
    pub fn method(&self) -> Method {
        self.method
    }

    /// How many times a level must be expanded: the last level has this number, the first is level 0.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Under [`Method::Half`], the level whose parts [`Counter::join`] needs beside the last level: for [`Counter::new`] the last
    /// itself or the one before it. `None` under [`Method::Full`].
    pub fn near_level(&self) -> Option<u32> {
        self.near
    }

    /// Level 0: the start. Empty when the position class rules every solution out, so that all levels stay empty.
    pub fn first(&self) -> Vec<Entry> {
        if self.class_allows { vec![Entry { board: self.start, ways: 1 }] } else { Vec::new() }
    }

    /// The part, below `parts`, that a board belongs to. 0 parts count as 1.
    ///
    /// Boards of one orbit and their complements share a part, so part `i` of one level joins part `i` of another. With `m` the
    /// lesser of the canonical board and the complement's canonical board, the part is `mix(m) * parts / 2^64` rounded down,
    /// where `mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). This never changes: parts are on disks.
    pub fn partition(&self, board: u64, parts: u32) -> u32 {
        self.part(&self.orbits.images(board), parts)
    }

    fn part(&self, images: &Images, parts: u32) -> u32 {
        let least = images.least().min(self.holes ^ images.greatest());
        ((u128::from(mix(least)) * u128::from(parts.max(1))) >> 64) as u32
    }

    /// What these entries of one level contribute to each part of the next: sorted runs, one for each of `parts_next` parts.
    ///
    /// Reads `limits.stop` and adds to `limits.progress` every few hundred boards; the other limits do not apply. Memory is about
    /// three times that of the result, and up to 12 MiB of buffers.
    ///
    /// # Errors
    /// [`CountError::BoardOverflow`], [`CountError::Stopped`].
    pub fn expand(
        &self,
        entries: &[Entry],
        parts_next: u32,
        limits: &Limits<'_>,
    ) -> Result<Vec<Vec<Entry>>, CountError> {
        // Few counts need more than 64 bits. Where one does, the work so far is done again.
        match self.expand_as::<u64>(entries, parts_next, limits) {
            Err(Halt::Full(_)) => self.expand_as::<Wide>(entries, parts_next, limits),
            narrow => narrow,
        }
        .map_err(|halt| match halt {
            Halt::Full(Full::Count(board)) => CountError::BoardOverflow { board },
            Halt::Full(Full::Memory) => CountError::Memory { bytes: usize::MAX },
            Halt::Error(error) => error,
        })
    }

    fn expand_as<W: Ways>(
        &self,
        entries: &[Entry],
        parts_next: u32,
        limits: &Limits<'_>,
    ) -> Result<Vec<Vec<Entry>>, Halt> {
        if let Some(entry) = entries.iter().find(|entry| W::from_wide(entry.ways).is_none()) {
            return Err(Halt::Full(Full::Count(entry.board)));
        }
        let buckets = Buckets::for_entries(entries.len());
        let wanted = 0..buckets.len();
        let sums = Sums::new(wanted.clone(), usize::MAX);
        let mut dealer = Dealer::new(buckets, wanted.clone());
        let mut add = |bucket, batch: &[Slot<W>]| sums.add(bucket, batch);
        for chunk in entries.chunks(POLL_NODES as usize) {
            if limits.stopped() {
                return Err(Halt::Error(CountError::Stopped));
            }
            for entry in chunk {
                let ways = W::from_wide(entry.ways).ok_or(Full::Count(entry.board))?;
                let images = self.orbits.images(entry.board);
                self.successors(&images, |after| dealer.deal(after.least(), ways, &mut add))?;
            }
            limits.progress.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        dealer.finish(&mut add)?;
        let mut runs = vec![Vec::new(); parts_next.max(1) as usize];
        let alone = runs.len() == 1;
        for bucket in wanted {
            for slot in sums.take(bucket) {
                let part = if alone { 0 } else { self.partition(slot.board, parts_next) };
                runs[part as usize].push(slot);
            }
        }
        let sorted = |mut run: Vec<Slot<W>>| {
            run.sort_unstable_by_key(|slot| slot.board);
            run.into_iter().map(Entry::from).collect()
        };
        Ok(runs.into_iter().map(sorted).collect())
    }

    /// The images of the board behind each jump of a board.
    ///
    /// An orbit's sequences are added to the orbit behind each jump of its canonical board; no division by orbit sizes is
    /// needed. A symmetry takes the jumps of one board of the orbit to those of another, so every board has equally many jumps
    /// into a given orbit behind. The sequences to that orbit through this one are the sum over boards of (sequences to the
    /// board) x (its jumps into the orbit): the second factor is that of the canonical board, and the first sums to `ways`.
    #[inline]
    pub(super) fn successors<E>(
        &self,
        images: &Images,
        mut take: impl FnMut(&Images) -> Result<(), E>,
    ) -> Result<(), E> {
        for (jumps, mut set) in self.changes.chunks(64).zip(self.jumps.legal(images.0[0])) {
            while set != 0 {
                let jump = set.trailing_zeros() as usize;
                set &= set - 1;
                take(&images.changed(&jumps[jump]))?;
            }
        }
        Ok(())
    }

    /// The answer by finish, from the last level and, where the count joins it with an earlier one, from level
    /// [`near_level`](Self::near_level); from part `i` of both, cut into equally many parts, that part's share, to be added up. Finishes
    /// that nothing leads to are left out; the others come in order. `near` may be empty if the count needs no level beside the last, or only the
    /// start. Entries must be sorted.
    ///
    /// # Errors
    /// [`CountError::TotalOverflow`]; [`CountError::Uneven`] for entries that no expansion made.
    pub fn share(&self, near: &[Entry], last: &[Entry]) -> Result<Vec<(Hole, u128)>, CountError> {
        let total = match (self.near, self.finish) {
            (None, _) | (_, Finish::Any) => return self.finishes(last.iter().copied()),
            (Some(number), _) if number == self.levels => self.join(last, last)?,
            // Level 0 is no stage's output. It goes into each part's join whole: what lies in other parts has no partner here.
            (Some(0), _) => self.join(&self.first(), last)?,
            (Some(_), _) => self.join(near, last)?,
        };
        Ok(self.all_at_the_finish(total))
    }

    /// A total as a share by finish, for a problem with one.
    pub(super) fn all_at_the_finish(&self, total: u128) -> Vec<(Hole, u128)> {
        match self.finish {
            Finish::Hole(hole) if total > 0 => vec![(hole, total)],
            _ => Vec::new(),
        }
    }

    /// The answer under [`Method::Full`], by finish, from entries of the last level.
    pub(super) fn finishes(
        &self,
        last: impl IntoIterator<Item = Entry>,
    ) -> Result<Vec<(Hole, u128)>, CountError> {
        let mut finishes = Vec::new();
        for Entry { board, ways } in last.into_iter().filter(|entry| entry.board.count_ones() == 1) {
            let images = self.orbits.images(board);
            let orbit = self.orbits.size(&images);
            if !ways.is_multiple_of(u128::from(orbit)) {
                return Err(CountError::Uneven { board, ways, orbit });
            }
            let allowed = |hole: &Hole| match self.finish {
                Finish::Hole(finish) => finish == *hole,
                Finish::Any => true,
            };
            let reached = self.hole_list.iter().filter(|hole| images.0.contains(&hole.board()));
            finishes.extend(reached.copied().filter(allowed).map(|hole| (hole, ways / u128::from(orbit))));
        }
        finishes.sort_unstable();
        Ok(finishes)
    }

    /// The answer under [`Method::Half`], from level [`near_level`](Self::near_level) and the last level; from part `i` of both,
    /// cut into equally many parts, that part's share. Both must be sorted.
    ///
    /// Every solution passes one board `d` of the near level, so the answer is the sum over boards of (sequences to `d`) x
    /// (sequences from `d` to the finish), the latter being those to the complement of `d`, which lies in the far level. Over an
    /// orbit the first factor sums to the entry's `ways`; the second is the complement's entry divided by its orbit.
    ///
    /// # Errors
    /// [`CountError::TotalOverflow`]; [`CountError::Uneven`] for entries that no expansion made.
    pub fn join(&self, near: &[Entry], far: &[Entry]) -> Result<u128, CountError> {
        let mut wanted: Vec<(u64, usize)> = near
            .iter()
            .enumerate()
            .map(|(index, entry)| (self.holes ^ self.orbits.images(entry.board).greatest(), index))
            .collect();
        wanted.sort_unstable();
        let mut total = 0u128;
        let mut far = far.iter().peekable();
        for (complement, index) in wanted {
            while far.next_if(|entry| entry.board < complement).is_some() {}
            let Some(entry) = far.next_if(|entry| entry.board == complement) else {
                continue;
            };
            let orbit = self.orbits.size(&self.orbits.images(complement));
            if !entry.ways.is_multiple_of(u128::from(orbit)) {
                return Err(CountError::Uneven { board: entry.board, ways: entry.ways, orbit });
            }
            total = near[index]
                .ways
                .checked_mul(entry.ways / u128::from(orbit))
                .and_then(|product| total.checked_add(product))
                .ok_or(CountError::TotalOverflow)?;
        }
        Ok(total)
    }

    /// How many boards these entries stand for.
    pub fn level_size(&self, entries: &[Entry]) -> LevelSize {
        entries.iter().fold(LevelSize::default(), |size, entry| LevelSize {
            orbits: size.orbits + 1,
            boards: size.boards + u64::from(self.orbits.size(&self.orbits.images(entry.board))),
        })
    }

    /// All holes.
    pub(super) fn holes(&self) -> u64 {
        self.holes
    }

    /// Orbits under the symmetries that leave the problem as it is.
    pub(super) fn orbits(&self) -> &Orbits {
        &self.orbits
    }

    /// The board that stands for the board's orbit.
    pub fn canonical(&self, board: u64) -> u64 {
        self.orbits.canonical(board)
    }
}

/// Why an expansion stopped.
pub(super) enum Halt {
    /// With other types, or in more steps, it may get further.
    Full(Full),
    /// It is over.
    Error(CountError),
}

impl From<Full> for Halt {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}

impl From<CountError> for Halt {
    fn from(error: CountError) -> Self {
        Self::Error(error)
    }
}

/// SplitMix64's finaliser: a bijection that spreads boards that differ in few holes.
fn mix(board: u64) -> u64 {
    let mut z = board;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
