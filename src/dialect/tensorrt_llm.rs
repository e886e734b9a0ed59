//! TensorRT-LLM's `trtllm-serve`: <https://nvidia.github.io/TensorRT-LLM/>.
//!
//! Its JSON statistics at `/metrics` are drained by each reading: nothing here asks for them.

use super::Scope::EveryRank;
use super::{
    Cold, Dialect, KvLine, LogGrammar, Metrics, Preset, PresetLine, PromptCount, PromptLogprobs,
    Requests, Sign,
};

/// TensorRT-LLM.
pub(super) static TENSORRT_LLM: Dialect = Dialect {
    id: "tensorrt_llm",
    name: "TensorRT-LLM",
    signs: &[
        Sign::OwnedBy("tensorrt_llm"),
        Sign::Body {
            path: "/prometheus/metrics",
            text: "trtllm_",
        },
    ],
    metrics: Some(Metrics {
        path: "/prometheus/metrics",
        switch: "set `return_perf_metrics: true` and `enable_iter_perf_stats: true` in the options of trtllm-serve",
        prompt_tokens: &["trtllm_prompt_tokens_total"],
        prompt_counts: PromptCount::All,
        cached_prompt_tokens: &["trtllm_prompt_cached_tokens_total"],
        generation_tokens: &["trtllm_generation_tokens_total"],
        finished_requests: &["trtllm_request_success_total"],
        finished_reason_label: "finished_reason",
        draft_tokens: &["trtllm_spec_decode_drafted_tokens_total"],
        accepted_tokens: &["trtllm_spec_decode_accepted_tokens_total"],
        accepted_per_position: &["trtllm_spec_decode_accepted_tokens_total"],
        position_label: "token_position",
        prefix_hits: &["trtllm_prompt_cached_tokens_total"],
        running: &["trtllm_num_active_requests"],
        process_start: &["process_start_time_seconds"],
        ttft: &["trtllm_time_to_first_token_seconds"],
        stale_gauges: &["trtllm_kv_cache_hit_rate", "trtllm_kv_cache_utilization"],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        line: r"^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?(?:\[TRT-LLM\] (?P<tags>(?:\[(?:RANK \d+|(?P<level>[VIWEF])|_\w+|\d+)\] ?)+))?(?P<msg>.*)$",
        rank: &[r"\[RANK (?P<rank>\d+)\]"],
        single_rank_procs: &[""],
        first_lines: &[
            r"TensorRT-?LLM version: ",
            "Starting the server|Using LLM with PyTorch backend",
        ],
        head: r"(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?\[TRT-LLM\] \[",
        version: &[r"TensorRT-?LLM version: (?P<version>\S+)"],
        json: None,
    },
    requests: Requests {
        ignore_eos: Some("ignore_eos"),
        cold: Cold::Salt("cache_salt"),
        tokenize: None,
        prompt_ids: true,
        continuous_usage: true,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "trtllm-serve gives prompt logprobs only with context logits, which this dialect does not ask for",
        ),
        stall_s: 60,
    },
    kv: &[
        KvLine {
            pattern: r"[Mm]ax tokens in paged KV cache: (?P<tokens>\d+)",
            block_size: None,
        },
        KvLine {
            pattern: r"Allocated (?P<gib>[0-9.]+) GiB for max tokens in paged KV cache \((?P<tokens>\d+)\)",
            block_size: None,
        },
    ],
    presets: &[
        Preset::announced(
            "speculation:on",
            "Draft tokens were made and accepted in the window.",
            &[],
        )
        .moved(&[
            "trtllm_spec_decode_drafted_tokens_total",
            "trtllm_spec_decode_accepted_tokens_total",
        ]),
        Preset::announced(
            "speculation:off",
            "No draft token was made in the window.",
            &[],
        )
        .still(&["trtllm_spec_decode_drafted_tokens_total"]),
        Preset::announced(
            "prefix-cache:off",
            "No prompt token came from the cache in the window.",
            &[],
        )
        .still(&["trtllm_prompt_cached_tokens_total"]),
        Preset::announced(
            "cuda-graphs",
            "CUDA graphs were captured by every rank.",
            &[
                PresetLine::new(EveryRank, r"(?:Creating|Run|Captur\w+).* CUDA graph")
                    .matches(&["Creating CUDA graph instances for 12 batch sizes."])
                    .never(&["CUDA graphs are disabled"]),
            ],
        )
        .refuted(
            &["(?i)cuda graphs? (?:is|are) (?:disabled|not supported)"],
            &["CUDA graphs are disabled"],
            &["Creating CUDA graph instances for 12 batch sizes."],
        ),
    ],
    forbidden: &[],
};
