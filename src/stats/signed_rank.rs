//! Hodges–Lehmann estimate with exact bounds from the Wilcoxon signed-rank test.
//!
//! The mean of every pair of observations (each with itself too) is a Walsh average. Their median is the estimate; the
//! k-th smallest and the k-th largest are the bounds, with k from the exact null distribution. Equal values make equal
//! averages and need no special treatment: a sample without spread has bounds equal to its value.

use super::alpha::Alpha;
use super::distribution::normal_quantile;
use super::error::{StatsError, at_least, finite, positive};
use super::estimate::{Estimate, Method};
use super::pairs::Pair;

/// The fewest repeats that can decide at 5 %: with 4, even all on one side has a chance of 1/16.
pub const MIN_REPEATS: usize = 5;

/// Above this the exact table costs more than it tells: the normal rank is within half a percent of it.
const EXACT_UP_TO: usize = 100;

/// A sample of this size has two million Walsh averages; larger ones are not repeats and want another method.
const MOST: usize = 2000;

/// The k of the bounds: the largest with `P(W+ <= k-1) <= alpha` for `n` observations, if any exists.
pub fn bound_rank(n: usize, alpha: Alpha) -> Option<usize> {
    if n > EXACT_UP_TO {
        return normal_rank(n, alpha);
    }
    let mut below = 0.0;
    let mut k = 0;
    for chance in null_distribution(n) {
        below += chance;
        if below > alpha.value() {
            break;
        }
        k += 1;
    }
    (k > 0).then_some(k)
}

/// The fewest observations that give a bound at `alpha`: all of them on one side must be rarer than alpha.
pub fn observations_needed(alpha: Alpha) -> usize {
    let mut n = MIN_REPEATS;
    while 0.5_f64.powi(n as i32) > alpha.value() {
        n += 1;
    }
    n
}

/// Centre of symmetry of the values, in their own unit.
pub fn location(values: &[f64], alpha: Alpha) -> Result<Estimate, StatsError> {
    finite(values)?;
    centre("repeats", values, alpha, Method::SignedRank)
}

/// Level of a positive figure (tok/s, ms), estimated on logarithms and given in the figure's unit.
pub fn level(values: &[f64], alpha: Alpha) -> Result<Estimate, StatsError> {
    positive(values)?;
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    Ok(centre("repeats", &logs, alpha, Method::SignedRank)?.map(f64::exp))
}

/// Ratio candidate / incumbent from adjacent pairs (ABBA order), estimated on logarithms.
pub fn ratio(pairs: &[Pair], alpha: Alpha) -> Result<Estimate, StatsError> {
    let mut logs = Vec::with_capacity(pairs.len());
    for (position, pair) in pairs.iter().enumerate() {
        for value in [pair.incumbent, pair.candidate] {
            positive(&[value]).map_err(|_| bad_at(position, value))?;
        }
        logs.push(pair.candidate.ln() - pair.incumbent.ln());
    }
    Ok(centre("pairs", &logs, alpha, Method::PairedSignedRank)?.map(f64::exp))
}

fn bad_at(position: usize, value: f64) -> StatsError {
    if value.is_finite() {
        StatsError::NotPositive { position, value }
    } else {
        StatsError::NotFinite { position, value }
    }
}

fn centre(
    what: &'static str,
    values: &[f64],
    alpha: Alpha,
    method: Method,
) -> Result<Estimate, StatsError> {
    let n = values.len();
    at_least(what, n, MIN_REPEATS)?;
    if n > MOST {
        return Err(StatsError::OutOfRange {
            what: "the number of observations",
            value: n as f64,
            wants: "at most 2000 for a signed-rank bound",
        });
    }
    let k = bound_rank(n, alpha).ok_or(StatsError::TooFew {
        what,
        have: n,
        need: observations_needed(alpha),
    })?;
    let averages = walsh_averages(values);
    Ok(Estimate {
        value: median_of_sorted(&averages),
        lower: averages[k - 1],
        upper: averages[averages.len() - k],
        confidence: alpha.confidence(),
        n,
        method,
    })
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        // `a/2 + b/2` cannot overflow where `(a+b)/2` can.
        averages.extend(values[i..].iter().map(|b| a * 0.5 + b * 0.5));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// Median of values already in order; the caller has made sure that there is at least one.
pub(super) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[upper]
    } else {
        sorted[upper - 1] * 0.5 + sorted[upper] * 0.5
    }
}

/// Chance of each value of W+, from 0 to n(n+1)/2: the i-th rank is in the sum or not, with one half each.
fn null_distribution(n: usize) -> Vec<f64> {
    let mut chance = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; chance.len() + rank];
        for (sum, p) in chance.iter().enumerate() {
            next[sum] += p * 0.5;
            next[sum + rank] += p * 0.5;
        }
        chance = next;
    }
    chance
}

