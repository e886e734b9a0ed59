//! One file per server family: how it spells counters, log lines and requests. Data only, no sockets.
//!
//! A new dialect is one file with one `pub static` and its row in [`DIALECTS`].

mod generic;
mod llamacpp;
mod lmdeploy;
mod mistralrs;
mod ollama;
mod preset;
mod ranks;
mod sglang;
mod tabbyapi;
mod tensorrt_llm;
mod tgi;
mod transformers;
mod vllm;
mod vllm_presets;

pub use ranks::Ranks;

pub use preset::{ForbiddenLine, LaterScope, Part, Preset, PresetLine, Scope};

/// Every dialect, in the order in which a seat is recognised; the generic one is last and fits every OpenAI-like server.
///
/// [`Sign::OwnedBy`] and [`Sign::ServerHeader`] of every row come before any other sign: they cost one request, and a
/// `GET /metrics` on TensorRT-LLM, which the signs of other rows ask for, drains its statistics.
pub static DIALECTS: &[&Dialect] = &[
    &vllm::VLLM,
    &sglang::SGLANG,
    &llamacpp::LLAMACPP,
    &tensorrt_llm::TENSORRT_LLM,
    &tgi::TGI,
    &lmdeploy::LMDEPLOY,
    &tabbyapi::TABBYAPI,
    &ollama::OLLAMA,
    &mistralrs::MISTRALRS,
    &transformers::TRANSFORMERS,
    &generic::GENERIC,
];

/// How one family of servers speaks.
#[derive(Debug)]
pub struct Dialect {
    /// Name in gate files and evidence (`vllm`).
    pub id: &'static str,
    /// Name for people (`vLLM`).
    pub name: &'static str,
    /// Signs by which a live seat is recognised; any one suffices.
    pub signs: &'static [Sign],
    /// Its metrics; absent if it has none.
    pub metrics: Option<Metrics>,
    /// Its log lines.
    pub log: LogGrammar,
    /// Its requests.
    pub requests: Requests,
    /// Lines that tell the KV window, tried in order.
    pub kv: &'static [KvLine],
    /// Known proofs of path by name, usable in a gate as `preset = "…"`.
    pub presets: &'static [Preset],
    /// Lines that forbid a build to be accepted whatever the figures (synthetic acceptance, dummy weights …).
    pub forbidden: &'static [ForbiddenLine],
}

/// Something that only this family answers.
#[derive(Debug, Clone, Copy)]
pub enum Sign {
    /// `GET path` answers 200 with a JSON object that has this key at its top.
    JsonKey {
        /// Path.
        path: &'static str,
        /// Key.
        key: &'static str,
    },
    /// `GET path` answers with a body that contains this text.
    Body {
        /// Path.
        path: &'static str,
        /// Text.
        text: &'static str,
    },
    /// `GET /v1/models` names this owner.
    OwnedBy(&'static str),
    /// The `server` header contains this text.
    ServerHeader(&'static str),
}

/// Names of series, by preference: versions spell them differently, the first that is present counts.
pub type Names = &'static [&'static str];

/// How a family spells its counters. Empty names: it has no such series.
#[derive(Debug)]
pub struct Metrics {
    /// Path of the text (`/metrics`).
    pub path: &'static str,
    /// How to switch it on, for the message when it is absent.
    pub switch: &'static str,
    /// Prompt tokens, counter.
    pub prompt_tokens: Names,
    /// Whether the prompt counter counts cached tokens too.
    pub prompt_counts: PromptCount,
    /// Prompt tokens answered from the cache, counter.
    pub cached_prompt_tokens: Names,
    /// Generated tokens, counter.
    pub generation_tokens: Names,
    /// Finished requests, counter, by reason where labelled.
    pub finished_requests: Names,
    /// Label of the finish reason.
    pub finished_reason_label: &'static str,
    /// Drafting steps, counter.
    pub drafts: Names,
    /// Draft tokens, counter.
    pub draft_tokens: Names,
    /// Accepted draft tokens, counter.
    pub accepted_tokens: Names,
    /// Accepted draft tokens by position, counter.
    pub accepted_per_position: Names,
    /// Label of the position, from 0.
    pub position_label: &'static str,
    /// What it means when the speculation series are absent.
    pub absent_drafts: AbsentDrafts,
    /// Tokens looked up in the prefix cache, counter.
    pub prefix_queries: Names,
    /// Tokens found in the prefix cache, counter.
    pub prefix_hits: Names,
    /// Preempted requests, counter.
    pub preemptions: Names,
    /// Requests running, gauge.
    pub running: Names,
    /// Requests waiting, gauge.
    pub waiting: Names,
    /// Unix time of the process's start, gauge: a change is a restart.
    pub process_start: Names,
    /// An info series whose label tells the KV window in tokens: (series, label).
    pub kv_tokens: Option<(&'static str, &'static str)>,
    /// Engine steps (decode iterations), counter; for the speed attribution tok/s = accept length × steps/s.
    pub steps: Names,
    /// Time to first token in seconds, histogram: the names without `_sum` and `_count`.
    pub ttft: Names,
    /// Gauges that keep their last value when nothing happens, or are refreshed only now and then: never evidence alone.
    pub stale_gauges: Names,
}

impl Metrics {
    /// Metrics without any series; a dialect states what differs.
    pub const NONE: Metrics = Metrics {
        path: "/metrics",
        switch: "",
        prompt_tokens: &[],
        prompt_counts: PromptCount::All,
        cached_prompt_tokens: &[],
        generation_tokens: &[],
        finished_requests: &[],
        finished_reason_label: "",
        drafts: &[],
        draft_tokens: &[],
        accepted_tokens: &[],
        accepted_per_position: &[],
        position_label: "position",
        absent_drafts: AbsentDrafts::MeansNothing,
        prefix_queries: &[],
        prefix_hits: &[],
        preemptions: &[],
        running: &[],
        waiting: &[],
        process_start: &[],
        kv_tokens: None,
        steps: &[],
        ttft: &[],
        stale_gauges: &[],
    };
}

/// What a prompt counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptCount {
    /// The full prompt, cached tokens included.
    All,
    /// Only what was computed.
    ComputedOnly,
}

