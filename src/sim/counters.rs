//! The counters, under vLLM's names.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::fault::Fault;
use super::options::{Options, Path};

/// What is counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// Prompt tokens.
    pub(super) prompt: u64,
    /// Prompt tokens from the cache.
    pub(super) cached: u64,
    /// Prompt tokens looked up in the cache.
    pub(super) queries: u64,
    /// Generated tokens.
    pub(super) generated: u64,
    /// Finished requests by reason: stop, length, abort, error.
    pub(super) finished: [u64; 4],
    /// Steps with a draft.
    pub(super) drafts: u64,
    /// Draft tokens.
    pub(super) draft_tokens: u64,
    /// Accepted draft tokens by position.
    pub(super) accepted: Vec<u64>,
    /// Engine steps.
    pub(super) steps: u64,
    /// Tokens of all steps.
    pub(super) step_tokens: u64,
    /// Kernel calls of a rank: lna2, exllamav3, declined.
    pub(super) calls: Vec<[u64; 3]>,
    /// Requests running.
    pub(super) running: u64,
    /// Requests waiting.
    pub(super) waiting: u64,
    /// Times to the first token: sum and number.
    pub(super) ttft: (f64, u64),
}

/// The counters of a seat.
#[derive(Debug)]
pub(super) struct Counters {
    counts: Mutex<Counts>,
    started: f64,
    reset: Mutex<Instant>,
}

/// Names of the finish reasons, in the order of [`Counts::finished`].
pub(super) const REASONS: [&str; 4] = ["stop", "length", "abort", "error"];

impl Counters {
    /// Counters at zero.
    pub(super) fn new(options: &Options) -> Self {
        let counts = Counts {
            accepted: vec![0; options.draft.unwrap_or(0) as usize],
            calls: vec![[0; 3]; options.ranks as usize],
            ..Counts::default()
        };
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        Self {
            counts: Mutex::new(counts),
            started,
            reset: Mutex::new(Instant::now()),
        }
    }

    /// Changes them.
    pub(super) fn with(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// One decode step's kernel calls on every rank.
    pub(super) fn calls(&self, options: &Options) {
        self.with(|counts| {
            let ranks = counts.calls.len();
            for (rank, calls) in counts.calls.iter_mut().enumerate() {
                let fallen = rank + 1 == ranks && options.has(Fault::FallbackOnOneRank);
                match options.taken() {
                    Path::Lna2 if !fallen => calls[0] += 1,
                    _ => calls[1] += 1,
                }
                if options.has(Fault::ActiveButDeclined) {
                    calls[2] += 1;
                }
            }
        });
    }

    /// The text of `/metrics`.
    pub(super) fn text(&self, options: &Options) -> String {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reset = self.reset.lock().unwrap_or_else(PoisonError::into_inner);
        if options.has(Fault::CounterReset) && reset.elapsed().as_secs() >= 1 {
            *reset = Instant::now();
            let fresh = Counts {
                accepted: vec![0; counts.accepted.len()],
                calls: vec![[0; 3]; counts.calls.len()],
                running: counts.running,
                waiting: counts.waiting,
                ..Counts::default()
            };
            *counts = fresh;
        }
        Page {
            text: String::with_capacity(8192),
            model: &options.model,
            started: self.started,
        }
        .write(&counts, options)
    }
}

struct Page<'a> {
    text: String,
    model: &'a str,
    started: f64,
}

impl Page<'_> {
    fn write(mut self, counts: &Counts, options: &Options) -> String {
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
        self.head(&format!("{name}_created"), help, "gauge");
        let _ = writeln!(self.text, "vllm:{name}_created{labels} {:e}", self.started);
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
        let labels = self.labels();
        let open = labels.trim_end_matches('}').to_owned();
        for (name, help, sum, n) in [
            (
                "iteration_tokens_total",
                "Histogram of number of tokens per engine_step.",
                counts.step_tokens as f64,
                counts.steps,
            ),
            (
                "time_to_first_token_seconds",
                "Histogram of time to first token in seconds.",
                counts.ttft.0,
                counts.ttft.1,
            ),
        ] {
            self.head(name, help, "histogram");
            let _ = writeln!(
                self.text,
                "vllm:{name}_bucket{open},le=\"+Inf\"}} {n}.0\nvllm:{name}_count{labels} {n}.0\nvllm:{name}_sum{labels} {sum}"
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
