//! Filling a pair table: the mex rule for 32 rows at once, on all threads.
//!
//! A row needs those of its left end's options, inner and sticking out. So rows go by *depth*, the length of the longest chain of
//! options: rows of one depth need none of each other. Groups of 32 of them are filled together, in two passes. The first goes
//! along each row and collects the nimbers of the options of the left end and of the dominoes across the border. The second
//! goes through the right ends in order, 32 rows side by side, and adds the options of the right end, which have been found before.

use super::classes::{Classes, End};
use super::lanes::{LANES, Lanes, MEX_MAX, Sets, Simd, add, transpose8};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A row on its way: its left class and its bytes.
type Row<'a> = (u32, &'a mut [u8]);

/// Fills `nimbers`, `stride` bytes a row, a row for each left class. `go_on` is told after each group of rows how many bytes are filled;
/// false, as soon as it answers no.
pub(super) fn fill(
    classes: &Classes,
    stride: usize,
    nimbers: &mut [u8],
    threads: usize,
    go_on: &(dyn Fn(usize) -> bool + Sync),
) -> bool {
    let filler = Filler { classes, simd: Simd::detect(), rights: Rights::new(classes, stride), stride };
    let mut done: Vec<&[u8]> = Vec::new();
    done.resize(nimbers.len() / stride, &[]);
    let mut layers: Vec<Vec<Row<'_>>> = Vec::new();
    let depths = depths(classes, done.len());
    for (class, row) in nimbers.chunks_exact_mut(stride).enumerate() {
        let depth = depths[class] as usize;
        if layers.len() <= depth {
            layers.resize_with(depth + 1, Vec::new);
        }
        layers[depth].push((class as u32, row));
    }
    let (filled, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    for mut layer in layers {
        // Small groups where there are few rows, so that every thread has some.
        let group = layer.len().div_ceil(threads.max(1)).clamp(1, LANES);
        let groups = Mutex::new(layer.chunks_mut(group));
        let work = || {
            let mut workspace = Workspace::new(stride);
            loop {
                // Taken before the loop's body, so that the lock is not held in it.
                let next = groups.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(rows) = next.filter(|_| !stopped.load(Ordering::Relaxed)) else { return };
                filler.fill_group(rows, &done, &mut workspace);
                let bytes = rows.len() * stride;
                if !go_on(filled.fetch_add(bytes, Ordering::Relaxed) + bytes) {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        if stopped.load(Ordering::Relaxed) {
            return false;
        }
        for (class, row) in layer {
            done[class as usize] = row;
        }
    }
    true
}

/// The length of the longest chain of options of each class.
fn depths(classes: &Classes, count: usize) -> Vec<u32> {
    let mut depths: Vec<u32> = Vec::with_capacity(count);
    for class in 0..count as u32 {
        let sticking = (0..classes.height()).filter(|row| classes.last(class) >> row & 1 == 1);
        let sticking = sticking.map(|row| classes.sticking(class, row));
        let options = classes.inner(class).iter().copied().chain(sticking);
        depths.push(options.map(|option| depths[option.class() as usize] + 1).max().unwrap_or(0));
    }
    depths
}

/// What one thread works with.
struct Workspace {
    /// Sets of nimbers below 8 for each right end, a row for each lane, and of those above.
    low: Vec<u8>,
    high: Vec<u8>,
    /// The nimbers that are found, lanes side by side.
    nimbers: Vec<Lanes>,
}

impl Workspace {
    fn new(stride: usize) -> Self {
        // In whole blocks of 8, for transposing.
        let padded = stride.next_multiple_of(8);
        Self {
            low: vec![0; LANES * padded],
            high: vec![0; LANES * padded],
            nimbers: vec![[0; LANES]; padded],
        }
    }
}

struct Filler<'a> {
    classes: &'a Classes,
    simd: Simd,
    rights: Rights,
    stride: usize,
}

impl Filler<'_> {
    /// Fills up to 32 rows that need none of each other; `done` has all that they need.
    fn fill_group(&self, rows: &mut [Row<'_>], done: &[&[u8]], workspace: &mut Workspace) {
        let padded = self.stride.next_multiple_of(8);
        for (lane, (left, _)) in rows.iter().enumerate() {
            let lane = lane * padded..lane * padded + self.stride;
            self.collect(*left, done, &mut workspace.low[lane.clone()], &mut workspace.high[lane]);
        }
        for first in (0..padded).step_by(8) {
            let (mut low, mut high) = ([0; 8 * LANES], [0; 8 * LANES]);
            for lane in (0..rows.len()).step_by(8) {
                let start = lane * padded + first;
                transpose8(&workspace.low[start..], padded, &mut low[lane..], LANES);
                transpose8(&workspace.high[start..], padded, &mut high[lane..], LANES);
            }
            let (low, high) = (low.as_chunks::<LANES>().0, high.as_chunks::<LANES>().0);
            for right in first..self.stride.min(first + 8) {
                let sets = Sets { low: low[right - first], high: high[right - first] };
                let options = self.rights.inner(right).iter();
                let options = options.map(|end| (&workspace.nimbers[end.class() as usize], end.offset()));
                let mut mex = self.simd.mex(sets, options);
                if mex.contains(&MEX_MAX) {
                    for (mex, (lane, (left, _))) in mex.iter_mut().zip(rows.iter().enumerate()) {
                        if *mex == MEX_MAX {
                            *mex = self.exact(*left, right, done, |right| workspace.nimbers[right][lane]);
                        }
                    }
                }
                workspace.nimbers[right] = mex;
            }
        }
        let (blocks, rest) = (self.stride / 8 * 8, self.stride % 8);
        let flat = workspace.nimbers.as_flattened();
        for first in (0..blocks).step_by(8) {
            for lane in (0..rows.len()).step_by(8) {
                let mut block = [0; 64];
                transpose8(&flat[first * LANES + lane..], LANES, &mut block, 8);
                for ((_, row), bytes) in rows[lane..].iter_mut().zip(block.as_chunks::<8>().0) {
                    row[first..first + 8].copy_from_slice(bytes);
                }
            }
        }
        for (lane, (_, row)) in rows.iter_mut().enumerate() {
            for right in blocks..blocks + rest {
                row[right] = workspace.nimbers[right][lane];
            }
        }
    }

    /// The sets of the nimbers of a left end's options and of the dominoes across the border, for each right end.
    fn collect(&self, left: u32, done: &[&[u8]], low: &mut [u8], high: &mut [u8]) {
        low.fill(0);
        high.fill(0);
        for option in self.classes.inner(left) {
            self.simd.add_row(low, high, done[option.class() as usize], option.offset());
        }
        for cell in 0..self.classes.height() {
            if self.classes.last(left) >> cell & 1 == 0 {
                continue;
            }
            let end = self.classes.sticking(left, cell);
            let row = done[end.class() as usize];
            for (right, other) in &self.rights.sticking[cell as usize] {
                let nimber = row[other.class() as usize] ^ end.offset() ^ other.offset();
                add(&mut low[*right as usize], &mut high[*right as usize], nimber);
            }
        }
    }

    /// The nimber of one pair, whatever it is; `row` has those of the same left end with smaller right ends.
    fn exact(&self, left: u32, right: usize, done: &[&[u8]], row: impl Fn(usize) -> u8) -> u8 {
        let mut reached = 0u64;
        for option in self.classes.inner(left) {
            reached |= 1 << (done[option.class() as usize][right] ^ option.offset());
        }
        for option in self.rights.inner(right) {
            reached |= 1 << (row(option.class() as usize) ^ option.offset());
        }
        for cell in 0..self.classes.height() {
            if self.classes.last(left) & self.classes.last(right as u32) & 1 << cell != 0 {
                let (end, other) =
                    (self.classes.sticking(left, cell), self.classes.sticking(right as u32, cell));
                let nimber = done[end.class() as usize][other.class() as usize];
                reached |= 1 << (nimber ^ end.offset() ^ other.offset());
            }
        }
        reached.trailing_ones() as u8
    }
}

/// The options of all right ends one after the other, as the inner loops read them.
struct Rights {
    ends: Vec<usize>,
    inner: Vec<End>,
    /// For each row of the strip, the classes that have it empty in the last column, and what sticking out there makes of them.
    sticking: Vec<Vec<(u32, End)>>,
}

impl Rights {
    fn new(classes: &Classes, count: usize) -> Self {
        let mut rights = Self { ends: vec![0], inner: Vec::new(), sticking: Vec::new() };
        for class in 0..count as u32 {
            rights.inner.extend_from_slice(classes.inner(class));
            rights.ends.push(rights.inner.len());
        }
        for row in 0..classes.height() {
            let sticking = (0..count as u32).filter(|class| classes.last(*class) >> row & 1 == 1);
            rights.sticking.push(sticking.map(|class| (class, classes.sticking(class, row))).collect());
        }
        rights
    }

    fn inner(&self, class: usize) -> &[End] {
        &self.inner[self.ends[class]..self.ends[class + 1]]
    }
}
