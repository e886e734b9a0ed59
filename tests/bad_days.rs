//! Bad input and bad days: a clear message, the right exit code, and what was measured stays on disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use seat::{run, sekimon};

const ATTACHED: &str = r#"
title = "attached"
[seat]
url = "http://127.0.0.1:PORT"
MODEL
[[check]]
kind = "health"
"#;

fn attached(port: u16, model: &str) -> String {
    ATTACHED
        .replace("PORT", &port.to_string())
        .replace("MODEL", model)
}

/// A port that nobody listens on.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn a_seat_that_is_down_is_named_and_exits_5() {
    let port = closed_port();
    let run = run("down", &attached(port, ""));
    assert_eq!(run.code, 5, "{}", run.account());
    assert!(run.said.contains(&port.to_string()), "{}", run.said);
    assert_eq!(run.case("health")["verdict"], "not_run");
}

#[test]
fn a_port_that_speaks_no_http_is_named_and_exits_5() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // As an SSH server does: the banner at once, for every caller, and the connection stays open. Nothing ends this
        // thread but the test process: how often the seat is asked within the deadline depends on the machine.
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
            held.push(stream);
        }
    });
    let run = run("ssh", &attached(port, ""));
    assert_eq!(run.code, 5, "{}", run.account());
    assert!(run.said.contains("HTTP"), "{}", run.said);
}

#[test]
fn a_model_that_is_not_offered_is_told_with_what_is() {
    let gate = r#"
title = "wrong model"
[seat]
url = "http://127.0.0.1:0"
model = "sekimon-ngran"
[builds.only]
start = ["sekimon", "sim", "--port", "{port}"]
ready = "20s"
[[check]]
kind = "health"
"#;
    let run = run("model", gate);
    assert_eq!(run.code, 5, "{}", run.account());
    assert!(run.said.contains("sekimon-ngram"), "{}", run.said);
}

#[test]
fn a_build_that_dies_at_start_is_told_with_its_last_words() {
    let gate = r#"
title = "dies"
[seat]
url = "http://127.0.0.1:0"
[builds.only]
start = ["sh", "-c", "echo out of memory by 0.01 GiB; exit 3"]
ready = "20s"
[[check]]
kind = "health"
"#;
    let run = run("dies", gate);
    assert_eq!(run.code, 5, "{}", run.account());
    assert!(
        run.said.contains("out of memory by 0.01 GiB"),
        "{}",
        run.said
    );
}

#[test]
fn every_fault_of_a_gate_file_comes_at_once_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("bad.toml");
    let text = r#"title = "bad"
[seat]
url = "http://127.0.0.1:8000"
rnaks = 8
[[check]]
kind = "throughputt"
[[check]]
kind = "needle"
tokens = "many"
path = "lna3"
expect = { answer = "is exakt", needle_ttft_s = "<= 130" }
"#;
    std::fs::write(&file, text).unwrap();
    let out = sekimon(&["plan", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    for (line, word) in [
        (4, "did you mean `ranks`"),
        (6, "did you mean `throughput`"),
        (9, "takes a whole number"),
        (10, "the path `lna3` is not defined"),
        (11, "did you mean `exact`"),
        (11, "has no unit"),
    ] {
        assert!(
            said.contains(&format!("bad.toml:{line}:")),
            "no fault at line {line}\n{said}"
        );
        assert!(said.contains(word), "nobody says `{word}`\n{said}");
    }
}

#[test]
fn an_api_key_is_never_written_down() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("key.toml");
    let port = closed_port();
    std::fs::write(&file, attached(port, "api_key_env = \"SEKIMON_TEST_KEY\"")).unwrap();
    let dir = home.path().join("run");
    let out = Command::new(env!("CARGO_BIN_EXE_sekimon"))
        .args([
            "run",
            file.to_str().unwrap(),
            "--out",
            dir.to_str().unwrap(),
        ])
        .env("SEKIMON_TEST_KEY", "sk-very-secret-1234567890")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(5));
    assert!(!String::from_utf8_lossy(&out.stderr).contains("very-secret"));
    for file in files(&dir) {
        let text = std::fs::read(&file).unwrap();
        assert!(
            !String::from_utf8_lossy(&text).contains("very-secret"),
            "{}",
            file.display()
        );
    }
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path))
        } else {
            all.push(path)
        }
    }
    all
}

const ONE_BUILD: &str = r#"
title = "one build"
[seat]
url = "http://127.0.0.1:0"
dialect = "vllm"
ranks = 2
[builds.only]
start = ["sekimon", "sim", "--port", "{port}", "--ranks", "2"]
ready = "20s"
[paths.lna2]
announced = { line = "F3 LNA2 MoE kernel ACTIVE", on = "every rank" }
moved = { counter = 'exl3_moe_calls_total{kernel="lna2"}', rank_label = "rank" }
"#;

#[test]
fn sigterm_writes_a_partial_report_and_leaves_no_orphan() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("long.toml");
    let check = "[[check]]\nkind = \"throughput\"\npath = \"lna2\"\nworkloads = [\"en\"]\nstreams = [1]\nmax_tokens = 2000\nrepeats = 200\n";
    std::fs::write(&file, format!("{ONE_BUILD}{check}")).unwrap();
    let dir = home.path().join("run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sekimon"))
        .args([
            "run",
            file.to_str().unwrap(),
            "--out",
            dir.to_str().unwrap(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = dir.join("evidence/journal.jsonl");
    let patience = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&journal)
        .unwrap_or_default()
        .contains("\"record\":\"window\"")
    {
        assert!(Instant::now() < patience, "no window was ever closed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(143));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("report.json")).unwrap()).unwrap();
    assert_ne!(report["verdict"], "pass");
    assert_eq!(report["conditions"]["ended"], "interrupted");
    let port = report["seat"]["url"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err(),
        "the seat that was started still answers"
    );
}

#[test]
fn a_needle_of_166k_tokens_is_exact_and_the_client_stays_under_100_mb() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("needle.toml");
    let check = "[[check]]\nkind = \"needle\"\npath = \"lna2\"\ntokens = 166_000\nexpect = { answer = \"is exact\", needle_prompt_tokens = \"= 166_000 tokens\" }\n";
    std::fs::write(&file, format!("{ONE_BUILD}{check}")).unwrap();
    let dir = home.path().join("run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sekimon"))
        .args([
            "run",
            file.to_str().unwrap(),
            "--out",
            dir.to_str().unwrap(),
            "--quiet",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0_u64;
    let status = loop {
        let text =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let seen = text.lines().find_map(|l| {
            l.strip_prefix("VmHWM:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        });
        peak = peak.max(seen.unwrap_or(0));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(status.code(), Some(0), "see {}", dir.display());
    assert!(
        peak > 0 && peak < 100 * 1024,
        "the client peaked at {peak} KiB"
    );
    println!("client peak {} MiB", peak / 1024);
}
