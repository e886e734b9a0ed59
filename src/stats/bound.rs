//! A figure's bounds against a limit: clears, misses, or straddles.

use super::error::{StatsError, finite};
use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// What the bounds say of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The near bound clears the limit.
    Clears,
    /// The far bound misses the limit.
    Misses,
    /// Neither: the data do not decide.
    Straddles,
}

/// A decision, and how many observations in all it takes before one is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The least number of observations in all, when the present number can never decide.
    pub need: Option<usize>,
}

impl Ruling {
    /// A ruling that needs no further observation to be possible.
    pub fn settled(decision: Decision) -> Self {
        Self {
            decision,
            need: None,
        }
    }
}

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// At least this.
    Floor(f64),
    /// At most this.
    Ceiling(f64),
    /// A ratio to the incumbent that may fall below 1 by at most the margin (0.02 is 2 %).
    NonInferior {
        /// Share of the incumbent that may be lost.
        margin: f64,
    },
    /// A ratio to the incumbent that stays within a factor of `1 - margin` both ways (two one-sided tests).
    Equivalent {
        /// Share of the incumbent that may be lost or gained.
        margin: f64,
    },
    /// Between two values, both included.
    Within {
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
}

/// The lowest and the highest value that a limit allows; `None` is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowed {
    /// The least, if there is one.
    pub low: Option<f64>,
    /// The most, if there is one.
    pub high: Option<f64>,
}

impl Limit {
    /// The values that the limit allows.
    pub fn allowed(&self) -> Allowed {
        let (low, high) = match *self {
            Self::Floor(x) => (Some(x), None),
            Self::Ceiling(x) => (None, Some(x)),
            Self::NonInferior { margin } => (Some(1.0 - margin), None),
            Self::Equivalent { margin } => (Some(1.0 - margin), Some(1.0 / (1.0 - margin))),
            Self::Within { low, high } => (Some(low), Some(high)),
        };
        Allowed { low, high }
    }

    /// Refuses limits that no figure could be held to.
    pub fn check(&self) -> Result<(), StatsError> {
        if let Self::NonInferior { margin } | Self::Equivalent { margin } = *self
            && !(0.0..1.0).contains(&margin)
        {
            return Err(StatsError::OutOfRange {
                what: "the margin",
                value: margin,
                wants: "a share from 0 to below 1 (`0.02` is 2 %)",
            });
        }
        let Allowed { low, high } = self.allowed();
        let given: Vec<f64> = [low, high].into_iter().flatten().collect();
        finite(&given)?;
        match (low, high) {
            (Some(low), Some(high)) if low > high => Err(StatsError::OutOfRange {
                what: "the low end of the band",
                value: low,
                wants: "a value not above its high end",
            }),
            _ => Ok(()),
        }
    }

    /// Holds an estimate to the limit.
    pub fn decide(&self, estimate: &Estimate) -> Decision {
        let Allowed { low, high } = self.allowed();
        let clears = low.is_none_or(|x| estimate.lower >= x - slack(x))
            && high.is_none_or(|x| estimate.upper <= x + slack(x));
        let misses = low.is_some_and(|x| estimate.upper < x - slack(x))
            || high.is_some_and(|x| estimate.lower > x + slack(x));
        match (clears, misses) {
            (_, true) => Decision::Misses,
            (true, false) => Decision::Clears,
            (false, false) => Decision::Straddles,
        }
    }

    /// Holds what a method returned to the limit: too few observations straddle and say how many are needed.
    ///
    /// # Errors
    /// Every other error of the method, and a limit that makes no sense.
    pub fn rule(&self, estimate: Result<Estimate, StatsError>) -> Result<Ruling, StatsError> {
        self.check()?;
        match estimate {
            Ok(estimate) => Ok(Ruling::settled(self.decide(&estimate))),
            Err(StatsError::TooFew { need, .. }) => Ok(Ruling {
                decision: Decision::Straddles,
                need: Some(need),
            }),
            Err(other) => Err(other),
        }
    }
}

/// A figure equal to its limit comes back from its logarithm off by an ulp or two; this is a thousand times that.
fn slack(limit: f64) -> f64 {
    limit.abs() * 1e-12
}

