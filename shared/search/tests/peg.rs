//! Peg solitaire counts against published numbers, against a naive oracle, and cut into parts in every way.

#[path = "oracle/peg.rs"]
mod oracle;

use grundy_games::peg::{Finish, Geometry, Hole, Problem};
use grundy_search::engine::Limits;
use grundy_search::peg::{
    CountError, Counted, Counter, Entry, LevelSize, Means, Method, RunError, count, count_within, encode_run,
    merge,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Centre to centre on the English board, as published by Bill Butler.
const ENGLISH: u128 = 40_861_647_040_079_968;

/// Runs something without limits; gives its result and the boards it reports.
fn free<R>(work: impl FnOnce(&Limits<'_>) -> R) -> (R, u64) {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let result = work(&Limits::endless(&stop, &progress));
    (result, progress.into_inner())
}

fn problem(position: &str, question: &str) -> Problem {
    Problem::from_text("", position, question).expect("the test gives a problem")
}

fn english() -> Problem {
    Problem::named("english", None, None).expect("the board has this name")
}

/// The columns of a data file's rows: no comments, no header.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect())
}

/// The number after `expand` and `merge` of whole levels, one after the other.
fn count_whole(counter: &Counter) -> u128 {
    let expand = |level: &[Entry]| {
        let runs = free(|limits| counter.expand(level, 1, limits)).0.expect("small counts do not overflow");
        merge(runs).expect("small counts do not overflow")
    };
    let mut levels = vec![counter.first()];
    for number in 0..counter.levels() as usize {
        levels.push(expand(&levels[number]));
    }
    let last = &levels[counter.levels() as usize];
    let near = counter.near_level().map_or(&[][..], |near| &levels[near as usize]);
    let share = counter.share(near, last).expect("small counts do not overflow");
    share.iter().map(|(_, ways)| ways).sum()
}

#[test]
fn english_by_halves() {
    let problem = english();
    let counter = Counter::new(&problem);
    assert_eq!((counter.method(), counter.near_level(), counter.levels()), (Method::Half, Some(15), 16));
    assert_eq!(free(|limits| count(&problem, 2, limits)), (Ok(ENGLISH), 6_256_332));
}

/// Counts with a counter in one process.
fn within(counter: &Counter, threads: usize, memory: usize) -> Result<Counted, CountError> {
    free(|limits| count_within(counter, Means { memory, ..Means::threads(threads) }, limits)).0
}

/// The levels of the published table.
fn english_levels() -> Vec<LevelSize> {
    let number_of = |text: &str| text.parse::<u64>().expect("the file has numbers");
    rows(include_str!("data/peg-english.tsv"))
        .map(|row| LevelSize { orbits: number_of(row[2]), boards: number_of(row[1]) })
        .collect()
}

#[test]
fn english_joined_at_any_level() {
    let levels = english_levels();
    for (near, made) in [(10, 21), (13, 18), (15, 16)] {
        let counter = Counter::joined(&english(), near).expect("the finish is the complement");
        let counted = within(&counter, 2, usize::MAX).expect("the counts fit");
        assert_eq!(counted.total, ENGLISH, "joined at level {near}");
        assert_eq!(counted.levels, levels[..made], "joined at level {near}");
    }
}

#[test]
fn english_in_one_process_by_the_full_method() {
    let counted = within(&Counter::full(&english()), 2, usize::MAX).expect("the counts fit");
    let centre = english().geometry().hole_named("d4").expect("a hole");
    assert_eq!((counted.total, counted.finishes), (ENGLISH, vec![(centre, ENGLISH)]));
    assert_eq!(counted.levels, english_levels());
}

#[test]
fn english_in_little_memory() {
    let counter = Counter::new(&english());
    let counted = within(&counter, 2, 100 << 20).expect("enough, step by step");
    assert_eq!((counted.total, &counted.levels[..]), (ENGLISH, &english_levels()[..16]));
    let bytes = 16 << 20;
    assert_eq!(within(&counter, 2, bytes), Err(CountError::Memory { bytes }));
}

/// The triangle of 15 holes from each start to each finish, in one process and by the steps of a distributed count.
#[test]
fn triangle_of_fifteen_from_each_start() {
    let mut totals = Vec::new();
    for start in Problem::named("triangle5", None, None).expect("a triangle").geometry().holes() {
        let named = |finish: Option<Hole>| {
            let shape = Problem::named("triangle5", None, None).expect("a triangle").geometry().clone();
            let finish = finish.map_or("any".to_owned(), |hole| shape.name(hole));
            Problem::named("triangle5", Some(&shape.name(start)), Some(&finish)).expect("a triangle")
        };
        let problem = named(None);
        let grid = oracle::grid(&problem.geometry().picture(problem.start()));
        let naive = |finish| oracle::solutions_on(oracle::TRIANGULAR, &grid, finish, &mut HashMap::new());
        let any = within(&Counter::new(&problem), 2, usize::MAX).expect("the counts fit");
        let expected: Vec<_> = problem
            .geometry()
            .holes()
            .map(|hole| (hole, naive(Some(problem.geometry().cell(hole)))))
            .filter(|(_, solutions)| *solutions > 0)
            .collect();
        assert_eq!(any.finishes, expected, "from {start:?}");
        assert_eq!(any.total, naive(None), "from {start:?}");
        assert_eq!(count_whole(&Counter::new(&problem)), any.total, "from {start:?}");
        totals.push(any.total);
        for hole in problem.geometry().holes() {
            let problem = named(Some(hole));
            let counter = Counter::new(&problem);
            assert_eq!(counter.method(), if hole == start { Method::Half } else { Method::Full });
            let solutions = naive(Some(problem.geometry().cell(hole)));
            assert_eq!(within(&counter, 1, usize::MAX).map(|counted| counted.total), Ok(solutions));
            assert_eq!(count_whole(&counter), solutions);
            for near in (0..8).take_while(|_| hole == start) {
                let counter = Counter::joined(&problem, near).expect("the finish is the complement");
                assert_eq!(
                    within(&counter, 1, usize::MAX).map(|counted| counted.total),
                    Ok(solutions),
                    "{near}"
                );
                assert_eq!(count_whole(&counter), solutions, "{near}");
            }
        }
    }
    // From a corner, as published in many places.
    assert_eq!(totals[0], 29_760);
    // Reading order; symmetric starts agree.
    assert_eq!(
        totals,
        [
            29_760, 14_880, 14_880, 85_258, 1_550, 85_258, 14_880, 1_550, 1_550, 14_880, 29_760, 14_880,
            85_258, 14_880, 29_760
        ]
    );
}

#[test]
fn english_level_by_level() {
    let counter = Counter::full(&english());
    let mut level = counter.first();
    for (number, row) in rows(include_str!("data/peg-english.tsv")).enumerate() {
        let [jumps, boards, orbits] = row[..] else { panic!("a row of three columns, not {row:?}") };
        let number_of = |text: &str| text.parse::<u64>().expect("the file has numbers");
        assert_eq!(number_of(jumps), number as u64);
        let expected = LevelSize { orbits: number_of(orbits), boards: number_of(boards) };
        assert_eq!(counter.level_size(&level), expected, "after {number} jumps");
        if number == 31 {
            let centre = english().geometry().hole_named("d4").expect("a hole");
            assert_eq!(counter.share(&[], &level), Ok(vec![(centre, ENGLISH)]));
            return;
        }
        let runs = free(|limits| counter.expand(&level, 1, limits)).0.expect("the counts fit");
        level = merge(runs).expect("the counts fit");
    }
    panic!("the file ends before level 31");
}

#[test]
fn class_rules_out_the_european_centre() {
    let european = Problem::named("european", None, None).expect("the board has this name");
    assert_eq!(free(|limits| count(&european, 1, limits)), (Ok(0), 0));
    let elsewhere = Problem::named("european", None, Some("any")).expect("the board has this name");
    assert_eq!(Counter::new(&elsewhere).first(), []);
}

/// Every start of one hole on every shape of three rows and four columns.
#[test]
fn half_agrees_with_full_on_all_small_shapes() {
    let (mut problems, mut solvable) = (0, 0);
    for shape in 1u32..1 << 12 {
        let cells = (0..12).filter(|cell| shape >> cell & 1 == 1);
        for empty in cells {
            let cell = |cell: u32| match (shape >> cell & 1 == 1, cell == empty) {
                (false, _) => '#',
                (true, true) => '.',
                (true, false) => 'o',
            };
            let row = |y: u32| (4 * y..4 * y + 4).map(cell).collect::<String>();
            let position = [row(0), row(1), row(2)].join("|");
            let finish = format!("finish {}{}", char::from(b'a' + (empty % 4) as u8), empty / 4 + 1);
            let Ok(problem) = Problem::from_text("", &position, &finish) else {
                assert_eq!(shape.count_ones(), 1, "{position} has a peg");
                continue;
            };
            assert!(problem.is_complement());
            if !problem.class_allows() {
                continue;
            }
            let (half, full) = (Counter::new(&problem), Counter::full(&problem));
            assert_eq!((half.method(), full.method()), (Method::Half, Method::Full));
            let solutions = count_whole(&full);
            assert_eq!(count_whole(&half), solutions, "{position} {finish}");
            for near in 0..6 {
                let counter = Counter::joined(&problem, near).expect("the finish is the complement");
                let counted = within(&counter, 1, usize::MAX).map(|counted| counted.total);
                assert_eq!(counted, Ok(solutions), "{position} {finish}, joined at {near}");
            }
            problems += 1;
            solvable += u32::from(solutions > 0);
        }
    }
    assert!(problems > 1000 && solvable > 30, "{solvable} of {problems} problems have solutions");
}

/// A random position on at most five rows and columns, with a random finish.
fn small_problem() -> impl Strategy<Value = Problem> {
    let cell = || prop_oneof![5 => Just('o'), 2 => Just('.'), 1 => Just('#')];
    (1usize..=5, 1usize..=5)
        .prop_flat_map(move |(width, height)| {
            let row = prop::collection::vec(cell(), width).prop_map(String::from_iter);
            (prop::collection::vec(row, height), any::<prop::sample::Index>())
        })
        .prop_filter("few pegs, for the oracle's sake", |(rows, _)| {
            (1..=11).contains(&rows.concat().matches('o').count())
        })
        .prop_map(|(rows, finish)| {
            let position = rows.join("|");
            let (geometry, _) = Geometry::parse(&position).expect("a picture with a peg");
            let names: Vec<_> =
                geometry.holes().map(|hole| geometry.name(hole)).chain(["any".to_owned()]).collect();
            problem(&position, &format!("finish {}", finish.get(&names)))
        })
}

/// A board with some dozen levels.
fn medium_problem() -> impl Strategy<Value = Problem> {
    prop::sample::select(vec![
        ("ooo|oo.|ooo|ooo", "finish any"),
        ("oo.oo|ooooo|ooooo", "finish c1"),
        ("oooo|.ooo|oooo|oooo", "finish any"),
        ("ooo##|ooo##|oo.oo|ooooo", "finish any"),
        ("ooo|ooo|o.o|o.o|ooo", "finish any"),
        (".oooooo|ooooooo|ooooooo", "finish a1"),
    ])
    .prop_map(|(position, question)| problem(position, question))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn counts_agree_with_the_oracle(problem in small_problem(), threads in 0usize..4) {
        let start = oracle::grid(&problem.geometry().picture(problem.start()));
        let finish = match problem.finish() {
            Finish::Hole(hole) => Some(problem.geometry().cell(hole)),
            Finish::Any => None,
        };
        let expected = oracle::solutions(&start, finish, &mut HashMap::new());
        prop_assert_eq!(free(|limits| count(&problem, threads, limits)).0, Ok(expected));
        let full = within(&Counter::full(&problem), threads, usize::MAX)?;
        for hole in problem.geometry().holes() {
            let cell = problem.geometry().cell(hole);
            let wanted = finish.is_none_or(|finish| finish == cell);
            let solutions = oracle::solutions(&start, Some(cell), &mut HashMap::new());
            let found = full.finishes.iter().find(|(finish, _)| *finish == hole).map_or(0, |(_, ways)| *ways);
            prop_assert_eq!(found, if wanted { solutions } else { 0 });
        }
        prop_assert_eq!(full.total, expected);
        prop_assert_eq!(count_whole(&Counter::full(&problem)), expected);
    }

    #[test]
    fn levels_agree_with_the_oracle(problem in small_problem()) {
        let counter = Counter::full(&problem);
        let mut level = counter.first();
        if !problem.class_allows() {
            prop_assert_eq!(level, []);
            return Ok(());
        }
        for expected in oracle::levels(&oracle::grid(&problem.geometry().picture(problem.start()))) {
            let mut orbits: BTreeMap<u64, (u64, u128)> = BTreeMap::new();
            for (picture, ways) in &expected {
                let (_, board) = Geometry::parse(picture).expect("the oracle draws pictures");
                let orbit = orbits.entry(counter.canonical(board)).or_default();
                *orbit = (orbit.0 + 1, orbit.1 + ways);
            }
            let ways: Vec<Entry> = orbits.iter().map(|(&board, &(_, ways))| Entry { board, ways }).collect();
            prop_assert_eq!(&level, &ways);
            for (entry, (boards, _)) in level.iter().zip(orbits.values()) {
                prop_assert_eq!(counter.level_size(&[*entry]), LevelSize { orbits: 1, boards: *boards });
            }
            level = free(|limits| counter.expand(&level, 1, limits)).0?.remove(0);
        }
        prop_assert_eq!(level, []);
    }

    /// A distributed count: parts change from level to level, sources arrive in any order and as bytes.
    #[test]
    fn any_split_gives_the_same_answer(
        problem in medium_problem(),
        parts in prop::collection::vec(1u32..9, 24),
        order in any::<u64>(),
    ) {
        let counter = Counter::new(&problem);
        let mut order = TestOrder(order);
        let mut level = vec![counter.first()];
        let mut joined = None;
        let expected = count_whole(&counter);
        for (number, &parts) in (0..counter.levels()).zip(&parts) {
            // The two levels of a join must be cut alike.
            let parts = if counter.near_level().is_some_and(|near| number + 1 >= near) { 5 } else { parts };
            if counter.near_level() == Some(number) {
                joined = Some(level.clone());
            }
            order.shuffle(&mut level);
            let mut arrived = vec![Vec::new(); parts as usize];
            for source in level {
                let (near, far) = source.split_at(order.below(source.len() + 1));
                for piece in [near, far] {
                    let runs = free(|limits| counter.expand(piece, parts, limits)).0?;
                    for (part, run) in runs.iter().enumerate() {
                        arrived[part].push(counter.decode_run(&encode_run(run))?);
                    }
                }
            }
            for (part, runs) in arrived.iter_mut().enumerate() {
                order.shuffle(runs);
                for entry in runs.iter().flatten() {
                    prop_assert_eq!(counter.partition(entry.board, parts) as usize, part);
                }
            }
            level = arrived.into_iter().map(merge).collect::<Result<_, _>>()?;
        }
        let shares = match counter.near_level() {
            None => level.iter().map(|part| counter.share(&[], part)).collect::<Result<Vec<_>, _>>()?,
            Some(_) => {
                let near = joined.unwrap_or_else(|| level.clone());
                near.iter().zip(&level).map(|(near, far)| counter.share(near, far)).collect::<Result<Vec<_>, _>>()?
            }
        };
        prop_assert_eq!(shares.iter().flatten().map(|(_, ways)| ways).sum::<u128>(), expected);
    }

    #[test]
    fn parts_are_shared_by_orbits_and_complements(
        problem in prop_oneof![small_problem(), medium_problem(), Just(english())],
        board in any::<u64>(),
        parts in any::<u32>(),
    ) {
        let counter = Counter::new(&problem);
        let full = problem.geometry().full();
        let board = board & full;
        let part = counter.partition(board, parts);
        prop_assert!(part < parts.max(1));
        for image in problem.orbits().images(board).0 {
            prop_assert_eq!(counter.partition(image, parts), part);
            prop_assert_eq!(counter.partition(full ^ image, parts), part);
        }
    }

    #[test]
    fn runs_survive_bytes_and_damage_does_not(
        boards in prop::collection::vec((1u64..1 << 33, 1u128.., 0u32..128), 0..40),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let counter = Counter::new(&english());
        let run: BTreeMap<u64, u128> = boards
            .iter()
            .map(|&(board, ways, shift)| (counter.canonical(board), (ways >> shift).max(1)))
            .collect();
        let run: Vec<Entry> = run.into_iter().map(|(board, ways)| Entry { board, ways }).collect();
        let bytes = encode_run(&run);
        prop_assert_eq!(counter.decode_run(&bytes), Ok(run));

        let shorter = counter.decode_run(&bytes[..cut.index(bytes.len())]);
        prop_assert!(
            matches!(shorter, Err(RunError::Truncated { .. } | RunError::TooManyEntries { .. })),
            "a run cut short gave {:?}", shorter
        );
        let mut damaged = bytes;
        for (at, bits) in damage {
            let at = at.index(damaged.len());
            damaged[at] ^= bits;
        }
        // Damage that makes another well formed run is for the checksum around it to find.
        if let Ok(other) = counter.decode_run(&damaged) {
            prop_assert_eq!(encode_run(&other), damaged);
        }
    }

    #[test]
    fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(run) = Counter::new(&english()).decode_run(&bytes) {
            prop_assert_eq!(encode_run(&run), bytes);
        }
    }
}

