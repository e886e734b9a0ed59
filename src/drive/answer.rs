//! Folds the events of one answer into the fields of its exchange.

use sha2::{Digest, Sha256};

use super::chunk::{Choice, Chunk, Speculation, Timings, WireUsage};
use super::fault::{QUOTE_LIMIT, quote};
use super::gaps::{GapRecorder, hex};
use super::shape::{Fit, Shape};
use super::stream::StreamFault;
use crate::evidence::exchange::{Exchange, IdDigest, Outcome, ServerAccount, TEXT_LIMIT, Usage};

pub use super::gaps::digest_ids;

/// How the body of an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyEnd {
    /// As HTTP says that a body ends.
    Clean,
    /// Otherwise; the cause as a person reads it.
    Broken(String),
}

/// An answer as far as it has come.
#[derive(Debug)]
pub struct Answer {
    shape: Shape,
    /// What the last shape's chunks are: which channel their text belongs to and what their usage holds besides.
    shape_channel: Channel,
    shape_usage: Option<Usage>,
    /// Chunks in a row that no shape fitted; learning rests when shapes do not help.
    misses: u32,
    content: Kept,
    sha: Sha256,
    reasoning: Kept,
    gaps: GapRecorder,
    first_token_s: Option<f64>,
    last_token_s: Option<f64>,
    token_chunks: u32,
    first_chunk_tokens: Option<u32>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    token_ids: Option<Vec<u32>>,
    prompt_ids: Option<IdDigest>,
    server: Option<ServerAccount>,
    system_fingerprint: Option<String>,
    model: Option<String>,
    done: bool,
    events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    Content,
    Reasoning,
}

/// The start of a text and the length of all of it.
#[derive(Debug, Default)]
struct Kept {
    text: String,
    bytes: u64,
}

impl Kept {
    fn push(&mut self, text: &str) {
        // Once a piece was cut nothing more is kept: the start must not have holes.
        if self.text.len() as u64 == self.bytes {
            let mut end = text.len().min(TEXT_LIMIT - self.text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            self.text.push_str(&text[..end]);
        }
        self.bytes += text.len() as u64;
    }
}

/// After so many chunks in a row that no shape fitted, a shape is learned only from every 64th: taking one costs about
/// as much as it saves once.
const LEARN_FREELY: u32 = 8;

impl Default for Answer {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            shape_channel: Channel::Content,
            shape_usage: None,
            misses: 0,
            content: Kept::default(),
            sha: Sha256::new(),
            reasoning: Kept::default(),
            gaps: GapRecorder::default(),
            first_token_s: None,
            last_token_s: None,
            token_chunks: 0,
            first_chunk_tokens: None,
            usage: None,
            finish_reason: None,
            token_ids: None,
            prompt_ids: None,
            server: None,
            system_fingerprint: None,
            model: None,
            done: false,
            events: 0,
        }
    }
}

impl From<StreamFault> for Outcome {
    fn from(fault: StreamFault) -> Self {
        Self::Malformed {
            cause: fault.to_string(),
        }
    }
}

impl Answer {
    /// Whether `[DONE]` has come.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// When the first token came, in seconds from the window's start.
    pub fn first_token_s(&self) -> Option<f64> {
        self.first_token_s
    }

