//! An estimate of a board's gain: a weight for each house and number of seeds in it, fitted to the endgame database.
//!
//! ```text
//! estimate = constant + sum over the 2h houses of weight[house][seeds in it]
//! ```
//!
//! The weights are those of the least squares over boards drawn from the largest layers. A house holds other numbers of seeds than those
//! drawn in boards with more seeds in play, so weights of neighbouring numbers are kept near a line, and go on along it.

use super::layers::Layers;
use grundy_games::kalah::{Board, HOUSES_MAX};

/// An estimate's units in a seed.
pub const UNIT: i16 = 32;

/// Most seeds of a house with a weight of its own.
const SEEDS_MAX: usize = 127;

/// Boards that are drawn from a layer: no more than it has.
const SAMPLES: u64 = 1 << 15;
/// How many layers they are drawn from.
const SAMPLE_LAYERS: usize = 6;

/// How much a bend of the weights counts, in samples.
const BEND: f64 = 4.0;

/// The weights, in [`UNIT`]s.
pub struct Evaluation {
    houses: usize,
    constant: i16,
    weights: Box<[[i16; SEEDS_MAX + 1]]>,
}

impl Evaluation {
    /// Fits the weights to the largest layers.
    pub fn fit(houses: u8, layers: &Layers) -> Self {
        let houses = usize::from(houses);
        let most = layers.len().saturating_sub(1).max(2);
        // Unknowns: the constant, and of each house the weights of 1 to `most` seeds.
        let unknowns = 1 + 2 * houses * most;
        let column = |house: usize, seeds: usize| 1 + house * most + seeds - 1;
        let mut matrix = vec![vec![0.0f64; unknowns + 1]; unknowns];
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for seeds in (most + 1).saturating_sub(SAMPLE_LAYERS).max(2)..layers.len() {
            let length = layers.index().len(seeds) as u64;
            for _ in 0..SAMPLES.min(length) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let place = ((u128::from(random) * u128::from(length)) >> 64) as usize;
                let Some(board) = layers.index().board(seeds, place) else { continue };
                let gain = f64::from(layers.gain(board).unwrap_or_default());
                let mut columns = [0; 2 * HOUSES_MAX as usize + 1];
                let mut count = 1;
                for house in 0..2 * houses {
                    let held = seeds_in(board, houses, house);
                    if held > 0 {
                        columns[count] = column(house, held);
                        count += 1;
                    }
                }
                for &i in &columns[..count] {
                    for &j in &columns[..count] {
                        matrix[i][j] += 1.0;
                    }
                    matrix[i][unknowns] += gain;
                }
            }
        }
        for house in 0..2 * houses {
            // Keeps every unknown determined, however few boards there are.
            matrix[column(house, 1)][column(house, 1)] += 1.0;
            for seeds in 2..most {
                let bend = [(seeds - 1, 1.0), (seeds, -2.0), (seeds + 1, 1.0)];
                for (s, a) in bend {
                    for (t, b) in bend {
                        matrix[column(house, s)][column(house, t)] += BEND * a * b;
                    }
                }
            }
        }
        let solved = solve(matrix);
        let weights = (0..2 * houses).map(|house| {
            let of = |s: usize| if s == 0 { 0.0 } else { solved[column(house, s)] };
            let far = most / 2;
            // Past the largest number drawn: on along the line of the upper half.
            let slope = (of(most) - of(far)) / (most - far) as f64;
            std::array::from_fn(|s| {
                in_units(if s <= most { of(s) } else { of(most) + slope * (s - most) as f64 })
            })
        });
        let weights = weights.collect();
        Self { houses, constant: in_units(solved[0]), weights }
    }

    /// The estimate of the mover's gain, in [`UNIT`]s.
    pub fn estimate(&self, board: Board) -> i16 {
        let (first, second) = self.weights.split_at(self.houses);
        let of = |weights: &[[i16; SEEDS_MAX + 1]], side: u64| {
            let weights = weights.iter().enumerate();
            weights.map(|(i, weights)| weights[(side >> (8 * i)) as usize & SEEDS_MAX]).sum::<i16>()
        };
        self.constant + of(first, board.mine) + of(second, board.theirs)
    }
}

/// A weight in units, so small that a board's sum, with what a move banks, does not overflow.
fn in_units(weight: f64) -> i16 {
    const MOST: f64 = (i16::MAX / 2 / (2 * HOUSES_MAX as i16 + 1)) as f64;
    (weight * f64::from(UNIT)).round().clamp(-MOST, MOST) as i16
}

/// The seeds in a house, the mover's houses first.
fn seeds_in(board: Board, houses: usize, house: usize) -> usize {
    let (side, house) = if house < houses { (board.mine, house) } else { (board.theirs, house - houses) };
    (side >> (8 * house)) as usize & SEEDS_MAX
}

/// Solves linear equations, the right side in the last column. Symmetric and positive: no pivoting.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let n = matrix.len();
    for i in 0..n {
        let pivot = std::mem::take(&mut matrix[i]);
        if pivot[i].abs() > 1e-9 {
            for row in &mut matrix[i + 1..] {
                let factor = row[i] / pivot[i];
                if factor != 0.0 {
                    for (to, from) in row[i..].iter_mut().zip(&pivot[i..]) {
                        *to -= factor * from;
                    }
                }
            }
        }
        matrix[i] = pivot;
    }
    let mut solved = vec![0.0; n];
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|j| matrix[i][j] * solved[j]).sum();
        solved[i] = if matrix[i][i].abs() > 1e-9 { (matrix[i][n] - rest) / matrix[i][i] } else { 0.0 };
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::super::tables::{KalahTables, KalahWish, build_layers};
    use super::*;
    use grundy_games::kalah::Rules;

    fn tables(houses: u8, rules: Rules, seeds: u8) -> KalahTables {
        let mut layers = KalahWish { houses, rules, seeds }.layers(seeds);
        build_layers(&mut layers, rules, seeds, 1);
        KalahTables::new(layers, 1 << 20).expect("1 MiB")
    }

    #[test]
    fn equations_are_solved() {
        let solved = solve(vec![vec![4.0, 1.0, 6.0], vec![1.0, 3.0, 7.0]]);
        assert!((solved[0] - 1.0).abs() < 1e-9 && (solved[1] - 2.0).abs() < 1e-9, "{solved:?}");
    }

    #[test]
    fn estimates_are_nearer_than_guesses() {
        for rules in [Rules::Standard, Rules::EmptyCapture] {
            let tables = tables(4, rules, 14);
            let seeds = 14;
            let (mut estimated, mut guessed) = (0.0, 0.0);
            for place in 0..tables.layers.index().len(seeds) {
                let board = tables.layers.index().board(seeds, place).expect("a place of the layer");
                let gain = f64::from(tables.layers.gain(board).expect("the layer is there"));
                let estimate = f64::from(tables.evaluation.estimate(board)) / f64::from(UNIT);
                estimated += (gain - estimate).powi(2);
                guessed += (gain - f64::from(board.guess())).powi(2);
            }
            assert!(estimated < 0.7 * guessed, "{rules}: {estimated}, {guessed} by guesses");
        }
    }

    #[test]
    fn boards_without_layers_have_an_estimate() {
        for (houses, seeds) in [(1, 0), (3, 1), (8, 2)] {
            let tables = tables(houses, Rules::Standard, seeds);
            let board = Board { mine: 0x01_02, theirs: 0x7f };
            assert!(tables.evaluation.estimate(board).abs() < i16::MAX);
        }
    }
}
