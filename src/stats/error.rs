//! What the statistics refuse, and why.

use std::fmt;

/// Why a figure cannot be computed from the numbers given.
#[derive(Debug, Clone, PartialEq)]
pub enum StatsError {
    /// Fewer observations than the method needs before it can decide anything.
    TooFew {
        /// What is counted (`repeats`, `pairs`).
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many are needed at least.
        need: usize,
    },
    /// A value is NaN or infinite.
    NotFinite {
        /// Its place in the input, from 0.
        position: usize,
        /// The value.
        value: f64,
    },
    /// A value that must be above zero (its logarithm is taken, or it divides) is not.
    NotPositive {
        /// Its place in the input, from 0.
        position: usize,
        /// The value.
        value: f64,
    },
    /// A parameter is outside its domain.
    OutOfRange {
        /// The parameter's name.
        what: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        wants: &'static str,
    },
    /// Two neighbouring runs that should form a pair are of the same build.
    NotAlternating {
        /// The place of the pair's first run, from 0.
        position: usize,
    },
    /// Every denominator is zero, so the ratio does not exist.
    NoDenominator,
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { what, have, need } => {
                write!(f, "{have} {what} decide nothing; at least {need} are needed")
            }
            Self::NotFinite { position, value } => write!(
                f,
                "value {} is `{value}`, not a finite number; find what produced it, it cannot be left out",
                position + 1
            ),
            Self::NotPositive { position, value } => write!(
                f,
                "value {} is `{value}`; only figures above zero have a ratio",
                position + 1
            ),
            Self::OutOfRange { what, value, wants } => {
                write!(f, "{what} is `{value}`; give {wants}")
            }
            Self::NotAlternating { position } => write!(
                f,
                "runs {} and {} are of the same build; a pair is one run of each, in ABBA order",
                position + 1,
                position + 2
            ),
            Self::NoDenominator => f.write_str(
                "all denominators are zero, so there is no ratio; check that the counter moved in the window",
            ),
        }
    }
}

impl std::error::Error for StatsError {}

/// Refuses NaN and infinities.
pub(super) fn finite(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(position) => Err(StatsError::NotFinite {
            position,
            value: values[position],
        }),
    }
}

/// Refuses NaN, infinities, zero and what is below.
pub(super) fn positive(values: &[f64]) -> Result<(), StatsError> {
    finite(values)?;
    match values.iter().position(|v| *v <= 0.0) {
        None => Ok(()),
        Some(position) => Err(StatsError::NotPositive {
            position,
            value: values[position],
        }),
    }
}

/// Refuses samples smaller than `need`.
pub(super) fn at_least(what: &'static str, have: usize, need: usize) -> Result<(), StatsError> {
    if have >= need {
        Ok(())
    } else {
        Err(StatsError::TooFew { what, have, need })
    }
}

/// Refuses what is not strictly between 0 and 1.
pub(super) fn share(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(StatsError::OutOfRange {
            what,
            value,
            wants: "a share strictly between 0 and 1",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_named_by_its_place() {
        let refused = finite(&[1.0, f64::NAN]).unwrap_err();
        assert!(refused.to_string().starts_with("value 2 is `NaN`"));
    }

    #[test]
    fn zero_has_no_logarithm() {
        assert!(matches!(
            positive(&[3.0, 0.0]),
            Err(StatsError::NotPositive { position: 1, .. })
        ));
    }

    #[test]
    fn too_few_says_how_many_are_needed() {
        let refused = at_least("repeats", 3, 5).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "3 repeats decide nothing; at least 5 are needed"
        );
    }
}
