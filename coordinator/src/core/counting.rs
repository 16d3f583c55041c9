//! The counting graph of one job: levels cut into parts, each part done once, the last level's shares added.
//!
//! Stage `s` expands level `s` into level `s + 1`; the last stage adds up the last level, or joins it with an earlier one. A part
//! of a stage may start when all parts of the stage before are done. How many parts a level is cut into follows from what the
//! stages before put out; the first part of a stage that is done fixes it, whatever the settings are after a restart.

use super::api::{PartDescription, PartSpec};
use grundy_games::peg::{Finish, Problem};
use grundy_games::plan::{Answer, FinishCount};
use grundy_search::peg::Counter;
use grundy_tables::jobs::record::{PartId, PartRecord};
use std::collections::{BTreeMap, BTreeSet};

/// By how much a level may outgrow the one before it; boards of peg solitaire grow by less once there are many.
const GROWTH: u64 = 3;

/// The most parts of a level: a stage has as many runs as the product of two levels' parts.
const PARTS_MAX: u64 = 256;

/// Why a part cannot be taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountingError {
    /// No such part, or not with these outputs.
    #[error("stage {} part {}: {reason}", .part.stage, .part.part)]
    Malformed {
        /// The part.
        part: PartId,
        /// What is wrong.
        reason: String,
    },
    /// The part was done before, with another result.
    #[error("stage {} part {} was done by '{first}' and by '{second}' with different results: {difference}", .part.stage, .part.part)]
    Contradiction {
        /// The part.
        part: PartId,
        /// The worker of the first result.
        first: String,
        /// The worker of the second.
        second: String,
        /// Both, in numbers.
        difference: String,
    },
    /// The sum does not fit 128 bits.
    #[error("the count does not fit 128 bits")]
    Overflow,
}

/// The state of a count.
#[derive(Debug)]
pub struct Counting {
    /// Expansions: the last stage has this number.
    levels: u32,
    /// The level that the last one is joined with.
    near: Option<u32>,
    /// Entries that one part of a level is meant to hold.
    part_entries: u64,
    done: BTreeMap<PartId, PartRecord>,
    held: BTreeSet<PartId>,
    /// Runs of workers that were lost with a part, or failed on it.
    losses: BTreeMap<PartId, BTreeSet<u64>>,
    parked: BTreeSet<PartId>,
    /// The stage being worked on.
    stage: u32,
    /// Parts of each level up to the current stage's.
    parts: Vec<u32>,
    /// The holes where a last peg may end, and what they are called.
    finishes: BTreeMap<u8, String>,
    /// The count by finish, once it is known.
    found: Option<BTreeMap<u8, u128>>,
}

/// A stage was finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The stage.
    pub stage: u32,
    /// Boards of its level up to symmetry.
    pub boards: u64,
    /// Boards of its level.
    pub boards_with_images: u64,
    /// Parts of the next stage; 0 after the last.
    pub parts_next: u32,
    /// The stages whose runs nobody needs any more.
    pub drop_runs_of: Vec<u32>,
}

impl Counting {
    /// A count, from the parts that are done.
    ///
    /// # Errors
    /// [`CountingError`] when the parts are not of this problem.
    pub fn new(
        problem: &Problem,
        done: impl IntoIterator<Item = (PartId, PartRecord)>,
        part_entries: u64,
    ) -> Result<Self, CountingError> {
        let counter = Counter::new(problem);
        let mut counting = Self {
            levels: counter.levels(),
            near: counter.near_level(),
            part_entries: part_entries.max(1),
            done: BTreeMap::new(),
            held: BTreeSet::new(),
            losses: BTreeMap::new(),
            parked: BTreeSet::new(),
            stage: 0,
            parts: vec![1],
            finishes: names_of_finishes(problem),
            found: None,
        };
        // In order of stages, so that each finds its number of parts known.
        for (part, record) in done {
            counting.check(part)?;
            // The first part of a stage says how many runs the stage puts out, whatever the settings would make of it now.
            let first = counting.records(part.stage).next().unwrap_or(&record);
            let parts_next = if part.stage == counting.levels { 0 } else { first.outputs.len() as u32 };
            counting.take_in(part, record, parts_next)?;
        }
        Ok(counting)
    }

    /// Whether the count is known.
    pub fn is_counted(&self) -> bool {
        self.found.is_some()
    }

    /// What is known of the count. Where more than one finish was asked for, each that is reached is told.
    pub fn answer(&self) -> Answer {
        let Some(found) = &self.found else {
            return Answer::Count { count: None, finishes: Vec::new() };
        };
        let count = |(hole, ways): (&u8, &u128)| {
            let finish = self.finishes.get(hole).cloned().unwrap_or_default();
            FinishCount { finish, count: *ways }
        };
        let finishes = if self.finishes.len() > 1 { found.iter().map(count).collect() } else { Vec::new() };
        // That it does not overflow was seen when it was found.
        Answer::Count { count: Some(found.values().fold(0, |sum, ways| sum.saturating_add(*ways))), finishes }
    }

