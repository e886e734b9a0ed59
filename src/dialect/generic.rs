//! Any server that speaks the OpenAI API and nothing more: no counters, no tokenizer, an unknown log.

use super::{Cold, Dialect, LogGrammar, PromptLogprobs, Requests};

/// The last row: what is true of every OpenAI-like server.
pub(super) static GENERIC: Dialect = Dialect {
    id: "openai",
    name: "OpenAI-like",
    signs: &[],
    metrics: None,
    log: LogGrammar {
        single_rank_procs: &[],
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: None,
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "no route for prompt logprobs is known for this server",
        ),
        stall_s: 60,
    },
    kv: &[],
    presets: &[],
    forbidden: &[],
};
