//! Rules, notation and claims of Kalah, by pictures.

use grundy_games::claim::{Claim, ClaimRules, Expansion, Subject};
use grundy_games::kalah::{
    KalahClaims, KalahPlan, MoveTable, Player, Position, Problem, Rules, openings, parse_opening, replay,
};
use grundy_games::plan::{Answer, Knowledge, Plan, Progress};
use proptest::prelude::*;

/// The lines of a data file that are not comments, split at tabs.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split('\t').collect())
}

fn position(text: &str) -> Position {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn moves_follow_the_rules() {
    for row in rows(include_str!("data/kalah-moves.tsv")) {
        let rules: Rules = row[0].parse().expect("the file names known rules");
        let before = position(row[1]);
        let house: u8 = row[2].parse().expect("the file gives a number");
        let after =
            before.play(&MoveTable::new(before.houses(), rules), house - 1).expect("the move is allowed");
        assert_eq!(after.to_string(), row[3], "{row:?}");
        let difference = row.get(4).map(|text| text.parse().expect("the file gives a number"));
        assert_eq!(after.final_difference(), difference, "{row:?}");
    }
}

#[test]
fn wrong_texts_are_refused_where_they_are_wrong() {
    for row in rows(include_str!("data/kalah-refused.tsv")) {
        let (mut rules, mut board, mut question) = ("standard", "6,4", "values");
        match row[0] {
            "rules" => rules = row[1],
            "position" => board = row[1],
            _ => question = row[1],
        }
        let error = Problem::from_text(rules, board, question).expect_err(row[1]).to_string();
        assert!(error.contains(row[2]), "{row:?} gave: {error}");
    }
}

#[test]
fn empty_houses_and_finished_games_cannot_be_played() {
    let table = MoveTable::new(3, Rules::Standard);
    assert_eq!(position("0,1,0,0/1,1,1,0 S").play(&table, 0), None);
    assert_eq!(position("0,1,0,0/1,1,1,0 S").play(&table, 3), None);
    assert_eq!(position("0,1,0,0/0,0,0,5 S").play(&table, 1), None);
    assert_eq!(position("6,4").play(&table, 1), None);
    assert!(openings(&table, position("0,1,0,0/0,0,0,5 S").board()).expect("few openings").is_empty());
    let error =
        parse_opening(&table, position("0,1,0,0/0,0,0,5 S").board(), "2").expect_err("the game is over");
    assert!(error.to_string().contains("none, the game is over"), "{error}");
    let error = replay(&table, &position("0,1,0,0/1,1,1,0 S"), &[2, 4]).expect_err("bin 4 is a store");
    assert_eq!((error.number, error.bin), (2, 4));
}

#[test]
fn bins_are_numbered_around_the_board() {
    let start = position("6,4");
    assert_eq!((start.bin(0), start.bin(5)), (1, 6));
    let north = start.play(&MoveTable::new(6, Rules::Standard), 0).expect("house 1 holds seeds");
    assert_eq!(north.mover(), Player::North);
    assert_eq!((north.bin(0), north.bin(5)), (8, 13));
    assert_eq!((north.house_of_bin(7), north.house_of_bin(8), north.house_of_bin(14)), (None, Some(0), None));
}

#[test]
fn openings_are_whole_turns() {
    for (board, expected) in [
        ("6,4", "1 2 3-1 3-2 3-4 3-5 3-6 4 5 6"),
        ("6,5", "1 2-1 2-3 2-4 2-5 2-6 3 4 5 6"),
        // The free turn with the last seed ends the game, and with it the turn.
        ("0,1,3/1,1,0 S", "2"),
        ("2,1,0/1,1,0 S", "1-2 2-1-2"),
    ] {
        let start = position(board);
        let found =
            openings(&MoveTable::new(start.houses(), Rules::Standard), start.board()).expect("few openings");
        let names: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(names.join(" "), expected, "{board}");
    }
}

#[test]
fn problems_round_trip_and_fill_in_defaults() {
    let default = Problem::from_text("", "6,4", "").expect("defaults are valid");
    assert_eq!(default, Problem::from_text("standard", "6,4", "values").expect("the same in full"));
    assert_eq!(default.to_fields().position, "4,4,4,4,4,4,0/4,4,4,4,4,4,0 S");
    for question in ["values", "values 3-6", "at-least 2", "at-least -3 4", "gain"] {
        for rules in ["standard", "empty-capture"] {
            let problem = Problem::from_text(rules, "6,4", question).expect(question);
            let fields = problem.to_fields();
            assert_eq!((fields.rules.as_str(), fields.question.as_str()), (rules, question));
            let again =
                Problem::from_text(&fields.rules, &fields.position, &fields.question).expect(question);
            assert_eq!(again, problem);
        }
    }
}

/// Claims by their bytes and margin, and what is wrong with them.
#[test]
fn malformed_claims_are_refused() {
    let claims = KalahClaims::new(2, Rules::Standard);
    for (bytes, margin, reason) in [
        (&[][..], 0, "an empty subject"),
        (&[3, 1, 1, 1, 1], 0, "byte 0 says 3 houses"),
        (&[2, 1, 1, 1], 1, "4 bytes, expected 5"),
        (&[2, 1, 1, 1, 1, 0], 0, "6 bytes, expected 5"),
        (&[2, 128, 0, 128, 0], 0, "256 seeds in play"),
        (&[2, 1, 1, 1, 1], 1, "margin 1 with 4 seeds"),
        (&[2, 1, 1, 1, 0], i16::MIN, "margin -32768 with 3 seeds"),
    ] {
        let claim = Claim { subject: Subject::new(bytes).expect("short"), parameter: margin };
        let error = claims.check(&claim).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
        assert!(claims.expand(&claim).is_err());
        assert!(!claims.describe(&claim).is_empty());
    }
}

#[test]
fn claims_are_decided_at_sight_where_the_rules_do() {
    let claims = KalahClaims::new(2, Rules::Standard);
    for (board, margin, truth) in [
        ("1,1,0/1,1,0 S", -4, Some(true)),
        ("1,1,0/1,1,0 S", 6, Some(false)),
        ("1,1,0/1,1,0 S", 4, None),
        ("1,1,0/1,1,0 S", -2, None),
        ("0,0,0/1,1,0 S", -2, Some(true)),
        ("0,0,0/1,1,0 S", 0, Some(false)),
        ("1,1,9/0,0,0 S", 2, Some(true)),
        ("1,1,9/0,0,0 S", 4, Some(false)),
        ("0,0,9/0,0,0 N", 0, Some(true)),
    ] {
        let found = match claims.expand(&claims.claim(position(board).board(), margin)).expect("well formed")
        {
            Expansion::Decided(truth) => Some(truth),
            Expansion::Open(_) => None,
        };
        assert_eq!(found, truth, "{board} at least {margin}");
    }
}

#[test]
fn a_namespace_tells_boards_and_rules_apart() {
    assert_eq!(KalahClaims::new(6, Rules::Standard).namespace(), "kalah/6/standard");
    assert_eq!(KalahClaims::new(4, Rules::EmptyCapture).namespace(), "kalah/4/empty-capture");
}

proptest! {
    /// A position in words of its own: houses a side, seeds in each, the stores, the mover.
    #[test]
    fn positions_round_trip(
        (houses, seeds) in (1usize..=8).prop_flat_map(|h| (Just(h), prop::collection::vec(0u8..14, 2 * h + 2))),
        north in any::<bool>(),
    ) {
        let side = |of: &[u8]| of.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        let (south_side, north_side) = seeds.split_at(houses + 1);
        let text = format!("{}/{} {}", side(south_side), side(north_side), if north { "N" } else { "S" });
        let position: Position = text.parse().expect("fewer than 255 seeds");
        prop_assert_eq!(position.to_string(), text);
        prop_assert_eq!(position.houses_of(Player::North), north_side[..houses].to_vec());
        prop_assert_eq!(position.store_of(Player::South), south_side[houses]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9,/ SN-]{0,30}") {
        if let Ok(position) = text.parse::<Position>() {
            prop_assert_eq!(position.to_string().parse::<Position>(), Ok(position));
        }
    }

    #[test]
    fn any_bytes_are_a_claim_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..20), margin: i16) {
        let houses = bytes.first().copied().unwrap_or(0).clamp(1, 8);
        let claims = KalahClaims::new(houses, Rules::Standard);
        let claim = Claim { subject: Subject::new(bytes).expect("short"), parameter: margin };
        let expansion = claims.expand(&claim);
        prop_assert_eq!(claims.check(&claim).is_ok(), expansion.is_ok());
        if let Ok(Expansion::Open(edges)) = expansion {
            for edge in edges {
                prop_assert_eq!(claims.check(&edge.claim), Ok(()));
            }
        }
    }

    #[test]
    fn claims_encode_the_board(seeds in prop::collection::vec(0u8..40, 6), margin in -300i16..300) {
        let claims = KalahClaims::new(3, Rules::Standard);
        let text = format!("{},{},{},0/{},{},{},0 S", seeds[0], seeds[1], seeds[2], seeds[3], seeds[4], seeds[5]);
        let board = position(&text).board();
        let claim = claims.claim(board, margin);
        let (decoded, canonical) = claims.decode(&claim).expect("made by us");
        prop_assert_eq!(decoded, board);
        prop_assert!((margin..=margin + 1).contains(&canonical));
        prop_assert_eq!(&claim.subject.as_bytes()[1..], &seeds[..]);
    }
}

