//! Kalah's engine and plan against published values and a naive oracle.
//!
//! `GRUNDY_LONG_TESTS=1` adds the published games that take minutes.

#[path = "oracle/kalah.rs"]
mod oracle;
mod support;

use grundy_games::claim::{Claim, ClaimRules, Edge, Expansion, Fact};
use grundy_games::kalah::{
    KalahClaims, KalahPlan, MoveTable, Position, Problem, Rules, parse_opening, replay,
};
use grundy_games::plan::{Answer, OpeningAnswer, Plan, Progress};
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::{Engine, Limits, Verdict};
use grundy_search::evaluate::{Facts, Known};
use grundy_search::kalah::KalahEngine;
use grundy_search::samples::{Range, SEARCHES_MIN, Sample};
use grundy_search::table::{Namespace, Table};
use oracle::Bins;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{MapTable, NoTable};

/// Published games with more seeds than this are for the long tests.
const SHORT_SEEDS_MAX: u32 = 26;

/// And with more than this for a cluster.
const LONG_SEEDS_MAX: u32 = 36;

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("board"))
        .map(|line| line.split('\t').collect())
}

fn problem(rules: &str, position: &str, question: &str) -> Problem {
    Problem::from_text(rules, position, question)
        .unwrap_or_else(|error| panic!("{position} {question}: {error}"))
}

/// More than any line of play of the boards here has plies.
const PLIES_MAX: u64 = 100;

/// Little enough memory that boards of a dozen seeds are searched.
const BYTES: usize = 1 << 14;

fn engine(problem: &Problem) -> KalahEngine {
    engine_over(problem, Arc::new(MapTable::default()), BYTES)
}

fn engine_over(problem: &Problem, table: Arc<dyn Table>, bytes: usize) -> KalahEngine {
    let tables = Arc::new(BuiltTables::new(bytes));
    KalahEngine::new(problem, Namespace(3), table, tables).expect("there is memory")
}

fn answer(problem: &Problem) -> Answer {
    support::answer(&KalahPlan::new(problem), &mut engine(problem)).expect("no budget, no malformed claims").0
}

fn openings_of(answer: Answer) -> (Option<i16>, Vec<OpeningAnswer>) {
    match answer {
        Answer::Openings { value, openings, .. } => (value, openings),
        other => panic!("expected openings, got {other:?}"),
    }
}

/// The final difference to the first player after an opening and its continuation, which has to end the game.
fn replayed(problem: &Problem, opening: &OpeningAnswer) -> Option<i16> {
    let position = problem.position();
    let table = MoveTable::new(position.houses(), problem.rules());
    let turn =
        parse_opening(&table, position.board(), &opening.opening).expect("answers name valid openings");
    let mut bins = turn.bins(position);
    bins.extend(&opening.continuation);
    let end = replay(&table, position, &bins).expect("a continuation is playable");
    let difference = end.final_difference()?;
    Some(if position.mover() == grundy_games::kalah::Player::South { difference } else { -difference })
}

/// The openings' values, once each line replays to its value: which of the perfect lines it is depends on the search.
fn values(problem: &Problem, answer: Answer) -> Vec<(String, Option<i16>)> {
    let (_, openings) = openings_of(answer);
    for opening in &openings {
        assert_eq!(replayed(problem, opening), opening.value, "{opening:?}");
    }
    openings.into_iter().map(|opening| (opening.opening, opening.value)).collect()
}

fn published_games(seeds: std::ops::RangeInclusive<u32>) {
    let mut solved = 0;
    for row in rows(include_str!("data/kalah-games.tsv")) {
        let (houses, each) = row[0].split_once(',').expect("the file gives houses,seeds");
        let number = |text: &str| -> u32 { text.parse().expect("the file gives a number") };
        if !seeds.contains(&(2 * number(houses) * number(each))) {
            continue;
        }
        let problem = problem(row[1], row[0], "values");
        let (value, openings) = openings_of(answer(&problem));
        assert_eq!(value, Some(row[2].parse().expect("the file gives a number")), "{row:?}");
        for opening in &openings {
            assert_eq!(replayed(&problem, opening), opening.value, "{row:?} {opening:?}");
        }
        solved += 1;
    }
    assert!(solved > 0);
}

