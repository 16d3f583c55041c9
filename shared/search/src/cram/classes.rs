//! Classes of ends: which left parts of a strip can stand in for each other.
//!
//! A strip of H rows is read as a word over its columns. An *end* E is such a word; followed by a word W it makes the
//! position E·W, whose dominoes lie in E, in W, or across the border between the last column of E and the first of W.
//! Two ends E and F of the same last column are *equivalent with offset c*, E ~ F + *c, when E·W = F·W + *c for every W.
//!
//! # The rule
//!
//! The options of an end are the ends that a domino inside it leaves (its *inner* options), and for each empty row r of the
//! last column the end with that cell filled (its option that *sticks out* at r: the other half lies in W). Let all these
//! options be known as *class + offset*. Then E ~ F + *c follows, for E and F of the same last column, from:
//!
//! - (a) the option of E that sticks out at r is the one of F that sticks out at r, shifted by c, for each r; and each
//!   inner option of F, shifted by c, is an inner option of E;
//! - (b) for each c' < c, F + *c' is an inner option of E;
//! - (c) each other inner option of E is F + *x for some x other than c, or has an inner option that is F + *c.
//!
//! *Proof*, by induction on the cells of W. Let g be the nimber of F·W; to show: that of E·W is mex S = g xor c, where S
//! are the nimbers of E·W's options. The options of the sum F·W + *c have nimbers of three kinds, all of which are in S:
//! a domino of W alone gives W' with F·W' + *c = E·W' by induction; one that sticks out at r, or an inner option of F, has its
//! counterpart in E by (a); a smaller heap c' gives F·W + *c', an option of E·W by (b). So S has every number below the
//! nimber g xor c of that sum. And g xor c is not in S: what has a counterpart in F·W + *c does not equal it, being one of its
//! options; F·W + *x does not since x is not c; and what has an option to F·W + *c cannot equal it either. ∎
//!
//! Equivalence is kept when a column is appended to both ends (take the column into W), so the classes are the states of an
//! automaton that reads columns, and the options of E·w follow from those of E and from transitions known before:
//! an inner option E' of E gives E'·w; a domino across the border at r gives the end that sticks out there, followed by w
//! without r; a domino within w gives E followed by what it leaves of w. All have fewer cells.
//! Which F and c need be tried is little: if (c) has nothing to do then E and F have the same options and c = 0, which
//! a hash table finds; otherwise F is an inner option of E or an inner option of one. And c is the least x for which
//! F + *x is no inner option of E: by (b) it is at most that, and F + *c itself is no option of E if E = F + *c.
//!
//! The rule is sound and not complete: two classes may still be equivalent.

use super::strip;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// The most rows of a strip whose ends are classified: 2^7 columns.
pub const HEIGHT_MAX: u32 = 7;

/// A class of ends and what to add to it: an end that equals the class's own with a heap of `offset` beside it.
///
/// ```text
/// bits  0..24  the class
/// bits 24..32  the offset, at most 63: nimbers of at most 64 dominoes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End(u32);

/// At most 4,096 words are read at once.
const JUMP_BITS: u32 = 12;

const CLASS_BITS: u32 = 24;

impl End {
    /// The end without a column: nothing.
    pub const EMPTY: Self = Self(0);

    fn new(class: u32, offset: u8) -> Self {
        debug_assert!(class >> CLASS_BITS == 0);
        Self(class | u32::from(offset) << CLASS_BITS)
    }

    /// The class, an index.
    pub fn class(self) -> u32 {
        self.0 & ((1 << CLASS_BITS) - 1)
    }

    /// The heap beside it.
    pub fn offset(self) -> u8 {
        (self.0 >> CLASS_BITS) as u8
    }

    /// The same class with another heap beside it.
    pub fn shifted(self, offset: u8) -> Self {
        Self(self.0 ^ u32::from(offset) << CLASS_BITS)
    }
}

/// The simplest end of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Representative {
    /// How many cells it has.
    cells: u8,
    /// It equals the class's own end with this heap beside it.
    offset: u8,
    /// Its columns, the last one lowest; within a column the first row lowest.
    word: u64,
}

