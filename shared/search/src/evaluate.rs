//! Answering a plan in one process: its claims, one after the other, by one engine.

use crate::engine::{Engine, Limits, Verdict};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Fact, Subject};
use grundy_games::plan::{Answer, Knowledge, Plan, Progress};
use std::collections::BTreeMap;

/// Decided claims, grouped by subject so that one claim can answer for its neighbours.
#[derive(Default, Clone, Debug)]
pub struct Facts(BTreeMap<Subject, BTreeMap<i16, bool>>);

/// Two decided claims that cannot both hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "contradiction about one subject: parameter {known} is {known_truth}, but parameter {new} came out {new_truth}"
)]
pub struct Contradiction {
    /// The parameter of the claim that was known.
    pub known: i16,
    /// Its truth.
    pub known_truth: bool,
    /// The parameter of the claim that contradicts it.
    pub new: i16,
    /// The truth it came with.
    pub new_truth: bool,
}

impl Facts {
    /// Adds a decided claim; `Ok(false)` when it was already implied.
    ///
    /// # Errors
    /// [`Contradiction`] with what is known; nothing is added then.
    pub fn insert(
        &mut self,
        rules: &dyn ClaimRules,
        claim: &Claim,
        truth: bool,
    ) -> Result<bool, Contradiction> {
        let about = self.0.entry(claim.subject.clone()).or_default();
        for (&known, &known_truth) in about.iter() {
            if rules.infer(known, known_truth, claim.parameter) == Some(!truth)
                || rules.infer(claim.parameter, truth, known) == Some(!known_truth)
            {
                return Err(Contradiction { known, known_truth, new: claim.parameter, new_truth: truth });
            }
        }
        let implied = about.iter().any(|(&known, &t)| rules.infer(known, t, claim.parameter).is_some());
        if !implied {
            about.insert(claim.parameter, truth);
        }
        Ok(!implied)
    }

    /// The claim's truth, directly or by inference.
    pub fn truth(&self, rules: &dyn ClaimRules, claim: &Claim) -> Option<bool> {
        let about = self.0.get(&claim.subject)?;
        about.iter().find_map(|(&known, &truth)| rules.infer(known, truth, claim.parameter))
    }

    /// How many claims are kept.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// [`Facts`] read under one game's rules.
pub struct Known<'a> {
    /// The rules that draw the inferences.
    pub rules: &'a dyn ClaimRules,
    /// The facts.
    pub facts: &'a Facts,
}

impl Knowledge for Known<'_> {
    fn truth(&self, claim: &Claim) -> Option<bool> {
        self.facts.truth(self.rules, claim)
    }
}

/// Why an evaluation has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// The budget was spent or the search was stopped.
    #[error("not decided within the budget of {nodes} nodes")]
    Undecided {
        /// The budget.
        nodes: u64,
    },
    /// The plan and the engine disagree about what a claim is.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The engine contradicted itself.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

/// Answers a plan with one engine.
///
/// # Errors
/// [`EvaluateError::Undecided`] when one of the plan's claims stays open within `limits`, which apply to each claim.
pub fn evaluate(
    plan: &dyn Plan,
    engine: &mut dyn Engine,
    limits: &Limits<'_>,
) -> Result<Answer, EvaluateError> {
    let mut facts = Facts::default();
    loop {
        let wanted = match plan.next(&Known { rules: plan.rules(), facts: &facts }) {
            Progress::Answered(answer) => return Ok(answer),
            Progress::Ask(wanted) => wanted,
        };
        let claim = &wanted[0];
        let outcome = engine.decide(claim, limits)?;
        for Fact { claim, truth, .. } in &outcome.facts {
            facts.insert(plan.rules(), claim, *truth)?;
        }
        let Verdict::Decided(truth) = outcome.verdict else {
            return Err(EvaluateError::Undecided { nodes: limits.nodes });
        };
        facts.insert(plan.rules(), claim, truth)?;
    }
}
