//! Many tests of which any one may raise an alarm: Holm's correction.
//!
//! A certificate needs every gate to pass and wants no correction. "Did anything get worse tonight" does.

use super::alpha::Alpha;
use super::error::{StatsError, finite};
use serde::{Deserialize, Serialize};

/// One test after the correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Adjusted {
    /// The p-value as it came.
    pub p: f64,
    /// The p-value after the correction, at most 1.
    pub adjusted: f64,
    /// Whether it raises an alarm.
    pub outcome: Outcome,
}

/// Whether a corrected test raises an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The adjusted p-value is at or below alpha.
    Alarm,
    /// It is above.
    Quiet,
}

/// Corrects p-values (0 to 1), keeping their order; the chance of any false alarm at all is at most alpha.
pub fn holm(p_values: &[f64], alpha: Alpha) -> Result<Vec<Adjusted>, StatsError> {
    finite(p_values)?;
    if let Some(&value) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatsError::OutOfRange {
            what: "a p-value",
            value,
            wants: "a chance from 0 to 1",
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least = 0.0_f64;
    for (rank, &i) in order.iter().enumerate() {
        let tests_left = (p_values.len() - rank) as f64;
        least = least.max(p_values[i] * tests_left).min(1.0);
        adjusted[i] = least;
    }
    Ok(p_values
        .iter()
        .zip(adjusted)
        .map(|(&p, adjusted)| Adjusted {
            p,
            adjusted,
            outcome: if adjusted <= alpha.value() {
                Outcome::Alarm
            } else {
                Outcome::Quiet
            },
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adjusted_values_agree_with_ones_made_by_hand() {
        let all = holm(&[0.01, 0.04, 0.03, 0.005], Alpha::FIVE_PERCENT).unwrap();
        let adjusted: Vec<f64> = all.iter().map(|a| a.adjusted).collect();
        for (got, hand) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - hand).abs() < 1e-12, "{adjusted:?}");
        }
        let alarms = all.iter().filter(|a| a.outcome == Outcome::Alarm).count();
        assert_eq!(alarms, 2);
    }

    #[test]
    fn chances_that_cannot_be_are_refused_and_none_is_none() {
        assert!(holm(&[1.2], Alpha::FIVE_PERCENT).is_err());
        assert!(holm(&[f64::NAN], Alpha::FIVE_PERCENT).is_err());
        assert_eq!(holm(&[], Alpha::FIVE_PERCENT).unwrap(), vec![]);
    }
}