#[cfg(test)]
mod tests {
    use super::super::alpha::Alpha;
    use super::super::estimate::Method;
    use super::super::signed_rank;
    use super::*;

    fn estimate(lower: f64, value: f64, upper: f64) -> Estimate {
        Estimate {
            value,
            lower,
            upper,
            confidence: 0.95,
            n: 7,
            method: Method::SignedRank,
        }
    }

    #[test]
    fn each_limit_clears_misses_and_straddles() {
        use Decision::{Clears, Misses, Straddles};
        let rows = [
            (Limit::Floor(100.0), [100.0, 101.0, 102.0], Clears),
            (Limit::Floor(100.0), [99.9, 101.0, 102.0], Straddles),
            (Limit::Floor(100.0), [97.0, 98.0, 99.9], Misses),
            (Limit::Ceiling(100.0), [97.0, 98.0, 100.0], Clears),
            (Limit::Ceiling(100.0), [97.0, 98.0, 100.1], Straddles),
            (Limit::Ceiling(100.0), [100.1, 101.0, 102.0], Misses),
            (
                Limit::NonInferior { margin: 0.02 },
                [0.981, 0.99, 1.2],
                Clears,
            ),
            (
                Limit::NonInferior { margin: 0.02 },
                [0.97, 0.99, 1.2],
                Straddles,
            ),
            (
                Limit::NonInferior { margin: 0.02 },
                [0.9, 0.95, 0.979],
                Misses,
            ),
            (
                Limit::Equivalent { margin: 0.02 },
                [0.981, 1.0, 1.02],
                Clears,
            ),
            (
                Limit::Equivalent { margin: 0.02 },
                [0.981, 1.0, 1.03],
                Straddles,
            ),
            (
                Limit::Equivalent { margin: 0.02 },
                [1.03, 1.04, 1.05],
                Misses,
            ),
            (
                Limit::Within {
                    low: 125.0,
                    high: 179.0,
                },
                [130.0, 150.0, 170.0],
                Clears,
            ),
            (
                Limit::Within {
                    low: 125.0,
                    high: 179.0,
                },
                [120.0, 150.0, 170.0],
                Straddles,
            ),
            (
                Limit::Within {
                    low: 125.0,
                    high: 179.0,
                },
                [190.1, 193.8, 197.5],
                Misses,
            ),
        ];
        for (limit, [lower, value, upper], wanted) in rows {
            assert_eq!(
                limit.decide(&estimate(lower, value, upper)),
                wanted,
                "{limit:?} {lower}"
            );
        }
    }

    #[test]
    fn identical_values_exactly_at_the_limit_clear_it() {
        for value in [108.6, 0.1, 3.05, 1e-7, 4.7630] {
            let level = signed_rank::level(&[value; 7], Alpha::FIVE_PERCENT).unwrap();
            assert_eq!(Limit::Floor(value).decide(&level), Decision::Clears);
            assert_eq!(Limit::Ceiling(value).decide(&level), Decision::Clears);
        }
    }

    #[test]
    fn too_few_straddle_and_say_what_is_needed() {
        let few = signed_rank::level(&[120.0; 4], Alpha::FIVE_PERCENT);
        let ruling = Limit::Floor(100.0).rule(few).unwrap();
        assert_eq!(
            (ruling.decision, ruling.need),
            (Decision::Straddles, Some(5))
        );
    }

    #[test]
    fn a_value_that_is_no_number_is_an_error_and_never_a_decision() {
        let bad = signed_rank::level(&[1.0, 1.0, f64::NAN, 1.0, 1.0], Alpha::FIVE_PERCENT);
        assert!(Limit::Floor(0.5).rule(bad).is_err());
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        for limit in [
            Limit::Floor(f64::NAN),
            Limit::NonInferior { margin: 1.5 },
            Limit::Equivalent { margin: -0.1 },
            Limit::Within {
                low: 2.0,
                high: 1.0,
            },
        ] {
            assert!(limit.check().is_err(), "{limit:?}");
        }
    }
}
