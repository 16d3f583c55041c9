//! Konane: published winners, and small positions against the rules played out naively.

#[path = "oracle/konane.rs"]
mod oracle;
mod support;

use grundy_games::claim::{Claim, ClaimRules, Expansion, Fact};
use grundy_games::konane::{
    Cell, KonaneClaims, KonanePlan, Position, Problem, Question, Side, Start, size_from_text,
};
use grundy_games::plan::{Answer, Outcome, Winner};
use grundy_search::engine::{Engine, Limits, Verdict};
use grundy_search::konane::KonaneEngine;
use grundy_search::table::{Namespace, Table};
use oracle::Oracle;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{MapTable, NoTable};

type Failure = Box<dyn std::error::Error>;

fn answer(position: Position, question: Question) -> Result<Answer, Failure> {
    let problem = Problem { position, question };
    let mut engine = KonaneEngine::new(&problem, Namespace(7), Arc::new(MapTable::default()));
    Ok(support::answer(&KonanePlan::new(&problem), &mut engine)?.0)
}

/// Whether the mover wins, by a fresh engine.
fn wins(position: Position) -> Result<bool, Failure> {
    Ok(answer(position, Question::Outcome)? == Answer::Outcome { outcome: Some(Outcome::Win) })
}

fn decide(engine: &mut KonaneEngine, claim: &Claim, nodes: u64) -> Result<(Verdict, u64), Failure> {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits { nodes, ..Limits::endless(&stop, &progress) };
    let outcome = engine.decide(claim, &limits)?;
    assert_eq!(outcome.nodes, progress.load(Ordering::Relaxed), "progress counts every node");
    Ok((outcome.verdict, outcome.nodes))
}

fn picture_and_mover(position: &Position) -> (String, char) {
    let text = position.to_string();
    let (picture, mover) = text.split_at(text.len() - 2);
    (picture.to_owned(), if mover == " x" { 'x' } else { 'o' })
}

fn oracle_says(oracle: &mut Oracle, position: &Position) -> bool {
    let (picture, mover) = picture_and_mover(position);
    oracle.wins(&picture, mover)
}

