//! Runs of two builds in turn, and the pairs that they form.

use super::error::{StatsError, positive};
use super::signed_rank::median_of_sorted;
use serde::{Deserialize, Serialize};

/// Which of the two builds a run was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The build that is compared with.
    Incumbent,
    /// The build that is judged.
    Candidate,
}

/// One run's figure, with the build that made it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// The build.
    pub arm: Arm,
    /// The figure.
    pub value: f64,
}

/// Two runs next to each other in time, one of each build.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The incumbent's figure.
    pub incumbent: f64,
    /// The candidate's figure, same unit.
    pub candidate: f64,
}

/// The order of runs for `pairs` pairs: A B, B A, A B, … so that a steady drift falls on both alike.
pub fn abba_order(pairs: usize) -> Vec<Arm> {
    (0..pairs)
        .flat_map(|i| {
            if i % 2 == 0 {
                [Arm::Incumbent, Arm::Candidate]
            } else {
                [Arm::Candidate, Arm::Incumbent]
            }
        })
        .collect()
}

/// Pairs of runs 1–2, 3–4, …; a last run without partner is left out.
///
/// # Errors
/// [`StatsError::NotAlternating`] when both runs of a pair are of the same build.
pub fn adjacent_pairs(runs: &[Run]) -> Result<Vec<Pair>, StatsError> {
    runs.chunks_exact(2)
        .enumerate()
        .map(|(i, two)| match (two[0].arm, two[1].arm) {
            (Arm::Incumbent, Arm::Candidate) => Ok(Pair {
                incumbent: two[0].value,
                candidate: two[1].value,
            }),
            (Arm::Candidate, Arm::Incumbent) => Ok(Pair {
                incumbent: two[1].value,
                candidate: two[0].value,
            }),
            _ => Err(StatsError::NotAlternating { position: 2 * i }),
        })
        .collect()
}

/// Logarithms in time order, each less the median of its own build: what is left when the builds' difference is taken
/// out, for `independence::check` and `drift::trend` over a whole comparison.
pub fn residuals(runs: &[Run]) -> Result<Vec<f64>, StatsError> {
    let values: Vec<f64> = runs.iter().map(|r| r.value).collect();
    positive(&values)?;
    let centre = |arm: Arm| {
        let mut logs: Vec<f64> = runs
            .iter()
            .filter(|r| r.arm == arm)
            .map(|r| r.value.ln())
            .collect();
        logs.sort_unstable_by(f64::total_cmp);
        (!logs.is_empty()).then(|| median_of_sorted(&logs))
    };
    let (incumbent, candidate) = (centre(Arm::Incumbent), centre(Arm::Candidate));
    Ok(runs
        .iter()
        .filter_map(|r| {
            let centre = match r.arm {
                Arm::Incumbent => incumbent,
                Arm::Candidate => candidate,
            };
            centre.map(|c| r.value.ln() - c)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_cancels_over_two_pairs() {
        let runs: Vec<Run> = abba_order(2)
            .into_iter()
            .enumerate()
            .map(|(i, arm)| Run {
                arm,
                value: 100.0 + i as f64,
            })
            .collect();
        let pairs = adjacent_pairs(&runs).unwrap();
        let sum: f64 = pairs.iter().map(|p| p.candidate - p.incumbent).sum();
        assert_eq!(sum, 0.0);
    }

    #[test]
    fn blocks_form_no_pairs() {
        let block = [Run {
            arm: Arm::Incumbent,
            value: 1.0,
        }; 2];
        assert_eq!(
            adjacent_pairs(&block),
            Err(StatsError::NotAlternating { position: 0 })
        );
    }

    #[test]
    fn residuals_do_not_show_the_difference_between_the_builds() {
        let run = |arm, value| Run { arm, value };
        let runs = [
            run(Arm::Incumbent, 86.0),
            run(Arm::Candidate, 108.0),
            run(Arm::Candidate, 108.0),
            run(Arm::Incumbent, 86.0),
        ];
        assert_eq!(residuals(&runs).unwrap(), vec![0.0; 4]);
        assert!(residuals(&[run(Arm::Incumbent, 0.0)]).is_err());
    }
}
