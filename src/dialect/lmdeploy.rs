//! LMDeploy, 0.18: <https://lmdeploy.readthedocs.io>.

use super::{
    Cold, Dialect, LogGrammar, Metrics, Preset, PromptCount, PromptLogprobs, Requests, Sign,
};

/// LMDeploy.
pub(super) static LMDEPLOY: Dialect = Dialect {
    id: "lmdeploy",
    name: "LMDeploy",
    signs: &[
        Sign::OwnedBy("lmdeploy"),
        Sign::Body {
            path: "/metrics",
            text: "lmdeploy:",
        },
    ],
    metrics: Some(Metrics {
        switch: "start the API server with `--enable-metrics`",
        prompt_tokens: &["lmdeploy:prompt_tokens_total"],
        prompt_counts: PromptCount::All,
        cached_prompt_tokens: &["lmdeploy:cached_tokens_total"],
        generation_tokens: &["lmdeploy:generation_tokens_total"],
        finished_requests: &["lmdeploy:request_success_total"],
        finished_reason_label: "finished_reason",
        drafts: &["lmdeploy:spec_decode_num_drafts_total"],
        draft_tokens: &["lmdeploy:spec_decode_num_draft_tokens_total"],
        accepted_tokens: &["lmdeploy:spec_decode_num_accepted_tokens_total"],
        accepted_per_position: &["lmdeploy:spec_decode_num_accepted_tokens_per_pos_total"],
        prefix_hits: &["lmdeploy:cached_tokens_total"],
        running: &["lmdeploy:num_requests_running"],
        waiting: &["lmdeploy:num_requests_waiting"],
        process_start: &["process_start_time_seconds"],
        steps: &["lmdeploy:iteration_tokens_total_count"],
        ttft: &["lmdeploy:time_to_first_token_seconds"],
        stale_gauges: &[
            "lmdeploy:spec_decode_mean_accept_length",
            "lmdeploy:spec_decode_mean_accept_rate",
            "lmdeploy:prefix_cache_hit_rate",
        ],
        ..Metrics::NONE
    }),
    log: LogGrammar {
        // `2026-01-01 10:00:00,000 - lmdeploy - INFO - engine.py:10 - message`; turbomind: `[TM][INFO] message`.
        line: r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - lmdeploy - (?P<level>[A-Z]+) - [\w./]+:\d+ - |\[TM\]\[[A-Z]+\] )?(?P<msg>.*)$",
        single_rank_procs: &[""],
        first_lines: &["input backend=", "input chat_template_config="],
        head: r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - lmdeploy - [A-Z]+ - ",
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: Some("ignore_eos"),
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "LMDeploy gives logprobs of generated tokens only; use its `get_ppl` in Python",
        ),
        stall_s: 60,
    },
    kv: &[],
    presets: &[
        Preset::announced(
            "speculation:on",
            "Drafts were made and accepted in the window.",
            &[],
        )
        .moved(&[
            "lmdeploy:spec_decode_num_drafts_total",
            "lmdeploy:spec_decode_num_accepted_tokens_total",
        ])
        .refuted(
            &["speculative decoding is not supported by turbomind"],
            &["speculative decoding is not supported by turbomind"],
            &["input backend=pytorch, backend_config=PytorchEngineConfig()"],
        ),
        Preset::announced("speculation:off", "No draft was made in the window.", &[])
            .still(&["lmdeploy:spec_decode_num_drafts_total"]),
        Preset::announced(
            "prefix-cache:on",
            "Prompt tokens came from the cache in the window.",
            &[],
        )
        .moved(&["lmdeploy:cached_tokens_total"])
        .refuted(
            &["Prefix caching is not available"],
            &["Prefix caching is not available for window attention."],
            &["input backend=pytorch"],
        ),
        Preset::announced(
            "prefix-cache:off",
            "No prompt token came from the cache in the window.",
            &[],
        )
        .still(&["lmdeploy:cached_tokens_total"]),
    ],
    forbidden: &[],
};
