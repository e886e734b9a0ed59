//! The log, in vLLM's form.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::counters::Counts;
use super::fault::Fault;
use super::options::{Options, Path};

/// The log of a seat.
#[derive(Debug)]
pub(super) struct LogFile {
    sink: Mutex<Sink>,
}

#[derive(Debug)]
struct Sink {
    out: Out,
    rotate: bool,
    rotated: Instant,
}

#[derive(Debug)]
enum Out {
    Nowhere,
    Standard,
    File(File, PathBuf),
}

/// How often the faulty log is rotated.
const ROTATION: Duration = Duration::from_secs(1);

impl LogFile {
    /// Opens the log.
    pub(super) fn open(options: &Options) -> std::io::Result<Self> {
        let out = match &options.log {
            _ if options.has(Fault::LogAbsent) => Out::Nowhere,
            None => Out::Standard,
            Some(path) => Out::File(
                OpenOptions::new().create(true).append(true).open(path)?,
                path.clone(),
            ),
        };
        let sink = Sink {
            out,
            rotate: options.has(Fault::LogRotated),
            rotated: Instant::now(),
        };
        Ok(Self {
            sink: Mutex::new(sink),
        })
    }

    /// One line of one process.
    pub(super) fn line(&self, process: &str, level: &str, place: &str, message: &str) {
        let time = jiff::Timestamp::now().strftime("%m-%d %H:%M:%S");
        let line = format!(
            "({process} pid={}) {level} {time} [{place}] {message}\n",
            std::process::id()
        );
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write(line.as_bytes());
    }

    /// The lines of a start.
    pub(super) fn start(&self, options: &Options) {
        let api = |place: &str, message: &str| self.line("APIServer", "INFO", place, message);
        let engine = |place: &str, message: &str| self.line("EngineCore", "INFO", place, message);
        api("api_utils.py:347", "version 0.32.0+sekimon");
        api(
            "api_utils.py:286",
            &format!(
                "non-default args: {{'host': '127.0.0.1', 'model': '{}', 'tensor_parallel_size': {}}}",
                options.model, options.ranks
            ),
        );
        let speculation = match options.draft {
            Some(k) => {
                format!("SpeculativeConfig(method='ngram', model=None, num_spec_tokens={k})")
            }
            None => "None".into(),
        };
        engine(
            "core.py:133",
            &format!(
                "Initializing a V1 LLM engine (v0.32.0+sekimon) with config: model='{}', speculative_config={speculation}, max_seq_len={}, tensor_parallel_size={}",
                options.model, options.max_model_len, options.ranks
            ),
        );
        self.kernels(options);
        self.line(
            "Worker_TP0",
            "INFO",
            "gpu_worker.py:773",
            "Available KV cache memory: 6.42 GiB",
        );
        engine(
            "kv_cache_utils.py:1147",
            &format!(
                "GPU KV cache size: {} tokens, Maximum concurrency for {} tokens per request: {:.2}x",
                thousands(options.kv_window()),
                thousands(options.max_model_len),
                options.kv_window() as f64 / options.max_model_len as f64
            ),
        );
        self.line(
            "Worker_TP0",
            "INFO",
            "model_runner.py:1163",
            "Graph capturing finished in 1 secs, took 0.10 GiB",
        );
        api("api_server.py:90", "Application startup complete.");
    }

    /// The ACTIVE line of each rank whose kernel is in use.
    fn kernels(&self, options: &Options) {
        if options.has(Fault::SilentFallback) {
            return;
        }
        for rank in 0..options.ranks {
            let last = rank + 1 == options.ranks;
            if last && options.has(Fault::FallbackOnOneRank) {
                continue;
            }
            let name = match options.path {
                Path::Lna2 => "F3 LNA2",
                Path::Exllamav3 => "exllamav3",
            };
            self.line(
                &format!("Worker_TP{rank}"),
                "INFO",
                "exl3.py:211",
                &format!("{name} MoE kernel ACTIVE"),
            );
        }
    }
}

/// vLLM's line of throughput between two counts.
pub(super) fn throughput(before: &Counts, now: &Counts, passed: Duration, window: u64) -> String {
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / passed.as_secs_f64();
    let looked_up = now.queries.max(1) as f64;
    let held = now.held as f64 * 100.0 / window.max(1) as f64;
    format!(
        "Engine 000: Avg prompt throughput: {:.1} tokens/s, Avg generation throughput: {:.1} tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {held:.1}%, Prefix cache hit rate: {:.1}%",
        rate(before.prompt, now.prompt),
        rate(before.generated, now.generated),
        now.running,
        now.waiting,
        now.cached as f64 * 100.0 / looked_up
    )
}

/// vLLM's line of speculation between two counts; none when nothing was drafted.
pub(super) fn speculation(before: &Counts, now: &Counts, passed: Duration) -> Option<String> {
    let drafts = now.drafts.checked_sub(before.drafts).filter(|n| *n > 0)? as f64;
    let drafted = now.draft_tokens.saturating_sub(before.draft_tokens);
    let places = now.accepted.iter().zip(&before.accepted);
    let places: Vec<u64> = places.map(|(n, b)| n.saturating_sub(*b)).collect();
    let accepted: u64 = places.iter().sum();
    let rates: Vec<String> = places
        .iter()
        .map(|n| format!("{:.3}", *n as f64 / drafts))
        .collect();
    let seconds = passed.as_secs_f64();
    Some(format!(
        "SpecDecoding metrics: Mean acceptance length: {:.2}, Accepted throughput: {:.2} tokens/s, Drafted throughput: {:.2} tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {}, Avg Draft acceptance rate: {:.1}%",
        1.0 + accepted as f64 / drafts,
        accepted as f64 / seconds,
        drafted as f64 / seconds,
        rates.join(", "),
        accepted as f64 * 100.0 / drafted.max(1) as f64
    ))
}

impl Sink {
    fn write(&mut self, line: &[u8]) {
        if self.rotate && self.rotated.elapsed() > ROTATION {
            self.rotated = Instant::now();
            self.turn();
        }
        // A log that cannot be written is the disk's trouble, not the answer's.
        let _ = match &mut self.out {
            Out::Nowhere => Ok(()),
            Out::Standard => std::io::stdout().lock().write_all(line),
            Out::File(file, _) => file.write_all(line),
        };
    }

    fn turn(&mut self) {
        if let Out::File(file, path) = &mut self.out {
            let _ = std::fs::rename(&*path, path.with_extension("old"));
            if let Ok(new) = OpenOptions::new().create(true).append(true).open(&*path) {
                *file = new;
            }
        }
    }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
