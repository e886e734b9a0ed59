//! The looks of a case: at which repeats it may be decided, and at which error rate.

use super::figure::{Decision, LimitOutcome};
use super::finding::Finding;
use super::verdict::Verdict;
use crate::plan::order::Undecided;
use crate::plan::{self, Case};
use crate::spec::gate::{Check, Gate};
use crate::stats::alpha::Alpha;
use crate::stats::sequential::Schedule;

/// Where a case stands between its looks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// Error rate of each one-sided bound here.
    pub(super) alpha: f64,
    /// Why nothing may be decided here; absent on a look.
    pub(super) between: Option<String>,
}

/// Where a case stands after so many repeats of the judged build.
///
/// Each earlier run of the same gate halves the error rate, so that "run it again until it is green" does not pay:
/// over any number of attempts false PASS stays at or below twice the check's alpha.
pub(super) fn standing(check: &Check, earlier_runs: u32, repeats: usize) -> Standing {
    let alpha = check.alpha * 0.5_f64.powi(i32::try_from(earlier_runs.min(30)).unwrap_or(30));
    if check.repeats.max <= check.repeats.min {
        return Standing {
            alpha,
            between: None,
        };
    }
    match schedule(check, alpha) {
        Err(cause) => Standing {
            alpha,
            between: Some(cause),
        },
        Ok(schedule) => match schedule.look_at(repeats) {
            Some(look) => Standing {
                alpha: look.alpha.value(),
                between: None,
            },
            None => Standing {
                alpha,
                between: Some(format!(
                    "{repeats} repeats are no look of this gate (it looks at {})",
                    numbers(&schedule)
                )),
            },
        },
    }
}

fn schedule(check: &Check, alpha: f64) -> Result<Schedule, String> {
    let alpha = Alpha::new(alpha).map_err(|e| e.to_string())?;
    Schedule::between(
        check.repeats.min as usize,
        check.repeats.max as usize,
        alpha,
    )
    .map_err(|e| e.to_string())
}

/// The repeats at which a check that may go on is looked at (`8, 13, 20`); none for a fixed number or an impossible range.
pub fn schedule_of(check: &Check) -> Option<String> {
    if check.repeats.max <= check.repeats.min {
        return None;
    }
    schedule(check, check.alpha).ok().map(|s| numbers(&s))
}

fn numbers(schedule: &Schedule) -> String {
    schedule
        .looks()
        .iter()
        .map(|l| l.n.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A limit that is held between two looks is open, whatever its bound says.
pub(super) fn between(outcome: &mut LimitOutcome, why: &str) {
    if matches!(outcome.decision, Decision::Clears | Decision::Misses) {
        outcome.decision = Decision::Open;
        outcome.because = format!("{}; not decided: {why}", outcome.because);
    }
}

/// The cases that more repeats could settle, with their next look.
///
/// Only an open limit is a reason to go on: what a disturbance or missing evidence spoils, more repeats do not mend.
pub fn undecided(
    gate: &Gate,
    findings: &[Finding],
    repeats: &dyn Fn(&Case, &str) -> u32,
    earlier_runs: u32,
) -> Vec<Undecided> {
    plan::cases(gate)
        .iter()
        .enumerate()
        .filter_map(|(index, case)| {
            let check = &gate.checks[case.check];
            let finding = findings.iter().find(|f| f.id == case.id)?;
            let done = repeats(case, check.subject());
            let until = next_look(check, earlier_runs, done)?;
            open_only(finding).then_some(Undecided {
                case: index,
                done,
                until,
            })
        })
        .collect()
}

fn next_look(check: &Check, earlier_runs: u32, done: u32) -> Option<u32> {
    if check.repeats.max <= check.repeats.min || done == 0 {
        return None;
    }
    let alpha = check.alpha * 0.5_f64.powi(i32::try_from(earlier_runs.min(30)).unwrap_or(30));
    let schedule = schedule(check, alpha).ok()?;
    schedule
        .looks()
        .iter()
        .map(|l| l.n)
        .find(|n| *n > done as usize)
        .and_then(|n| u32::try_from(n).ok())
}

fn open_only(finding: &Finding) -> bool {
    finding.verdict == Verdict::Inconclusive
        && finding
            .reasons
            .iter()
            .all(|r| r.code == "limit.open" || r.verdict == Verdict::Pass)
}
