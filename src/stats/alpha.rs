//! The accepted chance of a wrong verdict.

use super::error::{StatsError, share};
use serde::{Deserialize, Serialize};

/// The chance, strictly between 0 and 1/2, that a one-sided bound is wrong.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Alpha(f64);

impl Alpha {
    /// Five in a hundred, the default of every check.
    pub const FIVE_PERCENT: Self = Self(0.05);

    /// Checks the value; one half and above would make a bound of the wrong side, and is refused.
    pub fn new(value: f64) -> Result<Self, StatsError> {
        share("alpha", value)?;
        if value < 0.5 {
            Ok(Self(value))
        } else {
            Err(StatsError::OutOfRange {
                what: "alpha",
                value,
                wants: "less than one half",
            })
        }
    }

    /// A literal of this room that is known to lie in range.
    pub(super) const fn literal(value: f64) -> Self {
        Self(value)
    }

    /// The chance as a number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// One minus the chance: the confidence of a one-sided bound.
    pub fn confidence(self) -> f64 {
        1.0 - self.0
    }

    /// The level at which attempt `attempt` (from 1) of one gate is judged: `alpha · 2^-(attempt-1)`.
    ///
    /// The sum over any number of attempts stays at or below twice alpha, so "again until green" does not pay.
    pub fn of_attempt(self, attempt: u32) -> Self {
        // Below 2^-60 the level is zero for any sample one could take, and it must stay above zero to be a level.
        let halvings = attempt.saturating_sub(1).min(60);
        Self(self.0 * 0.5_f64.powi(halvings as i32))
    }
}

impl Default for Alpha {
    fn default() -> Self {
        Self::FIVE_PERCENT
    }
}

impl TryFrom<f64> for Alpha {
    type Error = StatsError;
    fn try_from(value: f64) -> Result<Self, StatsError> {
        Self::new(value)
    }
}

impl From<Alpha> for f64 {
    fn from(alpha: Alpha) -> Self {
        alpha.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_outside_zero_to_one_half_is_refused() {
        for wrong in [0.0, -0.1, 0.5, 1.0, f64::NAN, f64::INFINITY] {
            assert!(Alpha::new(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Alpha::new(0.01).unwrap().value(), 0.01);
    }

    #[test]
    fn all_attempts_together_spend_at_most_twice_alpha() {
        let spent: f64 = (1..=500)
            .map(|j| Alpha::FIVE_PERCENT.of_attempt(j).value())
            .sum();
        assert!(spent <= 0.1 + 1e-12, "{spent}");
        assert_eq!(Alpha::FIVE_PERCENT.of_attempt(3).value(), 0.0125);
    }
}
