//! The engine that decides claims of Kalah: proof-number search above, a short depth-first look-ahead at its leaves, and exact
//! endgames below.
//!
//! Depth-first search alone was tried: it is faster on games that fit it, and hopeless past them, where one wrong first move high
//! up has to be refuted to the end. Proof numbers leave such a move in time.

mod bounds;
mod endgame;
mod knowledge;
mod tree;

use crate::dfpn::DfpnEngine;
use crate::engine::{Engine, Limits, Outcome};
use crate::table::{Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, Fact};
use grundy_games::kalah::Problem;
use std::sync::Arc;
use tree::KalahTree;

/// Decides claims of one problem's rules.
pub struct KalahEngine(DfpnEngine<KalahTree>);

impl KalahEngine {
    /// An engine over a table that other engines may share.
    pub fn new(problem: &Problem, namespace: Namespace, table: Arc<dyn Table>) -> Self {
        Self(DfpnEngine::new(KalahTree::new(problem, namespace), table))
    }
}

impl Engine for KalahEngine {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        self.0.decide(claim, limits)
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.0.learn(fact)
    }
}
