//! What a plan can say in advance: what can never be decided, and what will only be decided thinly.

use super::Plan;
use crate::spec::expect::Limit;
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::Judged;
use crate::stats::alpha::Alpha;
use crate::stats::signed_rank::observations_needed;

/// A remark on a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Line of the gate file.
    pub line: usize,
    /// The sentence.
    pub text: String,
}

/// Every remark, in the order of the gate.
pub fn of(gate: &Gate, _plan: &Plan) -> Vec<Note> {
    gate.checks.iter().flat_map(undecidable).collect()
}

/// Limits that no outcome can decide, because the repeats are too few for any bound at the check's alpha.
fn undecidable(check: &Check) -> Vec<Note> {
    let by_bound = |figure: &str| {
        check
            .kind
            .figures()
            .iter()
            .any(|f| f.name == figure && f.judged == Judged::ByBound)
    };
    let repeats = check.repeats.max as usize;
    let Ok(alpha) = Alpha::new(check.alpha) else {
        return Vec::new();
    };
    let least = observations_needed(alpha);
    if repeats >= least {
        return Vec::new();
    }
    check
        .expect
        .iter()
        .filter(|e| by_bound(&e.figure) && !matches!(e.limit, Limit::Is(_)))
        .map(|e| Note {
            line: e.line,
            text: format!(
                "`{}` of `{}` can never be decided: {repeats} repeats give no bound at alpha {}, {least} are needed",
                e.figure, check.id, check.alpha
            ),
        })
        .collect()
}
