//! Bounds from order statistics: the median of repeats, and quantiles of many requests.

use super::alpha::Alpha;
use super::bound::{Decision, Ruling};
use super::distribution::{binomial_at_least, binomial_at_most};
use super::error::{StatsError, at_least, finite, share};
use super::estimate::{Estimate, Method};
use super::signed_rank::{MIN_REPEATS, median_of_sorted};

/// The rank (from 1, from either end) that bounds the median of `n` values, if any does.
pub fn median_rank(n: usize, alpha: Alpha) -> Option<usize> {
    lower_rank(n, 0.5, alpha)
}

/// Largest r with `P(Bin(n, q) <= r-1) <= alpha`: the r-th smallest value is a lower bound of the q-quantile.
fn lower_rank(n: usize, q: f64, alpha: Alpha) -> Option<usize> {
    // The tail grows with r, so the last that fits is found by halving.
    let fits = |r: usize| binomial_at_most(r as u64 - 1, n as u64, q) <= alpha.value();
    if n == 0 || !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, n + 1);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Median with order statistics as bounds: asks for no symmetry, and has less power than the signed rank.
pub fn median(values: &[f64], alpha: Alpha) -> Result<Estimate, StatsError> {
    finite(values)?;
    let n = values.len();
    at_least("repeats", n, MIN_REPEATS)?;
    let rank = median_rank(n, alpha).ok_or_else(|| StatsError::TooFew {
        what: "repeats",
        have: n,
        need: super::signed_rank::observations_needed(alpha),
    })?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(Estimate {
        value: median_of_sorted(&sorted),
        lower: sorted[rank - 1],
        upper: sorted[n - rank],
        confidence: alpha.confidence(),
        n,
        method: Method::OrderStatistic,
    })
}

/// The q-quantile of many independent values (`q` = 0.95 for p95), with both bounds distribution-free.
///
/// # Errors
/// Too few values for one of the bounds to exist at all: 59 for p95 at 5 %, 299 for p99.
pub fn quantile(values: &[f64], q: f64, alpha: Alpha) -> Result<Estimate, StatsError> {
    finite(values)?;
    share("the quantile", q)?;
    let n = values.len();
    let need = requests_needed(q.max(1.0 - q), 0, alpha)? as usize;
    at_least("requests", n, need)?;
    let too_few = StatsError::TooFew {
        what: "requests",
        have: n,
        need,
    };
    let lower = lower_rank(n, q, alpha).ok_or_else(|| too_few.clone())?;
    let from_top = lower_rank(n, 1.0 - q, alpha).ok_or(too_few)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = ((q * n as f64).ceil() as usize).clamp(1, n);
    Ok(Estimate {
        value: sorted[at - 1],
        lower: sorted[lower - 1],
        upper: sorted[n - from_top],
        confidence: alpha.confidence(),
        n,
        method: Method::OrderStatistic,
    })
}

