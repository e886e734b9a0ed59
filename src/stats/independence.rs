//! Whether repeats are independent of each other: von Neumann's ratio.
//!
//! No bound survives correlated repeats (12–24 % false PASS where 5 % was promised). The check finds strong correlation
//! only with many repeats (16 % of the time at n = 5, 77 % at 20), so independence must also be designed in.

use super::alpha::Alpha;
use super::distribution::normal_quantile;
use super::error::{StatsError, at_least, finite};
use serde::{Deserialize, Serialize};

/// The fewest repeats for the check.
pub const MIN_REPEATS: usize = 5;

/// What the order of the repeats shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Independence {
    /// Sum of squared steps over sum of squared deviations, near 2 for independent repeats; `None` when all are equal.
    pub ratio: Option<f64>,
    /// Below this, neighbours are too alike to be independent.
    pub critical: f64,
    /// Correlation of each repeat with the one before; `None` when all are equal.
    pub lag_one: Option<f64>,
    /// Whether the repeats may be taken as independent.
    pub finding: Dependence,
}

/// The finding of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// Nothing speaks against independence.
    NotSeen,
    /// Neighbours are too alike: the repeats cannot be judged as independent.
    Seen,
}

/// Checks repeats in time order.
pub fn check(values: &[f64], alpha: Alpha) -> Result<Independence, StatsError> {
    finite(values)?;
    let n = values.len();
    at_least("repeats", n, MIN_REPEATS)?;
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let steps: f64 = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    let products: f64 = values
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    // Spread at the level of rounding is no spread.
    let spread = squares > (mean * 1e-12).powi(2) * n as f64;
    let ratio = spread.then(|| steps / squares);
    let critical = critical_ratio(n, alpha);
    Ok(Independence {
        ratio,
        critical,
        lag_one: spread.then(|| products / squares),
        finding: match ratio {
            Some(r) if r < critical => Dependence::Seen,
            _ => Dependence::NotSeen,
        },
    })
}

/// The ratio that independent normal repeats fall below with chance `alpha`.
///
/// Mean 2 and variance `4(n-2)/(n²-1)` are exact (von Neumann 1941); the normal shape is within 0.02 of Hart's table
/// from n = 5 on at 5 %.
pub fn critical_ratio(n: usize, alpha: Alpha) -> f64 {
    let n = n.max(3) as f64;
    2.0 + normal_quantile(alpha.value()) * 2.0 * ((n - 2.0) / (n * n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::noise::{Shape, SplitMix64};
    use super::*;

    #[test]
    fn the_critical_values_agree_with_the_table() {
        for (n, table) in [(5, 0.82), (7, 0.94), (10, 1.06), (15, 1.21), (20, 1.30)] {
            let got = critical_ratio(n, Alpha::FIVE_PERCENT);
            assert!((got - table).abs() < 0.02, "n = {n}: {got}");
        }
    }

    #[test]
    fn a_steady_climb_is_not_independent_and_a_zigzag_is_not_accused() {
        let climb = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let found = check(&climb, Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(found.finding, Dependence::Seen);
        assert!(found.lag_one.unwrap() > 0.4);
        let zigzag = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0];
        assert_eq!(
            check(&zigzag, Alpha::FIVE_PERCENT).unwrap().finding,
            Dependence::NotSeen
        );
    }

    #[test]
    fn identical_repeats_have_no_ratio_and_no_finding() {
        let same = check(&[108.6; 7], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(
            (same.ratio, same.lag_one, same.finding),
            (None, None, Dependence::NotSeen)
        );
    }

    #[test]
    fn the_check_calibrates_and_its_power_grows_with_n() {
        let mut random = SplitMix64::new(2);
        let mut seen = |shape: Shape, n: usize| {
            let rounds = 1500;
            let hits = (0..rounds)
                .filter(|_| {
                    let x = shape.draw(n, 0.0, &mut random);
                    check(&x, Alpha::FIVE_PERCENT).unwrap().finding == Dependence::Seen
                })
                .count();
            100.0 * hits as f64 / rounds as f64
        };
        for n in [7, 10, 20] {
            let (quiet, stall, found) = (
                seen(Shape::Normal, n),
                seen(Shape::Stall, n),
                seen(Shape::Correlated, n),
            );
            println!(
                "independence, n = {n}: false alarm {quiet:.1} % (stalls {stall:.1} %) · AR(1) 0.6 found {found:.0} %"
            );
            assert!(quiet < 6.6 && stall < 6.6, "{quiet} {stall}");
            assert!(found > 3.0 * quiet);
        }
    }
}
