//! What is concluded of one case: verdict, reasons, figures, proof.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::Figure;
use super::verdict::Verdict;

/// The conclusion on one case (`throughput/code/1`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Id of the case, unique in the report.
    pub id: String,
    /// Kind of check.
    pub kind: String,
    /// The judged build.
    pub build: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Why, most important first; never empty unless PASS.
    pub reasons: Vec<Reason>,
    /// Figures of the judged build.
    pub figures: Vec<Figure>,
    /// The same figures of the reference builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceFigures>,
    /// Proof of the judged build's path; absent where the kind needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Ids of every window of the case.
    pub windows: Vec<String>,
    /// Line of the gate file that asked for it.
    pub line: usize,
    /// Facts worth reading that decide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Figures of a reference build, with the proof of its own path where it claims one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceFigures {
    /// Build.
    pub build: String,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Proof of its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// One reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable code (`path.still`, `limit.missed`), for scripts and translation.
    pub code: String,
    /// The verdict that this reason alone would give.
    pub verdict: Verdict,
    /// The sentence, in English.
    pub text: String,
    /// The sentence, in Japanese.
    pub text_ja: String,
}

impl Reason {
    /// A reason in both languages.
    pub fn new(
        code: &str,
        verdict: Verdict,
        text: impl Into<String>,
        text_ja: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            verdict,
            text: text.into(),
            text_ja: text_ja.into(),
        }
    }
}

/// Whether the path was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Name of the path.
    pub path: String,
    /// Verdict on it.
    pub verdict: ProofVerdict,
    /// Each piece of evidence.
    pub items: Vec<ProofItem>,
}

/// The verdict on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofVerdict {
    /// One of moved/behaved and one of announced/resident on every rank, nothing contradicting.
    Proven,
    /// Evidence is absent.
    Unproven,
    /// Evidence contradicts the path.
    Contradicted,
}

/// One piece of evidence for or against a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofItem {
    /// Tier.
    pub tier: Tier,
    /// Where it was looked for (`log of boot b2, bytes 0–18234`, `counter exl3_moe_calls_total{kernel="lna2"}`).
    pub source: String,
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// Whether it holds; absent when the evidence is.
    pub ok: Option<bool>,
    /// Ranks that it was seen on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// Windows that it speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<String>,
    /// An example (a log line), control codes stripped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// How strong a piece of evidence is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Asked for.
    Declared,
    /// Told back by the server.
    Echoed,
    /// A line of the pinned process, counted by rank.
    Announced,
    /// Lives in the serving processes.
    Resident,
    /// A counter moved inside the window.
    Moved,
    /// Behaviour that only the path shows.
    Behaved,
}