fn normal_rank(n: usize, alpha: Alpha) -> Option<usize> {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let k = (mean + 0.5 + normal_quantile(alpha.value()) * sd).floor();
    (k >= 1.0).then_some(k as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_agree_with_the_wilcoxon_table() {
        let five = [
            (5, 1),
            (6, 3),
            (7, 4),
            (8, 6),
            (9, 9),
            (10, 11),
            (11, 14),
            (12, 18),
            (15, 31),
            (20, 61),
            (25, 101),
            (30, 152),
        ];
        for (n, k) in five {
            assert_eq!(bound_rank(n, Alpha::FIVE_PERCENT), Some(k), "n = {n}");
        }
        let half = Alpha::new(0.025).unwrap();
        let two_and_half = [
            (6, 1),
            (7, 3),
            (8, 4),
            (9, 6),
            (10, 9),
            (11, 11),
            (12, 14),
            (15, 26),
            (20, 53),
            (25, 90),
            (30, 138),
        ];
        for (n, k) in two_and_half {
            assert_eq!(bound_rank(n, half), Some(k), "n = {n}");
        }
        assert_eq!(bound_rank(4, Alpha::FIVE_PERCENT), None);
        assert_eq!(bound_rank(5, half), None);
    }

    #[test]
    fn at_the_first_look_only_all_eight_on_one_side_decide() {
        assert_eq!(bound_rank(8, Alpha::literal(0.004)), Some(1));
    }

    #[test]
    fn the_normal_rank_meets_the_exact_one_where_they_join() {
        for alpha in [0.05, 0.025, 0.01] {
            let alpha = Alpha::new(alpha).unwrap();
            let exact = bound_rank(EXACT_UP_TO, alpha).unwrap();
            let normal = normal_rank(EXACT_UP_TO, alpha).unwrap();
            assert!(normal.abs_diff(exact) * 200 <= exact, "{normal} {exact}");
        }
    }

    #[test]
    fn a_sample_without_spread_has_bounds_equal_to_its_value() {
        let same = location(&[7.5; 6], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!((same.lower, same.value, same.upper), (7.5, 7.5, 7.5));
    }

    #[test]
    fn the_estimate_of_a_small_sample_agrees_with_one_made_by_hand() {
        // Walsh averages of 1..5 run from 1 to 5; their median is 3, and k = 1 gives the ends.
        let hand = location(&[5.0, 1.0, 4.0, 2.0, 3.0], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!((hand.lower, hand.value, hand.upper), (1.0, 3.0, 5.0));
    }

    #[test]
    fn four_repeats_decide_nothing() {
        assert_eq!(
            level(&[1.0, 2.0, 3.0, 4.0], Alpha::FIVE_PERCENT),
            Err(StatsError::TooFew {
                what: "repeats",
                have: 4,
                need: 5
            })
        );
    }

    #[test]
    fn a_stricter_level_asks_for_more_repeats() {
        let strict = Alpha::FIVE_PERCENT.of_attempt(2);
        assert!(matches!(
            level(&[1.0; 5], strict),
            Err(StatsError::TooFew { need: 6, .. })
        ));
    }

    #[test]
    fn the_level_of_a_figure_scales_with_its_unit() {
        let seconds = [1.0, 1.1, 0.9, 1.05, 1.2, 0.95];
        let millis: Vec<f64> = seconds.iter().map(|s| s * 1000.0).collect();
        let a = level(&seconds, Alpha::FIVE_PERCENT).unwrap();
        let b = level(&millis, Alpha::FIVE_PERCENT).unwrap();
        assert!((a.lower * 1000.0 - b.lower).abs() < 1e-9);
        assert!((a.upper * 1000.0 - b.upper).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_of_pairs_cancels_what_both_share() {
        let pairs: Vec<Pair> = [100.0, 50.0, 80.0, 120.0, 90.0, 60.0, 70.0]
            .iter()
            .map(|a| Pair {
                incumbent: *a,
                candidate: a * 1.02,
            })
            .collect();
        let ratio = ratio(&pairs, Alpha::FIVE_PERCENT).unwrap();
        assert!((ratio.value - 1.02).abs() < 1e-12 && (ratio.upper - ratio.lower) < 1e-12);
    }

    #[test]
    fn a_value_that_is_no_number_is_refused_in_every_form() {
        let bad = [1.0, 2.0, f64::NAN, 3.0, 4.0];
        assert!(location(&bad, Alpha::FIVE_PERCENT).is_err());
        assert!(level(&bad, Alpha::FIVE_PERCENT).is_err());
        let pair = Pair {
            incumbent: 1.0,
            candidate: f64::INFINITY,
        };
        assert!(matches!(
            ratio(&[pair], Alpha::FIVE_PERCENT),
            Err(StatsError::NotFinite { position: 0, .. })
        ));
    }
}
