//! vLLM's known proofs of path.
//!
//! `once` lines: up to 0.19 a line that is printed "once" is printed once by every process; from 0.20 on only by local
//! rank 0 of each node, and a few only once in all (vLLM pull request 37568). Before its groups exist a worker prints
//! even those: a scope is what must be there at least.

use super::Scope::{EveryNode, EveryRank, Once};
use super::{Preset, PresetLine};

/// A line of `info_once` or `warning_once` with the default scope.
const fn once(pattern: &'static str) -> PresetLine {
    PresetLine::new(EveryRank, pattern).later(0, 20, EveryNode)
}

const AUTO: &str =
    "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'FLASH_ATTN'].";
const FA: &str =
    "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER'].";
const TRITON: &str =
    "Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN'].";
const MOE_DEFAULT: &str = "Using default MoE config. Performance might be sub-optimal! Config file not found at /opt/E=64,N=768.json";
const MARLIN: &str = "Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN'].";
const EMULATED: &str =
    "Using NvFp4EmulationTritonExperts MOE backend. This will dequantize weights on the fly";
const CUTLASS: &str = "Using FLASHINFER_CUTLASS NvFp4 MoE backend out of potential backends: ['FLASHINFER_CUTLASS', 'MARLIN'].";
const CAPTURED: &str = "Graph capturing finished in 23 secs, took 0.55 GiB";
const DEGRADED: &str = "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with FlashInferBackend backend (support: NEVER); setting cudagraph_mode=PIECEWISE";
const EAGER: &str = "Enforce eager set, disabling torch.compile and CUDAGraphs.";
const V1: &str = "Initializing a V1 LLM engine (v0.32.0) with config: model='m'";

/// Another attention backend than the one that is asked for.
macro_rules! attention {
    ($name:literal, $about:literal, $lines:expr, $not:literal, [$($red:expr),+], [$($green:expr),+]) => {
        Preset::announced($name, $about, $lines).refuted(&[$not], &[$($red),+], &[$($green),+])
    };
}

