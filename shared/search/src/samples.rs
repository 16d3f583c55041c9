//! Samples of tree sizes, and what they tell of trees that nobody has searched.
//!
//! Every claim that a search decides on its way is a sample: a tree whose root is so many *levels* from the end of the game, of so many nodes. A
//! game says what its levels are (Kalah: seeds in play). Most trees of a level are small, and most nodes lie in a few large ones: those of claims that are
//! nearly false or nearly true, as the claims are that decide a value. So the size of a level is the mean over its nodes, of the
//! tree that a node lies in, not the mean over its trees; the second is an eighth of what such claims take.
//!
//! Sizes grow by a factor a level that changes slowly. So they are carried on to levels above those that were sampled, by the straight lines
//! through the logarithms of the sizes in the uppermost third, half and two thirds of the levels. Parabolas, which keep up a change of the
//! growth, were tried: they are off by factors of a hundred where few levels were sampled.

use std::collections::BTreeMap;

/// A level is told of when a search has decided so many claims of it. Fewer, near its root, tell of that corner of the tree: they are the small ones
/// among those that it began, and have found most of what they need in the table.
pub const SEARCHES_MIN: u64 = 4_096;

/// The fewest levels that tell of the growth.
const LEVELS_MIN: usize = 9;

/// An estimate beyond this is none.
const NODES_MAX: f64 = 1e30;

/// Searches of one level.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sample {
    /// Claims decided.
    pub searches: u64,
    /// Nodes below all of them together.
    pub nodes: u64,
    /// The sum of the squares of the nodes below each.
    pub squares: f64,
}

impl Sample {
    /// Adds others of the same level.
    pub fn add(&mut self, other: Self) {
        self.searches = self.searches.saturating_add(other.searches);
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.squares += other.squares;
    }

    /// The mean over all nodes of the size of the tree that they lie in.
    fn size(self) -> f64 {
        // A peer may send anything.
        let size = self.squares / self.nodes as f64;
        if size.is_nan() { 1.0 } else { size.clamp(1.0, NODES_MAX) }
    }
}

/// Samples by level.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples(BTreeMap<u16, Sample>);

/// Between how many nodes a tree is thought to have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// At least, if nothing is unusual.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl FromIterator<(u16, Sample)> for Samples {
    fn from_iter<I: IntoIterator<Item = (u16, Sample)>>(levels: I) -> Self {
        let mut samples = Self::default();
        for (level, sample) in levels.into_iter().filter(|(_, sample)| sample.searches > 0) {
            samples.0.entry(level).or_default().add(sample);
        }
        samples
    }
}

impl Samples {
    /// Each level with its searches, the lowest first.
    pub fn levels(&self) -> impl DoubleEndedIterator<Item = (u16, Sample)> {
        self.0.iter().map(|(level, sample)| (*level, *sample))
    }

    /// Adds those of another search.
    pub fn merge(&mut self, other: &Self) {
        for (level, sample) in other.levels() {
            self.0.entry(level).or_default().add(sample);
        }
    }

    /// How trees grow. `None` if there are too few levels to tell.
    pub fn growth(&self) -> Option<Growth> {
        let points: Vec<Point> = self.levels().map(|(level, sample)| Point::new(level, sample)).collect();
        (points.len() >= LEVELS_MIN).then_some(Growth { points })
    }
}

/// Sizes of trees by level, also of levels that were not sampled.
pub struct Growth {
    /// One for each sampled level, the lowest first.
    points: Vec<Point>,
}

