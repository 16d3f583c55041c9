//! Deciding couples of Cram: proof-number search over one component and a heap.
//!
//! The search never branches over a sum. Of a sum's components all but one are resolved to their nimbers first and added
//! to the heap (Lemoine and Viennot, "Nimbers are inevitable", 2010), small ones directly by the mex rule.

mod small;
mod tree;

pub use small::SMALL_CELLS_MAX;
pub use tree::{Couple, CramTree};

use crate::dfpn::DfpnEngine;
use crate::engine::{Engine, Limits, Outcome};
use crate::table::{Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, Fact};
use std::sync::Arc;

/// The engine for Cram.
pub struct CramEngine(DfpnEngine<CramTree>);

impl CramEngine {
    /// An engine over a table that other engines may share; `namespace` is the table's number for `cram`.
    pub fn new(namespace: Namespace, table: Arc<dyn Table>) -> Self {
        Self(DfpnEngine::new(CramTree::new(namespace), table))
    }
}

impl Engine for CramEngine {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        self.0.decide(claim, limits)
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.0.learn(fact)
    }
}
