//! The symmetries of a board, and canonical forms under them.

use super::board::Board;
use super::cellset::CellSet;
use super::position::Side;

/// The symmetries that map a board's cells to themselves.
///
/// A symmetry moves every cell to one of its own colour, or every cell to one of the other (on even boards a mirror or a
/// quarter turn). The first kind keeps the mover, the second swaps the two sides and with them the mover, so both
/// keep the mover's fate.
///
/// Each is a mirror image of the columns or none, then an exchange of rows and columns or none, then a half turn or none.
#[derive(Clone, Debug)]
pub struct Symmetries {
    mirror: Steps,
    exchange: Steps,
    /// By how much a word of cells has to be shifted down after it was reversed.
    unused: u32,
    /// Those that keep the colours, the identity included, and those that swap them; by [`kind`].
    kinds: [[bool; 8]; 2],
}

/// Where a symmetry moves the cells: sets of them, and by how many bits up or down.
#[derive(Clone, Default, Debug)]
struct Steps {
    up: Vec<(u64, u32)>,
    down: Vec<(u64, u32)>,
}

impl Steps {
    fn new(area: usize, image_of: impl Fn(usize) -> usize) -> Self {
        let mut steps = Self::default();
        for bit in 0..area {
            let image = image_of(bit);
            let (list, by) =
                if image >= bit { (&mut steps.up, image - bit) } else { (&mut steps.down, bit - image) };
            let by = by as u32;
            match list.iter_mut().find(|step| step.1 == by) {
                Some(step) => step.0 |= 1 << bit,
                None => list.push((1 << bit, by)),
            }
        }
        steps
    }

    #[inline(always)]
    fn image<S: CellSet>(&self, set: S) -> S {
        let mut image = S::splat(0);
        for &(cells, by) in &self.up {
            image = image | (set & S::splat(cells)) << by;
        }
        for &(cells, by) in &self.down {
            image = image | (set & S::splat(cells)) >> by;
        }
        image
    }
}

const MIRROR: usize = 1;
const EXCHANGE: usize = 2;
const TURN: usize = 4;

impl Symmetries {
    /// The symmetries of a board, at most eight.
    pub fn of(board: &Board) -> Self {
        let (width, height) = (board.width(), board.height());
        let area = width * height;
        let mut symmetries = Self {
            mirror: Steps::new(area, |bit| bit / width * width + (width - 1 - bit % width)),
            exchange: if width == height {
                Steps::new(area, |bit| bit % width * width + bit / width)
            } else {
                Steps::default()
            },
            unused: u64::BITS - area as u32,
            kinds: [[false; 8]; 2],
        };
        for kind in 0..8 {
            if kind & EXCHANGE != 0 && width != height {
                continue;
            }
            if symmetries.image(kind, board.cells()) == board.cells() {
                let swaps = symmetries.image(kind, 1) & board.colour(Side::Black) == 0;
                symmetries.kinds[usize::from(swaps)][kind] = true;
            }
        }
        symmetries
    }

    fn image(&self, kind: usize, mut set: u64) -> u64 {
        if kind & MIRROR != 0 {
            set = self.mirror.image(set);
        }
        if kind & EXCHANGE != 0 {
            set = self.exchange.image(set);
        }
        if kind & TURN != 0 {
            set = self.turned(set);
        }
        set
    }

    #[inline(always)]
    fn turned<S: CellSet>(&self, set: S) -> S {
        set.reversed() >> self.unused
    }

    /// The canonical form of some sets of cells (usually one: the stones) and a mover: of all images the one with the
    /// least (mover, sets), black before white. Lanes have one mover, and so have their canonical forms.
    #[inline(always)]
    pub fn canonical<S: CellSet, const N: usize>(&self, sets: [S; N], mover: Side) -> ([S; N], Side) {
        // Where black can be had as the mover only the images that give it are candidates.
        let swaps = mover == Side::White && self.kinds[1].contains(&true);
        let kinds = &self.kinds[usize::from(swaps)];
        let mut least = [S::splat(u64::MAX); N];
        for mirror in [0, MIRROR] {
            if (0..8).all(|kind| kind & MIRROR != mirror || !kinds[kind]) {
                continue;
            }
            let mirrored = if mirror == 0 { sets } else { each(sets, |set| self.mirror.image(set)) };
            for exchange in [mirror, mirror | EXCHANGE] {
                if !(kinds[exchange] || kinds[exchange | TURN]) {
                    continue;
                }
                let exchanged = if exchange == mirror {
                    mirrored
                } else {
                    each(mirrored, |set| self.exchange.image(set))
                };
                if kinds[exchange] {
                    least = lesser(least, exchanged);
                }
                if kinds[exchange | TURN] {
                    least = lesser(least, each(exchanged, |set| self.turned(set)));
                }
            }
        }
        (least, if swaps { Side::Black } else { mover })
    }

    /// Every image of a position, itself included, with the mover each has.
    pub fn images(&self, stones: u64, mover: Side) -> impl Iterator<Item = (u64, Side)> {
        [mover, mover.other()].into_iter().zip(&self.kinds).flat_map(move |(mover, kinds)| {
            (0..8).filter(|&kind| kinds[kind]).map(move |kind| (self.image(kind, stones), mover))
        })
    }
}

/// Changes each of the sets. Not by `array::map`, which need not be inlined, and then lacks the vector instructions that its caller
/// may use.
#[inline(always)]
fn each<S: CellSet, const N: usize>(mut sets: [S; N], change: impl Fn(S) -> S) -> [S; N] {
    for set in &mut sets {
        *set = change(*set);
    }
    sets
}

/// The lesser of two lists of sets, the first sets compared first. Without a branch: which is less is anybody's guess.
#[inline(always)]
fn lesser<S: CellSet, const N: usize>(a: [S; N], b: [S; N]) -> [S; N] {
    let mut less = S::splat(0);
    for (&a, &b) in a.iter().zip(&b).rev() {
        less = b.less(a) | b.equal(a) & less;
    }
    let mut lesser = a;
    for (lesser, b) in lesser.iter_mut().zip(b) {
        *lesser = b.or_else(less, *lesser);
    }
    lesser
}
