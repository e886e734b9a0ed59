//! The whole evidence of a run, as read back from its journal.

use std::collections::BTreeMap;

use super::window::{Boot, Residents, Window};

/// Everything that a run left behind for its judges.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Boots, in the order of the run.
    pub boots: Vec<Boot>,
    /// Closed windows with their requests, in the order of the run.
    pub windows: Vec<Window>,
    /// What lived in the processes of each boot that was looked at.
    pub residents: Vec<Residents>,
    /// Logs by boot id.
    pub logs: BTreeMap<String, Vec<u8>>,
    /// Scores by window id.
    pub scores: BTreeMap<String, Vec<ScoredWindow>>,
    /// Cases that were not carried out: (case, build, reason).
    pub not_run: Vec<Omission>,
    /// How the run ended; absent when its end was never written (killed).
    pub ended: Option<String>,
}

/// A case that was not carried out on a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Case id.
    pub case: String,
    /// Build.
    pub build: String,
    /// Why.
    pub reason: String,
}

/// Logprobs of one window of text.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScoredWindow {
    /// Name of the text window (`en/0`).
    pub name: String,
    /// Token ids that were sent.
    pub ids: Vec<u32>,
    /// Natural-log probability of each token, the first absent.
    pub logprobs: Vec<Option<f64>>,
    /// Rank of each token (1 is the likeliest), where told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Option<u32>>,
    /// Logprob of the likeliest token at each place, where told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Option<f64>>,
    /// Prompt tokens by usage, where told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// UTF-8 bytes of the scored text, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Tokens of the prompt before the answer; absent where the window is no prompt with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_from: Option<u64>,
    /// What went wrong; a window with a fault has no usable logprobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ScoreFault>,
}

/// What went wrong when a text window was scored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ScoreFault {
    /// Whether the seat's answer was wrong (a finding), or the world failed (reset, out of memory).
    pub infra: bool,
    /// The sentence.
    pub text: String,
}

impl Evidence {
    /// The boot of this id.
    pub fn boot(&self, id: &str) -> Option<&Boot> {
        self.boots.iter().find(|b| b.id == id)
    }

    /// The windows of one part of one case on one build, in the order of the run.
    pub fn windows_of<'a>(
        &'a self,
        case: &'a str,
        build: &'a str,
        part: &'a str,
    ) -> impl Iterator<Item = &'a Window> {
        self.windows
            .iter()
            .filter(move |w| w.case == case && w.build == build && w.part == part)
    }
}
