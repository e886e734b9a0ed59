//! What a sample could have seen, and what would settle an open verdict.

use super::alpha::Alpha;
use super::bound::{Decision, Limit};
use super::distribution::normal_quantile;
use super::error::{StatsError, share};
use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// The power that plans aim for when none is given: four in five.
pub const USUAL_POWER: f64 = 0.8;

/// Efficiency of the signed rank against the mean for normal values (3/π); with stalls the signed rank is the better one.
const SIGNED_RANK_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// A spread from five repeats or so is known to a factor of two; a plan beyond ten times the sample is a guess.
const CREDIBLE_GROWTH: usize = 10;

/// The smallest difference from the limit that `n` repeats of deviation `sd` find with chance `power`, same unit as `sd`.
pub fn smallest_effect(sd: f64, n: usize, alpha: Alpha, power: f64) -> Result<f64, StatsError> {
    Ok(quantiles(alpha, power)? * sd / (n.max(1) as f64 * SIGNED_RANK_EFFICIENCY).sqrt())
}

/// Repeats (or pairs) that find a difference of `effect` from the limit with chance `power`, given deviation `sd`.
pub fn observations_needed(
    sd: f64,
    effect: f64,
    alpha: Alpha,
    power: f64,
) -> Result<usize, StatsError> {
    let quantiles = quantiles(alpha, power)?;
    if !(effect > 0.0 && effect.is_finite()) {
        return Err(StatsError::OutOfRange {
            what: "the effect to be found",
            value: effect,
            wants: "a difference above zero",
        });
    }
    let n = ((quantiles * sd / effect).powi(2) / SIGNED_RANK_EFFICIENCY).ceil();
    Ok((n as usize).max(super::signed_rank::observations_needed(alpha)))
}

/// Smallest difference that an estimate with standard error `se` finds with chance `power`.
pub fn smallest_effect_of_error(se: f64, alpha: Alpha, power: f64) -> Result<f64, StatsError> {
    Ok(quantiles(alpha, power)? * se)
}

/// How many standard errors a one-sided bound at `alpha` lies from its estimate, for a normal estimate.
pub fn quantile_of(alpha: Alpha) -> f64 {
    normal_quantile(alpha.confidence())
}

/// Tokens that show a perplexity change of `margin` nats per token between builds of divergence `kl` nats.
///
/// Deviation of the per-token difference is `√(2·kl)` for close models; `design_effect` is the variance over that of
/// independent tokens.
pub fn tokens_needed(
    kl: f64,
    margin: f64,
    design_effect: f64,
    alpha: Alpha,
    power: f64,
) -> Result<u64, StatsError> {
    let quantiles = quantiles(alpha, power)?;
    if !(margin > 0.0 && margin.is_finite()) {
        return Err(StatsError::OutOfRange {
            what: "the margin",
            value: margin,
            wants: "nats per token above zero",
        });
    }
    Ok((design_effect * 2.0 * kl * (quantiles / margin).powi(2)).ceil() as u64)
}

fn quantiles(alpha: Alpha, power: f64) -> Result<f64, StatsError> {
    share("the power", power)?;
    Ok(normal_quantile(alpha.confidence()) + normal_quantile(power))
}

/// What would settle a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settling {
    /// It is settled.
    Settled,
    /// About so many more of the same units, if estimate and spread stay as they are.
    About {
        /// Units beyond those at hand.
        more: usize,
    },
    /// More than ten times as many, or any number: the figure lies too near to the limit.
    OutOfReach,
}

