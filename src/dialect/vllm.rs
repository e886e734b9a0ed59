//! vLLM, 0.6 to 0.33: <https://docs.vllm.ai>.

use super::{
    AbsentDrafts, Cold, Dialect, ForbiddenLine, JsonKeys, KvLine, LogGrammar, Metrics, PromptCount,
    PromptLogprobs, Requests, Sign, Tokenize,
};

/// vLLM.
pub(super) static VLLM: Dialect = Dialect {
    id: "vllm",
    name: "vLLM",
    signs: &[
        Sign::OwnedBy("vllm"),
        Sign::OwnedBy("sekimon-sim"),
        Sign::Body {
            path: "/metrics",
            text: "vllm:",
        },
    ],
    metrics: Some(METRICS),
    log: LogGrammar {
        // `(Worker_TP0 pid=1) INFO 12-01 05:41:23 [file.py:123] message`; a library's print has only the process, and
        // what a launcher puts in front of all is skipped.
        line: r"^(?:\((?P<proc>[A-Za-z][\w-]*(?: rank=\d+| TP\d+)?) pid=(?P<pid>\d+)(?:, ip=[^)]*)?\) ?)?(?:.*?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d{2}-\d{2} \d{2}:\d{2}:\d{2} \[[^\]:]+:\d+\] ?)?(?P<msg>.*)$",
        rank: &[
            r"^Worker(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_PCP\d+)?(?:_TP(?P<tp>\d+))?(?:_DCP\d+)?(?:_EP(?P<ep>\d+))?$",
            r"^VllmWorker(?: rank=|-| TP|_TP)(?P<rank>\d+)$",
            // With one rank an engine the worker runs inside it and logs by its name.
            r"^EngineCore_DP(?P<dp>\d+)$",
        ],
        single_rank_procs: &["EngineCore", "EngineCore_0", "EngineCore_DP0", "Worker", ""],
        first_lines: &[
            "Initializing an? (?:V\\d )?LLM engine",
            "vLLM API server version",
            "█ +version \\d+\\.\\d+",
        ],
        head: r"\([A-Za-z][\w-]*(?: rank=\d+| TP\d+)? pid=\d+(?:, ip=[^)]*)?\) ?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d{2}-\d{2} \d{2}:\d{2}:\d{2} \[)?|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d{2}-\d{2} \d{2}:\d{2}:\d{2} \[",
        version: &[
            r"LLM engine \(v(?P<version>[^)]+)\)",
            r"API server version (?P<version>\d\S*)",
            r"█ +version (?P<version>\d+\.\d+\.\d+\S*)",
        ],
        // `--logging-config.formatter json`, from 0.33 on.
        json: Some(JsonKeys {
            message: "message",
            level: "levelname",
            proc: "processName",
            pid: "process",
        }),
    },
    requests: Requests {
        ignore_eos: Some("ignore_eos"),
        cold: Cold::Salt("cache_salt"),
        tokenize: Some(Tokenize {
            path: "/tokenize",
            text_field: "prompt",
            ids: "/tokens",
            special_tokens_field: Some("add_special_tokens"),
            messages: true,
        }),
        prompt_ids: true,
        continuous_usage: true,
        return_token_ids: Some("return_token_ids"),
        prompt_logprobs: PromptLogprobs::Vllm,
        stall_s: 60,
    },
    kv: &[
        KvLine {
            pattern: r"KV cache size: (?P<tokens>[0-9,]+) tokens(?:, Maximum concurrency for [0-9,]+ tokens per request: (?P<concurrency>[0-9.]+)x)?",
            block_size: None,
        },
        KvLine {
            pattern: r"# GPU blocks: (?P<blocks>\d+), # CPU blocks: \d+",
            block_size: Some(16),
        },
        KvLine {
            pattern: r"^Maximum concurrency for [0-9,]+ tokens per request: (?P<concurrency>[0-9.]+)x",
            block_size: None,
        },
        KvLine {
            pattern: r"Available KV cache memory: (?P<gib>[0-9.]+) GiB",
            block_size: None,
        },
        KvLine {
            pattern: r"Explicitly set \((?P<gib>[0-9.]+)/[0-9.]+\) GiB for KV cache",
            block_size: None,
        },
        KvLine {
            pattern: r"Using (?P<dtype>\S+) data type to store kv cache",
            block_size: None,
        },
    ],
    presets: super::vllm_presets::PRESETS,
    forbidden: FORBIDDEN,
};

