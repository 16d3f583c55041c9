//! Null-window search on the gain: is it at least a margin?
//!
//! The search goes depth first and fails soft: the bound it comes back with may say more than was asked, and all of it is kept.
//! Of each successor it looks first at what the rules, the endgame database and the table say, and it searches none if one of them
//! says enough (enhanced transposition cut-offs: Plaat 1996; Irving, Donkers and Uiterwijk, "Solving Kalah", 2000). The others it takes in
//! the order: the table's move, moves again from the house next to the store on, and the rest by the seeds they bank, from the store
//! outwards. Far from the database a shallower search says which move to try first (module `hints`). Orders that guess at the opponent's
//! reply, and budgets that leave a move for another when it takes too long, were tried and search more.
//!
//! Several threads may search one claim over one table. Each marks the larger boards it is in, and leaves a successor that another one
//! is in for last (Weill, "The ABDADA distributed minimax search algorithm", 1996).

use super::gains::{Known, Mixed};
use super::hints::{self, Asked, Hinter};
use super::layers::gain;
use super::tables::KalahTables;
use crate::engine::{FACTS_MAX, Limits, Meter, Stopped};
use crate::numbers::Numbers;
use crate::samples::{SEARCHES_MIN, Sample, Samples};
use crate::table::{self, Entry, Key, Namespace, Table};
use crate::together::CROWD;
use grundy_games::kalah::{Board, HOUSES_MAX, MoveTable, Played, child_margin};

/// Boards with so many seeds more than the database are marked for other threads, and looked up in the table of claims: few enough of
/// all that this costs nothing.
const LARGE: usize = 8;

/// A claim that took at least so many nodes goes to the table of claims, which may keep it on disk.
const CLAIM_NODES_MIN: u64 = 1 << 10;

/// A claim that the search decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The board.
    pub board: Board,
    /// The margin.
    pub margin: i16,
    /// Whether its mover gains as much.
    pub truth: bool,
    /// Nodes that were searched for it.
    pub work: u64,
}

/// One search.
pub struct Search<'a> {
    moves: &'a MoveTable,
    tables: &'a KalahTables,
    claims: &'a dyn Table,
    namespace: Namespace,
    limits: &'a Limits<'a>,
    meter: Meter<'a>,
    costly: Vec<Decided>,
    /// Whether it has found out about a board.
    has_finished: bool,
    /// What was searched, by the seeds in play.
    sizes: Vec<Sample>,
}

/// A successor that has to be searched.
#[derive(Clone, Copy)]
pub(super) struct Child {
    pub(super) board: Board,
    pub(super) mixed: Option<Mixed>,
    pub(super) known: Known,
    pub(super) seeds: i16,
    pub(super) banked: i16,
    pub(super) again: bool,
    pub(super) house: u8,
    pub(super) order: i16,
}

/// What is known of a successor's gain at sight, or else where to look.
pub(super) enum Sight {
    Exact(i16),
    Bounds(Known, Option<Mixed>),
}

/// A successor's gain by the rules, or else its entry in the database or its number in the table, not yet read.
pub(super) enum Glance<'a> {
    Over(i16),
    Entry(&'a u8),
    Kept(Option<Mixed>),
}

impl<'a> Search<'a> {
    /// A search by these rules, over the tables of its boards and a table of claims.
    pub fn new(
        moves: &'a MoveTable,
        tables: &'a KalahTables,
        claims: &'a dyn Table,
        namespace: Namespace,
        limits: &'a Limits<'a>,
    ) -> Self {
        Self {
            moves,
            tables,
            claims,
            namespace,
            limits,
            meter: Meter::new(limits),
            costly: Vec::new(),
            has_finished: false,
            sizes: Vec::new(),
        }
    }

    /// Boards searched, for hints too: whose moves were looked at. Those that rules, database or table answer do not count.
    pub fn nodes(&self) -> u64 {
        self.meter.nodes()
    }

    /// How large the searches of boards were, by the seeds in play: of those that were searched often enough to tell.
    pub fn samples(&self) -> Samples {
        let levels = (0..).zip(self.sizes.iter().copied());
        levels.filter(|(_, sample)| sample.searches >= SEARCHES_MIN).collect()
    }

    /// Ends it: the decided claims that cost most, the costliest first.
    pub fn into_costly(mut self) -> Vec<Decided> {
        self.meter.report();
        self.keep_costliest(FACTS_MAX);
        self.costly
    }

    fn keep_costliest(&mut self, count: usize) {
        self.costly.sort_unstable_by_key(|decided| std::cmp::Reverse(decided.work));
        self.costly.truncate(count);
    }

    /// What is known of a board at once: by the rules, the database, or the table.
    pub fn known(&self, board: Board) -> Known {
        let seeds = board.seeds();
        match self.tables.sight(board, seeds) {
            Sight::Exact(gain) => Known { low: gain, high: gain, ..Known::nothing(seeds) },
            Sight::Bounds(known, _) => known,
        }
    }