/// A deterministic order from a seed that proptest chose and prints.
struct TestOrder(u64);

impl TestOrder {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[test]
fn solvable_boards_agree_with_the_oracle() {
    for (position, question, finish) in [
        (".ooo|oooo|oooo", "finish a1", Some((0, 0))),
        ("o.oo|oooo|oooo", "finish b1", Some((1, 0))),
        ("oo.oo|ooooo|ooooo", "finish c1", Some((2, 0))),
        ("oooo|.ooo|oooo|oooo", "finish any", None),
        ("#.o#|oooo|oooo|#oo#", "finish any", None),
        ("ooo##|ooo##|oo.oo|ooooo", "finish any", None),
    ] {
        let expected = oracle::solutions(&oracle::grid(position), finish, &mut HashMap::new());
        assert!(expected > 0, "{position} has solutions");
        let found = free(|limits| count(&problem(position, question), 2, limits)).0;
        assert_eq!(found, Ok(expected), "{position} {question}");
    }
}

#[test]
fn parts_never_change() {
    let counter = Counter::new(&english());
    for row in rows(include_str!("data/peg-parts.tsv")) {
        let (_, board) = Geometry::parse(row[0]).expect("the file has pictures");
        let [parts, part] =
            [row[1], row[2]].map(|number| number.parse::<u32>().expect("the file has numbers"));
        assert_eq!(counter.partition(board, parts), part, "{} in {parts} parts", row[0]);
    }
}

#[test]
fn parts_are_balanced() {
    let counter = Counter::new(&english());
    let level = (0..10).fold(counter.first(), |level, _| {
        free(|limits| counter.expand(&level, 1, limits)).0.expect("the counts fit").remove(0)
    });
    let runs = free(|limits| counter.expand(&level, 7, limits)).0.expect("the counts fit");
    let mean = runs.iter().map(Vec::len).sum::<usize>() / 7;
    for run in &runs {
        assert!(run.len().abs_diff(mean) < mean / 20, "a part of {} boards, on average {mean}", run.len());
    }
}

#[test]
fn bad_runs() {
    let counter = Counter::new(&problem("oo.o", "finish any"));
    for row in rows(include_str!("data/peg-runs.tsv")) {
        let digits: Vec<u8> =
            row[0].chars().map(|c| c.to_digit(16).expect("the file has hex") as u8).collect();
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let error = counter.decode_run(&bytes).expect_err(row[0]);
        assert_eq!(error.to_string(), row[1], "{}", row[0]);
    }
    // A run of the mirror image of the canonical board.
    let symmetric = Counter::new(&problem("o.o", "finish any"));
    let mirrored = symmetric.decode_run(&encode_run(&[Entry { board: 0b110, ways: 1 }]));
    assert_eq!(mirrored, Err(RunError::NotCanonical { entry: 0, board: 0b110, canonical: 0b011 }));
}

#[test]
fn counts_beyond_128_bits_are_errors() {
    // Two jumps lead to the middle board: one from either side.
    let counter = Counter::new(&problem("oo.|###|oo.", "finish any"));
    let entry = |board, ways| Entry { board, ways };
    let (over, most) = (u128::MAX / 2 + 1, u128::MAX);
    let both =
        |ways| free(|limits| counter.expand(&[entry(0b100_011, ways), entry(0b011_100, ways)], 1, limits)).0;
    assert_eq!(both(over), Err(CountError::BoardOverflow { board: 0b100_100 }));
    assert_eq!(both(most / 2), Ok(vec![vec![entry(0b100_100, most - 1)]]));

    let runs = |a, b| vec![vec![entry(1, a)], vec![], vec![entry(1, b), entry(2, 1)]];
    assert_eq!(merge(runs(most, 1)), Err(CountError::BoardOverflow { board: 1 }));
    assert_eq!(merge(runs(most - 1, 1)), Ok(vec![entry(1, most), entry(2, 1)]));

    let half = Counter::new(&problem("oo.", "finish c1"));
    let join = |near, far| half.join(&[entry(0b011, near)], &[entry(0b100, far)]);
    assert_eq!(join(1 << 64, 1 << 64), Err(CountError::TotalOverflow));
    assert_eq!(join(1 << 64, 1 << 63), Ok(1 << 127));
}

#[test]
fn uneven_counts_are_refused() {
    let half = Counter::new(&problem("oo.oo", "finish c1"));
    let (near, far) = (Entry { board: 0b00110, ways: 2 }, Entry { board: 0b10011, ways: 3 });
    let far = Entry { board: half.canonical(far.board), ..far };
    let near = Entry { board: half.canonical(0b11111 ^ far.board), ..near };
    let expected = CountError::Uneven { board: far.board, ways: 3, orbit: 2 };
    assert_eq!(half.join(&[near], &[far]), Err(expected));
    assert_eq!(half.join(&[near], &[Entry { ways: 4, ..far }]), Ok(4));
}

#[test]
fn a_count_can_be_stopped() {
    let (stop, progress) = (AtomicBool::new(true), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    assert_eq!(count(&english(), 1, &limits), Err(CountError::Stopped));
    assert_eq!(progress.into_inner(), 0);
}

#[test]
fn tiny_problems() {
    let answer = |position, question| free(|limits| count(&problem(position, question), 1, limits)).0;
    for (position, question, expected) in [
        ("o", "finish a1", 1),
        (".o", "finish any", 1),
        (".o", "finish b1", 1),
        (".o", "finish a1", 0),
        ("o.o", "finish any", 0),
        ("oo.", "finish c1", 1),
        ("oooo", "finish any", 0),
        ("oo.o", "finish any", 1),
    ] {
        assert_eq!(answer(position, question), Ok(expected), "{position} {question}");
    }
}
