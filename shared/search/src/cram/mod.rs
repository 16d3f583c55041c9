//! Deciding couples of Cram: proof-number search over one region and a heap.
//!
//! The search never branches over a sum. Of a sum's regions all but one are resolved to their nimbers first and added
//! to the heap (Lemoine and Viennot, "Nimbers are inevitable", 2010), known ones at once: small ones by the mex rule, and those of
//! strips of up to seven rows by a table of [`pairs`] of [classes of ends](classes), which also simplify what is left.

pub mod classes;
mod couple;
mod fill;
mod kind;
mod lanes;
mod look;
mod outlook;
pub mod pairs;
mod plain;
mod small;
mod strip;
mod strips;
pub mod tables;
mod tree;

pub use couple::Couple;
pub use kind::Kind;
pub use plain::Plain;
pub use small::SMALL_CELLS_MAX;
pub use strip::Strip;
pub use strips::Strips;
pub use tree::CramTree;

use crate::dfpn::DfpnEngine;
use crate::engine::{Engine, Limits, Outcome};
use crate::table::{Namespace, Table};
use classes::HEIGHT_MAX;
use grundy_games::claim::{Claim, ClaimError, Fact};
use grundy_games::cram::CramClaims;
use std::sync::Arc;
use tables::{BuiltTables, StripTables};

/// The engine for Cram.
pub struct CramEngine {
    /// For sums of strips of at most seven rows.
    strips: Option<DfpnEngine<CramTree<Strips>>>,
    /// For all others.
    plain: DfpnEngine<CramTree<Plain>>,
    tables: Arc<dyn StripTables>,
    /// The largest board that tables were made for: rows and columns.
    prepared: (u32, u32),
}

impl CramEngine {
    /// An engine over a table that other engines may share; `namespace` is the table's number for `cram`. `tables` is where it gets
    /// its classes and pair tables from, when a claim needs them, as large as the claim's components are worth.
    pub fn new(namespace: Namespace, table: Arc<dyn Table>, tables: Arc<dyn StripTables>) -> Self {
        let strips = DfpnEngine::new(CramTree::with_strips(namespace), table.clone());
        Self { strips: Some(strips), tables, ..Self::plain(namespace, table) }
    }

    /// An engine without knowledge of strips, to compare with.
    pub fn plain(namespace: Namespace, table: Arc<dyn Table>) -> Self {
        let plain = DfpnEngine::new(CramTree::new(namespace), table);
        Self { strips: None, plain, tables: Arc::new(BuiltTables::new(0)), prepared: (0, 0) }
    }

    /// The engine for a claim, ready for it.
    fn engine_for(&mut self, claim: &Claim) -> Result<&mut dyn Engine, ClaimError> {
        let (sum, _) = CramClaims::couple(claim)?;
        let (rows, columns) = tables::extent(&sum);
        let Some(strips) = self.strips.as_mut().filter(|_| rows <= HEIGHT_MAX) else {
            return Ok(&mut self.plain);
        };
        let (rows, columns) = (rows.max(self.prepared.0), columns.max(self.prepared.1));
        if (rows, columns) != self.prepared {
            for size in tables::sizes(rows, columns, self.tables.bytes()) {
                strips.tree_mut().prepare(size, &*self.tables);
            }
            self.prepared = (rows, columns);
        }
        Ok(strips)
    }
}

impl Engine for CramEngine {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        self.engine_for(claim)?.decide(claim, limits)
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.engine_for(&fact.claim)?.learn(fact)
    }

    /// Lets go of the tables, so that those of other boards find room.
    fn rest(&mut self) {
        if let Some(strips) = &mut self.strips {
            strips.tree_mut().rest();
        }
        self.prepared = (0, 0);
    }
}