#[test]
fn published_games_come_out_with_lines_that_replay_to_their_values() {
    published_games(0..=SHORT_SEEDS_MAX);
}

#[test]
fn published_games_that_take_longer() {
    if std::env::var_os("GRUNDY_LONG_TESTS").is_some() {
        published_games(SHORT_SEEDS_MAX + 1..=LONG_SEEDS_MAX);
    }
}

/// Irving et al. count a position with its stores and the side to move, and do not go on from a finished game (which stays
/// unswept) or from one that either side has won with more than half of the seeds.
#[test]
fn the_game_graphs_have_the_published_sizes() {
    for row in rows(include_str!("data/kalah-graph.tsv")) {
        let start: Position = row[0].parse().expect("the file gives start positions");
        let table = MoveTable::new(start.houses(), Rules::EmptyCapture);
        let half = start.board().seeds() / 2;
        let won = |position: &Position| {
            [position.store_of(position.mover()), position.store_of(position.mover().other())]
                .iter()
                .any(|&store| i16::from(store) > half)
        };
        let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
        while let Some(position) = open.pop() {
            if won(&position) {
                continue;
            }
            for house in 0..position.houses() {
                open.extend(position.play(&table, house).filter(|next| seen.insert(*next)));
            }
        }
        assert_eq!(seen.len().to_string(), row[1], "{row:?}");
    }
}

/// The published openings of six houses with four seeds are openings here, and their lines playable.
#[test]
fn published_continuations_are_playable() {
    for row in rows(include_str!("data/kalah-openings.tsv")) {
        let problem = problem(row[1], row[0], &format!("values {}", row[2]));
        let continuation: Vec<u8> =
            row[4].split(' ').map(|bin| bin.parse().expect("the file gives bins")).collect();
        let mut bins = problem.openings()[0].bins(problem.position());
        bins.extend(&continuation);
        let table = MoveTable::new(problem.position().houses(), problem.rules());
        replay(&table, problem.position(), &bins).unwrap_or_else(|error| panic!("{row:?}: {error}"));
    }
}

/// A position and the same in the oracle's bins.
#[derive(Clone, Debug)]
struct Small {
    text: String,
    rules: Rules,
    bins: Bins,
}

fn small(seeds_max: u32) -> impl Strategy<Value = Small> {
    (1usize..=4)
        .prop_flat_map(move |houses| {
            let bins = prop::collection::vec(0..=seeds_max / houses as u32, 2 * houses + 2);
            (Just(houses), bins, any::<bool>(), any::<bool>())
        })
        .prop_map(|(houses, seeds, north, empty_capture)| {
            let side = |seeds: &[u32]| seeds.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let mover = if north { "N" } else { "S" };
            let text = format!("{}/{} {mover}", side(&seeds[..=houses]), side(&seeds[houses + 1..]));
            let rules = if empty_capture { Rules::EmptyCapture } else { Rules::Standard };
            Small { text, rules, bins: Bins { seeds, houses, north, empty_capture } }
        })
}