const METRICS: Metrics = Metrics {
    path: "/metrics",
    switch: "leave out `--disable-log-stats`, and scrape the engine's own port, not a front-end's",
    prompt_tokens: &["vllm:prompt_tokens_total"],
    prompt_counts: PromptCount::All,
    cached_prompt_tokens: &["vllm:prompt_tokens_cached_total"],
    generation_tokens: &["vllm:generation_tokens_total"],
    finished_requests: &["vllm:request_success_total"],
    finished_reason_label: "finished_reason",
    drafts: &["vllm:spec_decode_num_drafts_total"],
    draft_tokens: &["vllm:spec_decode_num_draft_tokens_total"],
    accepted_tokens: &["vllm:spec_decode_num_accepted_tokens_total"],
    accepted_per_position: &["vllm:spec_decode_num_accepted_tokens_per_pos_total"],
    absent_drafts: AbsentDrafts::MeansOff,
    prefix_queries: &[
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
    ],
    prefix_hits: &[
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
    ],
    preemptions: &["vllm:num_preemptions_total"],
    running: &["vllm:num_requests_running"],
    waiting: &["vllm:num_requests_waiting"],
    process_start: &["process_start_time_seconds"],
    kv_tokens: Some(("vllm:cache_config_info", "kv_cache_size_tokens")),
    steps: &["vllm:iteration_tokens_total_count"],
    ttft: &["vllm:time_to_first_token_seconds"],
    stale_gauges: &[
        "vllm:spec_decode_draft_acceptance_rate",
        "vllm:spec_decode_efficiency",
        "vllm:gpu_prefix_cache_hit_rate",
        "vllm:avg_prompt_throughput_toks_per_s",
        "vllm:avg_generation_throughput_toks_per_s",
    ],
    ..Metrics::NONE
};

const FORBIDDEN: &[ForbiddenLine] = &[
    ForbiddenLine {
        pattern: "(?i)synthetic.{0,40}accept|rejection_sample_method['\"]?[:=] ?['\"]?synthetic",
        why: "speculation with synthetic acceptance: the answers are not the model's",
        matches: &[
            "rejection_sample_method='synthetic', synthetic_acceptance_rate=0.9",
            "non-default args: {'speculative_config': {'rejection_sample_method': 'synthetic'}}",
        ],
        never: &[
            "SpecDecoding metrics: Mean acceptance length: 2.66, Accepted: 830 tokens",
            "speculative_config=SpeculativeConfig(method='ngram', model=None, num_spec_tokens=3)",
        ],
    },
    ForbiddenLine {
        pattern: "load_format['\"]?[:=] ?(?:['\"]|LoadFormat\\.)?(?i:dummy)",
        why: "dummy weights: the model was never loaded",
        matches: &[
            "non-default args: {'model': 'm', 'load_format': 'dummy'}",
            "Initializing a V1 LLM engine (v0.32.0) with config: model='m', load_format=dummy, tensor_parallel_size=8",
        ],
        never: &[
            "load_format=auto, tensor_parallel_size=8",
            "Beginning dummy run.",
        ],
    },
    ForbiddenLine {
        pattern: "FLy verification is a lossy speculative decoding",
        why: "lossy verification: speculation changes the answers",
        matches: &[
            "FLy verification is a lossy speculative decoding method and may change outputs.",
        ],
        never: &["Loading drafter model..."],
    },
    ForbiddenLine {
        pattern: "VLLM_MOE_ROUTING_SIMULATION_STRATEGY|VLLM_TEST_FORCE_LOAD_FORMAT",
        why: "a test switch of vLLM is set: experts or weights are simulated",
        matches: &["Using VLLM_MOE_ROUTING_SIMULATION_STRATEGY=uniform_random"],
        never: &["Unknown vLLM environment variable detected: VLLM_MOE_ROUTING"],
    },
];
