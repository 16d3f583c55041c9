//! Peg solitaire boards: notation, jumps, symmetries and position classes.

use grundy_games::peg::{Finish, Geometry, JumpTable, Lattice, NAMED_BOARDS, NotationError, Problem};
use grundy_games::problem::{self, Approach, Fields};
use proptest::prelude::*;

/// The columns of a data file's rows: no comments, no header.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with("# ")).skip(1).map(|line| line.split('\t').collect())
}

/// Pictures of every size up to 64 holes, with at least one peg.
fn picture() -> impl Strategy<Value = String> {
    let cell = || prop_oneof![3 => Just('o'), 3 => Just('.'), 1 => Just('#')];
    let sides =
        prop_oneof![4 => (1usize..=8, 1usize..=8), 1 => (1usize..=64, Just(1)), 1 => (Just(1), 1usize..=64)];
    sides
        .prop_flat_map(move |(width, height)| {
            let row = prop::collection::vec(cell(), width).prop_map(String::from_iter);
            prop::collection::vec(row, height).prop_map(|rows| rows.join("|"))
        })
        .prop_filter("a peg", |picture| picture.contains('o'))
}

fn lattice() -> impl Strategy<Value = Lattice> {
    prop_oneof![Just(Lattice::Square), Just(Lattice::Triangular)]
}

/// A picture's geometry and pegs.
fn parse(picture: &str) -> (Geometry, u64) {
    Geometry::parse(picture).expect("the test gives a picture")
}

#[test]
fn bad_notation() {
    for row in rows(include_str!("data/peg-bad.tsv")) {
        let [rules, position, question, expected] = row[..] else {
            panic!("a row of four columns, not {row:?}")
        };
        let error = Problem::from_text(rules, position, question).expect_err(expected);
        assert_eq!(error.to_string(), expected, "{row:?}");
    }
    let unknown = Problem::named("french", None, None);
    assert_eq!(unknown, Err(NotationError::BoardName { name: "french".to_owned() }));
    let outside = Problem::named("english", Some("a1"), None).expect_err("the corner is no hole");
    assert_eq!(
        outside.to_string(),
        "the board has no hole at 'a1': its holes lie in columns a to g and rows 1 to 7"
    );
}

#[test]
fn named_boards() {
    for (name, picture) in NAMED_BOARDS {
        let problem = Problem::named(name, None, None).expect("the table's names are known");
        let fields = problem.to_fields();
        assert_eq!((fields.position.as_str(), fields.question.as_str()), (picture, "finish d4"));
        assert!(problem.is_complement());
        assert_eq!(problem.orbits().order(), 8);
    }
    let english =
        |start, finish| Problem::named("english", start, finish).expect("these are holes").to_fields();
    let shifted = english(Some("e4"), None);
    assert_eq!(shifted.position, "##ooo##|##ooo##|ooooooo|oooo.oo|ooooooo|##ooo##|##ooo##");
    assert_eq!(shifted.question, "finish e4");
    assert_eq!(english(Some("c1"), Some("any")).question, "finish any");
    assert_eq!(english(None, Some("d1")).question, "finish d1");
}

#[test]
fn problems_are_counted_and_keep_their_text() {
    let fields = Fields {
        game: "peg".to_owned(),
        rules: String::new(),
        position: "oo.o".to_owned(),
        question: "finish b1".to_owned(),
    };
    let problem = problem::Problem::from_fields(&fields).expect("a problem");
    assert_eq!(problem.to_fields(), fields);
    assert!(matches!(
        problem.approach(),
        Approach::Counting(peg) if matches!(peg.finish(), Finish::Hole(hole) if hole.index() == 1)
    ));
    let implied = Problem::from_text("", "oo.o", "").expect("a problem");
    assert_eq!(implied.to_fields().question, "finish any");
}