fn lead(bins: &Bins) -> i32 {
    bins.store(bins.north) as i32 - bins.store(!bins.north) as i32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_agree_with_the_oracle(case in small(8)) {
        let mut memo = HashMap::new();
        let expected = case.bins.value(&mut memo);
        let values = problem(&case.rules.to_string(), &case.text, "values");
        let (value, openings) = openings_of(answer(&values));
        prop_assert_eq!(value.map(i32::from), Some(expected));
        for opening in &openings {
            prop_assert_eq!(replayed(&values, opening), opening.value, "{:?}", opening);
        }
        let gain = answer(&problem(&case.rules.to_string(), &case.text, "gain"));
        prop_assert_eq!(gain, Answer::Gain { gain: Some((expected - lead(&case.bins)) as i16) });
    }

    #[test]
    fn bounds_agree_with_the_oracle(case in small(6), bound in -12i16..12) {
        let expected = case.bins.value(&mut HashMap::new());
        let (value, openings) =
            openings_of(answer(&problem(&case.rules.to_string(), &case.text, &format!("at-least {bound}"))));
        if openings.is_empty() {
            prop_assert_eq!(value.map(i32::from), Some(expected));
            return Ok(());
        }
        let reached = openings.iter().filter_map(|opening| opening.at_least).max();
        prop_assert_eq!(reached.is_some(), expected >= i32::from(bound));
        for opening in openings {
            match (opening.at_least, opening.at_most) {
                (Some(least), None) => prop_assert!((bound..=bound + 1).contains(&least)),
                (None, Some(most)) => prop_assert!((bound - 2..bound).contains(&most)),
                both => prop_assert!(false, "{both:?}"),
            }
        }
    }

    /// A claim is true exactly when an edge supports it, claims implied by others are, and every claim says what the oracle says.
    #[test]
    fn claims_expand_as_the_oracle_plays(case in small(6), margin in -14i16..=14) {
        let position: Position = case.text.parse().expect("a small position");
        let claims = KalahClaims::new(position.houses(), case.rules);
        let claim = claims.claim(position.board(), margin);
        let mut memo = HashMap::new();
        let gain = case.bins.value(&mut memo) - lead(&case.bins);
        let truth = gain >= i32::from(margin);
        match claims.expand(&claim).expect("well formed") {
            Expansion::Decided(decided) => prop_assert_eq!(decided, truth),
            Expansion::Open(edges) => {
                let mut memo = HashMap::new();
                let supported = edges.iter().any(|edge| edge.polarity.supports(full_truth(&claims, &edge.claim, &mut memo)));
                prop_assert_eq!(supported, truth);
                let distinct: HashSet<_> = edges.iter().map(|edge| &edge.claim).collect();
                prop_assert_eq!(distinct.len(), edges.len());
            }
        }
        for asked in -14..=14 {
            if let Some(inferred) = claims.infer(claim.parameter, truth, asked) {
                prop_assert_eq!(inferred, gain >= i32::from(asked));
            }
        }
    }

    /// What the search reports on the way is true.
    #[test]
    fn reported_facts_are_true(case in small(10)) {
        let problem = problem(&case.rules.to_string(), &case.text, "gain");
        let claims = KalahClaims::new(problem.position().houses(), case.rules);
        let gain = (case.bins.value(&mut HashMap::new()) - lead(&case.bins)) as i16;
        let mut memo = HashMap::new();
        for margin in [gain, gain + 2] {
            let claim = claims.claim(problem.position().board(), margin);
            let (facts, _) = decide_in_steps(&problem, &claim, u64::MAX);
            for fact in facts {
                prop_assert_eq!(claims.check(&fact.claim), Ok(()));
                prop_assert_eq!(full_truth(&claims, &fact.claim, &mut memo), fact.truth, "{:?}", fact);
            }
        }
    }
}

/// Decides a claim by budgets of `step` nodes, one after the other, and checks each outcome against the contract of engines.
/// The facts reported on the way, the claim itself among them, and the number of budgets.
fn decide_in_steps(problem: &Problem, claim: &Claim, step: u64) -> (Vec<Fact>, u64) {
    let claims = KalahClaims::new(problem.position().houses(), problem.rules());
    let mut engine = engine(problem);
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits { nodes: step, report_work_min: 1, ..Limits::endless(&stop, &progress) };
    let (mut facts, mut steps, mut total) = (Vec::new(), 0, 0);
    loop {
        let outcome = engine.decide(claim, &limits).expect("well formed");
        steps += 1;
        total += outcome.nodes;
        // However small the budget, one board is looked at to its end.
        assert!(
            outcome.nodes <= step.max(PLIES_MAX) && outcome.facts.iter().all(|fact| fact.claim != *claim)
        );
        assert_eq!(progress.load(Ordering::Relaxed), total);
        assert!(total < 10_000_000, "no progress by steps of {step}: {}", claims.describe(claim));
        facts.extend(outcome.facts);
        match outcome.verdict {
            Verdict::Decided(truth) => {
                facts.push(Fact { claim: claim.clone(), truth, work: total });
                return (facts, steps);
            }
            Verdict::Open { numbers, children } => {
                assert_eq!(numbers.truth(), None);
                let Ok(Expansion::Open(edges)) = claims.expand(claim) else {
                    panic!("an open claim that the rules decide: {}", claims.describe(claim))
                };
                assert!(children.iter().map(|child| &child.edge).eq(&edges));
            }
        }
    }
}

