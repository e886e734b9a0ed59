//! Whether repeats fall into two groups: a build that is sometimes in another state.
//!
//! The best split into a low and a high group (at least two repeats each) explains a share of the scatter. One normal
//! group reaches the critical share of the table 5 % of the time. A finding is a note beside the verdict and never the
//! verdict: heavy tails can look like a second group, and ten repeats find two groups 3 % apart under noise of 0.8 % in
//! one case of three.

use super::error::{StatsError, at_least, finite};
use serde::{Deserialize, Serialize};

/// The fewest repeats for which two groups mean anything.
pub const MIN_REPEATS: usize = 6;

/// Critical share by number of repeats: 95th percentile of 6,000 normal samples each, by simulation.
const CRITICAL: [(usize, f64); 9] = [
    (6, 0.925),
    (7, 0.905),
    (8, 0.892),
    (10, 0.861),
    (12, 0.842),
    (15, 0.820),
    (20, 0.791),
    (30, 0.758),
    (50, 0.729),
];

/// One group of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Mean of the group.
    pub mean: f64,
    /// Its number of repeats.
    pub repeats: usize,
}

/// Two groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoModes {
    /// The lower group.
    pub low: Mode,
    /// The upper group.
    pub high: Mode,
    /// Share of the scatter that the split explains, 0 to 1.
    pub explained: f64,
}

/// Looks for two groups; `None` when one group explains the repeats.
pub fn two_modes(values: &[f64]) -> Result<Option<TwoModes>, StatsError> {
    finite(values)?;
    let n = values.len();
    at_least("repeats", n, MIN_REPEATS)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let total: f64 = sorted.iter().sum();
    let mean = total / n as f64;
    let squares: f64 = sorted.iter().map(|v| (v - mean).powi(2)).sum();
    if squares <= (mean * 1e-12).powi(2) * n as f64 {
        return Ok(None);
    }
    let mut below = sorted[0];
    let mut best: Option<TwoModes> = None;
    for split in 2..=n - 2 {
        below += sorted[split - 1];
        let low = Mode {
            mean: below / split as f64,
            repeats: split,
        };
        let high = Mode {
            mean: (total - below) / (n - split) as f64,
            repeats: n - split,
        };
        let between = (split * (n - split)) as f64 / n as f64 * (high.mean - low.mean).powi(2);
        let explained = between / squares;
        if best.is_none_or(|b| explained > b.explained) {
            best = Some(TwoModes {
                low,
                high,
                explained,
            });
        }
    }
    Ok(best.filter(|b| b.explained > critical_share(n)))
}

/// The table, with straight lines between its rows and its last row beyond.
fn critical_share(n: usize) -> f64 {
    CRITICAL
        .windows(2)
        .find(|rows| n <= rows[1].0)
        .map_or(CRITICAL[CRITICAL.len() - 1].1, |rows| {
            let ((n0, c0), (n1, c1)) = (rows[0], rows[1]);
            let along = n.saturating_sub(n0) as f64 / (n1 - n0) as f64;
            c0 + along * (c1 - c0)
        })
}

#[cfg(test)]
mod tests {
    use super::super::noise::{Shape, SplitMix64};
    use super::*;

    #[test]
    fn two_states_of_a_build_are_told_apart() {
        let found = two_modes(&[125.0, 179.0, 127.0, 177.0, 126.0, 178.0, 180.0])
            .unwrap()
            .unwrap();
        assert_eq!((found.low.repeats, found.high.repeats), (3, 4));
        assert_eq!(found.low.mean, 126.0);
    }

    #[test]
    fn a_single_stall_is_not_a_mode() {
        assert_eq!(
            two_modes(&[100.0, 101.0, 99.5, 100.5, 60.0, 100.2, 99.9]).unwrap(),
            None
        );
    }

    #[test]
    fn identical_repeats_are_one_group() {
        assert_eq!(two_modes(&[0.1; 9]).unwrap(), None);
    }

    #[test]
    fn one_normal_group_is_split_one_time_in_twenty() {
        let mut random = SplitMix64::new(6);
        for n in [7, 9, 20] {
            let rounds = 1200;
            let mut share = |shape: Shape| {
                let hits = (0..rounds)
                    .filter(|_| {
                        two_modes(&shape.draw(n, 0.0, &mut random))
                            .unwrap()
                            .is_some()
                    })
                    .count();
                100.0 * hits as f64 / rounds as f64
            };
            let (one, two) = (share(Shape::Normal), share(Shape::TwoModes));
            println!("two modes, n = {n}: false alarm {one:.1} % · found {two:.0} %");
            assert!(one < 6.6 && two > 2.0 * one, "{one} {two}");
        }
    }
}
