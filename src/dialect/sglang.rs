//! SGLang, 0.4 to 0.5: <https://docs.sglang.ai>.

use super::Scope::{EveryRank, Once};
use super::{
    AbsentDrafts, Cold, Dialect, ForbiddenLine, KvLine, LogGrammar, Metrics, Preset, PresetLine,
    PromptCount, PromptLogprobs, Requests, Sign,
};

/// SGLang.
pub(super) static SGLANG: Dialect = Dialect {
    id: "sglang",
    name: "SGLang",
    signs: &[
        Sign::OwnedBy("sglang"),
        Sign::JsonKey {
            path: "/get_model_info",
            key: "model_path",
        },
        Sign::JsonKey {
            path: "/model_info",
            key: "model_path",
        },
        Sign::Body {
            path: "/metrics",
            text: "sglang:",
        },
    ],
    metrics: Some(Metrics {
        path: "/metrics",
        switch: "start SGLang with `--enable-metrics`",
        prompt_tokens: &["sglang:prompt_tokens_total"],
        prompt_counts: PromptCount::All,
        cached_prompt_tokens: &["sglang:cached_tokens_total"],
        generation_tokens: &["sglang:generation_tokens_total"],
        finished_requests: &["sglang:num_requests_total"],
        // It counts drafting only as verification calls; accepted tokens are gauges.
        drafts: &["sglang:spec_verify_calls_total"],
        absent_drafts: AbsentDrafts::MeansNothing,
        prefix_hits: &["sglang:cached_tokens_total"],
        preemptions: &["sglang:num_retracted_requests_total"],
        running: &["sglang:num_running_reqs"],
        waiting: &["sglang:num_queue_reqs"],
        process_start: &["process_start_time_seconds"],
        ttft: &["sglang:time_to_first_token_seconds"],
        stale_gauges: &[
            "sglang:spec_accept_length",
            "sglang:spec_accept_rate",
            "sglang:gen_throughput",
            "sglang:cache_hit_rate",
            "sglang:token_usage",
            "sglang:is_cuda_graph",
        ],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        line: r"^(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<tags>(?: (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d+)*)\] )?(?P<msg>.*)$",
        rank: &[
            // The coordinates stand in any order; the first expression that fits the order in use counts.
            r"^(?: DP(?P<dp>\d+))?(?: PP(?P<pp>\d+))?(?: ATTN_CP\d+)?(?: TP(?P<tp>\d+))?(?: MOE_DP\d+)?(?: EP(?P<ep>\d+))?$",
            r"^(?: PP(?P<pp>\d+))?(?: DP(?P<dp>\d+))?(?: TP(?P<tp>\d+))?(?: EP(?P<ep>\d+))?(?: ATTN_CP\d+)?(?: MOE_DP\d+)?$",
            r"^(?: DP(?P<dp>\d+))?(?: TP(?P<tp>\d+))?(?: EP(?P<ep>\d+))?(?: PP(?P<pp>\d+))?$",
        ],
        single_rank_procs: &[""],
        first_lines: &[
            "server_args=ServerArgs\\(",
            "Load weight begin",
            "Init torch distributed begin",
        ],
        head: r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d+)*\] ",
        version: &[],
        json: None,
    },
    requests: Requests {
        ignore_eos: Some("ignore_eos"),
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: true,
        continuous_usage: true,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::SglangGenerate,
        stall_s: 60,
    },
    kv: &[
        // `KV Cache VA upper bound` is not the real size and is not read.
        KvLine {
            pattern: r"KV (?:Cache is|cache) allocated\. (?:dtype: (?P<dtype>[\w.]+), )?#tokens: (?P<tokens>\d+)(?:, KV size: (?P<gib>[0-9.]+) GB)?",
            block_size: None,
        },
        KvLine {
            pattern: r"max_total_num_tokens=(?P<tokens>\d+)",
            block_size: None,
        },
    ],
    presets: PRESETS,
    forbidden: &[ForbiddenLine {
        pattern: "load_format=['\"]dummy|SIMULATE_ACC_(?:LEN|METHOD)|[Ss]imulat(?:e|ed|ing) acceptance",
        why: "dummy weights or simulated acceptance: the answers are not the model's",
        matches: &[
            "server_args=ServerArgs(model_path='m', load_format='dummy')",
            "SIMULATE_ACC_LEN is set to 2.5",
        ],
        never: &[
            "server_args=ServerArgs(model_path='m', load_format='auto')",
            "Decode batch, accept len: 2.66, accept rate: 0.55",
        ],
    }],
};

