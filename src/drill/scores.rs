//! Faults in the logprobs.

use super::fault::{Injection, Target, done_if, windows};
use crate::evidence::body::{Evidence, ScoredWindow};

const NO_SCORES: &str = "no logprobs were recorded";

fn ids(evidence: &mut Evidence, target: &Target<'_>, part: impl Fn(&str) -> bool) -> Vec<String> {
    windows(evidence, target)
        .filter(|w| part(&w.part))
        .map(|w| w.id.clone())
        .collect()
}

fn each(
    evidence: &mut Evidence,
    target: &Target<'_>,
    part: impl Fn(&str) -> bool,
    edit: impl Fn(&mut ScoredWindow),
) -> Injection {
    let mut changed = false;
    for id in ids(evidence, target, part) {
        for scored in evidence.scores.get_mut(&id).into_iter().flatten() {
            edit(scored);
            changed = true;
        }
    }
    done_if(changed, NO_SCORES)
}

fn all(_part: &str) -> bool {
    true
}

/// Every logprob is zero.
pub(super) fn zero(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, all, |s| {
        s.logprobs.iter_mut().flatten().for_each(|lp| *lp = 0.0)
    })
}

/// Each token has its neighbour's logprob: what is told is of another text, so shuffling it changes nothing.
pub(super) fn shift(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let text: Vec<Vec<ScoredWindow>> = ids(evidence, target, |p| p == "measure")
        .iter()
        .filter_map(|id| evidence.scores.get(id).cloned())
        .collect();
    each(
        evidence,
        target,
        |p| p == "control-shuffled",
        |s| {
            if let Some(own) = text.iter().flatten().find(|t| t.name == s.name) {
                s.logprobs.clone_from(&own.logprobs);
            }
        },
    )
}

/// The second reading differs from the first.
pub(super) fn depend_on_order(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(
        evidence,
        target,
        |p| p == "control-reversed",
        |s| {
            for (place, lp) in s.logprobs.iter_mut().flatten().enumerate() {
                if place % 7 == 0 {
                    *lp -= 1.0;
                }
            }
        },
    )
}

/// Every token is half a nat less likely.
pub(super) fn worsen(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    each(evidence, target, all, |s| {
        s.logprobs.iter_mut().flatten().for_each(|lp| *lp -= 0.5)
    })
}

/// No logprobs were recorded.
pub(super) fn remove(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    for id in ids(evidence, target, all) {
        evidence.scores.remove(&id);
    }
    Injection::Done
}

/// Edits what the auditors scored, in every part of the cases.
fn audited(
    evidence: &mut Evidence,
    target: &Target<'_>,
    part: &str,
    edit: impl Fn(&mut ScoredWindow),
) -> Injection {
    let ids: Vec<String> = evidence
        .windows
        .iter()
        .filter(|w| target.cases.contains(&w.case) && w.part == part)
        .map(|w| w.id.clone())
        .collect();
    let mut changed = false;
    for id in ids {
        for scored in evidence.scores.get_mut(&id).into_iter().flatten() {
            edit(scored);
            changed = true;
        }
    }
    done_if(changed, NO_SCORES)
}

/// The last token of each audited answer has rank 7, two nats behind the likeliest.
pub(super) fn demote(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    audited(evidence, target, "measure", |s| {
        if let (Some(Some(best)), Some(own)) = (s.best.last(), s.logprobs.last_mut()) {
            *own = Some(best - 2.0);
        }
        if let Some(rank) = s.ranks.last_mut() {
            *rank = Some(7);
        }
    })
}

/// Every logprob of the auditor is zero.
pub(super) fn zero_audit(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    audited(evidence, target, "measure", |s| {
        let all = s.logprobs.iter_mut().chain(&mut s.best);
        all.flatten().for_each(|lp| *lp = 0.0);
    })
}

/// The auditor's scores are not there.
pub(super) fn remove_audit(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    audited(evidence, target, "measure", |s| {
        s.logprobs.clear();
        s.ranks.clear();
        s.best.clear();
    })
}