#[test]
fn symmetries() {
    for row in rows(include_str!("data/peg-symmetries.tsv")) {
        let problem = Problem::from_text("", row[0], row[1]).expect("the file has problems");
        let (symmetries, order) = (problem.geometry().symmetries().len(), problem.orbits().order());
        assert_eq!(
            (symmetries.to_string(), order.to_string()),
            (row[2].to_owned(), row[3].to_owned()),
            "{row:?}"
        );
    }
}

#[test]
fn jumps_of_known_boards() {
    for (picture, jumps) in
        [("oo.", 2), ("oo", 0), ("ooo|ooo|ooo", 12), ("o#oo", 0), ("oo|oo|oo", 4), (NAMED_BOARDS[0].1, 76)]
    {
        assert_eq!(parse(picture).0.jumps().len(), jumps, "{picture}");
    }
    // 8x8 has the most jumps of any board: 2 directions x 2 x 8 lines x 6.
    assert_eq!(parse(&["oooooooo"; 8].join("|")).0.jumps().len(), 192);
}

#[test]
fn triangles() {
    for (name, picture, jumps) in [
        ("triangle2", ".#|oo", 0),
        ("triangle3", ".##|oo#|ooo", 6),
        ("triangle5", ".####|oo###|ooo##|oooo#|ooooo", 36),
    ] {
        let problem = Problem::named(name, None, None).expect("a triangle");
        let fields = problem.to_fields();
        assert_eq!(
            [fields.rules.as_str(), &fields.position, &fields.question],
            ["triangular", picture, "finish a1"]
        );
        assert_eq!(
            Problem::from_text(&fields.rules, &fields.position, &fields.question),
            Ok(problem.clone())
        );
        assert_eq!(problem.geometry().jumps().len(), jumps, "{name}");
        assert_eq!(problem.geometry().symmetries().len(), 6, "{name}");
    }
    let order =
        |name, start, finish| Problem::named(name, Some(start), finish).expect("a triangle").orbits().order();
    assert_eq!(order("triangle5", "a1", None), 2);
    assert_eq!(order("triangle5", "a2", None), 1);
    assert_eq!(order("triangle5", "b3", Some("any")), 2);
    // The triangle of four rows has a hole in its middle.
    assert_eq!(order("triangle4", "b3", None), 6);
    let longest = Problem::named("triangle10", None, None).expect("a triangle");
    assert_eq!(longest.geometry().len(), 55);
    for name in ["triangle", "triangle1", "triangle11", "triangle05", "triangle5x", "Triangle5"] {
        assert_eq!(Problem::named(name, None, None), Err(NotationError::BoardName { name: name.to_owned() }));
    }
}

#[test]
fn hexagons() {
    let picture = "ooo##|oooo#|oo.oo|#oooo|##ooo";
    let geometry = Geometry::parse_on(Lattice::Triangular, picture).expect("a picture").0;
    assert_eq!(geometry.symmetries().len(), 12);
    let order =
        |question| Problem::from_text("triangular", picture, question).expect("a problem").orbits().order();
    // Of the twelve that keep the centre the six turns are used.
    assert_eq!((order("finish c3"), order("finish a1"), order("finish b2")), (6, 2, 2));
    // 8x8 has the most jumps: 2 directions x (2 x 8 lines x 6 + the diagonals' 36).
    let largest = Geometry::parse_on(Lattice::Triangular, &["oooooooo"; 8].join("|")).expect("a picture").0;
    assert_eq!(largest.jumps().len(), 264);
}

#[test]
fn columns_past_z() {
    let (geometry, _) = parse(&"o".repeat(64));
    let names: Vec<String> = geometry.holes().map(|hole| geometry.name(hole)).collect();
    assert_eq!(
        [&names[0], &names[25], &names[26], &names[51], &names[52], &names[63]],
        ["a1", "z1", "aa1", "az1", "ba1", "bl1"]
    );
}

