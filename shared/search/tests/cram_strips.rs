//! Classes of ends and pair tables against solvers written straight from the rules.

#[path = "oracle/cram.rs"]
mod oracle;
mod support;

use grundy_games::cram::{CramClaims, CramPlan, Position, Problem};
use grundy_games::plan::Answer;
use grundy_search::cram::classes::Classes;
use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{Size, StripTable, StripTables, sizes};
use grundy_search::cram::{CramEngine, CramTree};
use grundy_search::dfpn::Tree;
use grundy_search::table::{Namespace, Table};
use oracle::Oracle;
use proptest::prelude::*;
use std::sync::Arc;
use support::{MapTable, built};

const NAMESPACE: Namespace = Namespace(1);

/// Columns of a strip, each a bit for each row, the first row lowest.
type Columns = Vec<u128>;

fn picture(columns: &[u128], height: u32) -> String {
    let row =
        |row: u32| columns.iter().map(|column| if column >> row & 1 == 1 { '.' } else { '#' }).collect();
    (0..height).map(row).collect::<Vec<String>>().join("|")
}

/// The first column lowest.
fn word(columns: &[u128], height: u32) -> u128 {
    columns.iter().rev().fold(0, |word, column| word << height | column)
}

fn classes(height: u32, columns: usize) -> Classes {
    let mut classes = Classes::new(height).expect("1 to 7 rows");
    while classes.columns() < columns {
        assert!(classes.grow());
    }
    classes
}

#[test]
fn there_are_as_many_classes_as_were_found_before() {
    let known: [(u32, &[usize]); 4] = [
        (1, &[2, 3, 4, 5, 6, 7, 8, 9]),
        (3, &[8, 39, 131, 493, 2_031, 8_649, 37_713]),
        (4, &[16, 143, 860, 6_577]),
        (5, &[32, 516, 5_540]),
    ];
    for (height, counts) in known {
        let classes = classes(height, counts.len());
        let found: Vec<usize> = (1..=counts.len()).map(|columns| classes.len(columns)).collect();
        assert_eq!(found, counts, "{height} rows");
    }
    assert!(Classes::new(0).is_none() && Classes::new(8).is_none());
}

#[test]
fn classes_are_made_of_smaller_ones() {
    for (height, columns) in [(3, 5), (5, 2), (7, 1)] {
        let classes = classes(height, columns);
        for class in 0..classes.len(columns) as u32 {
            let (cells, offset, word) = classes.representative(class);
            assert_eq!(word.count_ones(), cells);
            assert!(classes.inner(class).iter().all(|option| option.class() < class));
            // The representative read from its first column on.
            let mask = (1 << height) - 1;
            let columns: Columns =
                (0..columns as u32).rev().map(|c| u128::from(word >> (c * height)) & mask).collect();
            let end = classes.of_word(self::word(&columns, height), columns.len());
            assert_eq!((end.class(), end.offset()), (class, offset));
            let flip = classes.flip(class);
            let back = classes.flip(flip.class()).shifted(flip.offset());
            assert_eq!((back.class(), back.offset()), (class, 0), "a flip undone");
        }
    }
}

/// The nimbers of all sets of cells of a grid, bit `column * height + row` for each cell.
fn all_nimbers(height: u32, columns: u32) -> Vec<u8> {
    let cells = height * columns;
    let across = (0..cells.saturating_sub(height)).map(|cell| 1usize << cell | 1 << (cell + height));
    let upright = (0..cells).filter(|cell| (cell + 1) % height != 0).map(|cell| 3usize << cell);
    let dominoes: Vec<usize> = across.chain(upright).collect();
    let mut nimbers: Vec<u8> = Vec::with_capacity(1 << cells);
    for set in 0..1usize << cells {
        let placed = dominoes.iter().filter(|domino| set & **domino == **domino);
        let reached = placed.fold(0u32, |reached, domino| reached | 1 << nimbers[set ^ domino]);
        nimbers.push(reached.trailing_ones() as u8);
    }
    nimbers
}

