//! Mean difference per token of two scorings of the same text, with an error that follows the windows.
//!
//! Tokens of one window resemble each other: an error bar as if they were independent covers 80–90 % where 95 % was
//! meant. Two errors are computed, and the larger one counts: clusters (between windows), and blocks inside windows.

use super::alpha::Alpha;
use super::distribution::t_quantile;
use super::error::{StatsError, at_least, finite};
use super::estimate::{Estimate, Method};
use serde::{Deserialize, Serialize};

/// The least number of windows for a clustered error.
pub const MIN_WINDOWS: usize = 5;

/// Block lengths in tokens; a window must hold four blocks for a length to say anything.
const BLOCKS: [usize; 3] = [32, 64, 128];
const BLOCKS_PER_WINDOW: usize = 4;

/// The mean difference per token, with every error that was computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanDifference {
    /// Mean of candidate minus incumbent over all scored tokens, in nats when the input is.
    pub mean: f64,
    /// Standard error as if tokens were independent; shown, never judged by.
    pub se_independent: f64,
    /// Standard error from the windows.
    pub se_clustered: f64,
    /// Standard error from circular blocks inside the windows, the largest over the block lengths.
    pub se_block: f64,
    /// Scored tokens.
    pub tokens: usize,
    /// Windows.
    pub windows: usize,
}

/// Computes the mean difference from per-token differences, one slice per window; empty windows are left out.
pub fn mean_difference(windows: &[&[f64]]) -> Result<MeanDifference, StatsError> {
    for window in windows {
        finite(window)?;
    }
    let filled: Vec<&[f64]> = windows.iter().copied().filter(|w| !w.is_empty()).collect();
    at_least("windows", filled.len(), MIN_WINDOWS)?;
    let tokens: usize = filled.iter().map(|w| w.len()).sum();
    let n = tokens as f64;
    let m = filled.len() as f64;
    let mean = filled.iter().flat_map(|w| w.iter()).sum::<f64>() / n;
    let squares: f64 = filled
        .iter()
        .flat_map(|w| w.iter())
        .map(|d| (d - mean).powi(2))
        .sum();
    let between: f64 = filled
        .iter()
        .map(|w| (w.iter().sum::<f64>() - mean * w.len() as f64).powi(2))
        .sum();
    let se_block = BLOCKS
        .iter()
        .map(|&length| {
            (filled
                .iter()
                .map(|w| block_variance(w, length))
                .sum::<f64>())
            .sqrt()
                / n
        })
        .fold(0.0, f64::max);
    Ok(MeanDifference {
        mean,
        se_independent: (squares / (n - 1.0).max(1.0) / n).sqrt(),
        se_clustered: (m / (m - 1.0) * between).sqrt() / n,
        se_block,
        tokens,
        windows: filled.len(),
    })
}

/// Variance of a window's sum under the circular block bootstrap.
///
/// Blocks are drawn independently and each start is as likely as any other, so the variance that resampling would
/// approach is known outright: blocks per window times the variance of one block's sum. Nothing is drawn, and a replay
/// gives the same bits.
fn block_variance(window: &[f64], length: usize) -> f64 {
    let n = window.len();
    let length = length.min(n / BLOCKS_PER_WINDOW).max(1);
    let mean = window.iter().sum::<f64>() / n as f64;
    let mut sum: f64 = window[..length].iter().map(|d| d - mean).sum();
    let mut squares = 0.0;
    for start in 0..n {
        squares += sum * sum;
        sum += window[(start + length) % n] - window[start];
    }
    squares / n as f64 * (n as f64 / length as f64)
}

/// What is worth saying of a difference beside its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// The bounds hold zero.
    NotDetected,
    /// Surely above zero and surely within the margin.
    DetectedButTolerable,
    /// Surely better by more than the margin: usually unequal conditions.
    SuspiciouslyBetter,
    /// Anything else.
    Detected,
}

impl MeanDifference {
    /// The error that counts: the larger of the clustered one and the block one.
    pub fn se(&self) -> f64 {
        self.se_clustered.max(self.se_block)
    }

    /// How many times the variance exceeds that of independent tokens; `None` when the tokens do not vary.
    pub fn design_effect(&self) -> Option<f64> {
        (self.se_independent > 0.0).then(|| (self.se() / self.se_independent).powi(2))
    }

    /// The mean with one-sided bounds by Student's t over the windows; held to `Limit::Ceiling(margin)`.
    pub fn estimate(&self, alpha: Alpha) -> Estimate {
        let reach = t_quantile(alpha.confidence(), self.windows - 1) * self.se();
        Estimate::symmetric(self.mean, reach, alpha, self.windows, Method::Clustered)
    }