    /// Whether the mover gains at least `margin`, of the parity of the seeds in play.
    ///
    /// # Errors
    /// [`Stopped`]; what was found so far is in the table.
    pub fn gains_at_least(&mut self, board: Board, margin: i16) -> Result<bool, Stopped> {
        let seeds = board.seeds();
        match self.tables.sight(board, seeds) {
            Sight::Exact(gain) => Ok(gain >= margin),
            Sight::Bounds(known, mixed) => match known.truth(margin) {
                Some(truth) => Ok(truth),
                None => {
                    // No board of the search has more seeds in play.
                    let levels = self.sizes.len().max(seeds as usize + 1);
                    self.sizes.resize(levels, Sample::default());
                    Ok(self.bound(board, seeds, mixed, known, margin)? >= margin)
                }
            },
        }
    }

    /// Takes in a claim that was decided elsewhere.
    pub fn learn(&mut self, decided: Decided) {
        let Decided { board, margin, truth, work } = decided;
        let seeds = board.seeds();
        if let Sight::Bounds(known, Some(mixed)) = self.tables.sight(board, seeds) {
            self.tables.gains.put(mixed, seeds, known.with(margin, truth), work);
        }
        self.claims.store(&self.key(board, margin), decided_entry(truth, work));
    }

    /// A claim's key: a byte a house, and the margin's 16 bits beside them.
    fn key(&self, board: Board, margin: i16) -> Key {
        Key::new([board.mine, board.theirs], margin as u16, self.namespace)
    }

    /// A bound of the gain: at least `margin` if the gain is, and then the gain is at least that; else the gain is at most that. `known` does
    /// not answer it.
    fn bound(
        &mut self,
        board: Board,
        seeds: i16,
        mixed: Option<Mixed>,
        mut known: Known,
        margin: i16,
    ) -> Result<i16, Stopped> {
        let is_large = seeds as usize >= self.tables.layers.len() + LARGE;
        let key = self.key(board, margin);
        if is_large
            && let Some(Entry { known: table::Known::Numbers(numbers), .. }) = self.claims.probe(&key)
            && let Some(truth) = numbers.truth()
        {
            return Ok(if truth { margin } else { margin - 2 });
        }
        let start = self.meter.nodes();
        // Not stopped by its budget before one board is finished, so that the smallest one gets on: a matter of the plies of a game.
        self.meter.count(!self.has_finished)?;
        let _mark = is_large.then(|| CROWD.enter(&key));
        let hinted = if hints::is_worth_it(self.tables, seeds) {
            let asked = Asked { board, seeds, known, margin };
            let hinter = Hinter::new(self.moves, self.tables, &mut self.meter);
            hinter.and_then(|hinter| hinter.house(asked))
        } else {
            None
        };
        let mut children = Children::new();
        // The best that is certain so far, and the most that is possible.
        let (mut low, mut high, mut best) = (i16::MIN, i16::MIN, hinted.unwrap_or(known.house));
        let moves = self.moves;
        let tables = self.tables;
        // First where to look, so that the entries of all successors load at the same time; then those of the database, which may answer.
        let mut entries = [None; HOUSES_MAX as usize];
        let mut count = 0;
        for (house, played) in moves.moves(board) {
            let mut child = Child::new(house, played, seeds);
            match tables.glance(child.board, child.seeds) {
                Glance::Over(gain) if child.of(gain) >= margin => {
                    (low, best, count) = (child.of(gain), house, 0);
                    break;
                }
                Glance::Over(gain) => high = high.max(child.of(gain)),
                Glance::Entry(entry) => {
                    entries[count] = Some((child, entry));
                    count += 1;
                }
                Glance::Kept(mixed) => {
                    child.mixed = mixed;
                    children.push(child);
                }
            }
        }
        for (child, entry) in entries[..count].iter().flatten() {
            let value = child.of(gain(**entry));
            if value >= margin {
                (low, best) = (value, child.house);
                break;
            }
            high = high.max(value);
        }
        if low < margin {
            let kept = std::mem::replace(&mut children.count, 0);
            for index in 0..kept {
                let mut child = children.children[index];
                child.known = tables.look(child.mixed, child.seeds);
                let (child_low, child_high) = child.bounds(child.known);
                if child_low >= margin {
                    (low, best) = (child_low, child.house);
                    break;
                }
                if child_high >= margin {
                    let Child { house, banked, again, .. } = child;
                    child.order = if house == best { i16::MIN } else { order(house, banked, again) };
                    children.push(child);
                } else {
                    high = high.max(child_high);
                }
            }
        }
        if low < margin {
            children.sort();
            if let Some((value, house)) = self.search_children(&mut children, margin, is_large, &mut high)? {
                (low, best) = (value, house);
            }
        }
        self.has_finished = true;
        let truth = low >= margin;
        known = known.with(if truth { low } else { high + 2 }, truth);
        known.house = best;
        let work = self.meter.nodes() - start;
        if let Some(mixed) = mixed {
            self.tables.gains.put(mixed, seeds, known, work);
        }
        let squares = work as f64 * work as f64;
        self.sizes[seeds as usize].add(Sample { searches: 1, nodes: work, squares });
        if work >= CLAIM_NODES_MIN {
            self.claims.store(&key, decided_entry(truth, work));
        }
        if work >= self.limits.report_work_min {
            self.costly.push(Decided { board, margin, truth, work });
            if self.costly.len() >= 4 * FACTS_MAX {
                self.keep_costliest(FACTS_MAX);
            }
        }
        Ok(if truth { known.low } else { known.high })
    }