/// Every set of cells of a grid by every way to cut it in two.
#[test]
fn pair_tables_have_every_nimber() {
    for (height, columns) in [(1u32, 16usize), (2, 8), (3, 5), (3, 6), (4, 4), (5, 3), (6, 3), (7, 2)] {
        let classes = classes(height, columns.div_ceil(2));
        let expected = all_nimbers(height, columns as u32);
        let sizes = [(columns.div_ceil(2), columns / 2), (columns / 2, columns.div_ceil(2))];
        for (left, right) in sizes {
            let pairs = PairTable::build(&classes, left, right, 1);
            assert_eq!(pairs.bytes(), classes.len(left) * classes.len(right));
            for (cells, nimber) in expected.iter().enumerate() {
                let found = pairs.of_strip(&classes, cells as u128, columns);
                assert_eq!(found, *nimber, "{height} rows, {left} + {right} columns, cells {cells:b}");
            }
            let wrong = (0..pairs.bytes()).find(|pair| !pairs.is_right(&classes, *pair));
            assert_eq!(wrong, None, "{height} rows, {left} + {right} columns");
        }
    }
}

/// Whatever entry is changed, the rules say otherwise.
#[test]
fn a_wrong_entry_is_seen() {
    let classes = classes(3, 3);
    let mut bytes = vec![0; PairTable::bytes_for(&classes, 3, 2)];
    assert!(PairTable::fill(&classes, 3, 2, &mut bytes, 1, &|_| true));
    assert!(PairTable::of_bytes(&classes, 3, 2, Box::new(bytes[1..].to_vec())).is_none());
    for pair in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[pair] ^= 1 << (pair % 4);
        let pairs =
            PairTable::of_bytes(&classes, 3, 2, Box::new(wrong)).expect("as many bytes as there are pairs");
        assert!(!pairs.is_right(&classes, pair), "pair {pair}");
    }
}

#[test]
fn pair_tables_keep_to_their_bytes_and_columns() {
    let classes = classes(3, 5);
    for (columns, bytes, expected) in [
        (10, usize::MAX, (5, 5)),
        (9, usize::MAX, (5, 4)),
        (99, 2_031 * 2_031 - 1, (5, 4)),
        (99, 8 * 8, (1, 1)),
        (4, 39 * 39, (2, 2)),
        (99, 0, (0, 0)),
    ] {
        assert_eq!(PairTable::size(&classes, columns, bytes), expected, "{columns} columns, {bytes} bytes");
    }
    // A row of 62 cells is the longest that a table takes.
    let row = self::classes(1, 62);
    assert_eq!(PairTable::build(&row, 62, 62, 1).columns(), 62);
    assert_eq!(PairTable::size(&row, 99, usize::MAX), (31, 31));
}

#[test]
fn tables_of_a_board_keep_to_its_bytes() {
    for (rows, columns, bytes) in [(3, 16, 1 << 20), (5, 9, 1 << 20), (7, 11, 1 << 16), (1, 128, 1 << 10)] {
        let tables: Vec<StripTable> =
            sizes(rows, columns, bytes).map(|size| StripTable::build(size).expect("1 to 7 rows")).collect();
        assert_eq!(tables.len(), rows as usize);
        assert!(tables.iter().map(|table| table.pairs.bytes()).sum::<usize>() <= bytes);
        assert!(tables.iter().all(|table| table.pairs.columns() <= columns as usize * 3 / 4 + 1));
        assert!(tables[rows as usize - 1].pairs.columns() >= 2, "{rows}x{columns}");
    }
    assert_eq!(sizes(9, 14, 1 << 20).count(), 7);
}

/// A strip of 3 to 7 rows cut into an end and what follows, of up to `cells_max` cells.
fn cut_strips(cells_max: u32) -> impl Strategy<Value = (u32, Columns, Columns)> {
    (3..=7u32, 1..=4usize, 1..=4usize).prop_flat_map(move |(height, end, rest)| {
        let end = if height > 4 { end.min(2) } else { end };
        let column = || (0..1u128 << height, 0..1u128 << height).prop_map(|(a, b)| a | b);
        let end = prop::collection::vec(column(), end);
        (Just(height), end, prop::collection::vec(column(), rest)).prop_map(move |(height, end, mut rest)| {
            let cells = |columns: &[u128]| columns.iter().map(|column| column.count_ones()).sum::<u32>();
            while rest.len() > 1 && cells(&end) + cells(&rest) > cells_max {
                rest.pop();
            }
            (height, end, rest)
        })
    })
}