    /// The same as a ratio of perplexities, e to the mean.
    pub fn perplexity_ratio(&self, alpha: Alpha) -> Estimate {
        self.estimate(alpha).map(f64::exp)
    }

    /// What to say beside the verdict; `margin` in nats per token.
    pub fn remark(&self, margin: f64, alpha: Alpha) -> Remark {
        let Estimate { lower, upper, .. } = self.estimate(alpha);
        if upper < -margin {
            Remark::SuspiciouslyBetter
        } else if lower > 0.0 && upper <= margin {
            Remark::DetectedButTolerable
        } else if lower <= 0.0 && upper >= 0.0 {
            Remark::NotDetected
        } else {
            Remark::Detected
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::noise::SplitMix64;
    use super::*;

    fn slices(windows: &[Vec<f64>]) -> Vec<&[f64]> {
        windows.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn windows_that_differ_widen_the_error_and_tokens_alone_do_not() {
        let mut random = SplitMix64::new(3);
        let mut draw = |between: f64| -> Vec<Vec<f64>> {
            (0..20)
                .map(|_| {
                    let shift = between * random.normal();
                    (0..200).map(|_| shift + random.normal()).collect()
                })
                .collect()
        };
        let flat = mean_difference(&slices(&draw(0.0))).unwrap();
        let lumpy = mean_difference(&slices(&draw(0.5))).unwrap();
        assert!(flat.design_effect().unwrap() < 3.0);
        assert!(lumpy.design_effect().unwrap() > 10.0);
    }

    #[test]
    fn neighbouring_tokens_that_move_together_show_in_the_blocks() {
        let mut random = SplitMix64::new(4);
        let mut last = 0.0;
        let windows: Vec<Vec<f64>> = (0..8)
            .map(|_| {
                (0..1000)
                    .map(|_| {
                        last = 0.8 * last + 0.6 * random.normal();
                        last
                    })
                    .collect()
            })
            .collect();
        let d = mean_difference(&slices(&windows)).unwrap();
        // The variance of a mean under this correlation is nine times that of independent tokens.
        let inflation = (d.se_block / d.se_independent).powi(2);
        assert!((5.0..13.0).contains(&inflation), "{inflation}");
    }

    #[test]
    fn the_closed_form_agrees_with_drawing_the_blocks() {
        let mut random = SplitMix64::new(9);
        let window: Vec<f64> = (0..128)
            .map(|i| (i as f64 / 9.0).sin() + random.normal())
            .collect();
        let sums: Vec<f64> = (0..4000)
            .map(|_| {
                (0..4)
                    .map(|_| {
                        let start = (random.next() % 128) as usize;
                        (0..32).map(|i| window[(start + i) % 128]).sum::<f64>()
                    })
                    .sum()
            })
            .collect();
        let drawn = super::super::mean::moments(&sums).unwrap().sd.powi(2);
        let known = block_variance(&window, 32);
        assert!((drawn / known - 1.0).abs() < 0.1, "{drawn} {known}");
    }

    #[test]
    fn bit_equal_scorings_have_no_difference_and_no_error() {
        let zero = vec![0.0; 100];
        let windows = [zero.as_slice(); 6];
        let d = mean_difference(&windows).unwrap();
        assert_eq!((d.mean, d.se(), d.design_effect()), (0.0, 0.0, None));
        assert_eq!(d.remark(0.001, Alpha::FIVE_PERCENT), Remark::NotDetected);
    }

    #[test]
    fn four_windows_are_too_few() {
        let w = [0.1, 0.2];
        assert!(matches!(
            mean_difference(&[&w, &w, &w, &w, &[]]),
            Err(StatsError::TooFew {
                have: 4,
                need: 5,
                ..
            })
        ));
    }

    #[test]
    fn the_clustered_bound_calibrates_where_the_independent_one_does_not() {
        let mut random = SplitMix64::new(21);
        let rounds = 600;
        let (mut clustered, mut independent) = (0, 0);
        for _ in 0..rounds {
            let windows: Vec<Vec<f64>> = (0..12)
                .map(|_| {
                    let shift = 0.2 * random.normal();
                    (0..48).map(|_| shift + random.normal()).collect()
                })
                .collect();
            let d = mean_difference(&slices(&windows)).unwrap();
            clustered += usize::from(d.estimate(Alpha::FIVE_PERCENT).upper < 0.0);
            independent += usize::from(d.mean + 1.645 * d.se_independent < 0.0);
        }
        let share = |k: usize| 100.0 * k as f64 / rounds as f64;
        println!(
            "ppl difference, 12 windows: false PASS {:.1} % (independent tokens: {:.1} %)",
            share(clustered),
            share(independent)
        );
        assert!(share(clustered) <= 7.4, "{}", share(clustered));
        assert!(share(independent) > share(clustered));
    }
}
