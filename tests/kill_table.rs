//! The kill table: every kind of check on the embedded seat, healthy and under each fault that it must fall to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use seat::Run;

/// Cases of the gate, in the order of the table.
const CASES: &[&str] = &[
    "throughput/code/1",
    "needle",
    "perplexity/en",
    "accept_length/code/1",
    "agreement/en/1",
    "repeat/en/1",
    "greedy_audit/en/1",
    "essays/essays/1",
    "length/en/1",
];

/// Faults, with the kinds that each must make fall; it may make others fall as well.
const FAULTS: &[(&str, &[&str])] = &[
    ("zero-logprobs", &["perplexity"]),
    ("shifted-logprobs", &["perplexity"]),
    ("order-dependent-logprobs", &["perplexity"]),
    ("prompt-truncated", &["needle"]),
    ("prompt-truncated-hidden", &["needle"]),
    ("prefix-cache", &["needle"]),
    ("wrong-answer", &["needle"]),
    (
        "repetition-loop",
        &["throughput", "accept_length", "essays"],
    ),
    ("accept-collapse", &["accept_length"]),
    ("spec-off", &["accept_length"]),
    ("bundled-chunks", &["throughput"]),
    ("early-stop", &["throughput", "length"]),
    ("think-only", &["essays"]),
    ("lossy-spec", &["agreement", "greedy_audit"]),
    ("unstable", &["repeat"]),
    ("silent-fallback", &["throughput", "needle", "essays"]),
];

fn gate(fault: &str) -> String {
    let fault = match fault {
        "" => String::new(),
        fault => format!(", \"--fault\", \"{fault}\""),
    };
    let build = |name: &str, flags: &str| {
        format!(
            "[builds.{name}]\nstart = [\"sekimon\", \"sim\", \"--port\", \"{{port}}\", \"--path\", \"lna2\", \"--step-ms\", \"2\", {flags}]\nready = \"30s\"\n\n"
        )
    };
    let spec = "\"--draft-k\", \"3\"";
    let no_spec = "\"--no-spec\"";
    HEAD.to_owned()
        + &build("incumbent", spec)
        + &build("auditor", no_spec)
        + &build("candidate-spec-off", &format!("{no_spec}{fault}"))
        + &build("candidate", &format!("{spec}{fault}"))
        + CHECKS
}

const HEAD: &str = r#"
title = "every kind"

[seat]
url      = "http://127.0.0.1:0"
model    = "sekimon-ngram"
dialect  = "vllm"
together = true

[paths.lna2]
announced = { line = 'F3 LNA2 MoE kernel ACTIVE' }
moved     = { counter = 'exl3_moe_calls_total{kernel="lna2"}' }

"#;

const CHECKS: &str = r#"
[[check]]
kind       = "throughput"
builds     = ["incumbent", "candidate"]
path       = "lna2"
workloads  = ["code"]
streams    = [1]
max_tokens = 96
repeats    = 5
expect     = { decode_tok_s = ">= 0.4 x incumbent" }

[[check]]
kind   = "needle"
builds = ["candidate"]
path   = "lna2"
tokens = 12_000
expect = { answer = "is exact", needle_prompt_tokens = "= 12_000 tokens", needle_ttft_s = "<= 20 s" }

[[check]]
kind    = "perplexity"
builds  = ["auditor", "candidate-spec-off"]
path    = "lna2"
corpora = ["en"]
window  = 512
windows = 6
expect  = { ppl = "within 0.02 of auditor" }

[[check]]
kind       = "accept_length"
builds     = ["candidate"]
path       = "lna2"
workloads  = ["code"]
streams    = [1]
max_tokens = 96
repeats    = 5
expect     = { accept_length = ">= 2.0" }

[[check]]
kind       = "agreement"
builds     = ["incumbent", "candidate"]
path       = "lna2"
workloads  = ["en"]
requests   = 2
max_tokens = 40
repeats    = 2
expect     = { agreement_fraction = ">= 0.9 x incumbent" }

[[check]]
kind       = "repeat"
builds     = ["candidate"]
path       = "lna2"
workloads  = ["en"]
requests   = 3
max_tokens = 40

[[check]]
kind       = "greedy_audit"
builds     = ["auditor", "candidate"]
path       = "lna2"
workloads  = ["en"]
streams    = [1]
requests   = 2
max_tokens = 40
expect     = { rank1_share = ">= 0.95" }

[[check]]
kind       = "essays"
builds     = ["candidate"]
path       = "lna2"
tasks      = 2
max_tokens = 640
expect     = { ended = ">= 100 %" }

[[check]]
kind       = "length"
builds     = ["incumbent", "candidate"]
path       = "lna2"
workloads  = ["en"]
requests   = 2
max_tokens = 640
repeats    = 5
expect     = { answer_tokens = "within 10 % of incumbent" }
"#;

/// Runs the gate under every fault, four at a time: each takes a fifth of a core.
fn all() -> Vec<Run> {
    let rows: Vec<&str> = std::iter::once("")
        .chain(FAULTS.iter().map(|f| f.0))
        .collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::<(usize, Run)>::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = rows.iter().position(|r| r == row).unwrap();
                    let run = seat::run("kinds", &gate(row));
                    done.lock().unwrap().push((at, run));
                }
            });
        }
    });
    let mut runs = done.into_inner().unwrap();
    runs.sort_by_key(|r| r.0);
    runs.into_iter().map(|r| r.1).collect()
}

fn mark(run: &Run, case: &str) -> &'static str {
    match run.case(case)["verdict"].as_str() {
        Some("pass") => "·",
        Some("fail") => "FAIL",
        Some("unproven") => "UNPR",
        Some("inconclusive") => "INCO",
        _ => "NOT",
    }
}

#[test]
fn every_kind_passes_healthy_and_falls_to_its_faults() {
    let runs = all();
    let names: Vec<&str> = std::iter::once("healthy")
        .chain(FAULTS.iter().map(|f| f.0))
        .collect();
    let kinds: Vec<&str> = CASES.iter().map(|c| c.split('/').next().unwrap()).collect();
    println!("{:<26}{}", "", columns(&kinds));
    for (name, run) in names.iter().zip(&runs) {
        let marks: Vec<&str> = CASES.iter().map(|c| mark(run, c)).collect();
        println!("{name:<26}{}", columns(&marks));
    }
    assert_eq!(runs[0].verdict(), "pass", "{}", runs[0].account());
    let mut survivors = Vec::new();
    for ((fault, must), run) in FAULTS.iter().zip(&runs[1..]) {
        for kind in *must {
            let case = CASES.iter().find(|c| c.starts_with(kind)).unwrap();
            if mark(run, case) == "·" {
                survivors.push(format!("{case} survives {fault}\n{}", run.account()));
            }
        }
    }
    println!("survivors: {}", survivors.len());
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

/// Columns of equal width.
fn columns(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:<15}")).collect()
}
