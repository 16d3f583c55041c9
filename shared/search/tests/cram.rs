//! Cram's engine and claims against published nimbers and a solver written straight from the rules.

#[path = "oracle/cram.rs"]
mod oracle;
mod support;

use grundy_games::claim::{Claim, ClaimRules, Expansion, Fact};
use grundy_games::cram::{CramClaims, CramPlan, Position, Problem, Sum};
use grundy_games::plan::{Answer, Outcome};
use grundy_search::cram::{CramEngine, CramTree, SMALL_CELLS_MAX};
use grundy_search::dfpn::DfpnEngine;
use grundy_search::engine::{Child, Engine, Limits, Verdict};
use grundy_search::numbers::Numbers;
use grundy_search::table::{Entry, Key, Known, Namespace, Table};
use oracle::Oracle;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use support::{MapTable, NoTable, built};

const NAMESPACE: Namespace = Namespace(1);

/// For pair tables, as a small worker has them.
const PAIR_BYTES: usize = 1 << 27;

fn plan(position: &str, question: &str) -> CramPlan {
    CramPlan::new(&Problem::from_text("", position, question).expect("the position is well formed"))
}

fn claim(position: &str, heap: u8) -> Claim {
    CramClaims::claim(&position.parse::<Position>().expect("the position is well formed").sum(), heap)
}

/// Searches one claim; the verdict and the nodes.
fn decide(engine: &mut dyn Engine, claim: &Claim, nodes: u64) -> (Verdict, u64) {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits { nodes, ..Limits::endless(&stop, &progress) };
    let outcome = engine.decide(claim, &limits).expect("the claim is well formed");
    assert_eq!(progress.into_inner(), outcome.nodes, "progress counts every node");
    (outcome.verdict, outcome.nodes)
}

/// A table of one entry: it forgets whenever it learns.
#[derive(Default)]
struct OneEntry(Mutex<Option<(Key, Entry)>>);

impl Table for OneEntry {
    fn probe(&self, key: &Key) -> Option<Entry> {
        let kept = *self.0.lock().expect("no test thread panics while it holds the lock");
        kept.filter(|(kept_key, _)| kept_key == key).map(|(_, entry)| entry)
    }

    fn store(&self, key: &Key, entry: Entry) {
        *self.0.lock().expect("no test thread panics while it holds the lock") = Some((*key, entry));
    }
}

#[test]
fn published_nimbers() {
    let rows = include_str!("data/cram.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    for row in rows {
        let (board, nimber) = row.split_once('\t').expect("two columns");
        let nimber = nimber.parse().expect("a number");
        let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(PAIR_BYTES));
        let (answer, nodes) =
            support::answer(&plan(board, "nimber"), &mut engine).expect("there is no budget");
        println!("{board}: {answer:?} in {nodes} nodes");
        assert_eq!(answer, Answer::Nimber { nimber }, "{board}");
        let outcome = if nimber == 0 { Outcome::Loss } else { Outcome::Win };
        let (answer, _) = support::answer(&plan(board, "outcome"), &mut engine).expect("there is no budget");
        assert_eq!(answer, Answer::Outcome { outcome: Some(outcome) }, "{board}");
    }
}

/// A row of cells is Dawson's Kayles (octal game 0.07): a move takes two neighbours and splits the row in two.
#[test]
fn strips_are_dawsons_kayles() {
    let mut expected = vec![0u32, 0];
    for cells in 2..=128usize {
        let reached: Vec<u32> =
            (0..=cells - 2).map(|left| expected[left] ^ expected[cells - 2 - left]).collect();
        expected.push((0..).find(|n| !reached.contains(n)).expect("a finite list misses a number"));
    }
    let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(PAIR_BYTES));
    for (cells, nimber) in expected.iter().enumerate().skip(1) {
        let board = format!("1x{cells}");
        let (answer, _) = support::answer(&plan(&board, "nimber"), &mut engine).expect("there is no budget");
        assert_eq!(answer, Answer::Nimber { nimber: *nimber }, "{board}");
    }
}

