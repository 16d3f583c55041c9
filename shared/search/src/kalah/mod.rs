//! The engine that decides claims of Kalah: depth-first null-window search on the gain, over a table of bounds and an exact endgame
//! database.

pub mod evaluation;
pub mod fill;
pub mod gains;
mod hints;
pub mod layers;
pub mod search;
pub mod sides;
pub mod tables;

use crate::engine::{Child, Engine, EngineTables, Limits, Outcome, Stopped, Verdict};
use crate::numbers::Numbers;
use crate::samples::Samples;
use crate::table::{Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Expansion, Fact};
use grundy_games::kalah::{Board, KalahClaims, Problem, child_margin};
use search::{Decided, Search};
use std::sync::{Arc, Weak};
use tables::{KalahTables, KalahWish};

/// So many more seeds in play are taken to make a proof twice as large.
const SEEDS_PER_DOUBLING: i16 = 4;

/// Decides claims of one problem's rules.
pub struct KalahEngine {
    claims: KalahClaims,
    /// Where tables come from.
    source: Arc<dyn EngineTables>,
    /// For boards of so many seeds.
    wish: KalahWish,
    /// The tables in use; none while it rests.
    held: Option<Arc<KalahTables>>,
    /// The tables that it had last. As long as others use them they are at hand.
    last: Weak<KalahTables>,
    namespace: Namespace,
    table: Arc<dyn Table>,
}

impl KalahEngine {
    /// An engine over tables that other engines may share. `None` if there is no memory for them.
    pub fn new(
        problem: &Problem,
        namespace: Namespace,
        table: Arc<dyn Table>,
        source: Arc<dyn EngineTables>,
    ) -> Option<Self> {
        let claims = KalahClaims::new(problem.position().houses(), problem.rules());
        let wish = Self::wish(problem);
        let tables = source.kalah(wish)?;
        let last = Arc::downgrade(&tables);
        Some(Self { claims, source, wish, held: Some(tables), last, namespace, table })
    }

    /// The tables, if somebody has them.
    fn at_hand(&self) -> Option<Arc<KalahTables>> {
        self.held.clone().or_else(|| self.last.upgrade())
    }

    /// Tables for boards of so many seeds, most often those that it had. `None` if there is no memory for them, or if whoever builds them is told to stop.
    fn hold(&mut self, seeds: i16) -> Option<Arc<KalahTables>> {
        let seeds = seeds.clamp(0, u8::MAX.into()) as u8;
        self.wish.seeds = self.wish.seeds.max(seeds);
        // Those that it had go first, so that there is room for others: by now more memory may be free, or have to be shared.
        self.held = None;
        self.held = self.source.kalah(self.wish);
        self.last = self.held.as_ref().map_or_else(Weak::new, Arc::downgrade);
        self.held.clone()
    }

    /// The tables that a problem wants.
    pub fn wish(problem: &Problem) -> KalahWish {
        let seeds = problem.position().board().seeds().clamp(0, u8::MAX.into()) as u8;
        KalahWish { houses: problem.position().houses(), rules: problem.rules(), seeds }
    }

    fn search<'a>(&'a self, tables: &'a KalahTables, limits: &'a Limits<'a>) -> Search<'a> {
        Search::new(self.claims.table(), tables, &*self.table, self.namespace, limits)
    }

    /// The two claims that bound a board's gain, where tables say more than the rules: a search often finds out more than was asked.
    fn bounds(&self, board: Board, search: &Search<'_>, work: u64) -> Vec<Fact> {
        let (known, seeds) = (search.known(board), board.seeds());
        let of = |margin, truth| Fact { claim: self.claims.claim(board, margin), truth, work };
        let low = (known.low > -seeds).then(|| of(known.low, true));
        let high = (known.high < seeds).then(|| of(known.high + 2, false));
        low.into_iter().chain(high).collect()
    }