/// The classes of the ends of a strip, and the automaton that reads them.
///
/// Class 0 is the empty end. A class's inner options are of smaller classes.
pub struct Classes {
    height: u32,
    /// `levels[k]` classes are those of the ends of up to k columns; the ends of fewer columns are among them, with full
    /// columns in front.
    levels: Vec<u32>,
    /// What the class becomes with one more column: at `class << height | column`, for all classes but the last level's.
    steps: Vec<End>,
    /// Ends of [`jump_columns`](Self::jump_columns) columns at once, by their word.
    jumps: Vec<End>,
    /// The class's last column.
    lasts: Vec<u8>,
    /// Where the class's inner options end in `inner`; they start where the class's before end.
    inner_ends: Vec<u32>,
    /// Inner options, ascending within a class.
    inner: Vec<End>,
    /// Options that stick out, at `class * height + row`; [`End::EMPTY`] where the row is filled.
    sticking: Vec<End>,
    /// The class with its rows in reverse order.
    flips: Vec<End>,
    representatives: Vec<Representative>,
    /// Classes by last column, sticking and inner options.
    by_options: HashMap<Box<[u32]>, u32, BuildHasherDefault<DefaultHasher>>,
}

impl Classes {
    /// The classes of the ends of no column, of a strip of 1 to [`HEIGHT_MAX`] rows; `None` for any other height.
    pub fn new(height: u32) -> Option<Self> {
        if !(1..=HEIGHT_MAX).contains(&height) {
            return None;
        }
        let mut classes = Self {
            height,
            levels: Vec::new(),
            steps: Vec::new(),
            jumps: vec![End::EMPTY],
            lasts: Vec::new(),
            inner_ends: Vec::new(),
            inner: Vec::new(),
            sticking: Vec::new(),
            flips: Vec::new(),
            representatives: Vec::new(),
            by_options: HashMap::default(),
        };
        let nothing = Options { last: 0, inner: Vec::new(), sticking: vec![End::EMPTY; height as usize] };
        classes.add(&nothing);
        classes.representatives.push(Representative { cells: 0, offset: 0, word: 0 });
        classes.flips.push(End::EMPTY);
        classes.levels.push(1);
        Some(classes)
    }

    /// The number of rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// How many columns the longest classified ends have.
    pub fn columns(&self) -> usize {
        self.levels.len() - 1
    }

    /// How many classes the ends of up to this many columns have.
    pub fn len(&self, columns: usize) -> usize {
        self.levels[columns.min(self.columns())] as usize
    }

    /// Never: there is the empty end.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// How many ends [`grow`](Self::grow) would look at: its time is proportional to this.
    pub fn next_ends(&self) -> usize {
        let columns = self.columns();
        let known = if columns == 0 { 0 } else { self.len(columns - 1) };
        (self.len(columns) - known) << self.height
    }

    /// How many bytes the tables take.
    pub fn bytes(&self) -> usize {
        let options = (self.steps.len() + self.inner.len() + self.sticking.len() + self.flips.len()) * 4;
        // The keys of the hash table hold the options once more, with a few words of its own for each class.
        2 * options + self.lasts.len() * (size_of::<Representative>() + 64)
    }

    /// Classifies the ends of one more column. Does nothing and returns false if an index or a representative would
    /// outgrow its bits.
    pub fn grow(&mut self) -> bool {
        let columns = self.columns();
        let first = if columns == 0 { 0 } else { self.levels[columns - 1] };
        let last = self.levels[columns];
        if self.len(columns) + self.next_ends() > 1 << CLASS_BITS
            || (columns as u32 + 1) * self.height > u64::BITS
        {
            return false;
        }
        let mut tried = Tried::default();
        for class in first..last {
            for column in 0..1u8 << self.height {
                let options = self.options(class, column);
                let step = self.equivalent(&options, &mut tried).unwrap_or_else(|| self.add(&options));
                self.steps.push(step);
            }
        }
        self.levels.push(self.lasts.len() as u32);
        self.represent(first, last);
        if self.jump_columns() == self.columns() {
            let words = 0..1u128 << (self.height * self.columns() as u32);
            self.jumps = words.map(|word| self.stepped(End::EMPTY, word, self.columns())).collect();
        }
        true
    }