/// Pictures of boards of up to `cells_max` cells, of which most are empty.
fn pictures(cells_max: usize) -> impl Strategy<Value = String> {
    (1..=5usize, 1..=8usize)
        .prop_filter("too many cells", move |(rows, columns)| rows * columns <= cells_max)
        .prop_flat_map(|(rows, columns)| {
            let row = prop::collection::vec(prop::bool::weighted(0.85), columns);
            prop::collection::vec(row, rows)
        })
        .prop_map(|rows| {
            let row = |cells: &Vec<bool>| cells.iter().map(|empty| if *empty { '.' } else { '#' }).collect();
            rows.iter().map(row).collect::<Vec<String>>().join("|")
        })
}

/// The nimber of a sum by the oracle.
fn sum_nimber(oracle: &mut Oracle, sum: &Sum) -> u32 {
    sum.components().iter().fold(0, |nimber, component| nimber ^ oracle.nimber(&component.to_string()))
}

proptest! {
    // Failures print their shrunk case; there is no file of them to keep.
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// However much is left to the mex rule, and however forgetful the table, the engine agrees with the oracle.
    #[test]
    fn engine_agrees_with_the_oracle(picture in pictures(20), small_cells in 0..=SMALL_CELLS_MAX) {
        let expected = Answer::Nimber { nimber: Oracle::default().nimber(&picture) };
        let tables: [Arc<dyn Table>; 2] = [Arc::new(MapTable::default()), Arc::new(OneEntry::default())];
        // A proof-number search that remembers nothing repeats itself without end in sight on large components.
        let forgetful = picture.matches('.').count() <= 12 + small_cells as usize / 2;
        for table in tables.into_iter().take(1 + usize::from(forgetful)) {
            let tree = CramTree::with_small_cells(NAMESPACE, small_cells);
            let mut engine = DfpnEngine::new(tree, table);
            let (answer, _) = support::answer(&plan(&picture, "nimber"), &mut engine).expect("there is no budget");
            prop_assert_eq!(&answer, &expected);
        }
    }

    /// Simplification keeps the nimber, and a claim is true exactly when the rules decide it so or a child supports it.
    #[test]
    fn claims_agree_with_the_oracle(picture in pictures(16), heap in 0..5u8) {
        let mut oracle = Oracle::default();
        let nimber = oracle.nimber(&picture);
        let claim = claim(&picture, heap);
        let (sum, _) = CramClaims::couple(&claim).expect("the claim is well formed");
        prop_assert_eq!(sum_nimber(&mut oracle, &sum), nimber);
        prop_assert!(nimber <= u32::from(sum.nimber_max()));
        let truth = match CramClaims.expand(&claim).expect("the claim is well formed") {
            Expansion::Decided(truth) => truth,
            Expansion::Open(edges) => edges.iter().any(|edge| {
                let (sum, heap) = CramClaims::couple(&edge.claim).expect("the child is well formed");
                edge.polarity.supports(sum_nimber(&mut oracle, &sum) != u32::from(heap))
            }),
        };
        prop_assert_eq!(truth, nimber != u32::from(heap));
    }

    /// A search in small instalments comes to the same verdict, and its numbers never claim what is not so.
    #[test]
    fn instalments_agree_with_the_oracle(picture in pictures(20), heap in 0..4u8, nodes in 1..20u64) {
        let mut oracle = Oracle::default();
        let expected = oracle.nimber(&picture) != u32::from(heap);
        let claim = claim(&picture, heap);
        let tree = CramTree::with_small_cells(NAMESPACE, 6);
        let mut engine = DfpnEngine::new(tree, Arc::new(MapTable::default()));
        // An instalment may be spent on the way down to where the one before stopped, hence the growing budget.
        for instalment in 1.. {
            match decide(&mut engine, &claim, nodes * instalment) {
                (Verdict::Decided(truth), _) => {
                    prop_assert_eq!(truth, expected);
                    break;
                }
                (Verdict::Open { numbers, children }, spent) => {
                    prop_assert_eq!(spent, nodes * instalment);
                    prop_assert_eq!(numbers.truth(), None);
                    let mut supported = children.is_empty().then_some(expected);
                    for Child { edge, numbers } in children {
                        let (sum, heap) = CramClaims::couple(&edge.claim).expect("the child is well formed");
                        let truth = sum_nimber(&mut oracle, &sum) != u32::from(heap);
                        prop_assert!(numbers.truth().is_none_or(|claimed| claimed == truth));
                        *supported.get_or_insert(false) |= edge.polarity.supports(truth);
                    }
                    prop_assert_eq!(supported, Some(expected), "it hangs on its children");
                }
            }
        }
    }
}

