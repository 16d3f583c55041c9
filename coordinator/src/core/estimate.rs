//! How much work the open parts of an answer are, from what a depth-first search sampled.

use grundy_games::plan::OpenPart;
use grundy_search::samples::{Range, Samples};

/// The first seconds of a search tell nothing: its order of moves and its tables have to settle.
const SEARCHES_MIN: u64 = 1 << 24;

/// Nodes that open parts take; `Estimate` in `grundy/v1/grundy.proto` says how they are found.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// In all open parts together.
    pub nodes: Range,
    /// In each of them.
    pub parts: Vec<(String, Range)>,
    /// Searches that were sampled.
    pub searches: u64,
    /// The lowest and the highest level that was.
    pub levels: (u16, u16),
}

impl Estimate {
    /// From samples, of the parts of an answer that are open, which are asked for only if the samples tell of them. `None` if there are none, or too
    /// few samples.
    pub fn new(samples: &Samples, open: impl FnOnce() -> Vec<OpenPart>) -> Option<Self> {
        let searches = samples.levels().fold(0_u64, |sum, (_, sample)| sum.saturating_add(sample.searches));
        if searches < SEARCHES_MIN {
            return None;
        }
        let (lowest, highest) = (samples.levels().next()?, samples.levels().next_back()?);
        let growth = samples.growth()?;
        let part = |part: &OpenPart| {
            let Range { low, high } = growth.size(part.level);
            let claims = f64::from(part.claims);
            (part.part.clone(), Range { low: claims * low, high: claims * high })
        };
        let parts: Vec<_> = open().iter().map(part).collect();
        let nodes = Range {
            low: parts.iter().map(|(_, range)| range.low).sum(),
            high: parts.iter().map(|(_, range)| range.high).sum(),
        };
        (!parts.is_empty()).then_some(Self { nodes, parts, searches, levels: (lowest.0, highest.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_search::samples::Sample;

    #[test]
    fn parts_add_up() {
        let sample = |level: u16| {
            let (searches, size) = (2 << 20, 1_u64 << level);
            (
                level,
                Sample { searches, nodes: searches * size, squares: searches as f64 * (size as f64).powi(2) },
            )
        };
        let samples: Samples = (10..22).map(sample).collect();
        let open = |part: &str, level, claims| OpenPart { part: part.to_owned(), level, claims };
        let estimate =
            Estimate::new(&samples, || vec![open("1", 30, 2), open("2", 20, 1)]).expect("12 levels");
        let expected = 2.0_f64.powi(31) + 2.0_f64.powi(20);
        assert!((estimate.nodes.low / expected - 1.0).abs() < 1e-6, "{estimate:?}");
        assert_eq!((estimate.searches, estimate.levels), (12 << 21, (10, 21)));
        assert_eq!(
            estimate.parts[1],
            ("2".to_owned(), Range { low: f64::from(1 << 20), high: f64::from(1 << 20) })
        );
        assert_eq!(Estimate::new(&samples, Vec::new), None);
        let too_few: Samples =
            samples.levels().map(|(level, sample)| (level, Sample { searches: 9, ..sample })).collect();
        assert_eq!(Estimate::new(&too_few, || vec![open("1", 30, 2)]), None);
        assert_eq!(Estimate::new(&Samples::default(), || vec![open("1", 30, 2)]), None);
    }
}
