//! How fast the witnesses read: `cargo bench --bench witness`.
//!
//! Each figure stands beside its floor, the same bytes only searched for line ends: what no reader can beat.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use sekimon::dialect::{self, Part};
use sekimon::evidence::exposition::Exposition;
use sekimon::evidence::log::LogReader;
use sekimon::evidence::log_count::Search;
use sekimon::spec::gate::Ranks;

/// Bytes of the made log: enough that the caches do not hold it.
const LOG_BYTES: usize = 100 * 1024 * 1024;

/// Repeats; the least counts, because only disturbance makes a reading slower.
const REPEATS: u32 = 5;

fn main() {
    let log = made_log();
    let lines = || memchr::memchr_iter(b'\n', &log).count();
    let floor = least(REPEATS, lines);
    println!("log, {} MB, {} lines", log.len() >> 20, lines());
    row("line ends (floor)", log.len(), floor, floor);
    let reader = LogReader::new(dialect::named("vllm").expect("vLLM is a dialect"));
    let ranks = Ranks {
        tp: 8,
        pp: 1,
        dp: 1,
        nodes: 1,
    };
    for (name, patterns) in [
        ("count one pattern", &PATTERNS[..1]),
        ("count eight patterns", &PATTERNS[..]),
    ] {
        let searches = searches(patterns);
        let took = least(REPEATS, || {
            let counted = reader.count(&log[..], &searches, &ranks);
            counted.expect("bytes can be read").counts[0].total
        });
        row(name, log.len(), took, floor);
    }
    let took = least(1, || {
        let mut records = 0u64;
        reader
            .read(&log[..], |_| records += 1)
            .expect("bytes can be read");
        records
    });
    row("parse every prefix", log.len(), took, floor);

    let text = include_str!("../fixtures/servers/vllm/metrics/vllm_ngram_metrics_after.txt");
    let floor = least(200, || memchr::memchr_iter(b'\n', text.as_bytes()).count());
    println!(
        "metrics, {} kB, {} samples",
        text.len() / 1000,
        Exposition::parse(text).len()
    );
    row("line ends (floor)", text.len(), floor, floor);
    let took = least(200, || Exposition::parse(text).len());
    row("parse", text.len(), took, floor);
}

const PATTERNS: [&str; 8] = [
    "lna2 ACTIVE",
    "Using default MoE config",
    "^Graph capturing finished in [0-9.]+ secs",
    "CUDAGraphMode\\.\\w+ is not supported",
    "synthetic.{0,40}accept",
    "KV cache size: [0-9,]+ tokens",
    "NET/Socket",
    "Falling back to V0",
];

/// Lines as a busy vLLM of 8 ranks prints them, one in a thousand of interest; the same on every machine.
fn made_log() -> Vec<u8> {
    let mut log = Vec::with_capacity(LOG_BYTES + 512);
    let mut number = 0u64;
    while log.len() < LOG_BYTES {
        let rank = number / 1000 % 8;
        let line = match number % 1000 {
            0 => format!(
                "(Worker_TP{rank} pid=4{rank}) INFO 12-01 05:40:01 [lna.py:7] lna2 ACTIVE, 16 rows\n"
            ),
            n if n % 3 == 0 => format!(
                "INFO:     127.0.0.1:{} - \"POST /v1/completions HTTP/1.1\" 200 OK\n",
                40_000 + n
            ),
            n => format!(
                "(APIServer pid=26442) INFO 12-01 05:49:10 [loggers.py:335] Engine 000: Avg prompt throughput: {n}.6 tokens/s, Avg generation throughput: 96.3 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.4%, Prefix cache hit rate: 0.0%\n"
            ),
        };
        log.extend_from_slice(line.as_bytes());
        number += 1;
    }
    log
}

fn searches(patterns: &[&str]) -> Vec<Search> {
    let compile =
        |p: &&str| Search::new(p, &[] as &[&str], Part::Message).expect("patterns are regular");
    patterns.iter().map(compile).collect()
}

fn least<T>(repeats: u32, mut work: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..repeats).map(once).min().unwrap_or_default()
}

fn row(name: &str, bytes: usize, took: Duration, floor: Duration) {
    let seconds = took.as_secs_f64();
    let rate = bytes as f64 / seconds / 1e6;
    let floors = seconds / floor.as_secs_f64();
    println!(
        "  {name:22} {:>10.3} ms {rate:>9.0} MB/s {floors:>7.1} × floor",
        seconds * 1e3
    );
}
