//! llama.cpp's server: <https://github.com/ggml-org/llama.cpp/tree/master/tools/server>.

use super::{
    AbsentDrafts, Cold, Dialect, ForbiddenLine, KvLine, LogGrammar, Metrics, PromptCount,
    PromptLogprobs, Requests, Sign, Tokenize,
};

/// llama.cpp.
pub(super) static LLAMACPP: Dialect = Dialect {
    id: "llamacpp",
    name: "llama.cpp",
    signs: &[
        Sign::OwnedBy("llamacpp"),
        Sign::ServerHeader("llama.cpp"),
        Sign::Body {
            path: "/metrics",
            text: "llamacpp:",
        },
    ],
    metrics: Some(Metrics {
        path: "/metrics",
        switch: "start llama-server with `--metrics`",
        prompt_tokens: &["llamacpp:prompt_tokens_total"],
        prompt_counts: PromptCount::ComputedOnly,
        cached_prompt_tokens: &["llamacpp:prompt_tokens_cached_total"],
        generation_tokens: &["llamacpp:tokens_predicted_total"],
        finished_requests: &[],
        finished_reason_label: "",
        drafts: &["llamacpp:spec_decode_num_drafts_total"],
        draft_tokens: &["llamacpp:spec_decode_num_draft_tokens_total"],
        accepted_tokens: &["llamacpp:spec_decode_num_accepted_tokens_total"],
        accepted_per_position: &["llamacpp:spec_decode_num_accepted_tokens_per_pos_total"],
        absent_drafts: AbsentDrafts::MeansNothing,
        prefix_queries: &[],
        prefix_hits: &["llamacpp:prompt_tokens_cached_total"],
        preemptions: &[],
        running: &["llamacpp:requests_processing"],
        waiting: &["llamacpp:requests_deferred"],
        steps: &["llamacpp:n_decode_total"],
        stale_gauges: &[
            "llamacpp:prompt_tokens_seconds",
            "llamacpp:predicted_tokens_seconds",
            "llamacpp:n_busy_slots_per_decode",
        ],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        // `0.00.453.871 W spec common_specu: message`: minutes, seconds, milli- and microseconds since the start.
        line: r"^(?:\d+\.\d\d\.\d{3}\.\d{3} (?P<level>[DIWE]) (?P<proc>\S+) +)?(?P<msg>.*)$",
        single_rank_procs: &[
            "",
            "srv",
            "cmn",
            "slot",
            "spec",
            "que",
            "common_speculative_init_result:",
        ],
        first_lines: &[
            "llama_server: initializing",
            "init: initializing",
            "^build: \\d+",
        ],
        head: r"\d+\.\d\d\.\d{3}\.\d{3} [DIWE] ",
        version: &[
            r"build_info: (?P<version>b\d+\S*)",
            r"^build: (?P<version>\d+)",
        ],
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: Some("ignore_eos"),
        cold: Cold::SwitchOff("cache_prompt"),
        tokenize: Some(Tokenize {
            path: "/tokenize",
            text_field: "content",
            ids: "/tokens",
            special_tokens_field: Some("add_special"),
            messages: false,
        }),
        prompt_ids: true,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "llama-server returns logprobs of generated tokens only (echo is ignored); use llama-perplexity on the same GGUF",
        ),
        stall_s: 120,
    },
    kv: &[KvLine {
        pattern: r"llama_kv_cache: size = *[0-9.]+ MiB \( *(?P<tokens>\d+) cells",
        block_size: None,
    }],
    presets: &[],
    forbidden: &[ForbiddenLine {
        pattern: "synthetic speculative acceptance is enabled",
        why: "speculation with synthetic acceptance: the answers are not the model's",
        matches: &[
            "common_specu: synthetic speculative acceptance is enabled for benchmarking; generated output is not valid",
        ],
        never: &["draft acceptance = 1.00000 (  101 accepted /   101 generated), mean len =  4.88"],
    }],
};