#[test]
fn small_budgets_add_up() {
    for (board, value) in [("6,2", 6), ("4,3", 6), ("4,4", 2)] {
        let problem = problem("standard", board, "gain");
        let claims = KalahClaims::new(problem.position().houses(), Rules::Standard);
        for (margin, truth) in [(value, true), (value + 2, false)] {
            let claim = claims.claim(problem.position().board(), margin);
            let (facts, steps) = decide_in_steps(&problem, &claim, 25);
            assert!(steps > 1, "{board} was too easy to test anything");
            assert_eq!(facts.last().map(|fact| fact.truth), Some(truth), "{board} at least {margin}");
        }
    }
}

/// A claim's truth by expanding it to the end.
fn full_truth(claims: &KalahClaims, claim: &Claim, memo: &mut HashMap<Claim, bool>) -> bool {
    if let Some(truth) = memo.get(claim) {
        return *truth;
    }
    let truth = match claims.expand(claim).expect("children are well formed") {
        Expansion::Decided(truth) => truth,
        Expansion::Open(edges) => {
            edges.iter().any(|edge| edge.polarity.supports(full_truth(claims, &edge.claim, memo)))
        }
    };
    memo.insert(claim.clone(), truth);
    truth
}

#[test]
fn a_table_that_forgets_changes_nothing() {
    let problem = problem("standard", "3,4", "values");
    // Without any endgames, with some, and with all that may be of use.
    for bytes in [0, BYTES, 64 << 20] {
        let mut engine = engine_over(&problem, Arc::new(NoTable), bytes);
        let forgotten = support::answer(&KalahPlan::new(&problem), &mut engine).expect("no budget").0;
        let forgotten = values(&problem, forgotten);
        assert_eq!(forgotten, values(&problem, answer(&problem)), "{bytes} bytes");
    }
}

#[test]
fn learned_facts_spare_the_search() {
    let problem = problem("standard", "6,2", "gain");
    let claims = KalahClaims::new(6, Rules::Standard);
    let claim = claims.claim(problem.position().board(), 6);
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits { report_work_min: 1, ..Limits::endless(&stop, &progress) };
    let first = engine(&problem).decide(&claim, &limits).expect("well formed");
    assert_eq!(first.verdict, Verdict::Decided(true));
    assert!(!first.facts.is_empty());
    let mut taught = engine(&problem);
    for fact in &first.facts {
        taught.learn(fact).expect("facts are well formed");
    }
    let second = taught.decide(&claim, &limits).expect("well formed");
    assert_eq!(second.verdict, first.verdict);
    assert!(2 * second.nodes < first.nodes, "{} nodes, {} without the facts", second.nodes, first.nodes);
}

/// Of every board that gains a margin a move that shows it is reported: a line is played on without another search.
#[test]
fn a_true_claim_comes_with_a_move_that_shows_it() {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    for (rules, board, gain) in
        [("standard", "6,2", 6), ("empty-capture", "4,4", 2), ("empty-capture", "4,3", 8)]
    {
        let problem = problem(rules, board, "gain");
        let claims = KalahClaims::new(problem.position().houses(), problem.rules());
        let claim = claims.claim(problem.position().board(), gain);
        let outcome = engine(&problem).decide(&claim, &limits).expect("well formed");
        assert_eq!(outcome.verdict, Verdict::Decided(true), "{board} {rules}");
        let Expansion::Open(edges) = claims.expand(&claim).expect("well formed") else {
            panic!("{board} is open")
        };
        let shows = |edge: &Edge| {
            outcome.facts.iter().any(|fact| fact.claim == edge.claim && edge.polarity.supports(fact.truth))
        };
        assert!(edges.iter().any(shows), "{board} {rules}: {:?}", outcome.facts);
    }
}

