//! One request and everything that its answer said about itself.

use serde::{Deserialize, Serialize};

/// One request as the client saw it; all times are seconds from the opening of its window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Exchange {
    /// Number of the request in its window, from 0.
    pub id: u32,
    /// Which of the concurrent streams sent it, from 0.
    pub stream: u32,
    /// What the request was for: the name of its prompt (`code/3`, `needle/50%`, `warm-up`).
    pub prompt: String,
    /// When the request was sent, in seconds from the window's start.
    pub sent_s: f64,
    /// When the status line and headers had arrived; absent if they never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_s: Option<f64>,
    /// When the first chunk that carries a token arrived (content, reasoning or token ids; never the role chunk).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_s: Option<f64>,
    /// When the last chunk that carries a token arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_token_s: Option<f64>,
    /// When the answer ended or was given up.
    pub ended_s: f64,
    /// SSE chunks that carried a token; never a token count.
    pub token_chunks: u32,
    /// Tokens in the first token chunk, where the server says (continuous usage or token ids).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_chunk_tokens: Option<u32>,
    /// The token counts of the answer, as the server billed them; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The HTTP status, where one arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// The server's `finish_reason`, where it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The answer's content, cut at [`TEXT_LIMIT`] bytes.
    pub text: String,
    /// The reasoning channel (`reasoning_content`, `reasoning`), cut at [`TEXT_LIMIT`] bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Lower-case hex SHA-256 of the whole content, also of what `text` no longer holds.
    pub text_sha256: String,
    /// Bytes of the whole content.
    pub text_bytes: u64,
    /// Generated token ids, where the server returned them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
    /// Prompt token ids that the server says it read, where it returned them: their count and SHA-256 of their decimal list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_ids: Option<IdDigest>,
    /// The server's own account of the request (llama.cpp's `timings`, vLLM's `metrics.speculative_decoding`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAccount>,
    /// Gaps between token chunks in seconds: median, 99th percentile, largest; absent under two chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Gaps>,
    /// `system_fingerprint` of the answer, where sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// The `model` that the answer names, where sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Bytes of an answer's text that evidence keeps; the digest covers the rest. 64 KiB holds every essay and needle answer.
pub const TEXT_LIMIT: usize = 64 * 1024;

/// The token counts of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens.
    pub prompt: u64,
    /// Generated tokens.
    pub completion: u64,
    /// Prompt tokens answered from the prefix cache, where the server says; absent is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
}

/// A list of token ids as its length and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdDigest {
    /// How many ids.
    pub count: u64,
    /// Lower-case hex SHA-256 of the ids in decimal, joined by commas.
    pub sha256: String,
}

/// What the server says that one request cost it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct ServerAccount {
    /// Prompt tokens computed (not cached).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_computed: Option<u64>,
    /// Prompt tokens from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cached: Option<u64>,
    /// Tokens generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<u64>,
    /// Seconds of decoding by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_s: Option<f64>,
    /// Draft tokens proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<u64>,
    /// Draft tokens accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// Verification steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

/// Gaps between the chunks of one answer that carried tokens, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// Median.
    pub median_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Largest.
    pub max_s: f64,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The answer came whole: a finish reason, and for a stream its proper end.
    Complete,
    /// The server answered with an error status; `body` is its first KiB, control characters stripped.
    Refused {
        /// The body's first KiB.
        body: String,
    },
    /// The connection could not be made, or failed before an answer began.
    Unreachable {
        /// The cause as a person reads it.
        cause: String,
    },
    /// The stream ended without a finish reason or its `[DONE]`, or the connection was reset.
    Cut {
        /// What was missing or broke.
        cause: String,
    },
    /// Nothing arrived for longer than the deadline.
    Stalled {
        /// The deadline in whole seconds.
        deadline_s: u64,
    },
    /// An event could not be read as the protocol says.
    Malformed {
        /// What was wrong, with an excerpt.
        cause: String,
    },
    /// Given up because the run was interrupted.
    #[default]
    Interrupted,
}

impl Exchange {
    /// Whether the answer came whole.
    pub fn is_complete(&self) -> bool {
        self.outcome == Outcome::Complete
    }

    /// Seconds from sending to the first token; absent if none came.
    pub fn ttft_s(&self) -> Option<f64> {
        self.first_token_s.map(|t| t - self.sent_s)
    }

    /// Decode rate of this stream in tok/s: (C − c_first)/(t_last − t_first), with C from the server's usage.
    ///
    /// Absent without usage, without two token chunks, or if the answer was delivered in one burst (under 1 ms: a
    /// buffering proxy; a rate from it would be fiction). c_first is 1 where the server does not say.
    pub fn decode_tok_s(&self) -> Option<f64> {
        let usage = self.usage?;
        let span = self.last_token_s? - self.first_token_s?;
        let first = u64::from(self.first_chunk_tokens.unwrap_or(1));
        let tokens = usage.completion.checked_sub(first)?;
        (self.token_chunks >= 2 && span > 0.001 && tokens > 0).then(|| tokens as f64 / span)
    }
}
