//! Cram's notation, canonical forms, bytes and plan.

use grundy_games::claim::{Claim, ClaimError, ClaimRules, Expansion, Subject};
use grundy_games::cram::{CramClaims, CramPlan, HEAP_MAX, Position, Problem, Sum};
use grundy_games::plan::{Answer, Knowledge, Outcome, Plan, Progress};
use grundy_games::problem;
use proptest::prelude::*;

fn rows_of(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().skip(1).map(|line| line.split_once('\t').expect("two columns"))
}

fn sum(picture: &str) -> Sum {
    picture.parse::<Position>().expect("the position is well formed").sum()
}

#[test]
fn bad_notation_is_named() {
    for (text, expected) in rows_of(include_str!("data/cram-bad-notation.tsv")) {
        match text.parse::<Position>() {
            Ok(position) => panic!("'{text}' was read as {position}"),
            Err(error) => assert!(error.to_string().contains(expected), "'{text}': {error}"),
        }
    }
    let tall = ["."; 129].join("|");
    let error = tall.parse::<Position>().expect_err("129 cells").to_string();
    assert!(error.contains("129 rows and 1 columns is too large"), "{error}");
}

#[test]
fn boards_up_to_128_cells_are_read() {
    for (size, rows, columns) in
        [("1x128", 1, 128), ("128x1", 128, 1), ("8x16", 8, 16), ("3x42", 3, 42), ("1x1", 1, 1)]
    {
        let position: Position = size.parse().expect("at most 128 cells");
        assert_eq!((position.rows(), position.columns()), (rows, columns));
        assert!(position.is_empty(rows - 1, columns - 1));
        assert!(!position.is_empty(rows, 0) && !position.is_empty(0, columns));
        let cells: u32 = position.sum().components().iter().map(|component| component.len()).sum();
        let decided = rows % 2 == 0 && columns % 2 == 0;
        assert_eq!(
            cells,
            if decided || size == "1x1" { 0 } else { u32::from(rows) * u32::from(columns) },
            "{size}"
        );
    }
}

#[test]
fn positions_are_simplified() {
    for (picture, expected) in rows_of(include_str!("data/cram-sums.tsv")) {
        assert_eq!(sum(picture).to_string(), expected, "{picture}");
    }
}