/// An engine that was made for few seeds gets the tables that more seeds want, and one that rested gets its tables back.
#[test]
fn an_engine_gets_the_tables_that_a_claim_wants() {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    let (small, large) = (problem("standard", "3,1", "gain"), problem("standard", "3,4", "gain"));
    let claim = KalahClaims::new(3, Rules::Standard).claim(large.position().board(), 4);
    let nodes = |engine: &mut KalahEngine| engine.decide(&claim, &limits).expect("well formed").nodes;
    let fresh = nodes(&mut engine_over(&large, Arc::new(NoTable), 64 << 20));
    assert!(fresh > 0);
    let mut engine = engine_over(&small, Arc::new(NoTable), 64 << 20);
    assert_eq!(nodes(&mut engine), fresh);
    engine.rest();
    assert_eq!(nodes(&mut engine), 0, "what was found is still in the tables, which their source keeps");
}

#[test]
fn a_stopped_search_says_so() {
    let problem = problem("standard", "6,4", "gain");
    let claim = KalahClaims::new(6, Rules::Standard).claim(problem.position().board(), 8);
    let (stop, progress) = (AtomicBool::new(true), AtomicU64::new(0));
    let limits = Limits { report_work_min: 1, ..Limits::endless(&stop, &progress) };
    let outcome = engine(&problem).decide(&claim, &limits).expect("well formed");
    assert!(matches!(outcome.verdict, Verdict::Open { .. }));
}

#[test]
fn samples_tell_how_large_searches_were() {
    let problem = problem("empty-capture", "5,4", "gain");
    let claim = KalahClaims::new(5, Rules::EmptyCapture).claim(problem.position().board(), 12);
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    let outcome = engine(&problem).decide(&claim, &limits).expect("well formed");
    let levels: Vec<_> = outcome.samples.levels().collect();
    assert!(levels.len() > 9, "{levels:?}");
    for (level, Sample { searches, nodes, squares }) in levels {
        assert!(level <= 40 && searches >= SEARCHES_MIN && nodes >= searches, "{level}");
        // A search lies in one tree of each level at a time, and the mean of squares is at least the square of the mean.
        assert!(nodes <= outcome.nodes && squares * searches as f64 >= (nodes as f64).powi(2), "{level}");
    }
    let Range { low, high } = outcome.samples.growth().expect("enough levels").size(40);
    let nodes = outcome.nodes as f64;
    assert!(low < 10.0 * nodes && high > 0.1 * nodes, "{low} to {high}, it was {nodes}");
}

/// Answers fact by fact: intervals only narrow, contain the answer, and nothing known is asked.
#[test]
fn partial_answers_narrow() {
    let problem = problem("standard", "4,2", "values");
    let (_, exact) = openings_of(answer(&problem));
    let (plan, mut engine, mut facts) = (KalahPlan::new(&problem), engine(&problem), Facts::default());
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    loop {
        let known = Known { rules: plan.rules(), facts: &facts };
        let (_, partial) = openings_of(plan.partial(&known));
        for (partial, exact) in partial.iter().zip(&exact) {
            let value = exact.value.expect("the answer is complete");
            assert!(partial.value.is_none_or(|v| v == value), "{partial:?} {exact:?}");
            assert!(partial.at_least.is_none_or(|v| v <= value), "{partial:?} {exact:?}");
            assert!(partial.at_most.is_none_or(|v| v >= value), "{partial:?} {exact:?}");
        }
        let open: Vec<String> = plan.open_parts(&known).into_iter().map(|open| open.part).collect();
        let inexact = partial.iter().filter(|partial| partial.value.is_none());
        assert_eq!(open, inexact.map(|partial| partial.opening.clone()).collect::<Vec<_>>());
        let wanted = match plan.next(&known) {
            Progress::Ask(wanted) => wanted,
            Progress::Answered(answer) => {
                let exact = exact.into_iter().map(|exact| (exact.opening, exact.value));
                return assert_eq!(values(&problem, answer), exact.collect::<Vec<_>>());
            }
        };
        assert!(wanted.iter().all(|claim| facts.truth(plan.rules(), claim).is_none()));
        // The least urgent one: the answer may not depend on the order.
        let claim = wanted.last().expect("a plan asks for something");
        let outcome = engine.decide(claim, &limits).expect("well formed");
        let Verdict::Decided(truth) = outcome.verdict else { panic!("no budget") };
        facts.insert(plan.rules(), claim, truth).expect("no contradiction");
    }
}
