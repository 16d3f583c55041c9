//! Components as they are: no knowledge but the mex rule for small ones.

use super::couple::Couple;
use super::kind::Kind;
use super::small::{SMALL_CELLS_MAX, SmallNimbers};
use crate::numbers::Numbers;
use grundy_games::cram::Component;

/// Regions are canonical components; small ones are solved by the mex rule.
///
/// In a key a component is its 128 cells and its width (a cell lies in the last row, so the height follows); widths are 1 to
/// 128, and bit 7 is clear:
///
/// ```text
/// words          the cells
/// bits 0..7      width - 1
/// ```
pub struct Plain {
    small: SmallNimbers,
    /// Components of at most this many cells are small.
    small_cells_max: u32,
}

impl Plain {
    /// Solves components of at most `cells_max` cells by the mex rule. More than [`SMALL_CELLS_MAX`] is taken as that.
    pub(super) fn new(cells_max: u32) -> Self {
        Self { small: SmallNimbers::new(), small_cells_max: cells_max.min(SMALL_CELLS_MAX) }
    }

    /// By the mex rule.
    fn small_nimber(&mut self, component: &Component) -> u8 {
        if let Some(nimber) = self.small.get(component.cells(), component.width()) {
            return nimber;
        }
        let mut reached = 0u32;
        for domino in component.dominoes() {
            reached |= 1 << component.after(domino).fold(0, |sum, region| sum ^ self.small_nimber(&region));
        }
        let nimber = reached.trailing_ones() as u8;
        self.small.put(component.cells(), component.width(), nimber);
        nimber
    }
}

impl Kind for Plain {
    type Region = Component;

    fn cells(region: &Component) -> u32 {
        region.len()
    }

    fn key(region: &Component) -> ([u64; 2], u8) {
        let cells = region.cells();
        ([cells as u64, (cells >> 64) as u64], region.width() - 1)
    }

    fn dominoes(region: &Component) -> impl Iterator<Item = u128> + use<> {
        region.dominoes()
    }

    fn read(&self, component: &Component, couple: &mut Couple<Component>) {
        couple.add::<Self>(*component);
    }

    fn component(&self, region: &Component) -> Option<Component> {
        Some(*region)
    }

    fn place(&mut self, region: &Component, domino: u128, couple: &mut Couple<Component>) {
        for left in region.after(domino) {
            if let Some(nimber) = self.nimber(&left) {
                couple.heap ^= nimber;
            } else if !left.is_zero_by_half_turn() {
                couple.add::<Self>(left);
            }
        }
    }

    /// One winning move proves the couple, and all its moves, about one a cell, must be refuted to disprove it. So the search
    /// prefers what splits and what is small. Over 3x9 to 3x13, 4x7 and 5x6 this makes 134,118 expansions; the exact number
    /// of moves makes 157,650, and no estimate 323,087.
    fn outlook(&mut self, region: &Component, _: u8) -> Numbers {
        Numbers::open(1, region.len())
    }

    fn nimber(&mut self, region: &Component) -> Option<u8> {
        (region.len() <= self.small_cells_max).then(|| self.small_nimber(region))
    }
}