const DECODE: &str = "Decode batch, #running-req: 4, #token: 812, token usage: 0.01, accept len: 2.66, accept rate: 0.55, cuda graph: True, gen throughput (token/s): 210.00, #queue-req: 0";
const DECODE_EAGER: &str = "Decode batch, #running-req: 4, #token: 812, token usage: 0.01, cuda graph: False, gen throughput (token/s): 90.00, #queue-req: 0";
const TUNED: &str = "Using MoE kernel config from /c/E=64.json.";
const UNTUNED: &str = "Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /c/E=64.json";

const PRESETS: &[Preset] = &[
    Preset::announced(
        "cuda-graphs",
        "CUDA graphs were captured by every rank.",
        &[PresetLine::new(EveryRank, r"Capture (?:\w+ )?(?:CUDA|cuda) graph end").matches(&["Capture decode CUDA graph end. elapsed=12.30 s, mem usage=0.55 GB", "Capture cuda graph end. Time elapsed: 12.30 s. mem usage=0.55 GB."]).never(&["Capture cuda graph begin. This can take up to several minutes."])],
    )
    .refuted(&["Disable \\w+ CUDA graph because|disable_cuda_graph=True"], &["Disable prefill CUDA graph because the model does not support it", "server_args=ServerArgs(disable_cuda_graph=True)"], &["server_args=ServerArgs(disable_cuda_graph=False)"]),
    Preset::announced(
        "cuda-graphs:used",
        "Decode steps replay CUDA graphs, by the decode lines and the pass counter.",
        &[PresetLine::new(Once, r"Decode batch.*(?:^|, )(?:cuda|npu|cpu) graph: True").matches(&[DECODE]).never(&[DECODE_EAGER])],
    )
    .refuted(&[r"Decode batch.*, (?:cuda|npu|cpu) graph: False"], &[DECODE_EAGER], &[DECODE]),
    Preset::announced(
        "speculation:on",
        "Drafts were verified in the window.",
        &[PresetLine::new(Once, r"Decode batch.*, accept len: (?:[2-9]|1\.\d*[1-9])").matches(&[DECODE]).never(&[DECODE_EAGER, "Decode batch, #token: 1, accept len: 1.00, cuda graph: True"])],
    )
    .moved(&["sglang:spec_verify_calls_total"]),
    Preset::announced("speculation:off", "No draft was verified in the window.", &[])
        .still(&["sglang:spec_verify_calls_total"])
        .refuted(&["Decode batch.*, accept len: "], &[DECODE], &[DECODE_EAGER]),
    Preset::announced("prefix-cache:off", "No prompt token came from the cache in the window.", &[])
        .still(&["sglang:cached_tokens_total"]),
    Preset::announced("prefix-cache:on", "Prompt tokens came from the cache in the window.", &[])
        .moved(&["sglang:cached_tokens_total"]),
    Preset::announced(
        "attention:explicit",
        "The attention backend is the one that was asked for. What was asked stands in the arguments.",
        &[PresetLine::new(Once, r"attention_backend='\w+'").matches(&["server_args=ServerArgs(attention_backend='fa3', decode_attention_backend=None)"]).never(&["server_args=ServerArgs(attention_backend=None)"])],
    )
    .refuted(&[r"Attention backend not (?:explicitly )?specified|Overriding draft attention backend"], &["Attention backend not specified. Use fa3 backend by default.", "Overriding draft attention backend to flashinfer."], &["server_args=ServerArgs(attention_backend='fa3')"]),
    Preset::announced(
        "moe:tuned",
        "Experts run with a tuned configuration.",
        &[PresetLine::new(EveryRank, r"Using MoE kernel config from").matches(&[TUNED]).never(&[UNTUNED])],
    )
    .refuted(&["Using default MoE kernel config|Fallback to triton version"], &[UNTUNED, "Config file not found at /a. Fallback to triton version 3.4.0 and use MoE kernel config from /b. Performance might be sub-optimal!"], &[TUNED]),
];