/// Pictures of boards of up to `cells_max` empty cells, some in tall boxes.
fn pictures(cells_max: usize) -> impl Strategy<Value = String> {
    (1..=9usize, 1..=12usize, 0.55..0.95f64)
        .prop_filter("too many cells", |(rows, columns, _)| rows * columns <= 48)
        .prop_flat_map(|(rows, columns, empty)| {
            prop::collection::vec(prop::collection::vec(prop::bool::weighted(empty), columns), rows)
        })
        .prop_map(move |rows| {
            let mut left = cells_max;
            let mut cell = |empty: &bool| {
                let kept = *empty && left > 0;
                left -= usize::from(kept);
                if kept { '.' } else { '#' }
            };
            let mut row = |cells: &Vec<bool>| cells.iter().map(&mut cell).collect();
            rows.iter().map(&mut row).collect::<Vec<String>>().join("|")
        })
}

fn nimber(engine: &mut CramEngine, picture: &str) -> Answer {
    let problem = Problem::from_text("", picture, "nimber").expect("the picture is well formed");
    support::answer(&CramPlan::new(&problem), engine).expect("there is no budget").0
}

proptest! {
    // Failures print their shrunk case; there is no file of them to keep.
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever follows, an end's representative and offset make the same nimber.
    #[test]
    fn an_end_equals_its_representative((height, end, rest) in cut_strips(16)) {
        let classes = classes(height, end.len());
        let found = classes.of_word(word(&end, height), end.len());
        let (_, offset, simple) = classes.representative(found.class());
        let mask = (1 << height) - 1;
        let simple: Columns =
            (0..end.len() as u32).rev().map(|c| u128::from(simple >> (c * height)) & mask).collect();
        let mut oracle = Oracle::default();
        let mut of = |end: &[u128]| oracle.nimber(&picture(&[end, &rest].concat(), height));
        prop_assert_eq!(of(&end), of(&simple) ^ u32::from(found.offset() ^ offset));
    }

    /// With the classes and no pair table, with small and with large pair tables, and plain.
    #[test]
    fn engines_agree_with_the_oracle(picture in pictures(22)) {
        let expected = Answer::Nimber { nimber: Oracle::default().nimber(&picture) };
        for bytes in [None, Some(0), Some(1 << 8), Some(1 << 14), Some(1 << 20)] {
            let table = Arc::new(MapTable::default());
            let mut engine = match bytes {
                None => CramEngine::plain(NAMESPACE, table),
                Some(bytes) => CramEngine::new(NAMESPACE, table, built(bytes)),
            };
            prop_assert_eq!(&nimber(&mut engine, &picture), &expected, "{:?} bytes", bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Boards of up to 128 cells, their last cell among them, three eighths of them empty: of half, regions are now and then so large
    /// that the plain engine takes minutes.
    #[test]
    fn engines_agree_on_large_boards(
        (rows, columns) in prop::sample::select(vec![(1, 128), (2, 64), (3, 42), (4, 32), (5, 25), (6, 21), (7, 18)]),
        cells in any::<[u128; 3]>(),
    ) {
        let empty = cells[0] & (cells[1] | cells[2]) | 1 << (rows * columns - 1);
        let cell = |cell: usize| if empty >> cell & 1 == 1 { '.' } else { '#' };
        let row = |row: usize| (0..columns).map(|column| cell(row * columns + column)).collect();
        let picture = (0..rows).map(row).collect::<Vec<String>>().join("|");
        let mut plain = CramEngine::plain(NAMESPACE, Arc::new(MapTable::default()));
        let expected = nimber(&mut plain, &picture);
        for bytes in [0, 1 << 14, 1 << 20] {
            let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(bytes));
            prop_assert_eq!(&nimber(&mut engine, &picture), &expected, "{} bytes", bytes);
        }
    }
}

#[test]
fn boards_of_more_rows_than_strips_have_are_searched_plainly() {
    // A row of 22 cells bent in a box of 8 x 8.
    let expected = Answer::Nimber { nimber: Oracle::default().nimber(&".".repeat(22)) };
    for picture in [
        "........|.#######|.#######|.#######|.#######|.#######|.#######|........",
        "........|#######.|#######.|#######.|#######.|#######.|#######.|........",
        ".######.|.######.|.######.|.######.|.######.|.######.|.######.|........",
    ] {
        let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(1 << 27));
        assert_eq!(nimber(&mut engine, picture), expected, "{picture}");
    }
}

/// An engine that has learned from small boards answers large ones, and the other way round.
#[test]
fn boards_of_any_order_share_an_engine() {
    let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(1 << 27));
    for (board, expected) in
        [("3x5", 1), ("3x11", 0), ("5x4", 2), ("3x10", 2), ("4x7", 3), ("3x6", 4), ("8x1", 1), ("5x6", 2)]
    {
        assert_eq!(nimber(&mut engine, board), Answer::Nimber { nimber: expected }, "{board}");
    }
}

