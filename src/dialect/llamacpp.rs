//! llama.cpp's server: <https://github.com/ggml-org/llama.cpp/tree/master/tools/server>.

use super::Scope::Once;
use super::{
    AbsentDrafts, Cold, Dialect, ForbiddenLine, KvLine, LogGrammar, Metrics, Preset, PresetLine,
    PromptCount, PromptLogprobs, Requests, Sign, Tokenize,
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
        drafts: &["llamacpp:spec_decode_num_drafts_total"],
        draft_tokens: &["llamacpp:spec_decode_num_draft_tokens_total"],
        accepted_tokens: &["llamacpp:spec_decode_num_accepted_tokens_total"],
        accepted_per_position: &["llamacpp:spec_decode_num_accepted_tokens_per_pos_total"],
        // The totals are there with 0 when speculation is off; old builds have none of them.
        absent_drafts: AbsentDrafts::MeansNothing,
        prefix_hits: &["llamacpp:prompt_tokens_cached_total"],
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
        line: r"^(?:\d+\.\d\d\.\d{3}\.\d{3} (?P<level>[DIWE]) (?:(?P<proc>srv|cmn|slot|spec|que|main|mtmd) +)?)?(?P<msg>.*)$",
        single_rank_procs: &["", "srv", "cmn", "slot", "spec", "que", "main", "mtmd"],
        first_lines: &[
            "llama_server: initializing",
            "init: initializing",
            "^build: \\d+",
            "common_params_print_info:",
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
    kv: &[
        KvLine {
            pattern: r"llama_kv_cache(?:_unified)?: *size = *(?P<mib>[0-9.]+) MiB \( *(?P<tokens>\d+) cells.*?(?:, K \((?P<dtype>\w+)\))?",
            block_size: None,
        },
        // What a slot may hold; the cache itself is told at a higher verbosity only.
        KvLine {
            pattern: r"initializing, n_slots = (?P<slots>\d+), n_ctx_slot = (?P<tokens>\d+), kv_unified = 'false'",
            block_size: None,
        },
        KvLine {
            pattern: r"initializing, n_slots = \d+, n_ctx_slot = (?P<tokens>\d+), kv_unified = 'true'",
            block_size: None,
        },
    ],
    presets: PRESETS,
    forbidden: &[ForbiddenLine {
        pattern: "synthetic (?:speculative )?acceptance",
        why: "speculation with synthetic acceptance: the answers are not the model's",
        matches: &[
            "common_specu: synthetic speculative acceptance is enabled for benchmarking; generated output is not valid",
            "common_specu: synthetic acceptance: n_max = 4, mean length = 2.500000",
        ],
        never: &["draft acceptance = 1.00000 (  101 accepted /   101 generated), mean len =  4.88"],
    }],
};

const PRESETS: &[Preset] = &[
    Preset::announced(
        "gpu:all-layers",
        "Every layer is on the GPU: `offloaded 33/33`, not `32/33`.",
        // A regular expression cannot compare the two numbers; what is short of all is refuted below by its words.
        &[PresetLine::new(Once, r"offloaded (?:[1-9]\d*)/\d+ layers to GPU").matches(&["load_tensors: offloaded 33/33 layers to GPU"]).never(&["load_tensors: offloaded 0/33 layers to GPU"])],
    )
    .refuted(
        &[
            r"offloaded 0/\d+ layers to GPU",
            r"offloading \d+ repeating layers to GPU, 0 to CPU|no usable GPU found|compiled without (?:GPU|CUDA) support",
            r"layers? .*assigned to device CPU",
        ],
        &[
            "load_tensors: offloaded 0/33 layers to GPU",
            "warning: no usable GPU found, --gpu-layers option will be ignored",
            "load_tensors: layer  31 assigned to device CPU, is_swa = 0",
        ],
        &["load_tensors: offloaded 33/33 layers to GPU", "load_tensors: layer  31 assigned to device CUDA0, is_swa = 0"],
    ),
    Preset::announced("speculation:on", "Drafts were made and accepted in the window.", &[])
        .moved(&["llamacpp:spec_decode_num_drafts_total", "llamacpp:spec_decode_num_accepted_tokens_total"]),
    Preset::announced("speculation:off", "No draft was made in the window.", &[])
        .still(&["llamacpp:spec_decode_num_drafts_total"])
        .refuted(&["draft acceptance"], &["print_timing: id  3 | task 0 | draft acceptance = 0.36946 (   75 accepted /   203 generated), mean len =  2.47"], &["print_timing: id  3 | task 0 |    graphs reused =         50"]),
    Preset::announced(
        "speculation:draft-model",
        "A draft model is loaded and its drafts are accepted.",
        &[PresetLine::new(Once, r"loading draft model '").matches(&["common_speculative_init_result: loading draft model 'models/m.gguf'"]).never(&["load_model: loading model 'models/m.gguf'"])],
    )
    .moved(&["llamacpp:spec_decode_num_accepted_tokens_total"]),
    Preset::announced("prefix-cache:off", "No prompt token came from the cache in the window.", &[])
        .still(&["llamacpp:prompt_tokens_cached_total"]),
    Preset::announced("prefix-cache:on", "Prompt tokens came from the cache in the window.", &[])
        .moved(&["llamacpp:prompt_tokens_cached_total"]),
    Preset::announced(
        "graphs:reused",
        "Compute graphs were reused between decode steps.",
        &[PresetLine::new(Once, r"graphs reused = *[1-9]").matches(&["print_timing: id  3 | task 0 |    graphs reused =         50"]).never(&["print_timing: id  3 | task 0 |    graphs reused =          0"])],
    ),
    Preset::announced(
        "flash-attention",
        "Flash attention is on.",
        &[PresetLine::new(Once, r"flash_attn += (?:1|enabled|on)\b").matches(&["llama_context: flash_attn    = enabled"]).never(&["llama_context: flash_attn    = disabled", "llama_context: flash_attn    = 0"])],
    )
    .refuted(&[r"flash_attn += (?:0|disabled|off)\b|[Ff]lash [Aa]ttention (?:was auto, set to disabled|not supported)"], &["llama_context: flash_attn    = disabled"], &["llama_context: flash_attn    = enabled"]),
];
