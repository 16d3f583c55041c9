//! Exact counting of peg solitaire solutions, level by level.
//!
//! Every jump removes one peg, so the boards after `k` jumps form level `k` and a jump leads from one level to the next. A
//! level is kept as [`Entry`]s, one for each orbit of boards under the problem's symmetries. [`Counter::expand`] turns any part
//! of a level into its contribution to the next, cut into parts by [`Counter::partition`]; [`merge`] adds the contributions to
//! one part. Both are pure, so a level is a map and a reduce that may run anywhere, in any order, any number of times.
//! [`count_within`] does the same in one process, on its threads.
//!
//! ```text
//!   level k      part 0   part 1   part 2
//!                  |  \  /  |  \  /  |        expand: each part gives one sorted run to each part of the next level
//!                  |  /  \  |  /  \  |
//!   level k+1    part 0   part 1   part 2     merge: equal boards of the runs become one entry
//! ```
//!
//! When the finish is the complement of the start, half of the levels are enough ([`Method::Half`]).

mod accumulate;
mod count;
mod counter;
mod error;
mod merge;
mod run;
mod shelf;

pub use count::{Counted, Means, count, count_within};
pub use counter::{Counter, Entry, LevelSize, Method};
pub use error::{CountError, RunError};
pub use merge::merge;
pub use run::{encode_run, run_entries};
pub use shelf::Spill;