/// Positions that are solved elsewhere are those that the published plies lead to.
#[test]
fn published_plies_lead_to_the_positions() {
    let check = |text: &str| {
        rows(text)
            .map(|row| {
                let start = position(row[0]);
                let table =
                    MoveTable::new(start.houses(), row[1].parse().expect("the file names known rules"));
                let turn = parse_opening(&table, start.board(), row[2]).expect("the file gives openings");
                let mut bins = turn.bins(&start);
                bins.extend(row[3].split_terminator(' ').map(|bin| bin.parse::<u8>().expect("bins")));
                let position = replay(&table, &start, &bins).expect("the plies are playable");
                assert_eq!(position.to_string(), row[4], "{row:?}");
                let number = |text: &str| text.parse::<i16>().expect("the file gives numbers");
                let value = if position.mover() == Player::South { number(row[5]) } else { -number(row[5]) };
                assert_eq!(value - position.lead(), number(row[6]), "{row:?}");
            })
            .count()
    };
    assert_eq!(check(include_str!("data/kalah-66.tsv")), 10);
    assert_eq!(check(include_str!("data/kalah-prefixes.tsv")), 360);
}

/// Nothing is known yet.
struct Nothing;

impl Knowledge for Nothing {
    fn truth(&self, _: &Claim) -> Option<bool> {
        None
    }
}

