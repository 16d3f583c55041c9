//! How much Konane's search may expand. Alone in its process: searches of one process see each other and spread out, and their
//! numbers of expansions then depend on time.

mod support;

use grundy_games::konane::{Position, Problem, Question, Side, Start};
use grundy_search::engine::{Engine, Limits, Outcome, Verdict};
use grundy_search::konane::KonaneEngine;
use grundy_search::table::Namespace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use support::MapTable;

/// Goals of the search, not of the game: numbers of leaves decide how much is searched, and they are integers everywhere.
#[test]
fn the_starts_on_6x6_stay_within_their_expansions() -> Result<(), Box<dyn std::error::Error>> {
    for (start, most) in [(Start::Corner, 100_000), (Start::Center, 300_000)] {
        let problem =
            Problem { position: Position::start(6, 6, start, Side::Black)?, question: Question::Winner };
        let claim = problem.claims().claim(problem.position.stones(), problem.position.mover());
        let mut engine = KonaneEngine::new(&problem, Namespace(7), Arc::new(MapTable::default()));
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = Limits::endless(&stop, &progress);
        let Outcome { verdict, nodes, .. } = engine.decide(&claim, &limits)?;
        assert_eq!(verdict, Verdict::Decided(false), "{start}");
        assert!(nodes <= most, "{start}: {nodes} expansions");
    }
    Ok(())
}
