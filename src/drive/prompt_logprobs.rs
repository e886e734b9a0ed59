//! The logprobs of a prompt: one request by token ids, its answer read as a stream.
//!
//! Sources: vLLM `prompt_logprobs` (<https://docs.vllm.ai/en/latest/api/vllm/sampling_params.html>), the OpenAI legacy echo, SGLang's
//! `/generate` (<https://docs.sglang.ai/basic_usage/native_api.html>). A position's value is looked up by the id that was
//! sent: with top entries asked for, the first and the best entry of a position are often another token's.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::cancel::Cancel;
use super::client::{Client, start_of};
use super::fault::{Fault, FaultKind};
use super::request::{Cache, body_with_ids, cold_fields};
use super::score_reader::ScoreReader;
use crate::dialect::{Dialect, PromptLogprobs};
use crate::evidence::exchange::Usage;

/// The score of one token of a prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenScore {
    /// The id that was sent.
    pub id: u32,
    /// Natural logarithm of its probability, at most 0.
    pub logprob: f64,
    /// Its rank among all tokens, from 1, where the server says.
    pub rank: Option<u32>,
    /// Logprob of the likeliest token at this place, where the server told it.
    pub best: Option<f64>,
}

/// The scores of one prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Positions 1, 2, … of the prompt: the first token has no score.
    pub tokens: Vec<TokenScore>,
    /// The counts of the answer, where the server sent them.
    pub usage: Option<Usage>,
    /// Bytes of the answer.
    pub body_bytes: u64,
}