#[test]
fn sums_are_resolved_without_a_table() {
    for picture in ["...|#..|###|..#|...", ".....#..|.##.##..|##..#..#", "...##..|..##..#|####...|....###"] {
        let nimber = Oracle::default().nimber(picture);
        let tree = CramTree::with_small_cells(NAMESPACE, 3);
        let mut engine = DfpnEngine::new(tree, Arc::new(NoTable));
        let (answer, _) = support::answer(&plan(picture, "nimber"), &mut engine).expect("there is no budget");
        assert_eq!(answer, Answer::Nimber { nimber }, "{picture}");
    }
}

#[test]
fn a_stopped_search_is_open() {
    let (stop, progress) = (AtomicBool::new(true), AtomicU64::new(0));
    let limits = Limits { report_work_min: 0, ..Limits::endless(&stop, &progress) };
    let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(PAIR_BYTES));
    let outcome = engine.decide(&claim("3x9", 1), &limits).expect("the claim is well formed");
    assert!(
        matches!(outcome.verdict, Verdict::Open { numbers: Numbers::UNKNOWN, .. }),
        "{:?}",
        outcome.verdict
    );
    assert_eq!(outcome.nodes, 0);
}

#[test]
fn a_learned_nimber_is_not_searched_for() {
    // (claim that is learned to be lost, claim that follows, its truth)
    let cases = [
        (("3x8", 3), ("3x8", 3), false),
        (("3x8", 3), ("3x8", 0), true),
        // A sum whose other component is small: 1x4 is *2, so 3x8 is *3.
        (("........#....|........#####|........#####", 1), ("3x8", 3), false),
    ];
    for ((known, known_heap), (asked, heap), expected) in cases {
        let mut engine = CramEngine::new(NAMESPACE, Arc::new(MapTable::default()), built(PAIR_BYTES));
        let fact = Fact { claim: claim(known, known_heap), truth: false, work: 1000 };
        engine.learn(&fact).expect("the claim is well formed");
        let verdict = decide(&mut engine, &claim(asked, heap), u64::MAX);
        assert_eq!(verdict, (Verdict::Decided(expected), 0), "{asked} + *{heap}");
    }
}

#[test]
fn facts_are_reported_and_true() {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits { report_work_min: 4, ..Limits::endless(&stop, &progress) };
    let table = Arc::new(MapTable::default());
    let mut engine = CramEngine::new(NAMESPACE, table, built(PAIR_BYTES));
    let outcome = engine.decide(&claim("3x7", 1), &limits).expect("the claim is well formed");
    assert_eq!(outcome.verdict, Verdict::Decided(false));
    assert!(!outcome.facts.is_empty(), "3x7 takes more than a few nodes");
    let mut oracle = Oracle::default();
    for Fact { claim, truth, work } in &outcome.facts {
        let (sum, heap) = CramClaims::couple(claim).expect("the fact is well formed");
        assert!(*work >= 4);
        assert_eq!(
            *truth,
            sum_nimber(&mut oracle, &sum) != u32::from(heap),
            "{}",
            CramClaims.describe(claim)
        );
    }
}