#[test]
fn fields_are_checked_and_printed() {
    let fields = |rules: &str, position: &str, question: &str| problem::Fields {
        game: "cram".to_owned(),
        rules: rules.to_owned(),
        position: position.to_owned(),
        question: question.to_owned(),
    };
    for (given, expected) in [
        (fields("", "2x3", ""), fields("", "...|...", "nimber")),
        (fields("", "..|.#", "nimber"), fields("", "..|.#", "nimber")),
        (fields("", "1x1", "outcome"), fields("", ".", "outcome")),
    ] {
        let read = problem::Problem::from_fields(&given).expect("the fields are well formed");
        assert_eq!(read.to_fields(), expected);
        let again = problem::Problem::from_fields(&expected).expect("printed fields are well formed");
        assert_eq!(again.to_fields(), expected);
    }
    for (given, expected) in [
        (fields("misere", "2x3", ""), "unknown rules 'misere'"),
        (fields("", "2x3", "winner"), "unknown question 'winner': expected nimber or outcome"),
        (fields("", "2y3", ""), "position: row 1, column 1: unexpected '2'"),
    ] {
        let error = problem::Problem::from_fields(&given).expect_err("a field is wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The couples decided by a nimber, of those with heaps up to `heap_max`.
struct Decided {
    nimber: i16,
    heap_max: i16,
}

impl Knowledge for Decided {
    fn truth(&self, claim: &Claim) -> Option<bool> {
        (0..=self.heap_max).find_map(|heap| CramClaims.infer(heap, heap != self.nimber, claim.parameter))
    }
}

#[test]
fn a_plan_asks_for_couples_until_one_is_lost() {
    let plan = |position: &str, question: &str| {
        CramPlan::new(&Problem::from_text("", position, question).expect("the problem is well formed"))
    };
    let at_least = |nimber_at_least| Answer::NimberAtLeast { nimber_at_least };
    let nimber = |nimber| Answer::Nimber { nimber };
    let outcome = |outcome| Answer::Outcome { outcome };
    // (position, question, its nimber, heaps asked about so far (-1: none), what is known, the heap asked about next)
    let cases = [
        ("3x6", "nimber", 4, -1, at_least(0), Some(0)),
        ("3x6", "nimber", 4, 0, at_least(1), Some(1)),
        ("3x6", "nimber", 4, 3, at_least(4), Some(4)),
        ("3x6", "nimber", 4, 4, nimber(4), None),
        ("3x6", "outcome", 4, -1, outcome(None), Some(0)),
        ("3x6", "outcome", 4, 0, outcome(Some(Outcome::Win)), None),
        ("3x3", "outcome", 0, 0, outcome(Some(Outcome::Loss)), None),
        ("3x3", "nimber", 0, 0, nimber(0), None),
        // Without components there is nothing to ask, and two cells hold no more than one domino.
        ("4x4", "nimber", 0, -1, nimber(0), None),
        ("4x4", "outcome", 0, -1, outcome(Some(Outcome::Loss)), None),
        ("1x2", "nimber", 1, 0, nimber(1), None),
    ];
    for (position, question, value, heap_max, partial, next) in cases {
        let plan = plan(position, question);
        let known = Decided { nimber: value, heap_max };
        assert_eq!(plan.partial(&known), partial, "{position}, {question}, asked up to {heap_max}");
        let expected = match next {
            Some(heap) => Progress::Ask(vec![CramClaims::claim(&sum(position), heap)]),
            None => Progress::Answered(partial),
        };
        assert_eq!(plan.next(&known), expected, "{position}, {question}, asked up to {heap_max}");
    }
}

#[test]
fn inference_is_about_one_nimber() {
    // (known heap, its truth, asked heap, what follows)
    for (known, truth, asked, expected) in [
        (2, false, 2, Some(false)),
        (2, true, 2, Some(true)),
        (2, false, 0, Some(true)),
        (2, false, 7, Some(true)),
        (2, true, 0, None),
        (2, true, 7, None),
    ] {
        assert_eq!(CramClaims.infer(known, truth, asked), expected);
    }
}

#[test]
fn malformed_claims_are_refused() {
    // (subject in bytes, heap, part of the error)
    let cases: [(&[u8], i16, &str); 16] = [
        (&[], -1, "the heap is -1"),
        (&[], i16::from(HEAP_MAX) + 1, "the heap is 128"),
        (&[2], 0, "byte 0 is cut off"),
        (&[2, 1], 0, "byte 0 is cut off, expected 2 bytes of size and 1 of cells"),
        (&[0, 1, 0], 0, "box of 0 by 1"),
        (&[2, 0, 0], 0, "box of 2 by 0"),
        (&[12, 11, 0], 0, "box of 12 by 11"),
        (&[255, 255, 0], 0, "box of 255 by 255"),
        // Higher than wide; a single cell; two regions; a cell outside the box; not in the corner.
        (&[1, 2, 0b11], 0, "component at byte 0"),
        (&[1, 1, 0b1], 0, "component at byte 0"),
        (&[3, 1, 0b101], 0, "component at byte 0"),
        (&[2, 1, 0b111], 0, "component at byte 0"),
        (&[3, 1, 0b110], 0, "component at byte 0"),
        // An image that is not the least, a 2x2 square, and a pair that cancels.
        (&[3, 2, 0b111_010], 0, "component at byte 0"),
        (&[2, 2, 0b1111], 0, "component at byte 0"),
        (&[2, 1, 0b11, 2, 1, 0b11], 0, "component at byte 3 is not above"),
    ];
    for (subject, parameter, expected) in cases {
        let claim = Claim { subject: Subject::new(subject).expect("a short subject"), parameter };
        let error = CramClaims.check(&claim).expect_err("the claim is malformed");
        assert!(matches!(error, ClaimError::Malformed { game: "cram", .. }));
        assert!(error.to_string().contains(expected), "{subject:?}: {error}");
        assert_eq!(CramClaims.expand(&claim), Err(error));
        assert!(!CramClaims.describe(&claim).is_empty());
    }
}

#[test]
fn the_rules_decide_what_theorems_decide() {
    for (picture, heap, expected) in [
        ("4x4", 0, Some(false)),
        ("4x4", 3, Some(true)),
        ("1x1", 0, Some(false)),
        ("1x2", 0, None),
        ("1x2", 1, None),
        ("1x2", 2, Some(true)),
        ("3x3", 4, None),
        ("3x3", 5, Some(true)),
        ("1x127", HEAP_MAX, Some(true)),
    ] {
        let decided = match CramClaims.expand(&CramClaims::claim(&sum(picture), heap)) {
            Ok(Expansion::Decided(truth)) => Some(truth),
            Ok(Expansion::Open(edges)) => {
                assert!(!edges.is_empty());
                None
            }
            Err(error) => panic!("{picture} + *{heap}: {error}"),
        };
        assert_eq!(decided, expected, "{picture} + *{heap}");
    }
}

/// Boards of up to 128 cells as rows of cells.
fn boards() -> impl Strategy<Value = Vec<Vec<bool>>> {
    (1..=11usize, 1..=16usize, 0.3..0.95f64)
        .prop_filter("more than 128 cells", |(rows, columns, _)| rows * columns <= 128)
        .prop_flat_map(|(rows, columns, empty)| {
            prop::collection::vec(prop::collection::vec(prop::bool::weighted(empty), columns), rows)
        })
}

fn picture(rows: &[Vec<bool>]) -> String {
    let row = |cells: &Vec<bool>| cells.iter().map(|empty| if *empty { '.' } else { '#' }).collect();
    rows.iter().map(row).collect::<Vec<String>>().join("|")
}

fn transposed(rows: &[Vec<bool>]) -> Vec<Vec<bool>> {
    (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

proptest! {
    // Failures print their shrunk case; there is no file of them to keep.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn notation_round_trips(rows in boards()) {
        let text = picture(&rows);
        let position: Position = text.parse().expect("the picture is well formed");
        prop_assert_eq!(position.to_string(), text);
        for (r, row) in rows.iter().enumerate() {
            for (c, empty) in row.iter().enumerate() {
                prop_assert_eq!(position.is_empty(r as u8, c as u8), *empty);
            }
        }
    }

    #[test]
    fn canonical_form_is_invariant(rows in boards()) {
        let expected = sum(&picture(&rows));
        let upside_down: Vec<_> = rows.iter().rev().cloned().collect();
        let turned: Vec<_> = transposed(&rows).into_iter().rev().collect();
        for image in [transposed(&rows), upside_down, turned] {
            prop_assert_eq!(&sum(&picture(&image)), &expected);
        }
        // Shifted one down and one right in a larger board, where that fits.
        let mut shifted = vec![vec![false; rows[0].len() + 1]];
        shifted.extend(rows.iter().map(|row| std::iter::once(false).chain(row.iter().copied()).collect()));
        if shifted.len() * shifted[0].len() <= 128 {
            prop_assert_eq!(&sum(&picture(&shifted)), &expected);
        }
    }

    #[test]
    fn sums_round_trip_and_their_children_are_canonical(rows in boards(), heap in 0..=HEAP_MAX) {
        let sum = sum(&picture(&rows));
        prop_assert_eq!(Sum::decode(&sum.encode()), Ok(sum.clone()));
        let claim = CramClaims::claim(&sum, heap % (sum.nimber_max() + 1));
        prop_assert_eq!(CramClaims.check(&claim), Ok(()));
        if let Expansion::Open(edges) = CramClaims.expand(&claim).expect("the claim is well formed") {
            let mut children: Vec<_> = edges.iter().map(|edge| &edge.claim).collect();
            for child in &children {
                prop_assert_eq!(CramClaims.check(child), Ok(()));
            }
            children.sort();
            children.dedup();
            prop_assert_eq!(children.len(), edges.len());
        }
    }

    /// Whatever is read is read in one way only, and nothing panics.
    #[test]
    fn arbitrary_bytes_are_read_exactly_or_refused(
        rows in boards(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 0..3),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        heap in any::<i16>(),
    ) {
        let mut bytes = sum(&picture(&rows)).encode();
        bytes.extend(&noise);
        for (at, bit) in flips.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(sum) = Sum::decode(&bytes) {
            prop_assert_eq!(sum.encode(), &bytes[..]);
        }
        let subject = Subject::new(bytes).expect("a short subject");
        let claim = Claim { subject, parameter: heap };
        prop_assert_eq!(CramClaims.check(&claim).is_ok(), CramClaims.expand(&claim).is_ok());
    }

    #[test]
    fn arbitrary_text_is_read_exactly_or_refused(text in "[.#|x0-9]{0,20}|\\PC{0,10}") {
        if let Ok(position) = text.parse::<Position>() {
            prop_assert!(text.contains('x') || position.to_string() == text);
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }
    }
}
