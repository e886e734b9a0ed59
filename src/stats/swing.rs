//! How wide repeats swing, and whether one band lies outside another: the way people write and read them.

use super::error::{StatsError, at_least, finite};
use super::rank_sum::chance_of_separation;
use super::signed_rank::median_of_sorted;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The spread of a figure over repeats, in the figure's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Swing {
    /// Number of repeats.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 1.4826 times the median absolute deviation: the standard deviation that stalls do not inflate.
    pub robust_sd: f64,
    /// The band.
    pub band: Band,
}

/// From the smallest to the largest value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
    /// Number of values behind it; `None` for a band taken from a record that does not say.
    pub n: Option<usize>,
}

/// Where one band lies against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Wholly above.
    Above,
    /// Wholly below.
    Below,
    /// They overlap or touch: not separated.
    Overlapping,
}

/// One band against another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Separation {
    /// Where the first lies.
    pub side: Side,
    /// The empty space between the bands; `None` when they overlap.
    pub gap: Option<f64>,
    /// Chance of lying so (wholly above) if both builds were alike: 1 in C(m+n, m); `None` without both counts.
    pub chance: Option<f64>,
}

impl Swing {
    /// The spread of one or more values.
    pub fn of(values: &[f64]) -> Result<Self, StatsError> {
        finite(values)?;
        at_least("values", values.len(), 1)?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = median_of_sorted(&sorted);
        let mut deviations: Vec<f64> = sorted.iter().map(|v| (v - median).abs()).collect();
        deviations.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        Ok(Self {
            n,
            mean: values.iter().sum::<f64>() / n as f64,
            median,
            robust_sd: 1.4826 * median_of_sorted(&deviations),
            band: Band {
                low: sorted[0],
                high: sorted[n - 1],
                n: Some(n),
            },
        })
    }

    /// Half the distance from the smallest to the largest value: the number after `±`.
    pub fn half_range(&self) -> f64 {
        (self.band.high - self.band.low) / 2.0
    }

    /// Robust deviation as a share of the median, for `validity.max_swing`; `None` when the median is zero.
    pub fn relative(&self) -> Option<f64> {
        (self.median != 0.0).then(|| self.robust_sd / self.median.abs())
    }

    /// Range as a share of the median; it grows with the number of repeats, so a limit on it fixes the number too.
    pub fn relative_range(&self) -> Option<f64> {
        (self.median != 0.0).then(|| (self.band.high - self.band.low) / self.median.abs())
    }
}

impl fmt::Display for Swing {
    /// Mean and half-range, `108.6 (±0.9)`; one decimal, or the precision asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(1);
        write!(
            f,
            "{:.places$} (±{:.places$})",
            self.mean,
            self.half_range()
        )
    }
}

impl Band {
    /// A band from a record.
    pub fn recorded(low: f64, high: f64) -> Result<Self, StatsError> {
        finite(&[low, high])?;
        if low > high {
            return Err(StatsError::OutOfRange {
                what: "the low end of the band",
                value: low,
                wants: "a value not above its high end",
            });
        }
        Ok(Self { low, high, n: None })
    }

    /// Where this band lies against another one.
    pub fn against(&self, other: &Self) -> Separation {
        let (side, gap) = if self.low > other.high {
            (Side::Above, Some(self.low - other.high))
        } else if self.high < other.low {
            (Side::Below, Some(other.low - self.high))
        } else {
            (Side::Overlapping, None)
        };
        let chance = match (self.n, other.n) {
            (Some(m), Some(n)) if gap.is_some() => Some(chance_of_separation(m, n)),
            _ => None,
        };
        Separation { side, gap, chance }
    }
}

impl fmt::Display for Band {
    /// `125–179`, no decimals unless asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(0);
        write!(f, "{:.places$}–{:.places$}", self.low, self.high)
    }
}

/// How many standard deviations the range of `n` normal values spans on average (the d2 of control charts), 2 to 20.
///
/// A limit on the range means a different deviation for each number of repeats; this turns one into the other.
pub fn expected_range(n: usize) -> Option<f64> {
    const D2: [f64; 19] = [
        1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078, 3.173, 3.258, 3.336, 3.407,
        3.472, 3.532, 3.588, 3.640, 3.689, 3.735,
    ];
    n.checked_sub(2).and_then(|i| D2.get(i)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swing_is_written_as_people_write_it() {
        let swing = Swing::of(&[107.7, 108.6, 109.5]).unwrap();
        assert_eq!(swing.to_string(), "108.6 (±0.9)");
        assert_eq!(Band::recorded(125.0, 179.0).unwrap().to_string(), "125–179");
    }

    #[test]
    fn one_stall_widens_the_band_and_not_the_robust_deviation() {
        let calm = Swing::of(&[100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]).unwrap();
        let stalled = Swing::of(&[100.0, 101.0, 60.0, 100.5, 99.5, 100.2, 99.8]).unwrap();
        assert!(stalled.half_range() > 10.0 * calm.half_range());
        assert!(stalled.robust_sd < 2.0 * calm.robust_sd);
    }

    #[test]
    fn three_runs_above_three_would_be_luck_one_time_in_twenty() {
        let high = Swing::of(&[104.0, 105.0, 106.0]).unwrap().band;
        let low = Swing::of(&[100.0, 101.0, 102.0]).unwrap().band;
        let up = high.against(&low);
        assert_eq!((up.side, up.gap), (Side::Above, Some(2.0)));
        assert!((up.chance.unwrap() - 0.05).abs() < 1e-15);
        assert_eq!(low.against(&high).side, Side::Below);
    }

    #[test]
    fn bands_that_touch_are_not_separated() {
        let a = Band::recorded(1.0, 2.0).unwrap();
        let b = Band::recorded(2.0, 3.0).unwrap();
        assert_eq!(b.against(&a).side, Side::Overlapping);
        assert_eq!(b.against(&a).chance, None);
    }

    #[test]
    fn identical_values_have_no_swing_and_a_zero_median_no_share() {
        let flat = Swing::of(&[5.0; 4]).unwrap();
        assert_eq!((flat.half_range(), flat.relative()), (0.0, Some(0.0)));
        assert_eq!(Swing::of(&[-1.0, 0.0, 1.0]).unwrap().relative(), None);
    }

    #[test]
    fn the_expected_range_agrees_with_the_control_chart_table() {
        for (n, d2) in [(5, 2.33), (7, 2.70), (10, 3.08), (15, 3.47), (20, 3.74)] {
            assert!((expected_range(n).unwrap() - d2).abs() < 0.006);
        }
        assert_eq!(expected_range(1), None);
        assert_eq!(expected_range(21), None);
    }
}