    /// The claim of a move that shows that the mover gains as much, if tables tell of one: whoever wants to play on need not search for it.
    fn witness(&self, board: Board, margin: i16, search: &Search<'_>) -> Option<Fact> {
        self.claims.table().moves(board).find_map(|(_, played)| {
            let margin = child_margin(margin, played.banked, played.again);
            let truth = search.known(played.board).truth(margin)?;
            let shows = truth == played.again;
            shows.then(|| Fact { claim: self.claims.claim(played.board, margin), truth, work: 1 })
        })
    }

    /// An open claim's numbers and those of its children, as far as tables and the look of the boards tell.
    fn open(&self, claim: &Claim, search: &Search<'_>) -> Result<Verdict, ClaimError> {
        let numbers = |claim: &Claim| {
            let (board, margin) = self.claims.decode(claim)?;
            let truth = search.known(board).truth(margin);
            Ok(truth.map_or_else(|| estimate(board, margin), Numbers::decided))
        };
        let children = match self.claims.expand(claim)? {
            Expansion::Open(edges) => {
                let children =
                    edges.into_iter().map(|edge| Ok(Child { numbers: numbers(&edge.claim)?, edge }));
                children.collect::<Result<Vec<_>, ClaimError>>()?
            }
            Expansion::Decided(_) => Vec::new(),
        };
        Ok(Verdict::Open { numbers: numbers(claim)?, children })
    }
}

impl Engine for KalahEngine {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        let (board, margin) = self.claims.decode(claim)?;
        let Some(tables) = self.hold(board.seeds()) else {
            let numbers =
                self.claims.decided(claim)?.map_or_else(|| estimate(board, margin), Numbers::decided);
            let verdict = match numbers.truth() {
                Some(truth) => Verdict::Decided(truth),
                None => Verdict::Open { numbers, children: Vec::new() },
            };
            return Ok(Outcome { verdict, nodes: 0, facts: Vec::new(), samples: Samples::default() });
        };
        let _presence = crate::together::CROWD.join();
        let mut search = self.search(&tables, limits);
        let verdict = match search.gains_at_least(board, margin) {
            Ok(truth) => Verdict::Decided(truth),
            Err(Stopped) => self.open(claim, &search)?,
        };
        let nodes = search.nodes();
        let (bounds, witness) = match verdict {
            Verdict::Decided(true) => {
                (self.bounds(board, &search, nodes), self.witness(board, margin, &search))
            }
            Verdict::Decided(false) => (self.bounds(board, &search, nodes), None),
            Verdict::Open { .. } => (Vec::new(), None),
        };
        let samples = search.samples();
        let facts = search.into_costly().into_iter().map(|Decided { board, margin, truth, work }| Fact {
            claim: self.claims.claim(board, margin),
            truth,
            work,
        });
        let facts = facts.chain(witness).chain(bounds).filter(|fact| fact.claim != *claim).collect();
        Ok(Outcome { verdict, nodes, facts, samples })
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        let (board, margin) = self.claims.decode(&fact.claim)?;
        let (stop, progress) = Default::default();
        let limits = Limits { nodes: 0, ..Limits::endless(&stop, &progress) };
        // Tables that nobody searches with are not brought back for it.
        if let Some(tables) = self.at_hand() {
            self.search(&tables, &limits).learn(Decided {
                board,
                margin,
                truth: fact.truth,
                work: fact.work,
            });
        }
        Ok(())
    }

    /// Lets go of the tables, so that those of other problems find room.
    fn rest(&mut self) {
        self.held = None;
    }
}

/// Numbers of an open claim of which only the board is known: larger with more seeds in play, and the further the margin is
/// from a guess at the gain, the harder the answer on the far side is to prove.
fn estimate(board: Board, margin: i16) -> Numbers {
    let ahead = board.guess() - margin;
    let near = 1u32 << (board.seeds() / SEEDS_PER_DOUBLING).clamp(0, 20);
    let far = near.saturating_mul(1 + u32::from(ahead.unsigned_abs()));
    if ahead >= 0 { Numbers::open(near, far) } else { Numbers::open(far, near) }
}
