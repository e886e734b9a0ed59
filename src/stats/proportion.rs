//! Pass rates: exact bounds of a share, k of n, and the comparison of two builds on the same items.

use super::alpha::Alpha;
use super::bound::Decision;
use super::distribution::{binomial_at_least, binomial_at_most};
use super::error::{StatsError, at_least, share};
use super::estimate::{Estimate, Method};

/// Items tried, and those that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Items that passed.
    pub passed: u64,
    /// All items.
    pub tried: u64,
}

/// Share of items that pass, with exact (Clopper–Pearson) bounds.
///
/// All passed gives an upper bound of 1, none passed a lower bound of 0.
pub fn clopper_pearson(count: Count, alpha: Alpha) -> Result<Estimate, StatsError> {
    let Count { passed, tried } = count;
    at_least("items", tried as usize, 1)?;
    if passed > tried {
        return Err(StatsError::OutOfRange {
            what: "the number of items that passed",
            value: passed as f64,
            wants: "no more than were tried",
        });
    }
    let a = alpha.value();
    let lower = if passed == 0 {
        0.0
    } else {
        // The smallest share at which so many passes are not too rare.
        solve(|p| binomial_at_least(passed, tried, p) - a)
    };
    let upper = if passed == tried {
        1.0
    } else {
        solve(|p| a - binomial_at_most(passed, tried, p))
    };
    Ok(Estimate {
        value: passed as f64 / tried as f64,
        lower,
        upper,
        confidence: alpha.confidence(),
        n: tried as usize,
        method: Method::ClopperPearson,
    })
}

/// Where a function that grows over 0..1 crosses zero, by halving to the last bit.
fn solve(grows: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Sixty halvings reach the spacing of doubles below 1.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if grows(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The fewest items that can prove a rate of at least `rate` when `missed` of them fail.
pub fn items_needed(rate: f64, missed: u64, alpha: Alpha) -> Result<u64, StatsError> {
    share("the rate", rate)?;
    super::order::requests_needed(rate, missed, alpha)
}

/// The fewest passes out of `tried` that prove a rate of at least `rate`; `None` when not even all of them would.
pub fn passes_needed(tried: u64, rate: f64, alpha: Alpha) -> Result<Option<u64>, StatsError> {
    share("the rate", rate)?;
    let proves = |k: u64| binomial_at_least(k, tried, rate) <= alpha.value();
    if tried == 0 || !proves(tried) {
        return Ok(None);
    }
    let (mut low, mut high) = (0, tried);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if proves(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(Some(high))
}

/// Holds a count to "every item": one miss misses it, and no item at all leaves it open.
///
/// This says what happened and proves no rate: all of n passed bounds the rate from below only by `alpha^(1/n)`.
pub fn every_item(count: Count) -> Decision {
    match count {
        Count { tried: 0, .. } => Decision::Straddles,
        Count { passed, tried } if passed >= tried => Decision::Clears,
        _ => Decision::Misses,
    }
}

/// Items on which two builds differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discordant {
    /// Items that only the incumbent passed.
    pub only_incumbent: u64,
    /// Items that only the candidate passed.
    pub only_candidate: u64,
}

/// The exact McNemar test, one p-value for each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct McNemar {
    /// Chance of at least so many losses if neither build were better: small means that the candidate is worse.
    pub worse: f64,
    /// Chance of at least so many gains if neither build were better: small means that the candidate is better.
    pub better: f64,
}

/// Compares two builds on the same items; items on which they agree say nothing of a difference.
pub fn mcnemar(items: Discordant) -> McNemar {
    let all = items.only_incumbent + items.only_candidate;
    McNemar {
        worse: binomial_at_least(items.only_incumbent, all, 0.5),
        better: binomial_at_least(items.only_candidate, all, 0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Alpha = Alpha::FIVE_PERCENT;

    fn bounds(passed: u64, tried: u64, alpha: Alpha) -> [f64; 2] {
        let e = clopper_pearson(Count { passed, tried }, alpha).unwrap();
        [e.lower, e.upper]
    }

    #[test]
    fn the_bounds_agree_with_the_published_ones() {
        // Two-sided 95 % (2.5 % a side), from printed Clopper–Pearson tables.
        let half = Alpha::new(0.025).unwrap();
        for (passed, tried, low, high) in [
            (0, 10, 0.0, 0.3085),
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (9, 10, 0.5550, 0.9975),
            (10, 10, 0.6915, 1.0),
            (8, 20, 0.1912, 0.6395),
            (0, 100, 0.0, 0.0362),
        ] {
            let [l, h] = bounds(passed, tried, half);
            assert!(
                (l - low).abs() < 6e-5 && (h - high).abs() < 6e-5,
                "{passed}/{tried}: {l} {h}"
            );
        }
    }

    #[test]
    fn all_passed_has_the_lower_bound_of_the_rule_of_three() {
        for n in [10, 59, 300] {
            let [low, high] = bounds(n, n, FIVE);
            assert!((low - 0.05_f64.powf(1.0 / n as f64)).abs() < 1e-12);
            assert_eq!(high, 1.0);
        }
    }

    #[test]
    fn items_needed_and_passes_needed_agree_with_each_other() {
        let n = items_needed(0.9, 2, FIVE).unwrap();
        assert_eq!(n, 61);
        assert_eq!(passes_needed(n, 0.9, FIVE).unwrap(), Some(n - 2));
        assert_eq!(passes_needed(28, 0.9, FIVE).unwrap(), None);
        assert!(
            items_needed(1.0, 0, FIVE).is_err(),
            "a rate of 1 is a count, not a proof"
        );
    }

    #[test]
    fn mcnemar_counts_only_the_items_that_differ() {
        let test = mcnemar(Discordant {
            only_incumbent: 8,
            only_candidate: 1,
        });
        assert!((test.worse - 10.0 / 512.0).abs() < 1e-12);
        assert!((test.better - 511.0 / 512.0).abs() < 1e-12);
        let same = mcnemar(Discordant {
            only_incumbent: 0,
            only_candidate: 0,
        });
        assert_eq!((same.worse, same.better), (1.0, 1.0));
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        assert!(
            clopper_pearson(
                Count {
                    passed: 3,
                    tried: 2
                },
                FIVE
            )
            .is_err()
        );
        assert!(matches!(
            clopper_pearson(
                Count {
                    passed: 0,
                    tried: 0
                },
                FIVE
            ),
            Err(StatsError::TooFew { need: 1, .. })
        ));
    }

    #[test]
    fn every_item_is_a_count_and_none_is_open() {
        let of = |passed, tried| every_item(Count { passed, tried });
        assert_eq!(of(10, 10), Decision::Clears);
        assert_eq!(of(9, 10), Decision::Misses);
        assert_eq!(of(0, 0), Decision::Straddles);
    }
}