#[test]
fn equal_keys_are_equal_couples() {
    use grundy_search::dfpn::Tree;
    let tree = CramTree::new(NAMESPACE);
    let mut keys = std::collections::HashMap::new();
    for board in ["3x5", "3x6", "5x5", "1x16", "1x17", "1x128", "4x7", "....|...#|..##", ".......|..#...."] {
        for heap in [0, 1, 127] {
            let claim = claim(board, heap);
            let state = tree.state(&claim).expect("the claim is well formed");
            assert_eq!(tree.claim(&state), claim);
            let key = tree.key(&state).expect("one component");
            assert_eq!(keys.insert(key, claim), None);
        }
    }
}

#[test]
fn the_nimber_is_kept_as_a_value() {
    let table = Arc::new(MapTable::default());
    let mut engine = CramEngine::plain(NAMESPACE, table.clone());
    assert_eq!(decide(&mut engine, &claim("3x6", 4), u64::MAX).0, Verdict::Decided(false));
    let cells = (1u64 << 18) - 1;
    let entry = table.probe(&Key::new([cells, 0], 5 << 8 | 255, NAMESPACE)).expect("the value was stored");
    assert_eq!(entry.known, Known::Value(4));
}

/// A small table that keeps what came last in each slot, so that threads overwrite each other's entries.
struct Forgetful(Vec<Mutex<Option<(Key, Entry)>>>);

impl Forgetful {
    fn slot(&self, key: &Key) -> std::sync::MutexGuard<'_, Option<(Key, Entry)>> {
        let mixed = (key.words[0] ^ key.words[1].rotate_left(9) ^ u64::from(key.tag) << 32)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &self.0[(mixed >> 40) as usize % self.0.len()];
        slot.lock().expect("no thread panics while it holds a slot")
    }
}

impl Table for Forgetful {
    fn probe(&self, key: &Key) -> Option<Entry> {
        self.slot(key).filter(|(kept, _)| kept == key).map(|(_, entry)| entry)
    }

    fn store(&self, key: &Key, entry: Entry) {
        let mut slot = self.slot(key);
        if slot.is_none_or(|(kept, known)| kept != *key || !known.is_final() || entry.is_final()) {
            *slot = Some((*key, entry));
        }
    }
}

/// Threads on one claim: some stay, some come and go in turns of a few nodes; whoever decides it is right.
#[test]
fn threads_decide_a_claim_together() {
    let boards = ["3x6", "3x7", "4x5", "....|..#.|....|.#..|....", ".......|..#....|.......", "4x4"];
    for (round, picture) in boards.iter().cycle().take(24).enumerate() {
        let nimber = CramPlan::new(&Problem::from_text("", picture, "nimber").expect("well formed"));
        let nimber = match support::answer(
            &nimber,
            &mut CramEngine::plain(NAMESPACE, Arc::new(MapTable::default())),
        ) {
            Ok((Answer::Nimber { nimber }, _)) => nimber,
            other => panic!("{picture}: {other:?}"),
        };
        let heap = (round % 4) as u8;
        let table: Arc<dyn Table> = Arc::new(Forgetful((0..1 << 10).map(|_| Mutex::new(None)).collect()));
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let total = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..2 + round % 3 {
                let (table, stop, progress, total) = (table.clone(), &stop, &progress, &total);
                scope.spawn(move || {
                    let mut engine = DfpnEngine::new(CramTree::with_small_cells(NAMESPACE, 6), table);
                    let nodes = if thread == 0 { u64::MAX } else { 50 * thread as u64 };
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let limits = Limits { nodes, ..Limits::endless(stop, progress) };
                        let outcome = engine.decide(&claim(picture, heap), &limits).expect("well formed");
                        assert!(outcome.nodes <= nodes);
                        total.fetch_add(outcome.nodes, std::sync::atomic::Ordering::Relaxed);
                        if let Verdict::Decided(truth) = outcome.verdict {
                            stop.store(true, std::sync::atomic::Ordering::Relaxed);
                            assert_eq!(
                                truth,
                                nimber != u32::from(heap),
                                "{picture} and *{heap}, round {round}"
                            );
                        }
                    }
                });
            }
        });
        assert_eq!(progress.into_inner(), total.into_inner(), "progress counts every node of every thread");
    }
}
