//! One JSON payload of an answer's stream, borrowed from its bytes: the union of what the servers send.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

/// A payload; every field may be missing or null in some server's answer.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<WireUsage>,
    pub(super) timings: Option<Timings>,
    pub(super) metrics: Option<WireMetrics>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) system_fingerprint: Option<Text<'a>>,
    pub(super) prompt_token_ids: Option<Vec<u32>>,
}

/// One choice of a payload.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    pub(super) token_ids: Option<Vec<u32>>,
    pub(super) prompt_token_ids: Option<Vec<u32>>,
}

/// The new text of a chat choice.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
}

/// `usage`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct WireUsage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
}

/// `usage.prompt_tokens_details`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<u64>,
}

/// llama.cpp's `timings`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Timings {
    pub(super) cache_n: Option<u64>,
    pub(super) prompt_n: Option<u64>,
    pub(super) predicted_n: Option<u64>,
    pub(super) predicted_ms: Option<f64>,
    pub(super) draft_n: Option<u64>,
    pub(super) draft_n_accepted: Option<u64>,
}

/// vLLM's `metrics`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct WireMetrics {
    pub(super) speculative_decoding: Option<Speculation>,
}

/// vLLM's `metrics.speculative_decoding`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Speculation {
    pub(super) num_spec_steps: Option<u64>,
    pub(super) num_accepted_draft_tokens: Option<u64>,
    pub(super) num_draft_tokens: Option<u64>,
}

/// A string that borrows where it holds no escapes; serde's own `Option<Cow<str>>` always copies.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(v)))
            }

            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}
