//! Ratio of two samples without pairs, with exact bounds from the Wilcoxon rank-sum (Mann–Whitney) test.
//!
//! For builds that cannot alternate run by run: incumbent … candidate … incumbent in blocks around each other. A steady
//! drift then widens the incumbent's sample and makes the bounds cautious; in plain blocks A then B it would be read as
//! a difference, so this method is only for samples that surround each other.

use super::alpha::Alpha;
use super::distribution::normal_quantile;
use super::error::{StatsError, positive};
use super::estimate::{Estimate, Method};
use super::signed_rank::median_of_sorted;

/// Above this many observations in all the exact counts no longer fit a double without rounding.
const EXACT_UP_TO: usize = 50;

/// The k of the bounds: the largest with `P(U <= k-1) <= alpha`, if any exists.
pub fn bound_rank(first: usize, second: usize, alpha: Alpha) -> Option<usize> {
    if first == 0 || second == 0 {
        return None;
    }
    if first + second > EXACT_UP_TO {
        let (m, n) = (first as f64, second as f64);
        let sd = (m * n * (m + n + 1.0) / 12.0).sqrt();
        let k = (m * n / 2.0 + 0.5 + normal_quantile(alpha.value()) * sd).floor();
        return (k >= 1.0).then_some(k as usize);
    }
    let ways = arrangements(first, second);
    // A relative hair against the rounding of alpha itself: 3 against 3 is exactly 1/20.
    let allowed = alpha.value() * (1.0 + 1e-12) * ways.iter().sum::<f64>();
    let mut below = 0.0;
    let k = ways
        .iter()
        .take_while(|w| {
            below += **w;
            below <= allowed
        })
        .count();
    (k > 0).then_some(k)
}

/// Chance that one sample lies wholly above the other when both are of the same kind: 1 in C(m+n, m).
pub fn chance_of_separation(first: usize, second: usize) -> f64 {
    (1..=first).fold(1.0, |chance, i| chance * i as f64 / (second + i) as f64)
}

/// Ratio candidate / incumbent of two samples of positive figures.
///
/// # Errors
/// Too few observations for a bound at `alpha` (3 against 3 is the least at 5 %), or a value that has no logarithm.
pub fn ratio(incumbent: &[f64], candidate: &[f64], alpha: Alpha) -> Result<Estimate, StatsError> {
    positive(incumbent)?;
    positive(candidate)?;
    let (m, n) = (incumbent.len(), candidate.len());
    let k = bound_rank(m, n, alpha).ok_or_else(|| StatsError::TooFew {
        what: "runs of each build",
        have: m.min(n),
        need: runs_needed(alpha),
    })?;
    if m * n > 2_000_000 {
        return Err(StatsError::OutOfRange {
            what: "the number of pairs of runs",
            value: (m * n) as f64,
            wants: "at most 2 million for a rank-sum bound",
        });
    }
    let mut shifts: Vec<f64> = candidate
        .iter()
        .flat_map(|c| incumbent.iter().map(move |i| c.ln() - i.ln()))
        .collect();
    shifts.sort_unstable_by(f64::total_cmp);
    let shift = Estimate {
        value: median_of_sorted(&shifts),
        lower: shifts[k - 1],
        upper: shifts[shifts.len() - k],
        confidence: alpha.confidence(),
        n: m.min(n),
        method: Method::RankSum,
    };
    Ok(shift.map(f64::exp))
}

/// The fewest runs of each build, the same number of both, that can decide at `alpha`.
pub fn runs_needed(alpha: Alpha) -> usize {
    let mut n = 1;
    while chance_of_separation(n, n) > alpha.value() * (1.0 + 1e-12) {
        n += 1;
    }
    n
}

/// Number of arrangements for each value of U, 0 to m·n: the coefficients of the Gaussian binomial.
fn arrangements(m: usize, n: usize) -> Vec<f64> {
    let top = m * n;
    let mut ways = vec![0.0; top + 1];
    ways[0] = 1.0;
    for i in 1..=m {
        for u in (n + i..=top).rev() {
            ways[u] -= ways[u - n - i];
        }
        for u in i..=top {
            ways[u] += ways[u - i];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_agree_with_the_mann_whitney_table() {
        // Critical U at one-sided 5 % plus one (a bound needs `U <= k-1`).
        for (m, n, critical) in [
            (3, 3, 0),
            (4, 4, 1),
            (5, 5, 4),
            (6, 6, 7),
            (7, 7, 11),
            (8, 8, 15),
            (10, 10, 27),
            (5, 8, 8),
        ] {
            assert_eq!(
                bound_rank(m, n, Alpha::FIVE_PERCENT),
                Some(critical + 1),
                "{m} against {n}"
            );
        }
        assert_eq!(bound_rank(3, 2, Alpha::FIVE_PERCENT), None);
    }

    #[test]
    fn all_arrangements_are_counted() {
        assert_eq!(arrangements(3, 3).iter().sum::<f64>(), 20.0);
        assert_eq!(arrangements(10, 10).iter().sum::<f64>(), 184_756.0);
        assert!((chance_of_separation(3, 3) - 0.05).abs() < 1e-15);
    }

    #[test]
    fn the_normal_rank_meets_the_exact_one_where_they_join() {
        let exact = bound_rank(25, 25, Alpha::FIVE_PERCENT).unwrap();
        let normal = bound_rank(25, 26, Alpha::FIVE_PERCENT).unwrap();
        assert!((8..=12).contains(&(normal - exact)), "{exact} {normal}");
    }

    #[test]
    fn two_runs_against_three_decide_nothing() {
        assert!(matches!(
            ratio(&[1.0, 2.0, 3.0], &[4.0, 5.0], Alpha::FIVE_PERCENT),
            Err(StatsError::TooFew {
                have: 2,
                need: 3,
                ..
            })
        ));
    }

    #[test]
    fn three_runs_wholly_above_three_clear_one() {
        let up = ratio(
            &[100.0, 101.0, 99.0],
            &[104.0, 103.0, 105.0],
            Alpha::FIVE_PERCENT,
        )
        .unwrap();
        assert!(up.lower > 1.0 && up.lower < up.value && up.value < up.upper);
    }
}
