//! Konane by proof-number search.

mod kernel;
#[cfg(target_arch = "x86_64")]
mod quad;
mod tree;

pub use tree::KonaneTree;

use crate::dfpn::DfpnEngine;
use crate::engine::{Engine, Limits, Outcome};
use crate::table::{Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, Fact};
use grundy_games::konane::Problem;
use std::sync::Arc;

/// Decides who wins positions on one board.
pub struct KonaneEngine(DfpnEngine<KonaneTree>);

impl KonaneEngine {
    /// An engine for the positions on the problem's board. `namespace` is the table's number for
    /// `problem.claims().namespace()`.
    pub fn new(problem: &Problem, namespace: Namespace, table: Arc<dyn Table>) -> Self {
        Self(DfpnEngine::new(KonaneTree::new(problem.claims(), namespace), table))
    }
}

impl Engine for KonaneEngine {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        self.0.decide(claim, limits)
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.0.learn(fact)
    }

    fn rest(&mut self) {
        self.0.rest();
    }
}
