//! Text Generation Inference: <https://github.com/huggingface/text-generation-inference>.

use super::Scope::{EveryRank, Once};
use super::{
    Cold, Dialect, JsonKeys, KvLine, LogGrammar, Metrics, Preset, PresetLine, PromptCount,
    PromptLogprobs, Requests, Sign,
};

/// TGI.
pub(super) static TGI: Dialect = Dialect {
    id: "tgi",
    name: "Text Generation Inference",
    signs: &[
        Sign::JsonKey {
            path: "/info",
            key: "max_concurrent_requests",
        },
        Sign::Body {
            path: "/metrics",
            text: "tgi_",
        },
    ],
    metrics: Some(Metrics {
        switch: "scrape the router's own port",
        // Its token counts are sums of histograms over whole requests: they move when a request ends.
        prompt_tokens: &["tgi_request_input_length_sum"],
        prompt_counts: PromptCount::All,
        generation_tokens: &["tgi_request_generated_tokens_sum"],
        finished_requests: &["tgi_request_success", "tgi_request_success_total"],
        accepted_tokens: &["tgi_request_skipped_tokens_sum"],
        running: &["tgi_batch_current_size"],
        waiting: &["tgi_queue_size"],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        // `2026-01-01T10:00:00.000000Z  INFO text_generation_launcher: message`, or JSON with `--json-output`.
        line: r"^(?:\d{4}-\d\d-\d\dT\S+Z +(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) (?P<proc>[\w:]+)(?P<tags>\{[^}]*\})?: (?:[\w/.-]+: ?\d+: )?)?(?P<msg>.*)$",
        rank: &[r"rank=(?P<rank>\d+)"],
        single_rank_procs: &["", "text_generation_launcher"],
        first_lines: &["Args \\{", "Starting shard|Starting text-generation-launcher"],
        head: r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +(?:TRACE|DEBUG|INFO|WARN|ERROR) ",
        version: &[],
        // `--json-output`.
        json: Some(JsonKeys {
            message: "message",
            level: "level",
            proc: "target",
            pid: "pid",
        }),
    },
    requests: Requests {
        ignore_eos: None,
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "TGI gives prompt logprobs only on its own `/generate` with `decoder_input_details`",
        ),
        stall_s: 60,
    },
    kv: &[
        // Blocks of the attention kernel in use: flashinfer and paged differ, so the line's own size counts.
        KvLine {
            pattern: r"KV-cache blocks: (?P<tokens>\d+), size: (?P<slots>\d+)",
            block_size: None,
        },
    ],
    presets: &[
        Preset::announced(
            "attention:flashinfer",
            "Attention runs on FlashInfer.",
            &[PresetLine::new(Once, r"Using [Aa]ttention = ?'?flashinfer|Using attention flashinfer")
                .matches(&["Using attention flashinfer - Prefix caching true"])
                .never(&["Using attention flashdecoding - Prefix caching true"])],
        )
        .refuted(&["Forcing attention to", "Using attention (?:paged|flashdecoding)"], &["Forcing attention to 'flashdecoding' because head dim is not supported by flashinfer, also disabling prefix caching", "Using attention flashdecoding - Prefix caching true"], &["Using attention flashinfer - Prefix caching true"]),
        Preset::announced(
            "prefix-cache:on",
            "Prefix caching is switched on.",
            &[PresetLine::new(Once, r"Prefix caching (?i:true|1)\b").matches(&["Using attention flashinfer - Prefix caching true"]).never(&["Using attention paged - Prefix caching false"])],
        )
        .refuted(&["disabling prefix caching"], &["Forcing attention to 'flashdecoding' because head dim is not supported by flashinfer, also disabling prefix caching"], &["Using attention flashinfer - Prefix caching true"]),
        Preset::announced(
            "cuda-graphs",
            "CUDA graphs are on.",
            &[PresetLine::new(EveryRank, r"Cuda Graphs are enabled for sizes").matches(&["Cuda Graphs are enabled for sizes [32, 16, 8, 4, 2, 1]"]).never(&["Cuda Graphs are disabled (CUDA_GRAPHS=None)."])],
        )
        .refuted(&["Cuda Graphs are disabled"], &["Cuda Graphs are disabled (CUDA_GRAPHS=None)."], &["Cuda Graphs are enabled for sizes [32, 16, 8, 4, 2, 1]"]),
        Preset::announced(
            "speculation:on",
            "Speculated tokens were accepted in the window.",
            &[PresetLine::new(Once, r"Using speculation \w+ with \d+ input ids").matches(&["Using speculation medusa with 2 input ids."]).never(&["Using attention flashinfer - Prefix caching true"])],
        )
        .moved(&["tgi_request_skipped_tokens_sum"]),
        Preset::announced(
            "quantization:native",
            "No layer fell back to weight-only arithmetic. Absence proves it only in a whole log.",
            &[],
        )
        .refuted(&["GPU does not support FP8, using Marlin FP8 kernel"], &["GPU does not support FP8, using Marlin FP8 kernel"], &["Using FBGEMM fp8 optimized kernels"]),
    ],
    forbidden: &[],
};
