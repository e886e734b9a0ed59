//! Mean and standard deviation, and Student's bounds of a mean.

use super::alpha::Alpha;
use super::distribution::{chi_squared_quantile, t_quantile};
use super::error::{StatsError, at_least, finite};
use super::estimate::{Estimate, Method};

/// Mean and standard deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation with n-1 below the line.
    pub sd: f64,
}

/// Mean and standard deviation of two or more values.
pub fn moments(values: &[f64]) -> Result<Moments, StatsError> {
    finite(values)?;
    at_least("values", values.len(), 2)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Ok(Moments {
        mean,
        sd: (squares / (n - 1.0)).sqrt(),
    })
}

/// Mean with one-sided bounds by Student's t: for means of many small contributions, not for stalled repeats.
///
/// Stalls inflate the deviation, so that more repeats bring no more power; repeats go by `signed_rank::level`.
pub fn t_interval(values: &[f64], alpha: Alpha) -> Result<Estimate, StatsError> {
    let Moments { mean, sd } = moments(values)?;
    let n = values.len();
    let reach = t_quantile(alpha.confidence(), n - 1) * sd / (n as f64).sqrt();
    Ok(Estimate::symmetric(mean, reach, alpha, n, Method::StudentT))
}

/// What a sample's standard deviation must be multiplied with for an upper bound of the true one (normal values).
pub fn sd_upper_factor(n: usize, alpha: Alpha) -> Result<f64, StatsError> {
    at_least("values", n, 2)?;
    Ok(((n - 1) as f64 / chi_squared_quantile(alpha.value(), n - 1)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_agrees_with_one_made_by_hand() {
        // Mean 3, sd sqrt(2.5), t(.95, 4) = 2.1318: reach 1.5074.
        let e = t_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(e.value, 3.0);
        assert!((e.upper - 4.5074).abs() < 1e-4 && (e.lower - 1.4926).abs() < 1e-4);
    }

    #[test]
    fn the_upper_limit_of_a_deviation_agrees_with_the_table() {
        for (n, factor) in [(5, 2.37), (7, 1.92), (10, 1.65), (20, 1.37)] {
            let got = sd_upper_factor(n, Alpha::FIVE_PERCENT).unwrap();
            assert!((got - factor).abs() < 0.006, "n = {n}: {got}");
        }
    }

    #[test]
    fn one_value_has_no_deviation() {
        assert!(matches!(
            moments(&[1.0]),
            Err(StatsError::TooFew {
                have: 1,
                need: 2,
                ..
            })
        ));
    }
}