/// Every preset of vLLM.
pub(super) const PRESETS: &[Preset] = &[
    attention!(
        "attention:flash_attn",
        "Attention runs on FlashAttention.",
        &[
            once(r"Using (?:AttentionBackendEnum\.)?FLASH_ATTN (?:attention )?backend").matches(&[FA, "Using AttentionBackendEnum.FLASH_ATTN backend."]).never(&[AUTO, "Using FLASH_ATTN_MLA attention backend out of potential backends: []."]),
            once(r"Using Flash ?Attention backend").matches(&["Using Flash Attention backend on V1 engine.", "Using Flash Attention backend."]).never(&["Cannot use FlashAttention-2 backend for Volta and Turing GPUs."]),
        ],
        r"Using (?:FLASHINFER|TRITON_ATTN|XFORMERS|TORCH_SDPA|FLEX_ATTENTION) attention backend|Cannot use FlashAttention-2 backend|Using (?:XFormers|FlashInfer|Triton) backend",
        [AUTO, "Cannot use FlashAttention-2 backend for Volta and Turing GPUs."],
        [FA, "Using FlashInfer for top-p & top-k sampling."]
    ),
    attention!(
        "attention:flashinfer",
        "Attention runs on FlashInfer.",
        &[
            once(r"Using (?:AttentionBackendEnum\.)?FLASHINFER (?:attention )?backend").matches(&[AUTO]).never(&[FA, "Using FLASHINFER_MLA attention backend out of potential backends: []."]),
            once(r"Using FlashInfer backend").matches(&["Using FlashInfer backend on V1 engine."]).never(&["Using FlashInfer for top-p & top-k sampling."]),
        ],
        r"Using (?:FLASH_ATTN|TRITON_ATTN|XFORMERS|TORCH_SDPA|FLEX_ATTENTION) attention backend|Using (?:Flash Attention|XFormers|Triton) backend",
        [FA],
        [AUTO]
    ),
    attention!(
        "attention:triton",
        "Attention runs on Triton.",
        &[
            once(r"Using (?:AttentionBackendEnum\.)?TRITON_ATTN(?:_VLLM_V1)? (?:attention )?backend").matches(&[TRITON]).never(&[FA]),
            once(r"Using Triton backend on V1 engine").matches(&["Using Triton backend on V1 engine."]).never(&["Using Triton MLA backend on V1 engine."]),
        ],
        r"Using (?:FLASH_ATTN|FLASHINFER|XFORMERS|TORCH_SDPA|FLEX_ATTENTION) attention backend",
        [FA],
        [TRITON]
    ),
    attention!(
        "attention:flashmla",
        "Latent attention runs on FlashMLA.",
        &[
            once(r"Using (?:AttentionBackendEnum\.)?FLASHMLA(?:_SPARSE)? (?:attention )?backend").matches(&["Using FLASHMLA attention backend out of potential backends: ['FLASHMLA', 'TRITON_MLA']."]).never(&[FA]),
            once(r"Using FlashMLA backend").matches(&["Using FlashMLA backend on V1 engine."]).never(&["Using Triton MLA backend on V1 engine."]),
        ],
        r"Using (?:TRITON_MLA|CUTLASS_MLA|FLASHINFER_MLA|FLASH_ATTN_MLA) attention backend|Using (?:Triton|Cutlass) MLA backend",
        ["Using Triton MLA backend on V1 engine."],
        ["Using FlashMLA backend on V1 engine."]
    ),
    Preset::announced(
        "attention:explicit",
        "The attention backend is the one that was asked for by name: vLLM raises an error where it cannot be had.",
        &[PresetLine::new(EveryRank, r"Using AttentionBackendEnum\.[A-Z0-9_]+ backend").since(0, 15).matches(&["Using AttentionBackendEnum.FLASH_ATTN backend."]).never(&[FA])],
    )
    .refuted(&[r"attention backend out of potential backends"], &[FA], &["Using AttentionBackendEnum.FLASH_ATTN backend."]),
    Preset::announced(
        "moe:cutlass",
        "Experts run on a CUTLASS kernel.",
        &[once(r"Using '?(?:\w+_)?CUTLASS\w*'? (?:\w+ )?MoE backend").matches(&[CUTLASS, "Using 'CUTLASS' Fp8 MoE backend out of potential backends: []."]).never(&[MARLIN])],
    )
    .refuted(&[r"Using '?(?:MARLIN|TRITON|DEEPGEMM|AITER)\w*'? (?:\w+ )?MoE backend", "EmulationTritonExperts"], &[MARLIN, EMULATED], &[CUTLASS]),
    Preset::announced(
        "moe:deepgemm",
        "Experts run on DeepGEMM.",
        &[once(r"Using '?(?:BATCHED_)?DEEPGEMM'? (?:\w+ )?MoE backend").matches(&["Using DEEPGEMM Fp8 MoE backend out of potential backends: ['DEEPGEMM', 'TRITON']."]).never(&[CUTLASS])],
    )
    .refuted(&[r"Using '?(?:MARLIN|TRITON|\w*CUTLASS|AITER)'? (?:\w+ )?MoE backend", "DeepGemm disabled"], &[MARLIN, CUTLASS, "DeepGemm disabled due to unaligned problem size: M=7"], &["Using DEEPGEMM Fp8 MoE backend out of potential backends: ['DEEPGEMM', 'TRITON']."]),
    Preset::announced(
        "moe:marlin",
        "Experts run on Marlin.",
        &[once(r"Using '?(?:BATCHED_)?MARLIN'? (?:\w+ )?MoE backend").matches(&[MARLIN]).never(&[CUTLASS])],
    )
    .refuted(&[r"Using '?(?:TRITON|\w*CUTLASS|DEEPGEMM|AITER)'? (?:\w+ )?MoE backend"], &[CUTLASS], &[MARLIN]),
    Preset::announced(
        "moe:triton",
        "Experts run on the Triton kernel.",
        &[once(r"Using '?(?:BATCHED_)?TRITON'? (?:\w+ )?MoE backend").matches(&["Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']."]).never(&[MARLIN])],
    )
    .refuted(&[r"Using '?(?:MARLIN|\w*CUTLASS|DEEPGEMM|AITER)'? (?:\w+ )?MoE backend", "EmulationTritonExperts"], &[MARLIN, EMULATED], &["Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']."]),
    Preset::announced(
        "moe:tuned",
        "Experts run with a tuned tile configuration, not with the default one.",
        &[PresetLine::new(EveryRank, r"Using configuration from \S+ for MoE layer").later(0, 20, Once).matches(&["Using configuration from /opt/configs/E=64,N=768.json for MoE layer."]).never(&["Using configuration from /opt/N=1.json for W8A8 Block FP8 kernel."])],
    )
    .refuted(&[r"Using default MoE (?:kernel )?config"], &[MOE_DEFAULT], &["Using configuration from /opt/configs/E=64,N=768.json for MoE layer."]),
    Preset::announced(
        "fp8-block:tuned",
        "Dense FP8 block kernels run with a tuned configuration.",
        &[PresetLine::new(EveryRank, r"Using configuration from \S+ for W8A8 Block FP8 kernel").later(0, 20, Once).matches(&["Using configuration from /opt/N=1.json for W8A8 Block FP8 kernel."]).never(&["Using configuration from /opt/configs/E=64,N=768.json for MoE layer."])],
    )
    .refuted(&["Using default W8A8 Block FP8 kernel config"], &["Using default W8A8 Block FP8 kernel config. Performance might be sub-optimal! Config file not found at /opt/N=1.json"], &["Using configuration from /opt/N=1.json for W8A8 Block FP8 kernel."]),
    Preset::announced(
        "quantization:native",
        "No layer fell back to weight-only or emulated arithmetic. Absence proves it only in a whole log.",
        &[once(r"Selected \w+ for \w+|Using \w+ for (?:GPTQMarlin|AutoAWQMarlin|CompressedTensors)\w*").matches(&["Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8"]).never(&["Selected device: cuda"])],
    )
    .refuted(
        &[
            r"does not have native support for FP\d computation",
            r"falling back to the slow and unoptimized emulation",
            r"Falling back to unoptimized AWQ kernels|awq quantization is not fully optimized yet|so forcing awq",
            r"This will dequantize weights on the fly",
            r"no \S+ kernel exists|but the kernel couldn't be implemented",
        ],
        &[
            "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel.",
            "NVFP4 linear falling back to the slow and unoptimized emulation backend",
            "Detected that the model can run with awq_marlin, however you specified quantization=awq explicitly, so forcing awq. Use quantization=awq_marlin for faster inference",
            EMULATED,
            "--linear-backend=machete was requested, but no machete kernel exists for this scheme; falling back",
        ],
        &["Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8"],
    ),
    Preset::announced(
        "cuda-graphs",
        "CUDA graphs were captured and their mode was not lowered. That decoding uses them is proven by `cuda-graphs:used`.",
        &[once(r"Graph capturing finished in [0-9.]+ secs").matches(&[CAPTURED]).never(&["Skipping CUDA graph capture. To turn on CUDA graph capture, ensure `enforce_eager` is off"])],
    )
    .refuted(
        &[
            r"(?:CUDAGraphMode\.\w+|FULL\w*) is not supported with .+[Ss]etting cudagraph_mode=",
            "Skipping CUDA graph capture|Cudagraph is disabled under eager mode|Enforce eager set",
            r"Overriding (?:cudagraph_mode from \S+ )?to \S*(?:NONE|PIECEWISE)|Truncating max_cudagraph_capture_size",
        ],
        &[DEGRADED, EAGER, "Cudagraph mode FULL requires piecewise capture, but the loaded model provides neither. Overriding to NONE.", "Truncating max_cudagraph_capture_size to 4"],
        &[CAPTURED],
    ),
    Preset::announced(
        "cuda-graphs:used",
        "Decode steps replay CUDA graphs (start vLLM with `--cudagraph-metrics`).",
        &[PresetLine::new(Once, r"^\|?\s*\d+\s*\|\s*\d+\s*\|\s*\d+\s*\|\s*(?:FULL|PIECEWISE)\s*\|\s*[1-9]\d*").matches(&["| 4 | 4 | 0 | FULL | 1024 |", "16               | 16            | 0            | PIECEWISE    | 12"]).never(&["| 9 | 9 | 0 | NONE | 7 |"])],
    )
    .refuted(&[r"^\|?\s*\d+\s*\|\s*\d+\s*\|\s*\d+\s*\|\s*NONE\s*\|\s*[1-9]\d*"], &["| 9 | 9 | 0 | NONE | 7 |"], &["| 4 | 4 | 0 | FULL | 1024 |", "| 9 | 9 | 0 | NONE | 0 |"]),
    Preset::announced(
        "model-runner:v2",
        "Model Runner V2 serves; the source file of a shared line is the only sign that CUDA workers print.",
        &[PresetLine::new(EveryRank, r"\[(?:\S*/)?model_runner\.py:\d+\] Graph capturing finished").in_record().since(0, 33).matches(&["(Worker_TP0 pid=1) INFO 12-01 05:41:23 [model_runner.py:1163] Graph capturing finished in 23 secs, took 0.55 GiB"]).never(&["(Worker_TP0 pid=1) INFO 12-01 05:41:23 [gpu_model_runner.py:6516] Graph capturing finished in 23 secs, took 0.55 GiB"])],
    )
    .refuted(&["using the V1 model runner instead"], &["Model Runner V2 requires Triton; using the V1 model runner instead.", "Model Runner V2 does not yet support pooling; using the V1 model runner instead."], &[CAPTURED]),
    Preset::announced(
        "engine:v1",
        "The V1 engine serves.",
        &[PresetLine::new(Once, r"Initializing a V1 LLM engine").since(0, 8).matches(&[V1]).never(&["Initializing a V0 LLM engine (v0.9.2) with config: model='m'"])],
    )
    .refuted(&[r"Falling back to V0\b", r"Initializing an? (?:V0 )?LLM engine"], &["Compute Capability < 8.0 is not supported by the V1 Engine. Falling back to V0.", "Initializing a V0 LLM engine (v0.9.2) with config: model='m'", "Initializing an LLM engine (v0.6.6) with config: model='m'"], &[V1]),
    Preset::announced("speculation:on", "Drafts were made and accepted in the window.", &[])
        .moved(&["vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_accepted_tokens_total"])
        .refuted(&["num_speculative_tokens_per_batch_size .*[Dd]isabl|Disabling num_speculative_tokens"], &["Dynamic speculative decoding is not supported here. Disabling num_speculative_tokens_per_batch_size for this run"], &["Loading drafter model..."]),
    Preset::announced("speculation:off", "No draft was made in the window; without speculation vLLM has no such counters.", &[])
        .still(&["vllm:spec_decode_num_drafts_total"])
        .refuted(&["Loading drafter model|Detected MTP model|Detected EAGLE model", "SpecDecoding metrics"], &["Loading drafter model...", "SpecDecoding metrics: Mean acceptance length: 2.66"], &["speculative_config=None"]),
    Preset::announced("prefix-cache:on", "The prefix cache answered tokens in the window.", &[])
        .moved(&["vllm:prefix_cache_hits_total"])
        .refuted(&["Disabling prefix caching"], &["Disabling prefix caching: model has non-causal attention layers."], &["Prefix cache hit rate: 0.0%"]),
    Preset::announced("prefix-cache:off", "The prefix cache answered nothing in the window.", &[])
        .still(&["vllm:prefix_cache_hits_total"]),
    Preset::announced(
        "prefill:chunked",
        "Long prompts are computed in chunks.",
        &[once(r"Chunked prefill is enabled with max_num_batched_tokens=\d+").matches(&["Chunked prefill is enabled with max_num_batched_tokens=8192."]).never(&["Disabling chunked prefill because the model does not support it"])],
    )
    .refuted(&["Disabling chunked prefill"], &["Disabling chunked prefill because the model does not support it"], &["Chunked prefill is enabled with max_num_batched_tokens=8192."]),
    Preset::announced(
        "kv:fp8",
        "The KV cache was asked to store fp8. What it stores is proven by the KV arithmetic only.",
        &[once(r"Using fp8\S* data type to store kv cache").matches(&["Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance."]).never(&["Using bfloat16 data type to store kv cache"])],
    )
    .refuted(&[r"Using KV cache scaling factor 1\.0 for fp8"], &["Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify that k/v_scale scaling factors are set"], &["Using fp8 data type to store kv cache."]),
    Preset::announced(
        "plugin:platform",
        "The platform plugin is active.",
        &[PresetLine::new(EveryRank, r"Platform plugin \S+ is activated").matches(&["Platform plugin exl3 is activated"]).never(&["Available plugins for group vllm.platform_plugins:"])],
    )
    .refuted(&["Failed to load plugin", "No platform detected"], &["Failed to load plugin exl3", "No platform detected, vLLM is running on UnspecifiedPlatform"], &["Platform plugin exl3 is activated"]),
    Preset::announced(
        "plugin:loaded",
        "A general plugin was loaded by each process (`VLLM_PLUGINS` must be set, or vLLM prints nothing).",
        &[PresetLine::new(EveryRank, r"Loading plugin \S+").matches(&["Loading plugin exl3"]).never(&["Available plugins for group vllm.general_plugins:", "Failed to load plugin exl3"])],
    )
    .refuted(&["Failed to load plugin", "has no vLLM implementation, falling back to Transformers"], &["Failed to load plugin exl3", "FooForCausalLM has no vLLM implementation, falling back to Transformers implementation"], &["Loading plugin exl3"]),
    Preset::announced(
        "nccl:fast",
        "NCCL does not talk over TCP sockets (start with `NCCL_DEBUG=INFO`).",
        &[PresetLine::new(Once, r"NCCL INFO .*(?:NET/(?:IB|Plugin|AWS|OFI)|via (?:P2P|SHM|NVLS)|NVLS)").matches(&["host:12:34 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "host:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB"]).never(&["host:12:34 [0] NCCL INFO NET/Socket : Using [0]eth0"])],
    )
    .refuted(&["NCCL INFO .*(?:via NET/Socket|Using network Socket|NET/Socket : Using)"], &["host:12:34 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"], &["host:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB"]),
    Preset::announced(
        "all-reduce:custom",
        "The custom all-reduce kernel was not switched off. Absence proves it only in a whole log.",
        &[PresetLine::new(Once, r"Using .*CustomAllreduce.* all-reduce backends|Registering \d+ cuda graph addresses").matches(&["Registering 1932 cuda graph addresses"]).never(&["Custom allreduce is disabled because your platform lacks GPU P2P capability"])],
    )
    .refuted(&["Custom allreduce is disabled because"], &["Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed."], &["Registering 1932 cuda graph addresses"]),
    Preset::announced(
        "sampler:flashinfer",
        "Sampling runs on FlashInfer.",
        &[once("Using FlashInfer for top-p & top-k sampling").matches(&["Using FlashInfer for top-p & top-k sampling."]).never(&["FlashInfer top-p/top-k sampling unavailable, falling back to PyTorch"])],
    )
    .refuted(&["FlashInfer top-p/top-k sampling unavailable"], &["FlashInfer top-p/top-k sampling unavailable, falling back to PyTorch"], &["Using FlashInfer for top-p & top-k sampling."]),
    Preset::announced(
        "compile:fresh",
        "The model was compiled by this boot and not taken from an old cache.",
        &[PresetLine::new(EveryRank, r"torch\.compile (?:takes|took) [0-9.]+ s in total|saved AOT compiled function").matches(&["torch.compile takes 41.20 s in total", "[backbone] saved AOT compiled function to /c/model"]).never(&["Directly load AOT compilation from path /c/model"])],
    )
    .refuted(&["Directly load AOT compilation from path", "Enforce eager set"], &["Directly load AOT compilation from path /c/model", EAGER], &["torch.compile takes 41.20 s in total"]),
    Preset::announced(
        "async-scheduling",
        "Scheduling overlaps with execution.",
        &[once("Asynchronous scheduling is enabled").matches(&["Asynchronous scheduling is enabled."]).never(&["Async scheduling not supported with ngram-based speculative decoding and will be disabled."])],
    )
    .refuted(&["Async scheduling (?:will be|is) disabled|Async scheduling not supported"], &["Async scheduling not supported with ngram-based speculative decoding and will be disabled.", "Async scheduling is disabled because the V1 model runner does not support it with draft models."], &["Asynchronous scheduling is enabled."]),
    Preset::announced(
        "environment:known",
        "vLLM reads every `VLLM_` variable that is set (from 0.16 on it says which it does not).",
        &[PresetLine::new(Once, "Initializing a V1 LLM engine").since(0, 16).matches(&[V1]).never(&[EAGER])],
    )
    .refuted(&["Unknown vLLM environment variable detected"], &["Unknown vLLM environment variable detected: VLLM_ATTENTION_BACKEND"], &[V1]),
];
