//! A figure: a number with its unit, its n, its interval and the windows that it was seen in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One figure of one check on one build.
///
/// The windows are part of the value: a figure is only made from the windows that it was seen in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Name (`decode_tok_s`).
    pub name: String,
    /// Unit (`tok/s`); empty for a pure number.
    pub unit: String,
    /// The estimate; absent when nothing could be measured.
    pub value: Option<f64>,
    /// One-sided bounds at the check's alpha on each side; absent when n is too small for any.
    pub interval: Option<[f64; 2]>,
    /// Observations (repeats, text windows, requests).
    pub n: u64,
    /// What an observation is (`repeats`, `text windows`, `requests`).
    pub of: String,
    /// Each observation, in the order of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<f64>,
    /// The word, for figures that are a class (`CLEAN`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// Comparisons with references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Against>,
    /// Each limit and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitOutcome>,
    /// Where it comes from.
    pub origin: Origin,
    /// How estimate and interval were made (`Hodges–Lehmann, exact signed-rank`).
    pub method: String,
    /// Width of the observations as people write it: half the range, in the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_range: Option<f64>,
    /// Ids of the windows that it was seen in.
    pub windows: Vec<String>,
}

/// A comparison of one figure with a reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Build, or `run:NAME`.
    pub build: String,
    /// The reference's estimate.
    pub value: f64,
    /// The reference's observations: lowest and highest (its band).
    pub band: [f64; 2],
    /// Observations of the reference.
    pub n: u64,
    /// Ratio of this figure to the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Bounds of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Difference, where differences are what is judged (ppl).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Bounds of the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_interval: Option<[f64; 2]>,
    /// Where the observations lie beside the reference's band: `above`, `below`, `overlaps`.
    pub separation: String,
    /// How far the reference lies from itself: the ratio of the later half of its repeats to the earlier half, as a
    /// distance from 1 (the A/A floor; a smaller difference between builds means nothing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aa_floor: Option<f64>,
    /// How the comparison was made (`ABBA pairs, exact signed-rank of log ratios`).
    pub method: String,
}

/// A limit and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitOutcome {
    /// The author's words.
    pub text: String,
    /// Line of the gate file.
    pub line: usize,
    /// What became of it.
    pub decision: Decision,
    /// Why, and for an open one what would settle it.
    pub because: String,
    /// Distance from bound to limit in the figure's unit (or ratio): positive on the good side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Smallest distance from the limit that as many observations as these find with a chance of four in five, in the
    /// unit of `margin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
}

/// What became of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The bound is on the good side.
    Clears,
    /// The opposite bound is on the bad side.
    Misses,
    /// The interval straddles the limit, or there are too few observations.
    Open,
    /// There is nothing to hold to the limit.
    Absent,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by this program in this run.
    Measured,
    /// Told by the server (log, info endpoint).
    Reported,
    /// Made by another tool; shown, never claimed as ours.
    External,
}
