//! Whether a figure moved over the session: a trend over repeats, and a canary before, between and after.

use super::alpha::Alpha;
use super::distribution::normal_cdf;
use super::error::{StatsError, at_least, finite};
use super::signed_rank::median_of_sorted;
use serde::{Deserialize, Serialize};

/// The fewest values for a trend: with 4, even a perfect one has a chance of 1/12 both ways.
pub const MIN_VALUES: usize = 5;

/// Above this many values the null distribution is normal to three digits.
const EXACT_UP_TO: usize = 40;

/// A trend over values in time order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Theil–Sen slope: median change per step, in the unit of the values.
    pub slope: f64,
    /// The slope from the first value to the last, as a share of the median; `None` when the median is zero.
    pub span: Option<f64>,
    /// Two-sided p-value of the Mann–Kendall test.
    pub p: f64,
}

/// Whether values moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// No more than the allowance, or than chance.
    Steady,
    /// More than that.
    Moved,
}

/// Mann–Kendall test with the Theil–Sen slope; exact without ties, normal with them (cautious: ties lower the count).
pub fn trend(values: &[f64]) -> Result<Trend, StatsError> {
    finite(values)?;
    let n = values.len();
    at_least("values", n, MIN_VALUES)?;
    if n > 2000 {
        return Err(StatsError::OutOfRange {
            what: "the number of values",
            value: n as f64,
            wants: "at most 2000 for a trend; take medians of blocks",
        });
    }
    let mut rises: i64 = 0;
    let mut ties = 0_usize;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, early) in values.iter().enumerate() {
        for (j, late) in values.iter().enumerate().skip(i + 1) {
            slopes.push((late - early) / (j - i) as f64);
            match late.total_cmp(early) {
                std::cmp::Ordering::Greater => rises += 1,
                std::cmp::Ordering::Less => rises -= 1,
                std::cmp::Ordering::Equal => ties += 1,
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = median_of_sorted(&slopes);
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = median_of_sorted(&sorted);
    let p = if ties == 0 && n <= EXACT_UP_TO {
        exact_p(n, rises.unsigned_abs() as usize)
    } else {
        normal_p(n, rises.unsigned_abs() as f64)
    };
    Ok(Trend {
        slope,
        span: (median != 0.0).then(|| slope * (n - 1) as f64 / median),
        p,
    })
}

impl Trend {
    /// Whether the trend is more than chance at `alpha`, both ways together.
    pub fn movement(&self, alpha: Alpha) -> Movement {
        if self.p <= alpha.value() {
            Movement::Moved
        } else {
            Movement::Steady
        }
    }
}

/// Two-sided chance of a Kendall sum of at least `sum`: from the counts of permutations by inversions.
fn exact_p(n: usize, sum: usize) -> f64 {
    let mut chance = vec![1.0];
    for places in 2..=n {
        // The new value has 0..places inversions with those before it, each as likely as any other.
        let mut next = vec![0.0; chance.len() + places - 1];
        let mut window = 0.0;
        for (inversions, slot) in next.iter_mut().enumerate() {
            window += chance.get(inversions).copied().unwrap_or(0.0);
            if inversions >= places {
                window -= chance.get(inversions - places).copied().unwrap_or(0.0);
            }
            *slot = window / places as f64;
        }
        chance = next;
    }
    // sum = pairs - 2·inversions, so `sum` or more means this many inversions or fewer.
    let most = (n * (n - 1) / 2 - sum) / 2;
    let tail: f64 = chance[..=most].iter().sum();
    (2.0 * tail).min(1.0)
}

fn normal_p(n: usize, sum: f64) -> f64 {
    let n = n as f64;
    let sd = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    (2.0 * normal_cdf(-(sum - 1.0).max(0.0) / sd)).min(1.0)
}

/// A fixed micro-workload measured before and after the window that it vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// Median of the first half of the readings.
    pub first: f64,
    /// Median of the last half of the readings.
    pub last: f64,
    /// Largest reading over the smallest, minus 1: it also finds a dip in the middle.
    pub spread: f64,
    /// The last half over the first, minus 1.
    pub shift: f64,
    /// Whether the spread or the shift is over the allowance.
    pub movement: Movement,
}

/// Compares canary readings in time order (two or more, above zero); `allowance` is a share (0.01 is 1 %).
///
/// This is a plain limit and no test: the canary's own noise belongs into the allowance.
pub fn canary(readings: &[f64], allowance: f64) -> Result<Canary, StatsError> {
    super::error::positive(readings)?;
    at_least("canary readings", readings.len(), 2)?;
    let half = readings.len() / 2;
    let median = |part: &[f64]| {
        let mut sorted = part.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        median_of_sorted(&sorted)
    };
    let first = median(&readings[..half]);
    let last = median(&readings[readings.len() - half..]);
    let low = readings.iter().copied().fold(f64::INFINITY, f64::min);
    let high = readings.iter().copied().fold(0.0, f64::max);
    let spread = high / low - 1.0;
    let shift = last / first - 1.0;
    Ok(Canary {
        first,
        last,
        spread,
        shift,
        movement: if spread > allowance || shift.abs() > allowance {
            Movement::Moved
        } else {
            Movement::Steady
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::noise::{Shape, SplitMix64};
    use super::*;

    #[test]
    fn the_p_values_agree_with_the_kendall_table() {
        // One-sided table of S: n = 5, S = 10: 1/120; S = 8: 5/120; n = 7, S = 13: 0.035.
        assert!((exact_p(5, 10) - 2.0 / 120.0).abs() < 1e-12);
        assert!((exact_p(5, 8) - 10.0 / 120.0).abs() < 1e-12);
        assert!((exact_p(7, 13) - 2.0 * 0.0345).abs() < 1e-3);
        assert!((exact_p(10, 21) - 2.0 * 0.036).abs() < 1e-3);
        assert_eq!(exact_p(6, 1), 1.0);
    }

    #[test]
    fn a_steady_climb_moved_and_its_slope_is_the_climb() {
        let climb: Vec<f64> = (0..7).map(|i| 100.0 + f64::from(i)).collect();
        let found = trend(&climb).unwrap();
        assert_eq!(found.slope, 1.0);
        assert!((found.span.unwrap() - 6.0 / 103.0).abs() < 1e-12);
        assert_eq!(found.movement(Alpha::FIVE_PERCENT), Movement::Moved);
    }

    #[test]
    fn identical_values_are_steady() {
        let found = trend(&[3.0; 8]).unwrap();
        assert_eq!((found.slope, found.p), (0.0, 1.0));
    }

    #[test]
    fn a_canary_that_dips_in_the_middle_moved_though_its_ends_agree() {
        let dip = canary(&[100.0, 100.0, 90.0, 100.0, 100.0], 0.03).unwrap();
        assert_eq!((dip.shift, dip.movement), (0.0, Movement::Moved));
        let calm = canary(&[100.0, 100.5, 99.8], 0.03).unwrap();
        assert_eq!(calm.movement, Movement::Steady);
    }

    #[test]
    fn the_trend_calibrates_and_finds_drift() {
        let mut random = SplitMix64::new(8);
        let mut moved = |shape: Shape| {
            let rounds = 1000;
            let hits = (0..rounds)
                .filter(|_| {
                    let found = trend(&shape.draw(10, 0.0, &mut random)).unwrap();
                    found.movement(Alpha::FIVE_PERCENT) == Movement::Moved
                })
                .count();
            100.0 * hits as f64 / rounds as f64
        };
        let (quiet, drift) = (moved(Shape::Stall), moved(Shape::Drift));
        println!("trend, n = 10: false alarm {quiet:.1} % · drift of 8 % found {drift:.0} %");
        assert!(quiet < 7.1 && drift > 90.0);
    }
}
