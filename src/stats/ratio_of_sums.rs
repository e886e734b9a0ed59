//! Ratio of two sums over independent units, with the error of the delta method.
//!
//! Accept length is `1 + accepted / steps` summed over prompts: prompts are the units, since steps of one prompt resemble
//! each other.

use super::alpha::Alpha;
use super::distribution::t_quantile;
use super::error::{StatsError, at_least, finite};
use super::estimate::{Estimate, Method};

/// The least number of units: below, the t quantile and the error estimate are both guesses.
pub const MIN_UNITS: usize = 5;

/// One unit's share of both sums (a prompt's accepted tokens and verification steps).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Its share of the sum above the line.
    pub numerator: f64,
    /// Its share of the sum below the line, zero or more.
    pub denominator: f64,
}

/// A ratio with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio of the sums.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// Number of units.
    pub units: usize,
}

/// Ratio of the sums; `se² = m/(m-1) · Σ(y − R x)² / (Σx)²`.
pub fn ratio_of_sums(parts: &[Part]) -> Result<Ratio, StatsError> {
    let units = parts.len();
    for (position, part) in parts.iter().enumerate() {
        for value in [part.numerator, part.denominator] {
            finite(&[value]).map_err(|_| StatsError::NotFinite { position, value })?;
        }
        if part.denominator < 0.0 {
            return Err(StatsError::NotPositive {
                position,
                value: part.denominator,
            });
        }
    }
    at_least("units", units, MIN_UNITS)?;
    let below: f64 = parts.iter().map(|p| p.denominator).sum();
    if below <= 0.0 {
        return Err(StatsError::NoDenominator);
    }
    let value = parts.iter().map(|p| p.numerator).sum::<f64>() / below;
    let squares: f64 = parts
        .iter()
        .map(|p| (p.numerator - value * p.denominator).powi(2))
        .sum();
    let m = units as f64;
    Ok(Ratio {
        value,
        se: (m / (m - 1.0) * squares).sqrt() / below,
        units,
    })
}

/// Accept length with the bonus token: `numerator` is accepted draft tokens, `denominator` verification steps.
pub fn accept_length(prompts: &[Part]) -> Result<Ratio, StatsError> {
    let accepted = ratio_of_sums(prompts)?;
    Ok(Ratio {
        value: 1.0 + accepted.value,
        ..accepted
    })
}

impl Ratio {
    /// The ratio with one-sided bounds by Student's t.
    pub fn estimate(&self, alpha: Alpha) -> Estimate {
        let reach = t_quantile(alpha.confidence(), self.units.saturating_sub(1)) * self.se;
        Estimate::symmetric(self.value, reach, alpha, self.units, Method::RatioOfSums)
    }

    /// This ratio over another one measured apart from it (candidate over incumbent), for a non-inferiority limit.
    ///
    /// The relative error is `√((se/R)² + (se₀/R₀)²)`, with the degrees of freedom of the smaller sample.
    pub fn relative_to(&self, incumbent: &Ratio, alpha: Alpha) -> Result<Estimate, StatsError> {
        for (position, ratio) in [incumbent, self].into_iter().enumerate() {
            if ratio.value <= 0.0 {
                return Err(StatsError::NotPositive {
                    position,
                    value: ratio.value,
                });
            }
        }
        let units = self.units.min(incumbent.units);
        let error = (self.se / self.value).hypot(incumbent.se / incumbent.value);
        let value = self.value / incumbent.value;
        let reach = value * error * t_quantile(alpha.confidence(), units.saturating_sub(1));
        Ok(Estimate::symmetric(
            value,
            reach,
            alpha,
            units,
            Method::RatioOfSums,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bound::{Decision, Limit};
    use super::super::noise::SplitMix64;
    use super::*;

    fn parts(rows: &[(f64, f64)]) -> Vec<Part> {
        rows.iter()
            .map(|&(numerator, denominator)| Part {
                numerator,
                denominator,
            })
            .collect()
    }

    #[test]
    fn the_ratio_and_its_error_agree_with_ones_made_by_hand() {
        // R = 50/25 = 2; residuals 1, -1, 0, 1, -1: se = sqrt(5/4 · 4)/25.
        let rows = parts(&[
            (11.0, 5.0),
            (9.0, 5.0),
            (10.0, 5.0),
            (11.0, 5.0),
            (9.0, 5.0),
        ]);
        let ratio = ratio_of_sums(&rows).unwrap();
        assert_eq!(ratio.value, 2.0);
        assert!((ratio.se - 5.0_f64.sqrt() / 25.0).abs() < 1e-15);
        assert_eq!(accept_length(&rows).unwrap().value, 3.0);
    }

    #[test]
    fn a_counter_that_never_moved_has_no_ratio() {
        assert_eq!(
            ratio_of_sums(&parts(&[(0.0, 0.0); 6])),
            Err(StatsError::NoDenominator)
        );
    }

    #[test]
    fn the_bound_calibrates_for_prompts_of_different_length() {
        let mut random = SplitMix64::new(5);
        let rounds = 2000;
        let mut prompts = |_: usize| -> Vec<Part> {
            (0..20)
                .map(|_| {
                    let steps = 100.0 + 200.0 * random.uniform();
                    // Acceptance of a prompt varies around 1.08 by 15 %.
                    let accepted = steps * 1.08 * (1.0 + 0.15 * random.normal());
                    Part {
                        numerator: accepted,
                        denominator: steps,
                    }
                })
                .collect()
        };
        let wrong = (0..rounds)
            .filter(|&i| {
                let e = accept_length(&prompts(i))
                    .unwrap()
                    .estimate(Alpha::FIVE_PERCENT);
                Limit::Floor(2.08).decide(&e) == Decision::Clears
            })
            .count();
        let share = 100.0 * wrong as f64 / rounds as f64;
        println!("accept length, 20 prompts: false PASS {share:.1} %");
        assert!((2.0..=6.5).contains(&share), "{share}");
    }

    #[test]
    fn a_collapsed_drafter_is_inferior_whatever_the_spread() {
        let healthy = Ratio {
            value: 3.05,
            se: 0.06,
            units: 20,
        };
        let collapsed = Ratio {
            value: 1.09,
            se: 0.02,
            units: 20,
        };
        let same = Ratio {
            value: 3.04,
            se: 0.06,
            units: 20,
        };
        let limit = Limit::NonInferior { margin: 0.05 };
        let against =
            |r: Ratio| limit.decide(&r.relative_to(&healthy, Alpha::FIVE_PERCENT).unwrap());
        assert_eq!(against(collapsed), Decision::Misses);
        // Twenty prompts with 2 % of error each side cannot prove 5 %: 1.73 · 2.8 % = 4.8 % beside a loss of 0.3 %.
        assert_eq!(against(same), Decision::Straddles);
    }
}