/// Why a prompt has no scores; positions count from 0.
#[derive(Debug, Clone, PartialEq)]
pub enum ScoreFault {
    /// The conversation failed.
    Http(Fault),
    /// The server cannot give them; the text says why.
    Unsupported(String),
    /// A success without the field: the server ignored what it was asked for.
    MissingField(&'static str),
    /// No logprob at a position that must have one.
    NullInside(usize),
    /// A logprob at the first position, which can have none: the list is shifted.
    FirstScored,
    /// Another token than the one that was sent.
    IdMismatch {
        /// Position.
        position: usize,
        /// Id sent; none beyond the prompt's end.
        sent: Option<u32>,
        /// Id returned; none if it is no id.
        got: Option<u32>,
    },
    /// The answer does not say which tokens its logprobs are for.
    IdsNotReturned,
    /// Another number of entries or tokens than was sent.
    WrongCount {
        /// What was counted.
        what: &'static str,
        /// Tokens sent.
        sent: usize,
        /// Entries counted.
        got: usize,
    },
    /// Not a finite number.
    NotFinite(usize),
    /// −9999, which stands for minus infinity: the model's probabilities are broken there.
    Sentinel(usize),
    /// Above 0, which no logarithm of a probability is.
    Positive {
        /// Position.
        position: usize,
        /// The value.
        logprob: f64,
    },
    /// Every logprob of the probe is the same: they are not the model's.
    AllEqual(f64),
    /// The body ended too early.
    Cut(String),
    /// The body is no JSON.
    Malformed(String),
}

impl ScoreFault {
    /// Whether the machine or network failed (reset, 5xx, cut, interrupted), which says nothing of the build's quality.
    pub fn is_infra(&self) -> bool {
        match self {
            Self::Http(fault) => fault.is_infra(),
            Self::Cut(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for ScoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(fault) => write!(f, "prompt logprobs: {fault}"),
            Self::Unsupported(why) => write!(f, "this server gives no prompt logprobs: {why}"),
            Self::MissingField(field) => write!(
                f,
                "the answer has no `{field}`: the server ignored the request for prompt logprobs; is the dialect right?"
            ),
            Self::NullInside(position) => write!(
                f,
                "no logprob at position {position}; only the first may be null"
            ),
            Self::FirstScored => f.write_str(
                "a logprob at the first position, which can have none: the server's list is shifted",
            ),
            Self::IdMismatch {
                position,
                sent,
                got,
            } => write!(
                f,
                "at position {position} token {} was sent and {} was scored: the server read another prompt",
                named(*sent),
                named(*got)
            ),
            Self::IdsNotReturned => f.write_str(
                "the answer does not say which tokens it scored, so nothing proves that they are those sent",
            ),
            Self::WrongCount { what, sent, got } => write!(
                f,
                "{sent} tokens were sent, but {what} counts {got}: the prompt was truncated or changed"
            ),
            Self::NotFinite(position) => {
                write!(f, "the logprob at position {position} is not a finite number")
            }
            Self::Sentinel(position) => write!(
                f,
                "the logprob at position {position} is -9999, the server's word for minus infinity: its probabilities are broken"
            ),
            Self::Positive { position, logprob } => write!(
                f,
                "the logprob at position {position} is {logprob}, and no logarithm of a probability is above 0"
            ),
            Self::AllEqual(value) => write!(
                f,
                "every logprob of the probe is {value}: they are not the model's"
            ),
            Self::Cut(cause) => write!(f, "{cause}; look at the seat's log for a crash"),
            Self::Malformed(cause) => write!(f, "the answer cannot be read: {cause}"),
        }
    }
}

impl std::error::Error for ScoreFault {}

fn named(id: Option<u32>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| id.to_string())
}

/// How scores are asked for.
#[derive(Debug, Clone)]
pub struct Scoring {
    /// The seat.
    pub client: Client,
    /// The model.
    pub model: String,
    /// How the seat speaks.
    pub dialect: &'static Dialect,
    /// The route, as the dialect has it or [`discover`] found it.
    pub route: PromptLogprobs,
    /// Entries beyond the token itself at each position (vLLM); 0 gives the smallest answer.
    pub top: u32,
    /// Longest wait for the answer's headers: the whole prefill.
    pub deadline: Duration,
    /// Longest silence inside the body.
    pub stall: Duration,
}

/// Scores one prompt; memory stays at the scores themselves and a few hundred kilobytes, however long the answer.
pub async fn score(
    scoring: &Scoring,
    ids: &[u32],
    cache: &Cache,
    cancel: &Cancel,
) -> Result<Scores, ScoreFault> {
    let fault = |kind| {
        ScoreFault::Http(Fault {
            url: scoring.client.url(path(scoring.route)),
            kind,
        })
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(fault(FaultKind::Interrupted)),
        scores = converse(scoring, ids, cache) => scores,
    }
}

async fn converse(scoring: &Scoring, ids: &[u32], cache: &Cache) -> Result<Scores, ScoreFault> {
    if let PromptLogprobs::Unavailable(why) = scoring.route {
        return Err(ScoreFault::Unsupported(why.to_owned()));
    }
    let path = path(scoring.route);
    let url = scoring.client.url(path);
    let late = |deadline: Duration| {
        ScoreFault::Http(Fault {
            url: url.clone(),
            kind: FaultKind::TimedOut(deadline.as_secs_f64()),
        })
    };
    let opened = scoring.client.open(path, body(scoring, ids, cache));
    let mut response = tokio::time::timeout(scoring.deadline, opened)
        .await
        .map_err(|_| late(scoring.deadline))?
        .map_err(ScoreFault::Http)?;
    let status = response.status().as_u16();
    if !response.status().is_success() {
        let said = tokio::time::timeout(scoring.stall, start_of(response)).await;
        let fault = Fault::from_status(&url, status, &said.unwrap_or_default());
        return Err(ScoreFault::Http(fault));
    }
    let mut reader = ScoreReader::new(scoring.route, ids);
    loop {
        let piece = tokio::time::timeout(scoring.stall, response.chunk()).await;
        match piece.map_err(|_| late(scoring.stall))? {
            Ok(Some(bytes)) => reader.feed(&bytes)?,
            Ok(None) => return reader.finish(),
            Err(error) => return Err(ScoreFault::Http(Fault::from_reqwest(&url, &error))),
        }
    }
}

fn path(route: PromptLogprobs) -> &'static str {
    match route {
        PromptLogprobs::SglangGenerate => "/generate",
        _ => "/v1/completions",
    }
}

