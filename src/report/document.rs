//! `report.json`: the one truth that every printer renders (`sekimon.report/1`, additive changes only).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::finding::Finding;
use crate::judge::verdict::Verdict;

/// Name of the format.
pub const SCHEMA: &str = "sekimon.report/1";

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Id of the run (`20261201T104217Z-candidate`).
    pub id: String,
    /// The gate.
    pub gate: GateRef,
    /// Verdict of the gate: PASS only if every check passes.
    pub verdict: Verdict,
    /// The seat.
    pub seat: SeatRef,
    /// Conclusions, in the order of the gate.
    pub checks: Vec<Finding>,
    /// Windows, in the order of the run.
    pub windows: Vec<WindowRef>,
    /// Declared but not carried out.
    pub not_run: Vec<NotRun>,
    /// Everything that a reader needs to repeat or distrust it.
    pub conditions: Conditions,
    /// The program.
    pub tool: Tool,
}

/// The gate that was judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateRef {
    /// Name (file stem).
    pub name: String,
    /// Title.
    pub title: String,
    /// SHA-256 of the gate file as it was in effect.
    pub sha256: String,
}

/// The seat that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeatRef {
    /// URL of the judged build.
    pub url: String,
    /// Dialect id.
    pub dialect: String,
    /// Server version; absent if not told.
    pub version: Option<String>,
    /// Model.
    pub model: String,
    /// `sha256:` of the facts that make two runs comparable (dialect, version, model, context length, ranks, host).
    pub fingerprint: String,
}

/// One window, without its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRef {
    /// Id.
    pub id: String,
    /// Case.
    pub case: String,
    /// Part of the case's programme.
    pub part: String,
    /// Build.
    pub build: String,
    /// Boot.
    pub boot: String,
    /// Opening, UTC, RFC 3339.
    pub started: String,
    /// Length in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub requests: u64,
    /// Requests that did not end whole.
    pub failed: u64,
    /// Prompt tokens by usage; absent if any answer sent none.
    pub prompt_tokens: Option<u64>,
    /// Generated tokens by usage; absent if any answer sent none.
    pub completion_tokens: Option<u64>,
    /// The same by the server's counters.
    pub seat: SeatCounts,
    /// What disturbed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<String>,
}

/// Token movement of the server's own counters in a window; absent where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SeatCounts {
    /// Prompt tokens.
    pub prompt_tokens: Option<f64>,
    /// Generated tokens.
    pub generation_tokens: Option<f64>,
}

/// A check that was declared and not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotRun {
    /// Case id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// What the figures were measured under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Conditions {
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Wall time of the run in seconds.
    pub seconds: f64,
    /// How the run ended (`complete`, `interrupted by SIGINT`, …).
    pub ended: String,
    /// The recipe of each boot.
    pub boots: Vec<BootRecipe>,
    /// Conditions of the requests by case, name and value.
    pub requests: Vec<CaseConditions>,
    /// Host facts (kernel, CPU, cores), name and value.
    pub host: Vec<(String, String)>,
    /// GPU facts, name and value; empty without NVML.
    #[serde(default)]
    pub gpu: Vec<(String, String)>,
    /// Which try of this gate it is.
    #[serde(default)]
    pub attempt: Attempt,
}

/// Which try of a gate a run is: a re-run is judged stricter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Attempt {
    /// Runs of the same gate that did not pass before it, within the time that they count; every limit is judged at
    /// alpha / 2^earlier.
    pub earlier: u32,
    /// Why earlier runs do not count, in the words of who started it; absent if nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_build: Option<String>,
}

/// How one boot was started, and what it said of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootRecipe {
    /// Boot id.
    pub id: String,
    /// Build.
    pub build: String,
    /// Command; empty when attached.
    pub command: Vec<String>,
    /// Environment asked for, secrets redacted.
    pub env: Vec<(String, String)>,
    /// Seconds until ready; absent when attached.
    pub ready_s: Option<f64>,
    /// What the seat said of itself, name and value.
    pub identity: Vec<(String, String)>,
    /// Where the log came from, or why there is none.
    pub log: String,
}

/// Conditions of one case's requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseConditions {
    /// Case id.
    pub case: String,
    /// Name and value.
    pub values: Vec<(String, String)>,
}

/// This program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `sekimon`.
    pub name: String,
    /// Version.
    pub version: String,
}
