//! mistral.rs: <https://github.com/EricLBuehler/mistral.rs>.
//!
//! Seen in 0.8.1: completions streams carry no usage, and logprobs are positive; neither is to be trusted.

use super::Scope::Once;
use super::{
    Cold, Dialect, ForbiddenLine, KvLine, LogGrammar, Metrics, Preset, PresetLine, PromptCount,
    PromptLogprobs, Requests, Sign,
};

/// mistral.rs.
pub(super) static MISTRALRS: Dialect = Dialect {
    id: "mistralrs",
    name: "mistral.rs",
    signs: &[
        Sign::Body {
            path: "/metrics",
            text: "mistralrs_",
        },
        Sign::OwnedBy("local"),
    ],
    metrics: Some(Metrics {
        switch: "use a version of mistral.rs that serves `/metrics` (0.8.1 does not)",
        prompt_counts: PromptCount::All,
        drafts: &["mistralrs_speculative_drafts_total"],
        draft_tokens: &["mistralrs_speculative_draft_tokens_proposed_total"],
        accepted_tokens: &["mistralrs_speculative_draft_tokens_accepted_total"],
        accepted_per_position: &[
            "mistralrs_speculative_draft_tokens_accepted_per_pos_total",
            "mistralrs_speculative_accepted_per_pos_total",
        ],
        prefix_queries: &["mistralrs_prefix_cache_lookups_total", "prefix_cache_lookups_total"],
        prefix_hits: &["mistralrs_prefix_cache_hits_total", "prefix_cache_hits_total"],
        preemptions: &["mistralrs_paged_preemptions_total", "paged_preemptions_total"],
        running: &["mistralrs_sequences_running", "sequences_running"],
        waiting: &["mistralrs_sequences_waiting", "sequences_waiting"],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        // `2026-12-01T06:22:16.603415Z  INFO mistralrs_core: message`, in colours even in a file.
        line: r"^(?:\d{4}-\d\d-\d\dT\S+Z +(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) (?P<proc>[\w:]+): )?(?P<msg>.*)$",
        rank: &[],
        // Every module of the one process.
        single_rank_procs: &[
            "",
            "mistralrs_core",
            "mistralrs_core::pipeline::gguf",
            "mistralrs_core::pipeline::normal",
            "mistralrs_core::prefix_cacher",
            "mistralrs_core::paged_attention",
            "mistralrs_quant::utils::log",
        ],
        first_lines: &["Sampling method: penalties", "Model kind is: "],
        head: r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +(?:TRACE|DEBUG|INFO|WARN|ERROR) ",
        version: &[r"^git revision: (?P<version>[0-9a-f]{7,})"],
        json: None,
    },
    requests: Requests {
        ignore_eos: None,
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "mistral.rs gives logprobs of generated tokens only, and those are positive",
        ),
        stall_s: 120,
    },
    kv: &[KvLine {
        pattern: r"Using PagedAttention with block size \d+ and \d+ GPU blocks: available context length is (?P<tokens>\d+) tokens",
        block_size: None,
    }],
    presets: &[
        Preset::announced(
            "attention:paged",
            "Attention is paged.",
            &[PresetLine::new(Once, r"Using PagedAttention with block size").matches(&["Using PagedAttention with block size 32 and 1024 GPU blocks: available context length is 32768 tokens"]).never(&["Device mapping contains a mix of GPU and CPU. There is no CPU support for PagedAttention, disabling PagedAttention."])],
        )
        .refuted(&["disabling PagedAttention|does not currently support PagedAttention"], &["Device mapping contains a mix of GPU and CPU. There is no CPU support for PagedAttention, disabling PagedAttention."], &["PagedAttention KV cache type is F16"]),
        Preset::announced(
            "quantization:no-fallback",
            "Every layer of the file is quantised as asked.",
            &[PresetLine::new(Once, r"UQFF .+: \d+ layers, no fallbacks").matches(&["UQFF Q4K: 210 layers, no fallbacks."]).never(&["UQFF Q4K: 210 layers, 3 fallbacks."])],
        )
        .refuted(&[r"UQFF .+: \d+ layers, \d+ fallbacks"], &["UQFF Q4K: 210 layers, 3 fallbacks."], &["UQFF Q4K: 210 layers, no fallbacks."]),
        Preset::announced("speculation:on", "Drafts were made and accepted in the window.", &[])
            .moved(&["mistralrs_speculative_drafts_total", "mistralrs_speculative_draft_tokens_accepted_total"]),
        Preset::announced(
            "gpu:all-layers",
            "No layer is on the CPU. Absence proves it only in a whole log.",
            &[PresetLine::new(Once, r"Layers \d+-\d+: (?:cuda|metal)").matches(&["Layers 0-29: cuda[0] (24 GB)"]).never(&["Layers 0-29: cpu (24 GB)"])],
        )
        .refuted(&[r"Layers? \d+(?:-\d+)?: cpu"], &["Layers 0-29: cpu (24 GB)"], &["Layers 0-29: cuda[0] (24 GB)"]),
    ],
    forbidden: &[ForbiddenLine {
        pattern: r"(?i)dummy weights",
        why: "dummy weights: the model was never loaded",
        matches: &["Loading dummy weights."],
        never: &["Beginning dummy run.", "Dummy run completed in 0.141222981s."],
    }],
};