    /// The class after one more column.
    pub fn step(&self, class: u32, column: u32) -> End {
        self.steps[(class as usize) << self.height | column as usize]
    }

    /// An end with one more column.
    pub fn after(&self, end: End, column: u32) -> End {
        self.step(end.class(), column).shifted(end.offset())
    }

    /// The class of an end of at most as many columns as are classified: the word's lowest bits are its first column.
    pub fn of_word(&self, word: u128, columns: usize) -> End {
        let jump = self.jump_columns();
        if columns < jump {
            return self.stepped(End::EMPTY, word, columns);
        }
        let bits = self.height * jump as u32;
        let start = self.jumps[word as usize & ((1 << bits) - 1)];
        self.stepped(start, word >> bits, columns - jump)
    }

    /// How many columns are read at once: a small table of all words of up to [`JUMP_BITS`] cells.
    fn jump_columns(&self) -> usize {
        ((JUMP_BITS / self.height) as usize).min(self.columns())
    }

    /// The class after more columns.
    fn stepped(&self, mut end: End, mut word: u128, columns: usize) -> End {
        let mask = (1 << self.height) - 1;
        for _ in 0..columns {
            end = self.after(end, word as u32 & mask);
            word >>= self.height;
        }
        end
    }

    /// The class's last column.
    pub fn last(&self, class: u32) -> u8 {
        self.lasts[class as usize]
    }

    /// What dominoes inside the class's end make of it, ascending.
    pub fn inner(&self, class: u32) -> &[End] {
        let start = if class == 0 { 0 } else { self.inner_ends[class as usize - 1] };
        &self.inner[start as usize..self.inner_ends[class as usize] as usize]
    }

    /// What a domino that sticks out in an empty row of the last column makes of the class's end.
    pub fn sticking(&self, class: u32, row: u32) -> End {
        self.sticking[(class * self.height + row) as usize]
    }

    /// The class of the ends upside down.
    pub fn flip(&self, class: u32) -> End {
        self.flips[class as usize]
    }

    /// The class's simplest end, the one of the fewest cells among those of no more columns than any end of the
    /// class needs: its number of cells, the heap that makes it equal the class, and its columns, the *last* one lowest.
    pub fn representative(&self, class: u32) -> (u32, u8, u64) {
        let Representative { cells, offset, word } = self.representatives[class as usize];
        (u32::from(cells), offset, word)
    }

    /// The options of a class's end with one more column, from the transitions of smaller classes and smaller columns.
    fn options(&self, class: u32, column: u8) -> Options {
        let mut inner = Vec::with_capacity(self.inner(class).len() + 2 * self.height as usize);
        let step = |class, column: u8| self.step(class, u32::from(column));
        inner.extend(self.inner(class).iter().map(|end| step(end.class(), column).shifted(end.offset())));
        let mut sticking = vec![End::EMPTY; self.height as usize];
        for row in 0..self.height {
            let cell = 1u8 << row;
            if column & cell == 0 {
                continue;
            }
            if self.last(class) & cell != 0 {
                let end = self.sticking(class, row);
                inner.push(step(end.class(), column ^ cell).shifted(end.offset()));
            }
            if column & cell << 1 != 0 && row + 1 < self.height {
                inner.push(step(class, column ^ (cell | cell << 1)));
            }
            sticking[row as usize] = step(class, column ^ cell);
        }
        inner.sort_unstable();
        inner.dedup();
        Options { last: column, inner, sticking }
    }

    /// Makes a class of an end that no known one is equivalent to.
    fn add(&mut self, options: &Options) -> End {
        let class = self.lasts.len() as u32;
        self.lasts.push(options.last);
        self.inner.extend_from_slice(&options.inner);
        self.inner_ends.push(self.inner.len() as u32);
        self.sticking.extend_from_slice(&options.sticking);
        self.by_options.insert(options.key(), class);
        End::new(class, 0)
    }

