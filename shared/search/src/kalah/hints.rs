//! Which move to try first, far from the endgame database: a search that stops well above it, on estimates.
//!
//! Nearly all the nodes that a wrong move costs are below the few boards with the most seeds in play, where the order of the moves
//! matters most and an answer costs least. So before a board is searched for what is certain, it is searched [`DEPTH`] seeds down, but not
//! past boards of [`REACH`] seeds more than the database has ([`Evaluation`](super::evaluation::Evaluation) and one move stand for the rest), for
//! more than the margin at first: a move that seems to gain more is the sooner proved to gain enough. What these searches find is kept in
//! a table of its own, with about where they stopped, and bears on nothing but the order.

use super::evaluation::UNIT;
use super::gains::{Gains, Known};
use super::search::{Child, Children, Sight, order};
use super::tables::KalahTables;
use crate::engine::{Meter, Stopped};
use grundy_games::kalah::{Board, HOUSES_MAX, MoveTable};

/// A search stops at boards with fewer than so many seeds more than the database, if not before. One without a move to start with first
/// asks a search that stops so many seeds earlier.
const REACH: i16 = 8;

/// Boards with so many seeds more than the database are worth it.
const ABOVE_MIN: i16 = REACH + 4;

/// Further from the database a search stops so many seeds below the board it is for: to go on costs more than the better hint saves.
const DEPTH: i16 = 16;

/// What a move should seem to gain beyond the margin.
const BEYOND: [i16; 3] = [4, 2, 0];

/// The most nodes for one board: the search for what is certain then goes on with what was found.
const NODES_MAX: u64 = 1 << 18;

/// Nor is a search for a hint begun with a smaller budget, so that the search for what is certain gets on with any.
const NODES_MIN: u64 = 1 << 10;

/// A search for the move to try first.
pub(super) struct Hinter<'s, 'a> {
    moves: &'a MoveTable,
    tables: &'a KalahTables,
    meter: &'s mut Meter<'a>,
    /// Nodes that it may still take.
    left: u64,
}

/// Whether a search for a hint is worth it.
pub(super) fn is_worth_it(tables: &KalahTables, seeds: i16) -> bool {
    seeds >= tables.layers.len() as i16 + ABOVE_MIN
}

/// Where a search stops, from 1 to 3, the higher the nearer to the database: roughly, so that searches for neighbouring boards, which stop
/// at somewhat different seeds, use what the others found.
fn level(above: i16) -> u8 {
    (4 - above / REACH).clamp(1, 3) as u8
}

/// The rank of an entry: costly ones stay, and it tells the level.
fn rank(level: u8, nodes: u64) -> u8 {
    let cost = nodes.max(1).ilog2().min(7) as u8;
    cost << 2 | level
}

/// The level of an entry's search.
fn level_of(rank: u8) -> u8 {
    rank & 3
}

/// A board that is searched: the margin is not answered by `known`.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) board: Board,
    pub(super) seeds: i16,
    pub(super) known: Known,
    pub(super) margin: i16,
}

impl<'s, 'a> Hinter<'s, 'a> {
    /// A search that takes at most half of what is left of the budget; `None` if that is too little.
    pub(super) fn new(
        moves: &'a MoveTable,
        tables: &'a KalahTables,
        meter: &'s mut Meter<'a>,
    ) -> Option<Self> {
        let left = (meter.left() / 2).min(NODES_MAX);
        (left >= NODES_MIN).then_some(Self { moves, tables, meter, left })
    }

    /// The house to try first, if one is found.
    pub(super) fn house(mut self, asked: Asked) -> Option<u8> {
        let horizon = (self.tables.layers.len() as i16 + REACH).max(asked.seeds - DEPTH);
        for beyond in BEYOND {
            let margin = (asked.margin + beyond).min(asked.known.high);
            match self.bound(Asked { margin, ..asked }, horizon) {
                Ok(bound) if bound < margin && beyond > 0 => {}
                // Out of nodes, what was found with fewer is still in the table.
                Ok(_) | Err(Stopped) => break,
            }
        }
        self.kept(asked)
    }

    fn hints(&self) -> &Gains {
        &self.tables.hints
    }