fn body(scoring: &Scoring, ids: &[u32], cache: &Cache) -> Bytes {
    let common = json!({
        "model": scoring.model, "max_tokens": 1, "temperature": 0.0, "stream": false,
        "add_special_tokens": false, "return_token_ids": true,
    });
    let (fields, key) = match scoring.route {
        PromptLogprobs::SglangGenerate => (
            json!({
                "sampling_params": {"temperature": 0.0, "max_new_tokens": 0},
                "return_logprob": true, "logprob_start_len": 0, "top_logprobs_num": 0,
                "return_text_in_logprobs": false, "stream": false,
            }),
            "input_ids",
        ),
        PromptLogprobs::Echo => (
            with(
                common,
                &[
                    ("echo", true.into()),
                    ("logprobs", 1.into()),
                    ("return_tokens_as_token_ids", true.into()),
                ],
            ),
            "prompt",
        ),
        _ => (
            with(common, &[("prompt_logprobs", scoring.top.into())]),
            "prompt",
        ),
    };
    let mut fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Cache::Cold(salt) = cache {
        cold_fields(scoring.dialect.requests.cold, salt, &mut fields);
    }
    body_with_ids(&fields, key, ids)
}

fn with(mut object: Value, more: &[(&str, Value)]) -> Value {
    for (key, value) in more {
        object[*key] = value.clone();
    }
    object
}

/// The ids of the probe: small, so that every vocabulary has them (single bytes in a byte vocabulary).
pub const PROBE_IDS: [u32; 3] = [40, 73, 55];

/// The routes that are tried on a server of an unknown family.
const ROUTES: [PromptLogprobs; 3] = [
    PromptLogprobs::Vllm,
    PromptLogprobs::Echo,
    PromptLogprobs::SglangGenerate,
];

/// The route by which this seat really gives prompt logprobs, tried with three tokens: the one of `scoring`, or, where it
/// has none, the first of all known that passes. A seat without one is [`ScoreFault::Unsupported`].
pub async fn discover(scoring: &Scoring, cancel: &Cancel) -> Result<PromptLogprobs, ScoreFault> {
    let PromptLogprobs::Unavailable(why) = scoring.route else {
        probe(scoring, cancel).await?;
        return Ok(scoring.route);
    };
    let mut tried = Vec::new();
    for route in ROUTES {
        let attempt = Scoring {
            route,
            ..scoring.clone()
        };
        match probe(&attempt, cancel).await {
            Ok(()) => return Ok(route),
            Err(ScoreFault::Http(fault))
                if matches!(fault.kind, FaultKind::Refused | FaultKind::Interrupted) =>
            {
                return Err(ScoreFault::Http(fault));
            }
            Err(fault) => tried.push(format!("{}: {fault}", route_name(route))),
        }
    }
    Err(ScoreFault::Unsupported(format!(
        "{why} (tried {})",
        tried.join("; ")
    )))
}

fn route_name(route: PromptLogprobs) -> &'static str {
    match route {
        PromptLogprobs::Vllm => "`prompt_logprobs`",
        PromptLogprobs::Echo => "echo",
        PromptLogprobs::SglangGenerate => "`/generate`",
        PromptLogprobs::Unavailable(_) => "none",
    }
}

async fn probe(scoring: &Scoring, cancel: &Cancel) -> Result<(), ScoreFault> {
    let scores = score(scoring, &PROBE_IDS, &Cache::Allowed, cancel).await?;
    match scores.tokens.as_slice() {
        [a, b] if a.logprob == b.logprob => Err(ScoreFault::AllEqual(a.logprob)),
        _ => Ok(()),
    }
}