#[test]
fn published_winners() -> Result<(), Failure> {
    let rows = include_str!("data/konane.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut seen = 0;
    for row in rows {
        let [board, start, winner] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns in {row:?}")
        };
        let (rows, columns) = size_from_text(board)?;
        let position = Position::start(rows, columns, start.parse()?, Side::Black)?;
        let winner = if winner == "black" { Winner::Black } else { Winner::White };
        assert_eq!(answer(position, Question::Winner)?, Answer::Winner { winner: Some(winner) }, "{row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
    Ok(())
}

/// Every pair of neighbouring cells.
fn starts(rows: usize, columns: usize) -> Vec<(Cell, Cell)> {
    let cells = || (0..rows).flat_map(|y| (0..columns).map(move |x| Cell { x, y }));
    let right = cells().filter(|c| c.x + 1 < columns).map(|c| (c, Cell { x: c.x + 1, ..c }));
    let down = cells().filter(|c| c.y + 1 < rows).map(|c| (c, Cell { y: c.y + 1, ..c }));
    right.chain(down).collect()
}

#[test]
fn every_position_reachable_on_4x4() -> Result<(), Failure> {
    let mut oracle = Oracle::default();
    let mut seen = BTreeSet::new();
    for (a, b) in starts(4, 4) {
        for first in [Side::Black, Side::White] {
            let start = Position::start(4, 4, Start::Cells(a, b), first)?;
            let mut open = vec![picture_and_mover(&start)];
            while let Some((picture, mover)) = open.pop() {
                if seen.insert((picture.clone(), mover)) {
                    open.extend(
                        oracle::moves(&picture, mover).into_iter().map(|next| (next, oracle::enemy(mover))),
                    );
                }
            }
        }
    }
    assert!(seen.len() > 10_000, "only {} positions", seen.len());
    let problem =
        Problem { position: Position::start(4, 4, Start::Corner, Side::Black)?, question: Question::Winner };
    let mut engine = KonaneEngine::new(&problem, Namespace(7), Arc::new(MapTable::default()));
    let claims = problem.claims();
    for (picture, mover) in seen {
        let position: Position = format!("{picture} {mover}").parse()?;
        let (verdict, _) = decide(&mut engine, &claims.claim(position.stones(), position.mover()), u64::MAX)?;
        assert_eq!(verdict, Verdict::Decided(oracle.wins(&picture, mover)), "{position}");
    }
    Ok(())
}

#[test]
fn mirrored_and_colour_swapped_starts_agree() -> Result<(), Failure> {
    for (rows, columns) in [(3, 5), (4, 4), (4, 5), (5, 5)] {
        let mut fates: HashMap<(usize, usize, usize, usize, Side), bool> = HashMap::new();
        for (a, b) in starts(rows, columns) {
            for first in [Side::Black, Side::White] {
                let fate = wins(Position::start(rows, columns, Start::Cells(a, b), first)?)?;
                fates.insert((a.x + b.x, a.y + b.y, rows, columns, first), fate);
            }
        }
        // A pair of neighbours is named by the sum of its coordinates: its middle, doubled.
        for (&(x, y, rows, columns, first), fate) in &fates {
            let mirrors = [
                (2 * (columns - 1) - x, y, columns.is_multiple_of(2)),
                (x, 2 * (rows - 1) - y, rows.is_multiple_of(2)),
            ];
            for (x, y, swaps) in mirrors {
                let first = if swaps { first.other() } else { first };
                assert_eq!(
                    fates[&(x, y, rows, columns, first)],
                    *fate,
                    "{rows}x{columns}, doubled middle {x},{y}"
                );
            }
            if rows == columns {
                assert_eq!(
                    fates[&(y, x, rows, columns, first)],
                    *fate,
                    "{rows}x{columns} transposed, {y},{x}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_search_in_small_steps_comes_to_the_same_end() -> Result<(), Failure> {
    let problem =
        Problem { position: Position::start(5, 5, Start::Corner, Side::Black)?, question: Question::Winner };
    let claims = problem.claims();
    let root = claims.claim(problem.position.stones(), problem.position.mover());
    let Expansion::Open(edges) = claims.expand(&root)? else { panic!("the start is not over") };
    let children: BTreeSet<Claim> = edges.into_iter().map(|edge| edge.claim).collect();
    let mut engine = KonaneEngine::new(&problem, Namespace(7), Arc::new(MapTable::default()));
    let mut steps = 0;
    loop {
        let (verdict, nodes) = decide(&mut engine, &root, 100)?;
        assert!(nodes <= 100);
        match verdict {
            Verdict::Decided(truth) => {
                assert!(truth, "black wins 5x5 from the corner");
                break;
            }
            Verdict::Open { children: known, .. } => {
                assert!(known.iter().all(|child| children.contains(&child.edge.claim)));
            }
        }
        steps += 1;
        assert!(steps < 1_000, "no end in sight");
    }
    assert!(steps > 0, "the budget never ran out");
    Ok(())
}

#[test]
fn a_learned_fact_needs_no_search() -> Result<(), Failure> {
    let problem =
        Problem { position: Position::start(6, 6, Start::Center, Side::Black)?, question: Question::Winner };
    let root = problem.claims().claim(problem.position.stones(), problem.position.mover());
    let mut engine = KonaneEngine::new(&problem, Namespace(7), Arc::new(MapTable::default()));
    engine.learn(&Fact { claim: root.clone(), truth: false, work: 1 })?;
    assert_eq!(decide(&mut engine, &root, 0)?, (Verdict::Decided(false), 0));
    Ok(())
}

/// A picture of the given size: about one place in eight is no cell, about one in `1 + stones` of the others is empty.
fn picture(width: usize, height: usize, stones: u32) -> impl Strategy<Value = String> {
    let cell = prop_oneof![1 => Just('#'), 2 => Just('.'), 2 * stones => Just('s')];
    proptest::collection::vec(cell, width * height).prop_map(move |cells| {
        let letter = |(i, c)| match c {
            's' => ['x', 'o'][(i % width + i / width) % 2],
            other => other,
        };
        let letters: Vec<char> = cells.into_iter().enumerate().map(letter).collect();
        letters.chunks(width).map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("|")
    })
}

fn position() -> impl Strategy<Value = Position> {
    (1usize..=5, 1usize..=5, 1u32..=4)
        .prop_flat_map(|(width, height, stones)| picture(width, height, stones))
        .prop_filter("at most 20 stones", |picture| picture.matches(['x', 'o']).count() <= 20)
        .prop_flat_map(|picture| {
            prop_oneof![Just(" x"), Just(" o")].prop_map(move |mover| format!("{picture}{mover}"))
        })
        .prop_map(|text| text.parse().expect("a picture made by the rules of the notation"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_positions_agree_with_the_oracle(position in position()) {
        let expected = oracle_says(&mut Oracle::default(), &position);
        prop_assert_eq!(wins(position).map_err(|e| TestCaseError::fail(e.to_string()))?, expected);
    }

    #[test]
    fn a_claim_is_true_exactly_when_an_edge_supports_it(position in position()) {
        let mut oracle = Oracle::default();
        let claims = KonaneClaims::new(*position.board());
        let claim = claims.claim(position.stones(), position.mover());
        let expansion = claims.expand(&claim).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let truth = match expansion {
            Expansion::Decided(truth) => truth,
            Expansion::Open(edges) => {
                let distinct: BTreeSet<&Claim> = edges.iter().map(|edge| &edge.claim).collect();
                prop_assert_eq!(distinct.len(), edges.len());
                let mut supported = false;
                for edge in &edges {
                    claims.check(&edge.claim).map_err(|e| TestCaseError::fail(e.to_string()))?;
                    let child = claims.position(&edge.claim).map_err(|e| TestCaseError::fail(e.to_string()))?;
                    supported |= edge.polarity.supports(oracle_says(&mut oracle, &child));
                }
                supported
            }
        };
        prop_assert_eq!(truth, oracle_says(&mut oracle, &position));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_that_forgets_everything_changes_no_answer(
        position in position().prop_filter("few stones", |p| p.stones().count_ones() <= 12),
    ) {
        let problem = Problem { position, question: Question::Outcome };
        let table: Arc<dyn Table> = Arc::new(NoTable);
        let mut engine = KonaneEngine::new(&problem, Namespace(0), table);
        let claim = problem.claims().claim(position.stones(), position.mover());
        let (verdict, _) =
            decide(&mut engine, &claim, u64::MAX).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(verdict, Verdict::Decided(oracle_says(&mut Oracle::default(), &position)));
    }
}