/// The fewest requests that can prove a quantile limit when `violations` of them are over it.
///
/// Source: the early-stopping rule of MLPerf LoadGen, `P(Bin(n, 1-q) <= violations) <= alpha`.
pub fn requests_needed(q: f64, violations: u64, alpha: Alpha) -> Result<u64, StatsError> {
    share("the quantile", q)?;
    let proves = |n: u64| binomial_at_most(violations, n, 1.0 - q) <= alpha.value();
    let mut high = violations + 1;
    while !proves(high) {
        if high > 1 << 40 {
            return Err(StatsError::OutOfRange {
                what: "the quantile",
                value: q,
                wants: "one that fewer than a million million requests can prove",
            });
        }
        high *= 2;
    }
    let mut low = violations;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if proves(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Requests seen, and how many were over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantileCount {
    /// All requests.
    pub requests: u64,
    /// Those over the limit.
    pub violations: u64,
}

/// Judges `p(q) <= limit` by counting the requests over the limit; needs as many requests as say so.
pub fn judge_quantile(count: QuantileCount, q: f64, alpha: Alpha) -> Result<Ruling, StatsError> {
    share("the quantile", q)?;
    let QuantileCount {
        requests,
        violations,
    } = count;
    if violations > requests {
        return Err(StatsError::OutOfRange {
            what: "the number of requests over the limit",
            value: violations as f64,
            wants: "no more than there were requests",
        });
    }
    if requests > 0 && binomial_at_most(violations, requests, 1.0 - q) <= alpha.value() {
        return Ok(Ruling::settled(Decision::Clears));
    }
    if binomial_at_least(violations, requests, 1.0 - q) <= alpha.value() {
        return Ok(Ruling::settled(Decision::Misses));
    }
    let need = requests_needed(q, violations, alpha)?;
    Ok(Ruling {
        decision: Decision::Straddles,
        need: (need > requests).then_some(need as usize),
    })
}

/// Judges `p(q) <= limit` over several repeats.
///
/// Requests of one repeat resemble each other, so that their number overstates the evidence: a limit is cleared only if
/// the pooled count clears it and no repeat has more than its share of requests over the limit.
pub fn judge_quantile_of_repeats(
    repeats: &[QuantileCount],
    q: f64,
    alpha: Alpha,
) -> Result<Ruling, StatsError> {
    let pooled = QuantileCount {
        requests: repeats.iter().map(|r| r.requests).sum(),
        violations: repeats.iter().map(|r| r.violations).sum(),
    };
    let ruling = judge_quantile(pooled, q, alpha)?;
    // A whole request is the least that can be over, whatever the share of a short repeat.
    let over = |r: &QuantileCount| r.violations > ((1.0 - q) * r.requests as f64).ceil() as u64;
    if ruling.decision == Decision::Clears && repeats.iter().any(over) {
        return Ok(Ruling::settled(Decision::Straddles));
    }
    Ok(ruling)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Alpha = Alpha::FIVE_PERCENT;

    #[test]
    fn the_median_ranks_agree_with_the_table() {
        for (n, rank) in [
            (5, 1),
            (6, 1),
            (7, 1),
            (8, 2),
            (9, 2),
            (10, 2),
            (11, 3),
            (12, 3),
            (15, 4),
            (20, 6),
            (25, 8),
            (30, 11),
        ] {
            assert_eq!(median_rank(n, FIVE), Some(rank), "n = {n}");
        }
        assert_eq!(median_rank(4, FIVE), None);
    }

    #[test]
    fn the_requests_needed_agree_with_the_table() {
        let violations = [0, 1, 2, 3, 5, 10];
        for (q, needed) in [
            (0.90, [29, 46, 61, 76, 103, 167]),
            (0.95, [59, 93, 124, 153, 208, 336]),
            (0.99, [299, 473, 628, 773, 1049, 1693]),
        ] {
            for (t, n) in violations.into_iter().zip(needed) {
                assert_eq!(
                    requests_needed(q, t, FIVE).unwrap(),
                    n,
                    "p{q} with {t} over"
                );
            }
        }
        let one = Alpha::new(0.01).unwrap();
        for (t, n) in [(0, 90), (1, 130), (2, 165)] {
            assert_eq!(requests_needed(0.95, t, one).unwrap(), n);
        }
        for (t, n) in [(0, 459), (1, 662), (2, 838)] {
            assert_eq!(requests_needed(0.99, t, one).unwrap(), n);
        }
    }

    #[test]
    fn p99_of_120_requests_can_never_clear_and_says_what_would() {
        let count = QuantileCount {
            requests: 120,
            violations: 0,
        };
        let ruling = judge_quantile(count, 0.99, FIVE).unwrap();
        assert_eq!(ruling.decision, Decision::Straddles);
        assert_eq!(ruling.need, Some(299));
    }

    #[test]
    fn many_requests_over_the_limit_miss_it_early() {
        let count = QuantileCount {
            requests: 20,
            violations: 5,
        };
        assert_eq!(
            judge_quantile(count, 0.95, FIVE).unwrap().decision,
            Decision::Misses
        );
    }

    #[test]
    fn no_request_at_all_is_undecided() {
        let none = QuantileCount {
            requests: 0,
            violations: 0,
        };
        let ruling = judge_quantile(none, 0.95, FIVE).unwrap();
        assert_eq!(
            (ruling.decision, ruling.need),
            (Decision::Straddles, Some(59))
        );
    }

    #[test]
    fn the_bounds_of_a_quantile_are_values_of_the_sample() {
        let values: Vec<f64> = (1..=59).map(f64::from).collect();
        let p95 = quantile(&values, 0.95, FIVE).unwrap();
        assert_eq!(p95.upper, 59.0);
        assert!(p95.lower <= p95.value && p95.value <= p95.upper);
        assert!(matches!(
            quantile(&values[..58], 0.95, FIVE),
            Err(StatsError::TooFew { need: 59, .. })
        ));
    }

    #[test]
    fn one_bad_repeat_keeps_a_pooled_quantile_open() {
        let repeat = |violations| QuantileCount {
            requests: 100,
            violations,
        };
        let even = [repeat(2), repeat(1), repeat(2), repeat(2), repeat(1)];
        let bad = [repeat(0), repeat(0), repeat(8), repeat(0), repeat(0)];
        let judge =
            |r: &[QuantileCount]| judge_quantile_of_repeats(r, 0.95, FIVE).unwrap().decision;
        assert_eq!(judge(&even), Decision::Clears);
        assert_eq!(judge(&bad), Decision::Straddles);
    }
}
