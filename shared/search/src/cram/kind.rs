//! What the search of couples needs to know of regions.

use super::couple::Couple;
use crate::numbers::Numbers;
use grundy_games::cram::Component;
use std::fmt::Debug;

/// A way to hold regions and to know nimbers without search.
pub trait Kind: Send {
    /// A connected region, in canonical form as far as the kind knows it.
    type Region: Copy + Ord + Debug + Send;

    /// How many cells a region has.
    fn cells(region: &Self::Region) -> u32;

    /// The region in a table key: 128 bits, and 8 that go above the heap. Different for different regions of all kinds.
    fn key(region: &Self::Region) -> ([u64; 2], u8);

    /// The dominoes that fit, as two cells each.
    fn dominoes(region: &Self::Region) -> impl Iterator<Item = u128> + use<Self>;

    /// Adds what equals a component.
    fn read(&self, component: &Component, couple: &mut Couple<Self::Region>);

    /// The region as a component; `None` if rules or knowledge make it *0.
    fn component(&self, region: &Self::Region) -> Option<Component>;

    /// Adds what a domino leaves of a region: what is known to the heap, the rest as regions.
    fn place(&mut self, region: &Self::Region, domino: u128, couple: &mut Couple<Self::Region>);

    /// The numbers of the couple of a region and a heap that has not been searched: an estimate, or its truth if a move is seen
    /// to win or all are seen not to.
    fn outlook(&mut self, region: &Self::Region, heap: u8) -> Numbers;

    /// The region's nimber, if it is known without search.
    fn nimber(&mut self, region: &Self::Region) -> Option<u8>;
}