    /// The stage being worked on, and the last.
    pub fn stage(&self) -> (u32, u32) {
        (self.stage, self.levels)
    }

    /// Parts done, and known so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.done.len() as u64, self.parts.iter().map(|parts| u64::from(*parts)).sum())
    }

    /// `(boards up to symmetry, boards)` of each finished level.
    pub fn level_sizes(&self) -> Vec<(u64, u64)> {
        let finished = if self.is_counted() { self.levels + 1 } else { self.stage };
        (0..finished).map(|stage| self.level_size(stage)).collect()
    }

    fn level_size(&self, stage: u32) -> (u64, u64) {
        self.records(stage).fold((0_u64, 0_u64), |(boards, with_images), record| {
            (boards.saturating_add(record.boards), with_images.saturating_add(record.boards_with_images))
        })
    }

    fn records(&self, stage: u32) -> impl Iterator<Item = &PartRecord> {
        self.done
            .range(PartId { stage, part: 0 }..=PartId { stage, part: u32::MAX })
            .map(|(_, record)| record)
    }

    /// Parts of the level that a stage puts out; 0 for the last. Known once the stage has begun.
    fn parts_next(&self, stage: u32) -> u32 {
        let here = self.parts[stage as usize];
        if stage == self.levels {
            0
        } else if let Some(first) = self.records(stage).next() {
            first.outputs.len() as u32
        } else if stage + 1 == self.levels && self.near == Some(stage) {
            // Part i of one side joins part i of the other.
            here
        } else {
            let entries: u64 = match stage {
                0 => 1,
                _ => self
                    .records(stage - 1)
                    .flat_map(|record| &record.outputs)
                    .fold(0, |sum: u64, entries| sum.saturating_add(*entries)),
            };
            (entries.saturating_mul(GROWTH) / self.part_entries).clamp(1, PARTS_MAX) as u32
        }
    }

    /// The next part that nobody has.
    pub fn choose(&self) -> Option<PartId> {
        if self.found.is_some() {
            return None;
        }
        (0..self.parts[self.stage as usize]).map(|part| PartId { stage: self.stage, part }).find(|part| {
            !self.done.contains_key(part) && !self.held.contains(part) && !self.parked.contains(part)
        })
    }

    /// Whether the part is still to be done, now.
    pub fn is_wanted(&self, part: PartId) -> bool {
        self.found.is_none()
            && part.stage == self.stage
            && part.part < self.parts[self.stage as usize]
            && !self.done.contains_key(&part)
    }

    /// Whether nobody has the part.
    pub fn is_free(&self, part: PartId) -> bool {
        self.is_wanted(part) && !self.held.contains(&part) && !self.parked.contains(&part)
    }

    /// Gives the part to somebody.
    pub fn hold(&mut self, part: PartId) {
        self.held.insert(part);
    }

    /// Takes it back.
    pub fn free(&mut self, part: PartId) {
        self.held.remove(&part);
    }

    /// Takes it back from somebody who was lost; sets it aside after `losses_max`. Returns the losses if it was set aside now.
    pub fn lost(&mut self, part: PartId, incarnation: u64, losses_max: u32) -> Option<u32> {
        self.held.remove(&part);
        let losses = self.losses.entry(part).or_default();
        losses.insert(incarnation);
        let losses = losses.len() as u32;
        let park = losses >= losses_max && !self.done.contains_key(&part);
        (park && self.parked.insert(part)).then_some(losses)
    }

    /// Gives parts that were set aside another chance.
    pub fn unpark(&mut self) {
        self.parked.clear();
        self.losses.clear();
    }

    /// Parts set aside.
    pub fn parked(&self) -> u32 {
        self.parked.iter().filter(|part| !self.done.contains_key(part)).count() as u32
    }

    /// How many runs a part reads and puts out.
    ///
    /// # Errors
    /// [`CountingError::Malformed`] for a part of a stage that has not begun, or that the stage does not have.
    pub fn spec(&self, part: PartId) -> Result<PartSpec, CountingError> {
        self.check(part)?;
        // A level is put out by the stage before it, level 0 by none.
        let runs_of = |level: u32| level.checked_sub(1).map_or(0, |stage| self.parts[stage as usize]);
        let (inputs, join_inputs) = (runs_of(part.stage), self.join_level(part.stage).map_or(0, runs_of));
        Ok(PartSpec { part, parts_next: self.parts_next(part.stage), inputs, join_inputs })
    }

    /// Checks that a part is of a stage that has begun, and that the stage has it.
    fn check(&self, part: PartId) -> Result<(), CountingError> {
        let malformed = |reason: String| Err(CountingError::Malformed { part, reason });
        if part.stage > self.stage {
            return malformed(format!("stage {} is being worked on", self.stage));
        }
        let parts = self.parts[part.stage as usize];
        if part.part >= parts {
            return malformed(format!("the stage has {parts} parts"));
        }
        Ok(())
    }

    /// The other level that a stage reads, if it joins two.
    fn join_level(&self, stage: u32) -> Option<u32> {
        self.near.filter(|near| stage == self.levels && *near < self.levels)
    }

    /// What a part reads, run by run, and puts out.
    ///
    /// # Errors
    /// As [`Counting::spec`].
    pub fn describe(&self, part: PartId) -> Result<PartDescription, CountingError> {
        let spec = self.spec(part)?;
        let of_level = |level: u32| -> Vec<(PartId, u32)> {
            let Some(stage) = level.checked_sub(1) else { return Vec::new() };
            let sources = (0..self.parts[stage as usize]).map(|part| PartId { stage, part });
            let checksum = |source| self.done.get(&source)?.checksums.get(part.part as usize).copied();
            sources.map(|source| (source, checksum(source).unwrap_or(0))).collect()
        };
        let mut runs = of_level(part.stage);
        runs.extend(self.join_level(part.stage).into_iter().flat_map(of_level));
        Ok(PartDescription { spec, runs, wanted: self.is_wanted(part), done: self.is_done(part) })
    }

    /// Takes in a finished part. `Ok(None)`: nothing new, or its stage goes on.
    ///
    /// # Errors
    /// [`CountingError`]; after a contradiction or an overflow the job must stop.
    pub fn finish(&mut self, part: PartId, record: PartRecord) -> Result<Option<Finished>, CountingError> {
        let parts_next = self.spec(part)?.parts_next;
        self.take_in(part, record, parts_next)
    }

    /// Takes in a finished part of a stage that puts out this many runs a part.
    fn take_in(
        &mut self,
        part: PartId,
        record: PartRecord,
        parts_next: u32,
    ) -> Result<Option<Finished>, CountingError> {
        let outputs = parts_next as usize;
        if record.outputs.len() != outputs || record.checksums.len() != outputs {
            let (runs, sums) = (record.outputs.len(), record.checksums.len());
            let reason = format!("{runs} output runs with {sums} checksums, {outputs} are expected");
            return Err(CountingError::Malformed { part, reason });
        }
        let stray = record
            .shares
            .iter()
            .find(|(hole, _)| part.stage != self.levels || !self.finishes.contains_key(hole));
        if let Some((hole, _)) = stray {
            let reason = format!(
                "a share of hole {hole}: expected shares of the last stage, {}, for finishes of the problem",
                self.levels
            );
            return Err(CountingError::Malformed { part, reason });
        }
        if let Some(first) = self.done.get(&part) {
            let result = |record: &PartRecord| {
                let PartRecord { boards, shares, outputs, checksums, .. } = record;
                format!(
                    "{boards} boards, shares {shares:?}, outputs {outputs:?} with checksums {checksums:x?}"
                )
            };
            let (ours, theirs) = (result(first), result(&record));
            if ours != theirs {
                return Err(CountingError::Contradiction {
                    part,
                    first: first.source.clone(),
                    second: record.source,
                    difference: format!("{ours} against {theirs}"),
                });
            }
            return Ok(None);
        }
        self.held.remove(&part);
        self.done.insert(part, record);
        if self.records(self.stage).count() < self.parts[self.stage as usize] as usize {
            return Ok(None);
        }
        let stage = self.stage;
        let (boards, boards_with_images) = self.level_size(stage);
        if stage == self.levels {
            let mut found = BTreeMap::new();
            let mut total = 0_u128;
            for (hole, ways) in self.records(stage).flat_map(|record| &record.shares) {
                total = total.checked_add(*ways).ok_or(CountingError::Overflow)?;
                *found.entry(*hole).or_insert(0) += *ways;
            }
            self.found = Some(found);
        } else {
            self.parts.push(parts_next);
            self.stage += 1;
        }
        // Level `stage` was read from the runs of the stage before. If the last stage joins with it, they are needed once more.
        let kept_for_join = self.near == Some(stage) && stage < self.levels;
        let mut drop_runs_of: Vec<u32> =
            stage.checked_sub(1).filter(|_| !kept_for_join).into_iter().collect();
        if stage == self.levels && self.near.is_some_and(|near| near < stage) {
            drop_runs_of.extend(stage.checked_sub(2));
        }
        Ok(Some(Finished { stage, boards, boards_with_images, parts_next, drop_runs_of }))
    }

    /// Whether the part is done.
    pub fn is_done(&self, part: PartId) -> bool {
        self.done.contains_key(&part)
    }
}

/// The holes where a problem lets the last peg end, with their names.
fn names_of_finishes(problem: &Problem) -> BTreeMap<u8, String> {
    let geometry = problem.geometry();
    let allowed = geometry.holes().filter(|hole| match problem.finish() {
        Finish::Hole(finish) => finish == *hole,
        Finish::Any => true,
    });
    allowed.map(|hole| (hole.number(), geometry.name(hole))).collect()
}
