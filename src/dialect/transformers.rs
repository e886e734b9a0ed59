//! `transformers serve`: <https://github.com/huggingface/transformers>.
//!
//! It has no metrics, no tokenizer and no logprobs, refuses unknown fields with 422, does not check lengths, and goes
//! on computing for a client that has left. Nothing that it answers is its alone: it has to be named in a gate.

use super::Scope::Once;
use super::{Cold, Dialect, LogGrammar, Preset, PresetLine, PromptLogprobs, Requests};

/// transformers serve.
pub(super) static TRANSFORMERS: Dialect = Dialect {
    id: "transformers",
    name: "transformers serve",
    signs: &[],
    metrics: None,
    log: LogGrammar {
        line: r"^(?:\[transformers\] |(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): +)?(?P<msg>.*)$",
        first_lines: &["^Loading \\S+@\\S+", "Started server process"],
        head: r"\[transformers\] |INFO: {5}",
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: None,
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable("`transformers serve` gives no logprobs"),
        stall_s: 120,
    },
    kv: &[],
    presets: &[
        Preset::announced(
            "batching:continuous",
            "Requests run side by side and not one after another.",
            &[
                PresetLine::new(Once, r"Request received\] Model: .*, CB: True")
                    .matches(&["[Request received] Model: m@main, CB: True"])
                    .never(&["[Request received] Model: m@main, CB: False"]),
            ],
        )
        .refuted(
            &[r"Request received\] Model: .*, CB: False"],
            &["[Request received] Model: m@main, CB: False"],
            &["[Request received] Model: m@main, CB: True"],
        ),
        Preset::announced(
            "requests:whole",
            "No field of a request was ignored. Absence proves it only in a whole log.",
            &[PresetLine::new(Once, r"Request received\]")
                .matches(&["[Request received] Model: m@main, CB: True"])
                .never(&["Ignoring unsupported fields in the request: {'stream_options'}"])],
        )
        .refuted(
            &["Ignoring unsupported fields in the request"],
            &["Ignoring unsupported fields in the request: {'stream_options'}"],
            &["[Request received] Model: m@main, CB: True"],
        ),
    ],
    forbidden: &[],
};
