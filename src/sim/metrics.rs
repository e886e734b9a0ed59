//! The text of `/metrics`, under vLLM's names.

use std::fmt::Write as _;

use super::counters::{Counts, REASONS};
use super::options::Options;

/// The text on its way.
pub(super) struct Page<'a> {
    text: String,
    model: &'a str,
    started: f64,
}

impl<'a> Page<'a> {
    /// An empty text; `started` is Unix time in seconds.
    pub(super) fn new(model: &'a str, started: f64) -> Self {
        Self {
            text: String::with_capacity(16_384),
            model,
            started,
        }
    }

    /// Writes every family.
    pub(super) fn write(mut self, counts: &Counts, options: &Options) -> String {
        let _ = writeln!(
            self.text,
            "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {:e}",
            self.started
        );
        self.gauge(
            "num_requests_running",
            "Number of requests in model execution batches.",
            counts.running,
        );
        self.gauge(
            "num_requests_waiting",
            "Number of requests waiting to be processed.",
            counts.waiting,
        );
        self.head(
            "kv_cache_usage_perc",
            "KV-cache usage. 1 means 100 percent usage.",
            "gauge",
        );
        let (labels, held) = (
            self.labels(),
            counts.held as f64 / options.kv_window().max(1) as f64,
        );
        let _ = writeln!(self.text, "vllm:kv_cache_usage_perc{labels} {held:?}");
        self.counter(
            "prompt_tokens",
            "Number of prefill tokens processed.",
            counts.prompt,
        );
        self.counter(
            "prompt_tokens_cached",
            "Number of cached prompt tokens.",
            counts.cached,
        );
        self.counter(
            "generation_tokens",
            "Number of generation tokens processed.",
            counts.generated,
        );
        self.counter(
            "prefix_cache_queries",
            "Prefix cache queries, in terms of number of queried tokens.",
            counts.queries,
        );
        self.counter(
            "prefix_cache_hits",
            "Prefix cache hits, in terms of number of cached tokens.",
            counts.cached,
        );
        self.counter(
            "num_preemptions",
            "Cumulative number of preemption from the engine.",
            0,
        );
        self.sources(counts);
        self.speculation(counts, options);
        self.head(
            "request_success_total",
            "Count of successfully processed requests.",
            "counter",
        );
        for (reason, n) in REASONS.iter().zip(counts.finished) {
            let _ = writeln!(
                self.text,
                "vllm:request_success_total{{engine=\"0\",finished_reason=\"{reason}\",model_name=\"{}\"}} {n}.0",
                self.model
            );
        }
        self.histograms(counts);
        self.head(
            "cache_config_info",
            "Information of the LLMEngine CacheConfig",
            "gauge",
        );
        let _ = writeln!(
            self.text,
            "vllm:cache_config_info{{block_size=\"16\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",kv_cache_size_tokens=\"{}\",num_gpu_blocks=\"{}\"}} 1.0",
            options.kv_window(),
            options.kv_window() / 16
        );
        self.kernels(counts);
        self.text
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(
            self.text,
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}"
        );
    }

    fn labels(&self) -> String {
        format!("{{engine=\"0\",model_name=\"{}\"}}", self.model)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        let labels = self.labels();
        let _ = writeln!(self.text, "vllm:{name}{labels} {value}.0");
    }

    /// A counter with the `_created` gauge that prometheus_client puts beside it.
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(&format!("{name}_total"), help, "counter");
        let labels = self.labels();
        let _ = writeln!(self.text, "vllm:{name}_total{labels} {value}.0");
        self.created(name, help);
    }

    /// There only when speculation is on, as in vLLM.
    fn speculation(&mut self, counts: &Counts, options: &Options) {
        if options.drafted().is_none() {
            return;
        }
        self.counter(
            "spec_decode_num_drafts",
            "Number of spec decoding drafts.",
            counts.drafts,
        );
        self.counter(
            "spec_decode_num_draft_tokens",
            "Number of draft tokens.",
            counts.draft_tokens,
        );
        self.counter(
            "spec_decode_num_accepted_tokens",
            "Number of accepted tokens.",
            counts.accepted.iter().sum(),
        );
        self.head(
            "spec_decode_num_accepted_tokens_per_pos_total",
            "Accepted tokens per draft position.",
            "counter",
        );
        for (position, n) in counts.accepted.iter().enumerate() {
            let _ = writeln!(
                self.text,
                "vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine=\"0\",model_name=\"{}\",position=\"{position}\"}} {n}.0",
                self.model
            );
        }
    }

    fn histograms(&mut self, counts: &Counts) {
        let labels = format!("engine=\"0\",model_name=\"{}\"", self.model);
        for (name, help, histogram) in [
            (
                "iteration_tokens_total",
                "Histogram of number of tokens per engine_step.",
                &counts.iteration,
            ),
            (
                "time_to_first_token_seconds",
                "Histogram of time to first token in seconds.",
                &counts.ttft,
            ),
            (
                "inter_token_latency_seconds",
                "Histogram of inter-token latency in seconds.",
                &counts.itl,
            ),
            (
                "e2e_request_latency_seconds",
                "Histogram of e2e request latency in seconds.",
                &counts.e2e,
            ),
            (
                "request_prompt_tokens",
                "Number of prefill tokens processed.",
                &counts.request_prompt,
            ),
            (
                "request_generation_tokens",
                "Number of generation tokens processed.",
                &counts.request_generated,
            ),
        ] {
            self.head(name, help, "histogram");
            histogram.write(&format!("vllm:{name}"), &labels, &mut self.text);
            self.created(name, help);
        }
    }

    /// The gauge of a Unix time that prometheus_client puts beside counters and histograms.
    fn created(&mut self, name: &str, help: &str) {
        self.head(&format!("{name}_created"), help, "gauge");
        let labels = self.labels();
        let _ = writeln!(self.text, "vllm:{name}_created{labels} {:e}", self.started);
    }

    /// Prompt tokens by where they came from.
    fn sources(&mut self, counts: &Counts) {
        self.head(
            "prompt_tokens_by_source_total",
            "Number of prompt tokens by source.",
            "counter",
        );
        for (source, n) in [
            ("local_compute", counts.prompt.saturating_sub(counts.cached)),
            ("local_cache_hit", counts.cached),
            ("external_kv_transfer", 0),
        ] {
            let _ = writeln!(
                self.text,
                "vllm:prompt_tokens_by_source_total{{engine=\"0\",model_name=\"{}\",source=\"{source}\"}} {n}.0",
                self.model
            );
        }
    }

    fn kernels(&mut self, counts: &Counts) {
        let _ = writeln!(
            self.text,
            "# HELP exl3_moe_calls_total Calls of each MoE kernel by rank.\n# TYPE exl3_moe_calls_total counter"
        );
        for (place, kernel) in ["lna2", "exllamav3"].iter().enumerate() {
            for (rank, calls) in counts.calls.iter().enumerate() {
                let _ = writeln!(
                    self.text,
                    "exl3_moe_calls_total{{kernel=\"{kernel}\",rank=\"{rank}\"}} {}.0",
                    calls[place]
                );
            }
        }
        let _ = writeln!(
            self.text,
            "# HELP exl3_moe_declined_total Calls that the kernel declined.\n# TYPE exl3_moe_declined_total counter"
        );
        for (rank, calls) in counts.calls.iter().enumerate() {
            let _ = writeln!(
                self.text,
                "exl3_moe_declined_total{{rank=\"{rank}\",reason=\"pool\"}} {}.0",
                calls[2]
            );
        }
    }
}
