//! Konane's notation, starts, jumps, canonical form and claims.

use grundy_games::claim::{Claim, ClaimRules, Subject};
use grundy_games::konane::{
    Board, Cell, KonaneClaims, KonanePlan, Position, Problem, Question, Side, Start, size_from_text,
};
use grundy_games::plan::{Answer, Knowledge, Outcome, Plan, Progress, Winner};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Failure = Box<dyn std::error::Error>;

/// (position, part of the error)
const BAD_POSITIONS: &[(&str, &str)] = &[
    ("", "the board is empty"),
    (" x", "the side to move"),
    ("| x", "the board is empty"),
    ("xo.o|.xo.", "the side to move is missing"),
    ("xo.o|.xo. y", "unexpected side to move 'y': expected x or o"),
    ("xo.o|.xo. xo", "unexpected side to move 'xo'"),
    ("xo.o|.x x", "row 2 has 2 cells: expected 4"),
    ("xo.o| x", "row 2 has 0 cells: expected 4"),
    ("xo.o|.xo.| x", "row 3 has 0 cells"),
    ("xo?o|.xo. x", "unexpected '?' in row 1, column 3"),
    ("xo.o .xo. x", "unexpected ' ' in row 1, column 5"),
    ("Xo.o|.xo. x", "unexpected 'X' in row 1, column 1"),
    ("xo.o|.xx. x", "a black stone on c2, a cell of white's colour"),
    ("xx", "a black stone on b1"),
    ("o... o", "a white stone on a1, a cell of black's colour"),
    ("é x", "unexpected 'é' in row 1, column 1"),
    (
        ".........|.........|.........|.........|.........|.........|.........|......... x",
        "8 rows and 9 columns is too big",
    ),
    ("6x6 x", "unexpected '6' in row 1, column 1"),
];

/// (size, start, part of the error)
const BAD_STARTS: &[(&str, &str, &str)] = &[
    ("6", "corner", "'6' is not a board size: expected rows and columns like 6x6"),
    ("6x", "corner", "not a board size"),
    ("x6", "corner", "not a board size"),
    ("+6x6", "corner", "not a board size"),
    ("-6x6", "corner", "not a board size"),
    ("6x6x6", "corner", "not a board size"),
    ("99999999999999999999x2", "corner", "not a board size"),
    ("4294967296x4294967296", "corner", "expected 1 to 64 cells"),
    ("0x6", "corner", "expected 1 to 64 cells"),
    ("9x8", "corner", "9 rows and 8 columns: expected 1 to 64 cells"),
    ("6x1", "corner", "the corner start needs two columns"),
    ("6x1", "center", "the center start needs two columns"),
    ("6x6", "middle", "unknown start 'middle': expected corner, center or two neighbouring cells"),
    ("6x6", "", "unknown start ''"),
    ("6x6", "b2,", "'' is not a cell: expected a column letter"),
    ("6x6", "b2,2c", "'2c' is not a cell"),
    ("6x6", "b2,c0", "'c0' is not a cell"),
    ("6x6", "b2,c+2", "'c+2' is not a cell"),
    ("6x6", "b2,é2", "'é2' is not a cell"),
    ("6x6", "b2,c2,d2", "'c2,d2' is not a cell"),
    ("6x6", "b2,b2", "b2 and b2 are not neighbours"),
    ("6x6", "b2,c3", "b2 and c3 are not neighbours"),
    ("6x6", "b2,d2", "b2 and d2 are not neighbours"),
    ("6x6", "f6,g6", "g6 is not on a board of 6 rows and 6 columns: its last cell is f6"),
    ("2x30", "ad2,ae2", "ae2 is not on a board of 2 rows and 30 columns: its last cell is ad2"),
];

/// (size, start, position)
const STARTS: &[(&str, &str, &str)] = &[
    ("2x2", "corner", "..|ox x"),
    ("4x4", "corner", "..xo|oxox|xoxo|oxox x"),
    ("4x4", "center", "xoxo|oxox|x..o|oxox x"),
    ("5x5", "center", "xoxox|oxoxo|x..ox|oxoxo|xoxox x"),
    ("3x4", "center", "xoxo|o..x|xoxo x"),
    ("4x4", "c1,c2", "xo.o|ox.x|xoxo|oxox x"),
    ("1x30", "z1,aa1", "xoxoxoxoxoxoxoxoxoxoxoxox..oxo x"),
    ("3x1", "a2,a3", "x|.|. x"),
];

/// (position, positions after its jumps)
const JUMPS: &[(&str, &[&str])] = &[
    ("xo.. x", &["..x. o"]),
    ("xo.. o", &[]),
    (".ox. o", &["...o x"]),
    ("xo#. x", &[]),
    ("xo.o. x", &["..xo. o", "....x o"]),
    ("xo.ox x", &["..xox o", "xox.. o"]),
    (".ox.x.. o", &["...ox.. x", ".....o. x"]),
    (".oxox.. o", &[".ox..o. x"]),
    ("xo.#.ox x", &["..x#.ox o", "xo.#x.. o"]),
    ("x|o|.|o|. x", &[".|.|x|o|. o", ".|.|.|.|x o"]),
    // A jump does not turn the corner, nor run on into the next row.
    ("xo.|.xo|... x", &["..x|.xo|... o"]),
    ("..xo|.... x", &[]),
    ("..x|o..|... x", &[]),
];