    /// The known class and offset that the rule shows an end to have.
    fn equivalent(&self, end: &Options, tried: &mut Tried) -> Option<End> {
        if let Some(class) = self.by_options.get(&end.key()) {
            return Some(End::new(*class, 0));
        }
        tried.begin(self.lasts.len());
        for option in &end.inner {
            let of_option = self.inner(option.class()).iter().map(|end| end.class());
            for class in std::iter::once(option.class()).chain(of_option) {
                if self.last(class) == end.last
                    && tried.is_new(class)
                    && let Some(offset) = self.offset(end, class)
                {
                    return Some(End::new(class, offset));
                }
            }
        }
        None
    }

    /// The one offset with which the end can be equivalent to a class of the same last column, if by the rule it is.
    fn offset(&self, end: &Options, class: u32) -> Option<u8> {
        let of_class = |offset: &u8| end.has(End::new(class, *offset));
        let offset = (0..64).find(|offset| !of_class(offset))?;
        let sticks = (0..self.height).all(|row| {
            end.last >> row & 1 == 0
                || end.sticking[row as usize] == self.sticking(class, row).shifted(offset)
        });
        if !sticks {
            return None;
        }
        let options = self.inner(class);
        if !options.iter().all(|option| end.has(option.shifted(offset))) {
            return None;
        }
        let harmless = end.inner.iter().all(|option| {
            option.class() == class
                || options.binary_search(&option.shifted(offset)).is_ok()
                || self.has_inner(option.class(), End::new(class, offset ^ option.offset()))
        });
        harmless.then_some(offset)
    }

    fn has_inner(&self, class: u32, option: End) -> bool {
        self.inner(class).binary_search(&option).is_ok()
    }

    /// Finds the representatives and the flips of the classes that came with the last level, whose ends are those of
    /// the classes `first..last` with one more column.
    fn represent(&mut self, first: u32, last: u32) {
        let new = self.representatives.len();
        let unset = Representative { cells: u8::MAX, offset: 0, word: 0 };
        self.representatives.resize(self.lasts.len(), unset);
        for class in first..last {
            let before = self.representatives[class as usize];
            for column in 0..1u64 << self.height {
                let step = self.step(class, column as u32);
                let candidate = Representative {
                    cells: before.cells + column.count_ones() as u8,
                    offset: before.offset ^ step.offset(),
                    word: before.word << self.height | column,
                };
                let kept = &mut self.representatives[step.class() as usize];
                if step.class() as usize >= new && (candidate.cells, candidate.word) < (kept.cells, kept.word)
                {
                    *kept = candidate;
                }
            }
        }
        let columns = self.columns();
        for class in new..self.lasts.len() {
            let Representative { offset, word, .. } = self.representatives[class];
            // Read from its last column on, the word is mirrored; turned by half a turn, it is upside down.
            let turned = strip::half_turn(u128::from(word), self.height, columns as u32);
            self.flips.push(self.stepped(End::EMPTY, turned, columns).shifted(offset));
        }
    }
}

/// The options of an end that is not classified yet.
struct Options {
    last: u8,
    /// Ascending.
    inner: Vec<End>,
    sticking: Vec<End>,
}

impl Options {
    fn has(&self, option: End) -> bool {
        self.inner.binary_search(&option).is_ok()
    }

    fn key(&self) -> Box<[u32]> {
        let ends = self.sticking.iter().chain(&self.inner).map(|end| end.0);
        std::iter::once(u32::from(self.last)).chain(ends).collect()
    }
}

/// Which classes were tried for the end at hand.
#[derive(Default)]
struct Tried {
    stamps: Vec<u32>,
    stamp: u32,
}

impl Tried {
    fn begin(&mut self, classes: usize) {
        self.stamps.resize(classes, 0);
        self.stamp += 1;
    }

    /// True the first time that it is asked about the class.
    fn is_new(&mut self, class: u32) -> bool {
        std::mem::replace(&mut self.stamps[class as usize], self.stamp) != self.stamp
    }
}
