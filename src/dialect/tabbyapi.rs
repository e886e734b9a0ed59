//! TabbyAPI over exllamav2 and exllamav3: <https://github.com/theroyallab/tabbyAPI>. It has no metrics.

use super::Scope::Once;
use super::{
    Cold, Dialect, KvLine, LogGrammar, Preset, PresetLine, PromptLogprobs, Requests, Sign,
};

/// TabbyAPI.
pub(super) static TABBYAPI: Dialect = Dialect {
    id: "tabbyapi",
    name: "TabbyAPI",
    signs: &[Sign::OwnedBy("tabbyAPI")],
    metrics: None,
    log: LogGrammar {
        // `2026-01-01 10:00:00.000 INFO:     message`.
        line: r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ (?P<level>[A-Z]+): +)?(?P<msg>.*)$",
        first_lines: &["ExllamaV\\d version: ", "Loading model: ", "Using backend "],
        head: r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ (?:DEBUG|INFO|WARNING|ERROR|CRITICAL): ",
        version: &[r"ExllamaV\d version: (?P<version>\S+)"],
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: Some("ban_eos_token"),
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "TabbyAPI gives logprobs of generated tokens only; use exllamav3's own `eval/ppl.py`",
        ),
        stall_s: 60,
    },
    kv: &[KvLine {
        pattern: r"Using configured cache_size: (?P<tokens>\d+) tokens",
        block_size: None,
    }],
    presets: &[
        Preset::announced(
            "speculation:draft-model",
            "A draft model is loaded. That it drafts is told by `accepted_draft_tokens` in the answers.",
            &[PresetLine::new(Once, r"Using draft model: ")
                .matches(&["Using draft model: small-exl3"])
                .never(&["Using main model MTP component for drafting"])],
        ),
        Preset::announced(
            "speculation:mtp",
            "The model's own MTP head drafts.",
            &[
                PresetLine::new(Once, r"Using main model MTP component for drafting")
                    .matches(&["Using main model MTP component for drafting"])
                    .never(&["Using draft model: small-exl3"]),
            ],
        ),
    ],
    forbidden: &[],
};