/// One table, whatever is asked for.
struct Given(Arc<StripTable>);

impl StripTables for Given {
    fn bytes(&self) -> usize {
        self.0.pairs.bytes()
    }

    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>> {
        (size.height == self.0.classes.height()).then(|| self.0.clone())
    }
}

/// A table that covers the board leaves nothing to search, one that covers little changes no answer.
#[test]
fn a_given_table_is_used() {
    for (pair_columns, searches) in [(7, false), (2, true)] {
        let size = Size { height: 3, class_columns: 4, ends: usize::MAX, pair_columns, bytes: usize::MAX };
        let table = Arc::new(StripTable::build(size).expect("1 to 7 rows"));
        assert_eq!(table.pairs.columns(), pair_columns);
        let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), Arc::new(Given(table)));
        let problem = Problem::from_text("", "3x7", "nimber").expect("the position is well formed");
        let (answer, nodes) =
            support::answer(&CramPlan::new(&problem), &mut engine).expect("there is no budget");
        assert_eq!((answer, nodes > 0), (Answer::Nimber { nimber: 1 }, searches), "{pair_columns} columns");
    }
}

/// The keys in the examples of `docs/formats.md`, and which of them the engine of the workers uses.
#[test]
fn documented_keys_are_right() {
    let documented = include_str!("../../../docs/formats.md");
    let sum = "3x5".parse::<Position>().expect("the board is well formed").sum();
    let claim = CramClaims::claim(&sum, 0);
    let strips = CramTree::with_strips(Namespace(0));
    let strip = strips.key(&strips.state(&claim).expect("well formed")).expect("one component");
    let plain = CramTree::new(Namespace(0));
    let component = plain.key(&plain.state(&claim).expect("well formed")).expect("one component");
    for (name, key) in [("3x5 board + *0, as a strip", strip), ("the same as a component", component)] {
        let line = documented.lines().find(|line| line.contains(name)).expect("the example is there");
        let words = format!("words {:016x} {:016x}   rest {:04x}", key.words[0], key.words[1], key.rest());
        assert!(line.contains(&words), "{words} is not in: {line}");
    }
    let table = Arc::new(MapTable::default());
    let mut engine = CramEngine::new(Namespace(0), table.clone(), built(1 << 20));
    nimber(&mut engine, "3x5");
    assert!(table.probe(&strip).is_some() && table.probe(&component).is_none());
}

/// Strips and components in one table do not meet.
#[test]
fn keys_of_strips_are_not_those_of_components() {
    let (plain, strips) = (CramTree::new(NAMESPACE), CramTree::with_strips(NAMESPACE));
    let mut keys = std::collections::BTreeSet::new();
    let boards = ["1x17", "1x127", "2x9", "3x6", "3x42", "5x7", "7x18", "....|...#|..##"];
    for board in boards {
        let sum = board.parse::<Position>().expect("the board is well formed").sum();
        for heap in [0, 1, 127] {
            let claim = CramClaims::claim(&sum, heap);
            let state = strips.state(&claim).expect("the claim is well formed");
            assert_eq!(strips.claim(&state), claim);
            keys.insert(strips.key(&state).expect("one component"));
            let state = plain.state(&claim).expect("the claim is well formed");
            keys.insert(plain.key(&state).expect("one component"));
        }
    }
    assert_eq!(keys.len(), boards.len() * 6);
}
