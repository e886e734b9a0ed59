//! Where the steady part of a window begins.
//!
//! A fixed warm-up is wrong: some windows need none and some never settle. Leading bins are dropped until the first
//! third of the rest agrees with the last third; a window that needs too many dropped has no steady state.

use super::error::{StatsError, at_least, positive, share};
use super::signed_rank::median_of_sorted;
use serde::{Deserialize, Serialize};

/// The fewest bins: three thirds of two.
pub const MIN_BINS: usize = 6;

/// Thirds that differ by less than this share agree, however little the bins scatter.
const AGREES_WITHIN: f64 = 0.005;

/// The steady part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady {
    /// Leading bins that are not part of it.
    pub dropped: usize,
    /// Bins that are.
    pub kept: usize,
}

/// Finds the steady part of figures per bin (tok/s in each second); `None` when there is none.
///
/// Thirds agree when their medians differ by at most `max(0.5 %, 2 · MAD / √bins)`; `most` is the largest share of bins
/// that may be dropped (0.25 by default in gates).
pub fn steady_part(bins: &[f64], most: f64) -> Result<Option<Steady>, StatsError> {
    positive(bins)?;
    share("the share of bins that may be dropped", most)?;
    at_least("bins", bins.len(), MIN_BINS)?;
    let may_drop = (bins.len() as f64 * most).floor() as usize;
    Ok((0..=may_drop.min(bins.len() - MIN_BINS))
        .find(|&dropped| thirds_agree(&bins[dropped..]))
        .map(|dropped| Steady {
            dropped,
            kept: bins.len() - dropped,
        }))
}

fn thirds_agree(bins: &[f64]) -> bool {
    let third = bins.len() / 3;
    let whole = median(bins);
    let deviations: Vec<f64> = bins.iter().map(|b| (b - whole).abs()).collect();
    let scatter = 2.0 * median(&deviations) / (bins.len() as f64).sqrt();
    let apart = (median(&bins[..third]) - median(&bins[bins.len() - third..])).abs();
    apart <= (AGREES_WITHIN * whole).max(scatter)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_window_keeps_every_bin() {
        let steady = steady_part(&[100.0; 30], 0.25).unwrap().unwrap();
        assert_eq!((steady.dropped, steady.kept), (0, 30));
    }

    #[test]
    fn a_slow_start_is_dropped() {
        let mut bins = vec![40.0, 60.0, 70.0, 80.0, 90.0, 95.0, 97.0, 98.0];
        bins.extend([100.0; 32]);
        let steady = steady_part(&bins, 0.25).unwrap().unwrap();
        assert!((1..=8).contains(&steady.dropped), "{steady:?}");
    }

    #[test]
    fn a_window_that_climbs_to_its_end_has_no_steady_part() {
        let climb: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(steady_part(&climb, 0.25).unwrap(), None);
    }

    #[test]
    fn five_bins_are_too_few() {
        assert!(matches!(
            steady_part(&[1.0; 5], 0.25),
            Err(StatsError::TooFew { need: 6, .. })
        ));
    }
}