/// What the absence of speculation counters proves in this family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentDrafts {
    /// The series exist exactly when speculation is configured: absence proves it off (vLLM).
    MeansOff,
    /// The series may be absent for other reasons: absence proves nothing.
    MeansNothing,
}

/// How a log line is read.
#[derive(Debug)]
pub struct LogGrammar {
    /// Regular expression of a line's prefix with named groups `proc`, `pid`, `level`, `msg` (each optional but `msg`).
    pub line: &'static str,
    /// Regular expressions tried on `proc` (or on `tags`) with named groups `tp`, `pp`, `dp`, `ep` or `rank`.
    pub rank: &'static [&'static str],
    /// Processes whose lines stand for rank 0 when the seat has one rank (`EngineCore` at TP=1).
    pub single_rank_procs: &'static [&'static str],
    /// Lines that prove that the log is complete from the start (version banner, first engine line), any one.
    pub first_lines: &'static [&'static str],
    /// Regular expression of a record's head wherever it stands in a line: two writers on one pipe put two records
    /// in one line. Empty: records have no head that could be recognised inside a line.
    pub head: &'static str,
    /// Regular expressions on the message with named group `version`: the server's own version.
    pub version: &'static [&'static str],
    /// Keys of a line that is a JSON object, where the family can be told to log so.
    pub json: Option<JsonKeys>,
}

/// Where a JSON log line keeps its parts.
#[derive(Debug, Clone, Copy)]
pub struct JsonKeys {
    /// The message.
    pub message: &'static str,
    /// The level.
    pub level: &'static str,
    /// Name of the process.
    pub proc: &'static str,
    /// Process id.
    pub pid: &'static str,
}

impl LogGrammar {
    /// A log of which nothing is known: each line is a message without rank.
    pub const PLAIN: LogGrammar = LogGrammar {
        line: r"^(?P<msg>.*)$",
        rank: &[],
        single_rank_procs: &[""],
        first_lines: &[],
        head: "",
        version: &[],
        json: None,
    };
}

/// How requests are made.
#[derive(Debug)]
pub struct Requests {
    /// Field that makes the model go on past its end token; absent if there is none.
    pub ignore_eos: Option<&'static str>,
    /// How a prompt is kept away from the prefix cache.
    pub cold: Cold,
    /// The tokenizer route.
    pub tokenize: Option<Tokenize>,
    /// Whether `/v1/completions` takes token ids as `prompt`.
    pub prompt_ids: bool,
    /// Whether `continuous_usage_stats` is understood.
    pub continuous_usage: bool,
    /// Field that asks for token ids in the answer.
    pub return_token_ids: Option<&'static str>,
    /// How the logprobs of a prompt are had.
    pub prompt_logprobs: PromptLogprobs,
    /// Greatest silence of a healthy stream in seconds before it counts as stalled, beyond prefill.
    pub stall_s: u64,
}

/// How a prompt is kept away from the prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cold {
    /// A request field with a fresh hex salt.
    Salt(&'static str),
    /// A request field set to `false`.
    SwitchOff(&'static str),
    /// No field: sixteen random hex characters at the front of the prompt.
    Prefix,
}

/// A tokenizer route.
#[derive(Debug, Clone, Copy)]
pub struct Tokenize {
    /// Path.
    pub path: &'static str,
    /// Field that takes the text.
    pub text_field: &'static str,
    /// JSON pointer of the ids in the answer.
    pub ids: &'static str,
    /// Field that switches special tokens, where there is one.
    pub special_tokens_field: Option<&'static str>,
    /// Whether it takes chat `messages` and renders the template.
    pub messages: bool,
}

/// How the logprobs of a prompt are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptLogprobs {
    /// `prompt_logprobs: 0` on `/v1/completions` (vLLM).
    Vllm,
    /// `echo: true, logprobs: 1, max_tokens: 0|1` on `/v1/completions`.
    Echo,
    /// `/generate` with `return_logprob` (SGLang).
    SglangGenerate,
    /// Not to be had over HTTP; the text says why.
    Unavailable(&'static str),
}

/// A line that tells the KV window.
#[derive(Debug, Clone, Copy)]
pub struct KvLine {
    /// Regular expression on the message with any of the named groups `tokens`, `blocks`, `slots` (times `tokens`),
    /// `gib`, `mib`, `concurrency`, `dtype`: a line may tell only one of them.
    pub pattern: &'static str,
    /// Tokens per block where the line counts blocks.
    pub block_size: Option<u64>,
}

/// `(major, minor)` of a version text such as `0.32.0` or `v0.9.2rc1`; absent if it has no such front.
pub fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits = minor
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(minor.len());
    Some((major, minor[..digits].parse().ok()?))
}

/// The dialect with this id.
pub fn named(id: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().copied().find(|d| d.id == id)
}

#[cfg(test)]
#[path = "dialect_tests.rs"]
mod tests;