    /// Takes the `data` of one event that arrived at `at_s`; an outcome says that the answer ends here and how.
    pub fn event(&mut self, payload: &[u8], at_s: f64) -> Result<(), Outcome> {
        self.events += 1;
        if self.done {
            return Ok(());
        }
        if let Some(fit) = self.shape.fit(payload) {
            self.misses = 0;
            self.take_fit(&fit, at_s);
            return Ok(());
        }
        if payload == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let text = std::str::from_utf8(payload).map_err(|e| malformed("not UTF-8", &e, payload))?;
        if text.trim().is_empty() {
            return Ok(());
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(text).map_err(|e| malformed("not a chunk", &e, payload))?;
        self.take_chunk(&chunk, text, at_s)
    }

    fn take_fit(&mut self, fit: &Fit<'_>, at_s: f64) {
        if let (Some(completion), Some(usage)) = (fit.completion, self.shape_usage) {
            self.usage = Some(Usage {
                completion,
                ..usage
            });
        }
        let mut ids = 0;
        if fit.has_ids {
            let list = self.shape.ids();
            ids = list.len();
            self.token_ids
                .get_or_insert_default()
                .extend_from_slice(list);
        }
        self.take_text(self.shape_channel, &fit.text);
        if !fit.text.is_empty() || ids > 0 {
            self.token_chunk(at_s, fit.completion, ids);
        }
    }

    fn take_chunk(&mut self, chunk: &Chunk<'_>, payload: &str, at_s: f64) -> Result<(), Outcome> {
        if let Some(error) = chunk.error {
            return Err(Outcome::Refused {
                body: quote(error.get(), QUOTE_LIMIT),
            });
        }
        if chunk.choices.is_none() && chunk.usage.is_none() && chunk.timings.is_none() {
            let cause = format!(
                "an event is JSON but no chunk of an answer (no `choices`): `{}`",
                quote(payload, 200)
            );
            return Err(Outcome::Malformed { cause });
        }
        keep_first(&mut self.model, chunk.model.as_ref().map(|t| &*t.0));
        keep_first(
            &mut self.system_fingerprint,
            chunk.system_fingerprint.as_ref().map(|t| &*t.0),
        );
        if let Some(ids) = &chunk.prompt_token_ids {
            self.prompt_ids = Some(digest_ids(ids));
        }
        let usage = chunk.usage.and_then(usage_of);
        self.usage = usage.or(self.usage);
        self.take_account(chunk);
        for choice in chunk.choices.iter().flatten() {
            if choice.index.unwrap_or(0) == 0 {
                self.take_choice(choice, chunk, payload, at_s);
            }
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: &Choice<'_>, chunk: &Chunk<'_>, payload: &str, at_s: f64) {
        let delta = choice.delta.as_ref();
        let content = choice
            .text
            .as_ref()
            .or(delta.and_then(|d| d.content.as_ref()));
        let reasoning = delta.and_then(|d| d.reasoning_content.as_ref().or(d.reasoning.as_ref()));
        let content = content.map_or("", |t| &*t.0);
        let reasoning = reasoning.map_or("", |t| &*t.0);
        self.take_text(Channel::Content, content);
        self.take_text(Channel::Reasoning, reasoning);
        if let Some(ids) = &choice.prompt_token_ids {
            self.prompt_ids = Some(digest_ids(ids));
        }
        let ids = choice.token_ids.as_deref().unwrap_or_default();
        if choice.token_ids.is_some() {
            self.token_ids
                .get_or_insert_with(Vec::new)
                .extend_from_slice(ids);
        }
        if let Some(reason) = &choice.finish_reason {
            self.finish_reason = Some(quote(&reason.0, 100));
        }
        let usage = chunk.usage.and_then(usage_of);
        if !content.is_empty() || !reasoning.is_empty() || !ids.is_empty() {
            self.token_chunk(at_s, usage.map(|u| u.completion), ids.len());
        }
        let special = choice.finish_reason.is_some()
            || choice.prompt_token_ids.is_some()
            || chunk.prompt_token_ids.is_some()
            || chunk.timings.is_some()
            || chunk.metrics.is_some()
            || chunk.choices.as_ref().is_some_and(|c| c.len() != 1);
        if !special {
            self.learn(payload, content, reasoning, usage);
        }
    }

    /// Takes the shape of a chunk that carries text on exactly one channel.
    fn learn(&mut self, payload: &str, content: &str, reasoning: &str, usage: Option<Usage>) {
        self.misses += 1;
        if self.misses > LEARN_FREELY && !self.misses.is_multiple_of(64) {
            return;
        }
        let (channel, text) = match (content.is_empty(), reasoning.is_empty()) {
            (false, true) => (Channel::Content, content),
            (true, false) => (Channel::Reasoning, reasoning),
            _ => return,
        };
        // Where the text lies in the payload; it lies elsewhere if it had to be unescaped.
        let start = (text.as_ptr() as usize).wrapping_sub(payload.as_ptr() as usize);
        let end = start.wrapping_add(text.len());
        if payload.get(start..end) != Some(text) {
            self.shape.forget();
            return;
        }
        self.shape.learn(payload.as_bytes(), start..end);
        self.shape_channel = channel;
        self.shape_usage = usage;
    }

    fn take_text(&mut self, channel: Channel, text: &str) {
        if text.is_empty() {
            return;
        }
        match channel {
            Channel::Content => {
                self.sha.update(text.as_bytes());
                self.content.push(text);
            }
            Channel::Reasoning => self.reasoning.push(text),
        }
    }

    fn token_chunk(&mut self, at_s: f64, completion: Option<u64>, ids: usize) {
        match self.last_token_s {
            Some(last) => self.gaps.record(at_s - last),
            None => {
                self.first_token_s = Some(at_s);
                let counted = (ids > 0).then_some(ids as u64).or(completion);
                self.first_chunk_tokens = counted.and_then(|n| u32::try_from(n).ok());
            }
        }
        self.last_token_s = Some(at_s);
        self.token_chunks += 1;
    }

    fn take_account(&mut self, chunk: &Chunk<'_>) {
        if let Some(timings) = &chunk.timings {
            self.server = Some(account_of_timings(timings));
        }
        if let Some(speculation) = chunk.metrics.and_then(|m| m.speculative_decoding) {
            let account = self.server.get_or_insert_default();
            add_speculation(account, &speculation);
        }
    }

    /// How the answer ended, given how its body did.
    pub fn outcome(&self, end: &BodyEnd, stray: Option<&str>) -> Outcome {
        let cut = |cause: String| Outcome::Cut { cause };
        if let Some(reason @ ("abort" | "error")) = self.finish_reason.as_deref() {
            return cut(format!(
                "the server gave up: it ended the answer with finish reason `{reason}`"
            ));
        }
        match (end, &self.finish_reason, self.done) {
            // Some servers (transformers serve) never send `[DONE]`; what follows `[DONE]` is nobody's business.
            (BodyEnd::Clean, Some(_), _) | (BodyEnd::Broken(_), Some(_), true) => Outcome::Complete,
            (BodyEnd::Broken(cause), _, _) => cut(cause.clone()),
            (BodyEnd::Clean, None, true) => cut("`[DONE]` came without a finish reason".to_owned()),
            (BodyEnd::Clean, None, false) if self.events == 0 => match stray {
                Some(line) => Outcome::Malformed {
                    cause: format!("the body holds no event; it begins `{line}`"),
                },
                None => cut("the stream ended before its first event".to_owned()),
            },
            (BodyEnd::Clean, None, false) => cut(format!(
                "the stream ended after {} events without a finish reason or `[DONE]`",
                self.events
            )),
        }
    }

    /// Writes everything that the answer said into its exchange; times and outcome of the whole are the caller's.
    pub fn write_into(self, exchange: &mut Exchange) {
        exchange.first_token_s = self.first_token_s;
        exchange.last_token_s = self.last_token_s;
        exchange.token_chunks = self.token_chunks;
        exchange.first_chunk_tokens = self.first_chunk_tokens;
        exchange.usage = self.usage;
        exchange.finish_reason = self.finish_reason;
        exchange.text = self.content.text;
        exchange.reasoning = self.reasoning.text;
        exchange.text_sha256 = hex(&self.sha.finalize());
        exchange.text_bytes = self.content.bytes;
        exchange.token_ids = self.token_ids;
        exchange.prompt_ids = self.prompt_ids;
        exchange.server = self.server;
        exchange.gaps = self.gaps.gaps();
        exchange.system_fingerprint = self.system_fingerprint;
        exchange.model = self.model;
    }
}

fn keep_first(kept: &mut Option<String>, told: Option<&str>) {
    if let (None, Some(told)) = (&kept, told)
        && !told.is_empty()
    {
        *kept = Some(quote(told, 200));
    }
}

fn usage_of(wire: WireUsage) -> Option<Usage> {
    Some(Usage {
        prompt: wire.prompt_tokens?,
        completion: wire.completion_tokens?,
        cached: wire.prompt_tokens_details.and_then(|d| d.cached_tokens),
    })
}

fn account_of_timings(timings: &Timings) -> ServerAccount {
    ServerAccount {
        prompt_computed: timings.prompt_n,
        prompt_cached: timings.cache_n,
        generated: timings.predicted_n,
        decode_s: timings.predicted_ms.map(|ms| ms / 1000.0),
        drafted: timings.draft_n,
        accepted: timings.draft_n_accepted,
        steps: None,
    }
}

fn add_speculation(account: &mut ServerAccount, speculation: &Speculation) {
    account.drafted = speculation.num_draft_tokens;
    account.accepted = speculation.num_accepted_draft_tokens;
    account.steps = speculation.num_spec_steps;
}

fn malformed(what: &str, cause: &dyn std::fmt::Display, payload: &[u8]) -> Outcome {
    let start = &payload[..payload.len().min(400)];
    Outcome::Malformed {
        cause: format!(
            "an event is {what} ({cause}): `{}`",
            quote(&String::from_utf8_lossy(start), 200)
        ),
    }
}
