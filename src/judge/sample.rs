//! What a kind of check reads out of its windows, before anything is estimated or held to a limit.

use super::figure::Origin;
use super::finding::Reason;
use crate::dialect::Dialect;
use crate::evidence::body::Evidence;
use crate::evidence::window::Window;
use crate::plan::{Case, Planned, WARM_UP};
use crate::spec::gate::{Check, Gate};

/// A kind of check, as the judge knows it.
pub trait Concludes: Planned {
    /// What one case shows on one build.
    fn conclude(&self, view: &View<'_>) -> Conclusion;

    /// Where its figures come from.
    fn origin(&self) -> Origin {
        Origin::Measured
    }
}

/// One case on one build, with everything that a kind may look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// The check.
    pub check: &'a Check,
    /// The case.
    pub case: &'a Case,
    /// The build.
    pub build: &'a str,
    /// The dialect that the build spoke; absent when it never answered.
    pub dialect: Option<&'static Dialect>,
    /// All evidence of the run.
    pub evidence: &'a Evidence,
}

impl<'a> View<'a> {
    /// The windows of one part, in the order of the run.
    pub fn windows(&self, part: &str) -> Vec<&'a Window> {
        self.evidence
            .windows
            .iter()
            .filter(|w| w.case == self.case.id && w.build == self.build && w.part == part)
            .collect()
    }

    /// Every window but the warm-up, in the order of the run.
    pub fn all_windows(&self) -> Vec<&'a Window> {
        self.evidence
            .windows
            .iter()
            .filter(|w| w.case == self.case.id && w.build == self.build && w.part != WARM_UP)
            .collect()
    }
}

/// What a kind reads out of one case on one build.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conclusion {
    /// Samples of figures.
    pub measured: Vec<Measured>,
    /// What speaks against the case, whatever the limits say.
    pub reasons: Vec<Reason>,
    /// Facts worth reading that decide nothing.
    pub notes: Vec<String>,
}

/// The observations of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Figure name.
    pub figure: &'static str,
    /// Observations.
    pub sample: Sample,
    /// Ids of the windows that they were seen in.
    pub windows: Vec<String>,
}

/// Observations, by what can be said of them together.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// One number a window; a positive quantity, compared by ratio.
    Repeats(Vec<f64>),
    /// One number a window, each held to the limit by itself.
    Each(Vec<f64>),
    /// One word a window.
    Words(Vec<String>),
    /// `base + Σ over / Σ under`, one pair a window (accept length: 1 + accepted / drafts).
    Ratio {
        /// What is added to the ratio.
        base: f64,
        /// (over, under) of each window.
        pairs: Vec<Pair>,
    },
    /// A percentile of requests, held by counting those over the limit; one list of requests a window.
    Percentile {
        /// The percentile as a share (0.95 for p95).
        q: f64,
        /// Observations of each window.
        requests: Vec<Vec<f64>>,
    },
    /// The exponential of a mean over tokens, clustered by text window (perplexity).
    Tokens(Vec<Cluster>),
}

/// Numerator and denominator of one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Numerator.
    pub over: f64,
    /// Denominator.
    pub under: f64,
}

/// Negative log-likelihoods of one text window.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Name of the text window; two builds are paired by it.
    pub name: String,
    /// −ln p of each scored token, in order.
    pub nll: Vec<f64>,
}

impl Sample {
    /// How many observations.
    pub fn len(&self) -> usize {
        match self {
            Self::Repeats(v) | Self::Each(v) => v.len(),
            Self::Words(v) => v.len(),
            Self::Ratio { pairs, .. } => pairs.len(),
            Self::Percentile { requests, .. } => requests.iter().map(Vec::len).sum(),
            Self::Tokens(clusters) => clusters.len(),
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What one observation is.
    pub fn of(&self) -> &'static str {
        match self {
            Self::Repeats(_) | Self::Each(_) | Self::Words(_) | Self::Ratio { .. } => "repeats",
            Self::Percentile { .. } => "requests",
            Self::Tokens(_) => "text windows",
        }
    }

    /// One number an observation, for bands and plots; none for words.
    pub fn numbers(&self) -> Vec<f64> {
        match self {
            Self::Repeats(v) | Self::Each(v) => v.clone(),
            Self::Words(_) => Vec::new(),
            Self::Ratio { base, pairs } => pairs
                .iter()
                .filter(|p| p.under > 0.0)
                .map(|p| base + p.over / p.under)
                .collect(),
            Self::Percentile { q, requests } => requests
                .iter()
                .filter_map(|window| percentile(window, *q))
                .collect(),
            Self::Tokens(clusters) => clusters
                .iter()
                .filter(|c| !c.nll.is_empty())
                .map(|c| (c.nll.iter().sum::<f64>() / c.nll.len() as f64).exp())
                .collect(),
        }
    }
}

/// The least observation that a share `q` of them does not exceed; none without observations.
pub fn percentile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}