proptest! {
    #[test]
    fn pictures_and_names_round_trip(picture in picture()) {
        let (geometry, board) = parse(&picture);
        prop_assert_eq!(geometry.picture(board), picture);
        prop_assert_eq!(geometry.full().count_ones() as usize, geometry.len());
        prop_assert_eq!(board & !geometry.full(), 0);
        for hole in geometry.holes() {
            prop_assert_eq!(geometry.hole_named(&geometry.name(hole)), Ok(hole));
            let (x, y) = geometry.cell(hole);
            prop_assert_eq!(geometry.hole_at(x, y), Some(hole));
        }
    }

    /// The table finds what the rule finds, a jump changes what it should, and the class stays.
    #[test]
    fn jump_table_agrees_with_the_rule(lattice in lattice(), picture in picture()) {
        let (geometry, board) = Geometry::parse_on(lattice, &picture)?;
        let legal = JumpTable::new(&geometry).legal(board);
        let jumps = geometry.jumps();
        for (index, jump) in jumps.iter().enumerate() {
            let [from, over, to] = [jump.from, jump.over, jump.to].map(|hole| board & hole.board() != 0);
            prop_assert_eq!(jump.is_legal(board), from && over && !to);
            prop_assert_eq!(legal[index / 64] >> (index % 64) & 1 == 1, jump.is_legal(board), "{:?}", jump);
            if jump.is_legal(board) {
                let after = board ^ jump.changes();
                prop_assert_eq!(after.count_ones() + 1, board.count_ones());
                prop_assert_eq!(geometry.class(after), geometry.class(board));
            }
        }
        prop_assert_eq!(legal.iter().map(|set| set.count_ones()).sum::<u32>() as usize,
            jumps.iter().filter(|jump| jump.is_legal(board)).count());
    }

    /// Orbits are those of the group, computed hole by hole.
    #[test]
    fn orbits_agree_with_the_symmetries(
        lattice in lattice(),
        picture in picture(),
        other in any::<u64>(),
        finish in any::<prop::sample::Index>(),
    ) {
        let (geometry, start) = Geometry::parse_on(lattice, &picture)?;
        let rules = if lattice == Lattice::Square { "" } else { "triangular" };
        let board = other & geometry.full();
        let holes: Vec<_> = geometry.holes().collect();
        let finish = *finish.get(&holes);
        let problem = Problem::from_text(rules, &picture, &format!("finish {}", geometry.name(finish))).expect("a problem");
        let kept = |image: &dyn Fn(u64) -> u64| image(start) == start && image(finish.board()) == finish.board();
        let mut images: Vec<u64> = geometry.symmetries().iter()
            .filter(|symmetry| kept(&|board| symmetry.apply(board)))
            .map(|symmetry| symmetry.apply(board))
            .collect();
        let orbits = problem.orbits();
        prop_assert_eq!(orbits.order() as usize, images.len());
        let found = orbits.images(board);
        prop_assert_eq!(found.0[0], board);
        prop_assert_eq!(Some(found.least()), images.iter().copied().min());
        prop_assert_eq!(Some(found.greatest()), images.iter().copied().max());
        images.sort_unstable();
        images.dedup();
        prop_assert_eq!(orbits.size(&found) as usize, images.len());
        for image in images {
            prop_assert_eq!(orbits.canonical(image), found.least());
            prop_assert_eq!(image.count_ones(), board.count_ones());
        }
        for jump in geometry.jumps() {
            let after = found.changed(&orbits.images(jump.changes()));
            prop_assert_eq!(after, orbits.images(board ^ jump.changes()));
        }
    }

    #[test]
    fn problems_round_trip(rules in prop_oneof![Just(""), Just("triangular")], picture in picture(), finish in any::<prop::sample::Index>()) {
        let (geometry, _) = parse(&picture);
        let names: Vec<_> = geometry.holes().map(|hole| geometry.name(hole)).chain(["any".to_owned()]).collect();
        let problem = Problem::from_text(rules, &picture, &format!("finish {}", finish.get(&names)))?;
        let fields = problem.to_fields();
        prop_assert_eq!(Problem::from_text(&fields.rules, &fields.position, &fields.question), Ok(problem));
    }
}