fn message(result: Result<impl Sized, impl std::fmt::Display>) -> String {
    result.err().map_or_else(|| "accepted".to_owned(), |error| error.to_string())
}

#[test]
fn bad_positions_are_explained() {
    for (text, part) in BAD_POSITIONS {
        let message = message(Position::from_text(text));
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

fn start(size: &str, start: &str) -> Result<Position, Failure> {
    let (rows, columns) = size_from_text(size)?;
    Ok(Position::start(rows, columns, start.parse()?, Side::Black)?)
}

#[test]
fn bad_starts_are_explained() {
    for (size, name, part) in BAD_STARTS {
        let message = message(start(size, name));
        assert!(message.contains(part), "{size} {name}: {message}");
    }
}

#[test]
fn starts_remove_the_right_stones() -> Result<(), Failure> {
    for (size, name, expected) in STARTS {
        assert_eq!(start(size, name)?.to_string(), *expected, "{size} {name}");
        assert_eq!(name.parse::<Start>()?.to_string(), *name);
    }
    Ok(())
}

#[test]
fn jumps_follow_the_rules() -> Result<(), Failure> {
    for (text, expected) in JUMPS {
        let position: Position = text.parse()?;
        let found: BTreeSet<String> = position.successors().map(|next| next.to_string()).collect();
        assert_eq!(found, expected.iter().map(|&next| next.to_owned()).collect(), "{text}");
        assert_eq!(position.is_lost(), expected.is_empty(), "{text}");
    }
    Ok(())
}

#[test]
fn a_star_is_black() -> Result<(), Failure> {
    assert_eq!("*o.o|.*o. *".parse::<Position>()?, "xo.o|.xo. x".parse()?);
    Ok(())
}

#[test]
fn problems_round_trip_and_bad_ones_are_explained() -> Result<(), Failure> {
    let problem = Problem::from_text("", " *o.o|.xo. x ", "")?;
    let fields = problem.to_fields();
    assert_eq!((fields.position.as_str(), fields.question.as_str()), ("xo.o|.xo. x", "winner"));
    assert_eq!(Problem::from_text(&fields.rules, &fields.position, &fields.question)?, problem);
    assert_eq!(Problem::from_text("", "xo. o", "outcome")?.question, Question::Outcome);
    assert!(message(Problem::from_text("cuban", "xo. x", "")).contains("unknown rules 'cuban'"));
    assert!(
        message(Problem::from_text("", "xo. x", "score"))
            .contains("unknown question 'score': expected winner or outcome")
    );
    assert!(message(Problem::from_text("", "xo.", "")).contains("the side to move is missing"));
    Ok(())
}

/// Knows one thing.
struct One(Option<bool>);

impl Knowledge for One {
    fn truth(&self, _: &Claim) -> Option<bool> {
        self.0
    }
}

#[test]
fn a_plan_asks_once_and_words_the_answer() -> Result<(), Failure> {
    let winner = KonanePlan::new(&Problem::from_text("", "xoxo|ox.x o", "winner")?);
    let outcome = KonanePlan::new(&Problem::from_text("", "xoxo|ox.x o", "outcome")?);
    let Progress::Ask(asked) = winner.next(&One(None)) else { panic!("nothing is known yet") };
    assert_eq!(asked.len(), 1);
    winner.rules().check(&asked[0])?;
    assert_eq!(winner.partial(&One(None)), Answer::Winner { winner: None });
    let answered = |answer| Progress::Answered(answer);
    assert_eq!(winner.next(&One(Some(true))), answered(Answer::Winner { winner: Some(Winner::White) }));
    assert_eq!(winner.next(&One(Some(false))), answered(Answer::Winner { winner: Some(Winner::Black) }));
    assert_eq!(outcome.next(&One(Some(true))), answered(Answer::Outcome { outcome: Some(Outcome::Win) }));
    assert_eq!(outcome.next(&One(Some(false))), answered(Answer::Outcome { outcome: Some(Outcome::Loss) }));
    Ok(())
}

/// The eight images of a picture's cells, each with whether cell a1 comes to lie on white's colour.
fn images(width: usize, height: usize, cells: &[char]) -> Vec<(usize, Vec<char>, bool)> {
    let mut images = Vec::new();
    let (mut w, mut grid, mut corner) = (width, cells.to_vec(), (0, 0));
    for turn in 0..8 {
        let h = grid.len() / w;
        images.push((w, grid.clone(), (corner.0 + corner.1) % 2 == 1));
        // A quarter turn each time, and a mirror after the fourth.
        let mirror = turn == 3;
        let place = |x: usize, y: usize| if mirror { (w - 1 - x, y) } else { (h - 1 - y, x) };
        let next_width = if mirror { w } else { h };
        let mut next = vec![' '; grid.len()];
        for (i, &c) in grid.iter().enumerate() {
            let (x, y) = place(i % w, i / w);
            next[y * next_width + x] = c;
        }
        corner = place(corner.0, corner.1);
        (w, grid) = (next_width, next);
    }
    images.retain(|(w, grid, _)| *w == width && grid.len() / w == height);
    images
}

/// The position that has a stone wherever the grid has `s`.
fn position_of(width: usize, grid: &[char], mover: Side) -> Position {
    let bits = |wanted: fn(char) -> bool| {
        grid.iter().enumerate().filter(|(_, c)| wanted(**c)).fold(0u64, |bits, (i, _)| bits | 1 << i)
    };
    let board = Board::new(width, grid.len() / width, bits(|c| c != '#')).expect("at most 8x8 cells");
    Position::new(board, bits(|c| c == 's'), mover).expect("stones are where cells are")
}

fn grid() -> impl Strategy<Value = (usize, Vec<char>)> {
    let cell = prop_oneof![1 => Just('#'), 3 => Just('.'), 6 => Just('s')];
    (1usize..=8, 1usize..=8, any::<bool>()).prop_flat_map(move |(width, height, square)| {
        let height = if square { width } else { height };
        proptest::collection::vec(cell.clone(), width * height).prop_map(move |grid| (width, grid))
    })
}

/// Holes and their images, so that the board has all the symmetries of its rectangle.
fn symmetric_holes(width: usize, grid: &[char]) -> Vec<char> {
    let mut result = grid.to_vec();
    for (_, image, _) in images(width, grid.len() / width, grid) {
        for (cell, image) in result.iter_mut().zip(image) {
            if image == '#' {
                *cell = '#';
            }
        }
    }
    result
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Black), Just(Side::White)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn notation_round_trips((width, grid) in grid(), mover in side()) {
        let position = position_of(width, &grid, mover);
        prop_assert_eq!(position.to_string().parse::<Position>(), Ok(position));
    }

    #[test]
    fn cells_round_trip(x in 0usize..64, y in 0usize..64) {
        let cell = Cell { x, y };
        prop_assert_eq!(cell.to_string().parse::<Cell>(), Ok(cell));
    }

    #[test]
    fn canonical_forms_are_invariant((width, grid) in grid(), mover in side(), symmetric in any::<bool>()) {
        let grid = if symmetric { symmetric_holes(width, &grid) } else { grid };
        let position = position_of(width, &grid, mover);
        let claims = KonaneClaims::new(*position.board());
        let claim = claims.claim(position.stones(), mover);
        prop_assert_eq!(claims.check(&claim), Ok(()));
        let canonical = claims.position(&claim).expect("just checked");
        prop_assert_eq!(&claims.claim(canonical.stones(), canonical.mover()), &claim);
        let mut among_images = false;
        for (_, image, swaps) in images(width, grid.len() / width, &grid) {
            let image = position_of(width, &image, if swaps { mover.other() } else { mover });
            if image.board() == position.board() {
                among_images |= image == canonical;
                prop_assert_eq!(&claims.claim(image.stones(), image.mover()), &claim, "{}", image);
            }
        }
        prop_assert!(among_images, "{} is no image of {}", canonical, position);
        let ours: BTreeSet<_> = claims.symmetries().images(position.stones(), mover).collect();
        prop_assert!(ours.contains(&(canonical.stones(), canonical.mover())));
    }

    #[test]
    fn changed_claims_are_refused_or_canonical(
        (width, grid) in grid(), mover in side(), at in 0usize..27, flip in 1u8..=255, length in 0usize..40,
    ) {
        let position = position_of(width, &grid, mover);
        let claims = KonaneClaims::new(*position.board());
        let good = claims.claim(position.stones(), mover);
        let mut bytes = good.subject.as_bytes().to_vec();
        bytes[at] ^= flip;
        let changed = Claim { subject: Subject::new(bytes.clone()).expect("27 bytes"), parameter: 0 };
        match claims.position(&changed) {
            Ok(other) => prop_assert_eq!(claims.claim(other.stones(), other.mover()), changed),
            Err(error) => {
                prop_assert!(error.to_string().starts_with("not a claim of konane: "), "{}", error);
                prop_assert!(claims.expand(&changed).is_err());
                prop_assert!(!claims.describe(&changed).is_empty());
            }
        }
        bytes.resize(length, 0);
        let resized = Claim { subject: Subject::new(bytes).expect("at most 40 bytes"), parameter: 0 };
        prop_assert!(claims.check(&resized).is_err() || length == 27);
        let with_parameter = Claim { parameter: 1, ..good };
        prop_assert!(claims.check(&with_parameter).is_err());
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "[xo.#*| é0-9]{0,80}") {
        if let Ok(position) = text.parse::<Position>() {
            prop_assert_eq!(position.to_string().parse::<Position>(), Ok(position));
        }
        if let Ok(start) = text.parse::<Start>() {
            prop_assert_eq!(start.to_string().parse::<Start>(), Ok(start));
        }
    }
}