/// What a plan asks first: the margins less the guesses at the gains.
fn first_margins(board: &str) -> Vec<i16> {
    let problem = Problem::from_text("standard", board, "values").expect("a question");
    let claims = KalahClaims::new(problem.position().houses(), Rules::Standard);
    let Progress::Ask(wanted) = KalahPlan::new(&problem).next(&Nothing) else { panic!("nothing is known") };
    let decoded = wanted.iter().map(|claim| claims.decode(claim).expect("made by a plan"));
    decoded.map(|(board, margin)| margin - board.guess()).collect()
}

#[test]
fn long_games_are_narrowed_from_afar_and_aimed_at() {
    assert!(first_margins("6,4").iter().chain(&first_margins("6,5")).all(|margin| *margin == 0));
    let margins = first_margins("6,6");
    assert!(margins[0].abs() > 40 && margins[1] == 0, "{margins:?}");
    let (aims, steps): (Vec<i16>, Vec<i16>) = margins.iter().partition(|margin| **margin == 0);
    assert!(steps.is_sorted_by_key(|step| -step.abs()), "{margins:?}");
    assert_eq!((steps.len(), aims.len()), (10, 10));
}

/// Whatever a board's gain is, a long game's questions find it, and each of them narrows what is known.
#[test]
fn questions_of_long_games_find_any_gain() {
    let problem = Problem::from_text("standard", "6,6", "gain").expect("a question");
    let plan = KalahPlan::new(&problem);
    let claims = KalahClaims::new(6, Rules::Standard);
    for gain in (-72..=72).step_by(2) {
        let mut known = Gain { claims: &claims, low: -72, high: 72 };
        let mut asked = 0;
        loop {
            let wanted = match plan.next(&known) {
                Progress::Answered(answer) => {
                    assert_eq!(answer, Answer::Gain { gain: Some(gain) });
                    break;
                }
                Progress::Ask(wanted) => wanted,
            };
            for claim in &wanted {
                let (_, margin) = claims.decode(claim).expect("made by a plan");
                assert!(
                    known.low < margin && margin <= known.high,
                    "{gain}: {margin} of {} to {}",
                    known.low,
                    known.high
                );
            }
            // Only the step is answered, never the aim.
            let (_, margin) = claims.decode(&wanted[0]).expect("made by a plan");
            if margin <= gain {
                known.low = margin;
            } else {
                known.high = margin - 2;
            }
            asked += 1;
        }
        assert!(asked <= 45, "{gain} took {asked} questions");
    }
}

/// What is known when a gain is known to lie between two bounds.
struct Gain<'a> {
    claims: &'a KalahClaims,
    low: i16,
    high: i16,
}

impl Knowledge for Gain<'_> {
    fn truth(&self, claim: &Claim) -> Option<bool> {
        let (_, margin) = self.claims.decode(claim).expect("made by a plan");
        if margin <= self.low {
            Some(true)
        } else if margin > self.high {
            Some(false)
        } else {
            None
        }
    }
}
