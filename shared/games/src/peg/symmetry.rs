//! Symmetries of a board shape, and canonical boards under those that a problem allows.

use super::geometry::{Geometry, Hole};

/// A permutation of the holes that comes from a symmetry of the lattice.
#[derive(Clone, Debug)]
pub struct Symmetry {
    /// The image of each hole.
    images: Vec<Hole>,
    /// Whether the lattice was turned, not mirrored.
    turned: bool,
}

/// Equal permutations are one symmetry, whichever maps of the lattice they come from.
impl PartialEq for Symmetry {
    fn eq(&self, other: &Self) -> bool {
        self.images == other.images
    }
}

impl Eq for Symmetry {}

impl Symmetry {
    /// The permutation that takes hole `h` to `images[h]`.
    pub(super) fn new(images: Vec<Hole>, turned: bool) -> Self {
        Self { images, turned }
    }

    /// The image of a board.
    pub fn apply(&self, board: u64) -> u64 {
        self.images.iter().enumerate().fold(0, |image, (hole, to)| image | (board >> hole & 1) << to.index())
    }
}

/// Images of a board computed at once: as many as the square has symmetries.
pub const LANES: usize = 8;

/// A board's images under the symmetries of a problem, one a lane, the board itself first. Groups of fewer than eight
/// elements are repeated to fill the lanes.
///
/// Aligned so that a row of the tables is one cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(align(64))]
pub struct Images(pub [u64; LANES]);

impl Images {
    /// The images of the board that differs from this one in the holes whose images are `changes`. Permutations commute
    /// with XOR, so a jump costs eight operations and no lookup.
    #[inline]
    pub fn changed(&self, changes: &Self) -> Self {
        let mut images = *self;
        images.0.iter_mut().zip(&changes.0).for_each(|(image, change)| *image ^= change);
        images
    }

    /// The canonical board: the least image.
    #[inline]
    pub fn least(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// The greatest image: what the complement's canonical board is the complement of.
    #[inline]
    pub fn greatest(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.max(b).max(c.max(d)).max(e.max(f).max(g.max(h)))
    }
}

/// The orbits of boards under the symmetries that leave certain boards as they are.
#[derive(Clone, Debug)]
pub struct Orbits {
    /// `images[byte * 256 + value]`: the images of the pegs that this byte of a board holds.
    images: Vec<Images>,
    /// Elements of the group.
    order: u32,
}

impl Orbits {
    /// The group of the shape's symmetries that map each of the `fixed` boards to itself. Of the twelve of a hexagon only the six
    /// turns are taken, since twelve images do not fit the lanes: any subgroup merges boards that are equal, only fewer of them.
    pub fn new(geometry: &Geometry, fixed: &[u64]) -> Self {
        let mut group = geometry.symmetries();
        group.retain(|symmetry| fixed.iter().all(|&board| symmetry.apply(board) == board));
        if group.len() > LANES {
            group.retain(|symmetry| symmetry.turned);
        }
        let mut images = vec![Images::default(); geometry.len().div_ceil(8) * 256];
        for (row, images) in images.iter_mut().enumerate() {
            let (shift, value) = (row / 256 * 8, row as u64 % 256);
            for (image, symmetry) in images.0.iter_mut().zip(group.iter().cycle()) {
                *image = symmetry.apply(value << shift);
            }
        }
        Self { images, order: group.len() as u32 }
    }

    /// The number of symmetries in the group: 1, 2, 3, 4, 6 or 8.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// How many different boards these images of a board are: the size of its orbit.
    #[inline]
    pub fn size(&self, images: &Images) -> u32 {
        // As many symmetries lead to each board of the orbit as leave the board as it is (orbit-stabiliser theorem).
        let board = images.0[0];
        let stabiliser = images.0.iter().take(self.order as usize).filter(|&&image| image == board).count();
        self.order / stabiliser as u32
    }

    /// The board's images. Bits outside the holes have none.
    #[inline]
    pub fn images(&self, board: u64) -> Images {
        let mut images = Images::default();
        for (byte, rows) in self.images.chunks_exact(256).enumerate() {
            let row = &rows[(board >> (8 * byte)) as usize & 0xff];
            images.0.iter_mut().zip(&row.0).for_each(|(image, part)| *image |= part);
        }
        images
    }

    /// The least board of the orbit, which stands for all of it.
    #[inline]
    pub fn canonical(&self, board: u64) -> u64 {
        self.images(board).least()
    }
}
