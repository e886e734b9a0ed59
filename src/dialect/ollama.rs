//! Ollama: <https://github.com/ollama/ollama>. It has no metrics; its runner is a child process with its own arguments.

use super::Scope::Once;
use super::{
    Cold, Dialect, KvLine, LogGrammar, Preset, PresetLine, PromptLogprobs, Requests, Sign,
};

/// Ollama.
pub(super) static OLLAMA: Dialect = Dialect {
    id: "ollama",
    name: "Ollama",
    signs: &[
        Sign::Body {
            path: "/",
            text: "Ollama is running",
        },
        Sign::JsonKey {
            path: "/api/version",
            key: "version",
        },
    ],
    metrics: None,
    log: LogGrammar {
        // `time=2026-01-01T10:00:00.000Z level=INFO source=file.go:1 msg="message" key=value`; the runner's lines are bare.
        line: r"^(?:time=\S+ level=(?P<level>[A-Z]+) source=\S+ )?(?P<msg>.*)$",
        first_lines: &["server config", "Listening on "],
        head: r"time=\d{4}-\S+ level=[A-Z]+ source=",
        version: &[r"\(version (?P<version>\d[^)]*)\)"],
        ..LogGrammar::PLAIN
    },
    requests: Requests {
        ignore_eos: None,
        cold: Cold::Prefix,
        tokenize: None,
        prompt_ids: false,
        continuous_usage: false,
        return_token_ids: None,
        prompt_logprobs: PromptLogprobs::Unavailable(
            "Ollama gives no prompt logprobs; use llama-perplexity on the same GGUF",
        ),
        // A model is loaded at its first request.
        stall_s: 300,
    },
    kv: &[KvLine {
        pattern: r"llama_kv_cache(?:_unified)?: *size = *(?P<mib>[0-9.]+) MiB \( *(?P<tokens>\d+) cells",
        block_size: None,
    }],
    presets: &[
        Preset::announced(
            "gpu:all-layers",
            "Every layer is on the GPU.",
            &[super::llamacpp::ALL_LAYERS],
        )
        .refuted(
            &[r"offloaded 0/\d+ layers to GPU|no compatible GPUs were discovered"],
            &[
                "load_tensors: offloaded 0/33 layers to GPU",
                "msg=\"no compatible GPUs were discovered\"",
            ],
            &["load_tensors: offloaded 33/33 layers to GPU"],
        ),
        Preset::announced(
            "prompt:whole",
            "No prompt was cut. Absence proves it only in a whole log.",
            &[PresetLine::new(Once, r"Listening on ")
                .matches(&["msg=\"Listening on 127.0.0.1:11434 (version 0.12.0)\""])
                .never(&["msg=\"truncating input prompt\""])],
        )
        .refuted(
            &["truncating input prompt"],
            &["msg=\"truncating input prompt\" limit=4096 prompt=5508 keep=4 new=4096"],
            &["msg=\"Listening on 127.0.0.1:11434\""],
        ),
    ],
    forbidden: &[],
};
