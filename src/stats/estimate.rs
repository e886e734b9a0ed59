//! A figure with its bounds.

use super::alpha::Alpha;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a figure and its bounds were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Hodges–Lehmann estimate with exact signed-rank bounds.
    SignedRank,
    /// The same on the logarithms of adjacent pairs: a ratio.
    PairedSignedRank,
    /// Hodges–Lehmann shift of logarithms between two samples with exact rank-sum bounds: a ratio.
    RankSum,
    /// Sample median with order statistics as bounds.
    OrderStatistic,
    /// Exact binomial bounds of a share.
    ClopperPearson,
    /// Mean with Student's t.
    StudentT,
    /// Mean difference per token, with an error that follows the windows.
    Clustered,
    /// Ratio of sums with the delta method.
    RatioOfSums,
}

impl Method {
    /// The name as a report prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SignedRank => "Hodges–Lehmann, exact signed rank",
            Self::PairedSignedRank => "pairs, exact signed rank of log ratios",
            Self::RankSum => "two samples, exact rank sum of log values",
            Self::OrderStatistic => "median, order statistics",
            Self::ClopperPearson => "Clopper–Pearson",
            Self::StudentT => "mean, Student's t",
            Self::Clustered => "mean difference, clustered by window",
            Self::RatioOfSums => "ratio of sums, delta method",
        }
    }
}

/// A figure with two one-sided bounds, each wrong with a chance of at most `1 - confidence`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure, in the unit of the input (or a plain ratio).
    pub value: f64,
    /// The lower one-sided bound, same unit.
    pub lower: f64,
    /// The upper one-sided bound, same unit.
    pub upper: f64,
    /// Confidence of each bound by itself (0.95 means 5 % below and 5 % above).
    pub confidence: f64,
    /// Number of independent units behind it: repeats, pairs, windows, prompts or items.
    pub n: usize,
    /// How it was computed.
    pub method: Method,
}

impl Estimate {
    /// An estimate `value ± reach`, the same on both sides.
    pub(super) fn symmetric(
        value: f64,
        reach: f64,
        alpha: Alpha,
        n: usize,
        method: Method,
    ) -> Self {
        Self {
            value,
            lower: value - reach,
            upper: value + reach,
            confidence: alpha.confidence(),
            n,
            method,
        }
    }

    /// The same estimate with value and bounds sent through a growing function.
    pub(super) fn map(self, grow: impl Fn(f64) -> f64) -> Self {
        Self {
            value: grow(self.value),
            lower: grow(self.lower),
            upper: grow(self.upper),
            ..self
        }
    }

    /// The estimate and its bounds as percent of 1: `98.9 % [97.8, 99.6]`.
    pub fn percent(&self) -> String {
        format!(
            "{:.1} % [{:.1}, {:.1}]",
            self.value * 100.0,
            self.lower * 100.0,
            self.upper * 100.0
        )
    }
}

impl fmt::Display for Estimate {
    /// `108.6 [107.9, 109.4]`, or with the precision asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(1);
        write!(
            f,
            "{:.places$} [{:.places$}, {:.places$}]",
            self.value, self.lower, self.upper
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_written_in_percent_with_its_bounds() {
        let ratio = Estimate {
            value: 0.989,
            lower: 0.978,
            upper: 0.996,
            confidence: 0.95,
            n: 10,
            method: Method::PairedSignedRank,
        };
        assert_eq!(ratio.percent(), "98.9 % [97.8, 99.6]");
        assert_eq!(format!("{ratio:.3}"), "0.989 [0.978, 0.996]");
    }
}
