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
            pattern: r"llama_kv_cache(?:_unified)?: *size = *(?P<mib>[0-9.]+) MiB \( *(?P<tokens>\d+) cells",
            block_size: None,
        },
        KvLine {
            pattern: r"llama_kv_cache.*, K \((?P<dtype>\w+)\):",
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

/// All layers are on the GPU. A regular expression cannot compare two numbers, so the pairs are written out; no model
/// has more than 200 layers.
pub(super) const ALL_LAYERS: PresetLine = PresetLine::new(
    Once,
    concat!(
        "offloaded (?:",
        "1/1|2/2|3/3|4/4|5/5|6/6|7/7|8/8|9/9|10/10|11/11|12/12|13/13|14/14|15/15|16/16|17/17|18/18|19/19|",
        "20/20|21/21|22/22|23/23|24/24|25/25|26/26|27/27|28/28|29/29|30/30|31/31|32/32|33/33|34/34|35/35|",
        "36/36|37/37|38/38|39/39|40/40|41/41|42/42|43/43|44/44|45/45|46/46|47/47|48/48|49/49|50/50|51/51|",
        "52/52|53/53|54/54|55/55|56/56|57/57|58/58|59/59|60/60|61/61|62/62|63/63|64/64|65/65|66/66|67/67|",
        "68/68|69/69|70/70|71/71|72/72|73/73|74/74|75/75|76/76|77/77|78/78|79/79|80/80|81/81|82/82|83/83|",
        "84/84|85/85|86/86|87/87|88/88|89/89|90/90|91/91|92/92|93/93|94/94|95/95|96/96|97/97|98/98|99/99|",
        "100/100|101/101|102/102|103/103|104/104|105/105|106/106|107/107|108/108|109/109|110/110|111/111|",
        "112/112|113/113|114/114|115/115|116/116|117/117|118/118|119/119|120/120|121/121|122/122|123/123|",
        "124/124|125/125|126/126|127/127|128/128|129/129|130/130|131/131|132/132|133/133|134/134|135/135|",
        "136/136|137/137|138/138|139/139|140/140|141/141|142/142|143/143|144/144|145/145|146/146|147/147|",
        "148/148|149/149|150/150|151/151|152/152|153/153|154/154|155/155|156/156|157/157|158/158|159/159|",
        "160/160|161/161|162/162|163/163|164/164|165/165|166/166|167/167|168/168|169/169|170/170|171/171|",
        "172/172|173/173|174/174|175/175|176/176|177/177|178/178|179/179|180/180|181/181|182/182|183/183|",
        "184/184|185/185|186/186|187/187|188/188|189/189|190/190|191/191|192/192|193/193|194/194|195/195|",
        "196/196|197/197|198/198|199/199|200/200",
        ") layers to GPU"
    ),
)
.matches(&["load_tensors: offloaded 33/33 layers to GPU", "load_tensors: offloaded 127/127 layers to GPU"])
.never(&[
    "load_tensors: offloaded 0/33 layers to GPU",
    "load_tensors: offloaded 32/33 layers to GPU",
    "load_tensors: offloaded 3/33 layers to GPU",
    "load_tensors: offloaded 33/331 layers to GPU",
]);

const PRESETS: &[Preset] = &[
    Preset::announced(
        "gpu:all-layers",
        "Every layer is on the GPU: `offloaded 33/33`, not `32/33`.",
        &[ALL_LAYERS],
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