/// Estimates what would settle an open verdict; bounds close in with the square root of the number of units.
pub fn settling(estimate: &Estimate, limit: &Limit) -> Settling {
    if limit.decide(estimate) != Decision::Straddles {
        return Settling::Settled;
    }
    let allowed = limit.allowed();
    let inside = allowed.low.is_none_or(|x| estimate.value >= x)
        && allowed.high.is_none_or(|x| estimate.value <= x);
    let (down, up) = (
        estimate.value - estimate.lower,
        estimate.upper - estimate.value,
    );
    // Inside, the near bound must come in on each side; outside, the one that still reaches over the limit.
    let low = allowed.low.map(|x| {
        let reach = if inside { down } else { up };
        (reach, estimate.value - x)
    });
    let high = allowed.high.map(|x| {
        let reach = if inside { up } else { down };
        (reach, x - estimate.value)
    });
    let growth = [low, high]
        .into_iter()
        .flatten()
        .filter(|&(_, room)| inside || room < 0.0)
        .map(|(reach, room)| (reach / room).powi(2))
        .fold(1.0, f64::max);
    if !growth.is_finite() || growth > CREDIBLE_GROWTH as f64 {
        return Settling::OutOfReach;
    }
    let total = (estimate.n as f64 * growth).ceil() as usize;
    Settling::About {
        more: total.saturating_sub(estimate.n).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Method;
    use super::*;

    const FIVE: Alpha = Alpha::FIVE_PERCENT;

    #[test]
    fn the_tokens_needed_agree_with_the_planning_table() {
        for (kl, margin, tokens) in [
            (1e-5, 0.0005, 989),
            (1e-5, 0.001, 247),
            (1e-4, 0.0005, 9_893),
            (1e-3, 0.001, 24_733),
            (1e-2, 0.002, 61_832),
        ] {
            let got = tokens_needed(kl, margin, 2.0, FIVE, USUAL_POWER).unwrap();
            assert!(
                got.abs_diff(tokens) <= 1 + tokens / 1000,
                "{kl} {margin}: {got}"
            );
        }
    }

    #[test]
    fn effect_and_number_are_inverse_to_each_other() {
        let n = observations_needed(0.01, 0.01, FIVE, USUAL_POWER).unwrap();
        let effect = smallest_effect(0.01, n, FIVE, USUAL_POWER).unwrap();
        assert!(effect <= 0.01 && smallest_effect(0.01, n - 1, FIVE, USUAL_POWER).unwrap() > 0.01);
        assert!((smallest_effect_of_error(1.0, FIVE, USUAL_POWER).unwrap() - 2.486).abs() < 1e-3);
    }

    #[test]
    fn no_plan_goes_below_the_number_that_can_decide() {
        assert_eq!(
            observations_needed(0.0001, 0.5, FIVE, USUAL_POWER).unwrap(),
            5
        );
        assert!(observations_needed(0.01, 0.0, FIVE, USUAL_POWER).is_err());
    }

    fn estimate(lower: f64, value: f64, upper: f64) -> Estimate {
        Estimate {
            value,
            lower,
            upper,
            confidence: 0.95,
            n: 10,
            method: Method::SignedRank,
        }
    }

    #[test]
    fn an_open_verdict_says_how_many_more_would_settle_it() {
        // Reach 2, room 1.5: (2/1.5)² of 10 is 17.8.
        let open = estimate(99.5, 101.5, 103.5);
        assert_eq!(
            settling(&open, &Limit::Floor(100.0)),
            Settling::About { more: 8 }
        );
        // Below the floor it is the upper bound that must come in.
        let low = estimate(96.5, 98.5, 100.5);
        assert_eq!(
            settling(&low, &Limit::Floor(100.0)),
            Settling::About { more: 8 }
        );
        assert_eq!(
            settling(&estimate(101.0, 102.0, 103.0), &Limit::Floor(100.0)),
            Settling::Settled
        );
    }

    #[test]
    fn a_figure_at_its_limit_is_out_of_reach() {
        assert_eq!(
            settling(&estimate(98.0, 100.0, 102.0), &Limit::Floor(100.0)),
            Settling::OutOfReach
        );
        assert_eq!(
            settling(&estimate(98.0, 100.1, 102.0), &Limit::Floor(100.0)),
            Settling::OutOfReach
        );
    }

    #[test]
    fn both_ends_of_a_band_must_be_cleared() {
        let band = Limit::Within {
            low: 98.0,
            high: 101.0,
        };
        let open = estimate(98.5, 100.0, 101.5);
        assert_eq!(settling(&open, &band), Settling::About { more: 13 });
    }
}