impl Growth {
    /// How many nodes a tree of this level is thought to have.
    pub fn size(&self, level: u16) -> Range {
        let (points, at) = (&self.points, f64::from(level));
        if let Some(point) = points.iter().find(|point| point.level == at) {
            let nodes = point.log_nodes.exp();
            return Range { low: nodes, high: nodes };
        }
        // Next to the end of the game trees grow by laws of their own: the lowest third tells nothing of the highest.
        let upper = |sixths: usize| &points[points.len() - points.len() * sixths / 6..];
        // A tree is no smaller than its parts.
        let floor =
            points.iter().filter(|point| point.level < at).map(|point| point.log_nodes).fold(0.0, f64::max);
        let carried = [2, 3, 4].map(|sixths| line(upper(sixths), at).max(floor).exp().min(NODES_MAX));
        Range {
            low: carried.iter().copied().fold(f64::INFINITY, f64::min),
            high: carried.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// A level as the fit sees it.
#[derive(Clone, Copy)]
struct Point {
    level: f64,
    /// The natural logarithm of the size: sizes grow by factors.
    log_nodes: f64,
}

impl Point {
    fn new(level: u16, sample: Sample) -> Self {
        Self { level: level.into(), log_nodes: sample.size().ln() }
    }
}

/// The straight line that fits the points best by least squares, at a level.
fn line(points: &[Point], at: f64) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (level, log_nodes) = (mean(|point| point.level), mean(|point| point.log_nodes));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for point in points {
        covariance += (point.level - level) * (point.log_nodes - log_nodes);
        variance += (point.level - level).powi(2);
    }
    log_nodes + covariance / variance * (at - level)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels from 20 on: a thousand trees of these sizes each, and a thousand of one node.
    fn samples(sizes: impl IntoIterator<Item = f64>) -> Samples {
        let sample = |(index, size): (u16, f64)| {
            let nodes = 1_000 + (size * 1e3) as u64;
            (20 + index, Sample { searches: 2_000, nodes, squares: 1e3 + 1e3 * size * size })
        };
        (0..).zip(sizes).map(sample).collect()
    }

    fn size(samples: &Samples, level: u16) -> Range {
        samples.growth().expect("enough levels").size(level)
    }

    fn is_near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 0.02
    }

    #[test]
    fn steady_growth_is_carried_on() {
        let samples = samples((0..20).map(|level| 500.0 * 1.5_f64.powi(level)));
        let Range { low, high } = size(&samples, 60);
        let expected = 500.0 * 1.5_f64.powi(40);
        assert!(is_near(low, expected) && is_near(high, expected), "{low} {high} {expected}");
        let known = size(&samples, 30);
        assert!(is_near(known.low, 500.0 * 1.5_f64.powi(10)) && known.low == known.high);
    }

    #[test]
    fn growth_that_changes_is_a_range() {
        let size_of = |level: f64, change: f64| 500.0 * (0.4 * level + change * level * level).exp();
        let ranges = [0.005, -0.005]
            .map(|change| size(&samples((0..24).map(|level| size_of(f64::from(level), change))), 60));
        let [growing, shrinking] = ranges;
        assert!(growing.high > 1.5 * growing.low && shrinking.high > 1.5 * shrinking.low, "{ranges:?}");
        // The uppermost third is nearest to what comes.
        assert!(growing.high < size_of(40.0, 0.005) && shrinking.low > size_of(40.0, -0.005), "{ranges:?}");
    }

    #[test]
    fn few_levels_tell_nothing_and_a_tree_is_no_smaller_than_its_parts() {
        assert!(samples((0..8).map(f64::from)).growth().is_none());
        assert!(Samples::default().growth().is_none());
        let shrinking = samples((0..20).map(|level| 1e12 * 0.5_f64.powi(level)));
        let Range { low, .. } = size(&shrinking, 60);
        assert!(is_near(low, 1e12), "{low}");
    }

    #[test]
    fn merging_adds_and_forgets_what_was_never_searched() {
        let one: Samples = [(7, Sample { searches: 2, nodes: 10, squares: 82.0 }), (8, Sample::default())]
            .into_iter()
            .collect();
        let mut both = one.clone();
        both.merge(&one);
        both.merge(&[(9, Sample { searches: u64::MAX, nodes: 1, squares: 1.0 })].into_iter().collect());
        both.merge(&[(9, Sample { searches: 1, nodes: 1, squares: 1.0 })].into_iter().collect());
        let expected = [
            (7, Sample { searches: 4, nodes: 20, squares: 164.0 }),
            (9, Sample { searches: u64::MAX, nodes: 2, squares: 2.0 }),
        ];
        assert_eq!(both.levels().collect::<Vec<_>>(), expected);
    }
}