    /// Searches successors until one reaches the margin: its value, at least, and its house. Else `high` is at least what any of them
    /// can reach.
    fn search_children(
        &mut self,
        children: &mut Children,
        margin: i16,
        is_large: bool,
        high: &mut i16,
    ) -> Result<Option<(i16, u8)>, Stopped> {
        for may_defer in [true, false] {
            let mut deferred = 0;
            for index in 0..children.count {
                let child = children.children[index];
                if may_defer
                    && is_large
                    && index > 0
                    && CROWD.is_many()
                    && CROWD.is_inside(&self.key(child.board, child.margin(margin)))
                {
                    children.children[deferred] = child;
                    deferred += 1;
                    continue;
                }
                let value = self.search_child(&child, margin)?;
                if value >= margin {
                    return Ok(Some((value, child.house)));
                }
                *high = (*high).max(value);
            }
            children.count = deferred;
        }
        Ok(None)
    }

    fn search_child(&mut self, child: &Child, margin: i16) -> Result<i16, Stopped> {
        let mut known = child.known;
        let asked = child.margin(margin);
        // Another thread, or the search of another child, may have found it out meanwhile.
        if let Some(now) = child.mixed.and_then(|mixed| self.tables.gains.get(mixed, child.seeds)) {
            known = now;
        }
        let gain = match known.truth(asked) {
            Some(true) => known.low,
            Some(false) => known.high,
            None => self.bound(child.board, child.seeds, child.mixed, known, asked)?,
        };
        Ok(child.of(gain))
    }
}

impl Child {
    /// What a house of a board of so many seeds leads to; nothing is known of it yet.
    pub(super) fn new(house: u8, played: Played, seeds: i16) -> Self {
        let banked = i16::from(played.banked);
        let seeds = seeds - banked;
        let known = Known::nothing(seeds);
        Self { board: played.board, mixed: None, known, seeds, banked, again: played.again, house, order: 0 }
    }

    /// What its parent's mover gains by it, if its own mover gains so much.
    pub(super) fn of(&self, gain: i16) -> i16 {
        if self.again { self.banked + gain } else { self.banked - gain }
    }

    /// The least and the most that its parent's mover gains by it, if so much is known of its own mover's gain.
    pub(super) fn bounds(&self, known: Known) -> (i16, i16) {
        let ends = (self.of(known.low), self.of(known.high));
        (ends.0.min(ends.1), ends.0.max(ends.1))
    }

    /// What the mover of the child's board has to gain, or must not, for its parent to gain `margin`.
    pub(super) fn margin(&self, margin: i16) -> i16 {
        child_margin(margin, self.banked, self.again)
    }
}

/// Up to as many successors as there are houses.
pub(super) struct Children {
    children: [Child; HOUSES_MAX as usize],
    count: usize,
}

impl Children {
    pub(super) fn new() -> Self {
        let unused = Child {
            board: Board { mine: 0, theirs: 0 },
            mixed: None,
            known: Known { low: 0, high: 0, house: 0 },
            seeds: 0,
            banked: 0,
            again: false,
            house: 0,
            order: 0,
        };
        Self { children: [unused; HOUSES_MAX as usize], count: 0 }
    }

    pub(super) fn all(&self) -> &[Child] {
        &self.children[..self.count]
    }

    pub(super) fn push(&mut self, child: Child) {
        self.children[self.count] = child;
        self.count += 1;
    }

    pub(super) fn sort(&mut self) {
        self.children[..self.count].sort_unstable_by_key(|child| child.order);
    }
}

fn decided_entry(truth: bool, work: u64) -> Entry {
    Entry { known: table::Known::Numbers(Numbers::decided(truth)), work }
}

/// Smaller comes first.
pub(super) fn order(house: u8, banked: i16, again: bool) -> i16 {
    let near = i16::from(HOUSES_MAX - 1 - house);
    if again { near - 10_000 } else { near - 8 * banked }
}