    fn kept(&self, asked: Asked) -> Option<u8> {
        // Not by the number in the table of gains: that depends on its size.
        let mixed = self.hints().mixed(asked.board, asked.seeds)?;
        let (known, _) = self.hints().get_ranked(mixed, asked.seeds)?;
        (known.house < HOUSES_MAX - 1).then_some(known.house)
    }

    /// What the gain seems to be at least, if it is `margin` or more, or else at most, by a search that stops at fewer than so many seeds.
    fn bound(&mut self, asked: Asked, horizon: i16) -> Result<i16, Stopped> {
        let Asked { board, seeds, known: certain, margin } = asked;
        let Some(mixed) = self.hints().mixed(board, seeds) else {
            return Ok(self.estimate(board, seeds).clamp(certain.low, certain.high));
        };
        let level = level(horizon - self.tables.layers.len() as i16);
        let left = self.left;
        let (mut known, mut best) = (certain, certain.house);
        if let Some((hint, hint_rank)) = self.hints().get_ranked(mixed, seeds) {
            best = hint.house;
            let both = Known { low: known.low.max(hint.low), high: known.high.min(hint.high), ..known };
            if level_of(hint_rank) >= level && both.low <= both.high {
                known = both;
                match known.truth(margin) {
                    Some(true) => return Ok(known.low),
                    Some(false) => return Ok(known.high),
                    None => {}
                }
            }
        }
        if best >= HOUSES_MAX - 1 && seeds - horizon >= REACH {
            self.bound(asked, horizon + REACH)?;
            best = self.kept(asked).unwrap_or(HOUSES_MAX);
        }
        self.left = self.left.checked_sub(1).ok_or(Stopped)?;
        self.meter.count(false)?;
        let mut children = Children::new();
        let (mut low, mut high) = (i16::MIN, i16::MIN);
        let moves = self.moves;
        for (house, played) in moves.moves(board) {
            let mut child = Child::new(house, played, seeds);
            let (child_low, child_high) = match self.tables.sight(child.board, child.seeds) {
                Sight::Exact(gain) => (child.of(gain), child.of(gain)),
                Sight::Bounds(known, _) => {
                    let ends = child.bounds(known);
                    if ends.0 >= margin || ends.1 < margin {
                        ends
                    } else if child.seeds < horizon {
                        let value =
                            child.of(self.estimate(child.board, child.seeds).clamp(known.low, known.high));
                        (value, value)
                    } else {
                        child.known = known;
                        child.order =
                            if house == best { i16::MIN } else { order(house, child.banked, child.again) };
                        children.push(child);
                        continue;
                    }
                }
            };
            if child_low >= margin {
                (low, best) = (child_low, house);
                break;
            }
            high = high.max(child_high);
        }
        if low < margin {
            children.sort();
            for child in children.all() {
                let Child { board, seeds, known, .. } = *child;
                let value = child
                    .of(self.bound(Asked { board, seeds, known, margin: child.margin(margin) }, horizon)?);
                if value >= margin {
                    (low, best) = (value, child.house);
                    break;
                }
                high = high.max(value);
            }
        }
        let truth = low >= margin;
        known = known.with(if truth { low } else { high + 2 }, truth);
        // Estimates need not agree with each other, nor with the rules.
        known.low = known.low.clamp(-seeds, seeds);
        known.high = known.high.clamp(-seeds, seeds);
        known.house = best;
        self.hints().put_ranked(mixed, seeds, known, rank(level, left - self.left));
        Ok(if truth { known.low } else { known.high })
    }

    /// The best that a move seems to lead to, of the parity of a gain.
    fn estimate(&self, board: Board, seeds: i16) -> i16 {
        let evaluation = &self.tables.evaluation;
        let after = self.moves.moves(board).map(|(_, played)| {
            let next = played.board;
            let gain = if next.is_over() { next.swept() * UNIT } else { evaluation.estimate(next) };
            i16::from(played.banked) * UNIT + if played.again { gain } else { -gain }
        });
        let gain = after.max().unwrap_or_default().div_euclid(UNIT);
        gain + ((gain ^ seeds) & 1)
    }
}
