//! The gate against a real llama.cpp server with a real small model; `.ci/llama-server` fetches both.
#![cfg(feature = "real-server")]

mod seat;

use std::path::Path;

fn fetched() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/llama-server");
    let done = std::process::Command::new(script)
        .output()
        .expect("the script runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// The shipped gate, with its paths made absolute because the test keeps its gate elsewhere.
fn gate() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/gates/llama-server.toml"))
        .expect("the gate")
        .replace("\"target/real/", &format!("\"{root}/target/real/"))
        .replace(
            "{gate}/llama-server.py",
            &format!("{root}/gates/llama-server.py"),
        )
}

#[test]
fn the_real_server_is_gated_and_its_tokens_agree_with_its_own_counters() {
    fetched();
    let run = seat::run("llama-server", &gate());
    for check in [
        "health",
        "kv_window",
        "throughput/code/1",
        "throughput/ja/4",
        "accept_length/code/1",
        "path-off/en/1",
        "needle",
    ] {
        assert_eq!(
            run.case(check)["verdict"],
            "pass",
            "{check}\n{}",
            run.account()
        );
    }
    let windows = run.report["windows"].as_array().expect("windows");
    let mut compared = 0;
    for window in windows.iter().filter(|w| w["completion_tokens"].is_u64()) {
        assert_eq!(
            window["completion_tokens"].as_f64(),
            window["seat"]["generation_tokens"].as_f64(),
            "{window}"
        );
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} windows were compared");
    // The server cannot give prompt logprobs: its own verdict, never a pass, and said so.
    assert_eq!(
        run.case("perplexity/en")["verdict"],
        "unproven",
        "{}",
        run.account()
    );
    assert!(
        run.reasons("perplexity/en")[0].contains("cannot give"),
        "{}",
        run.account()
    );
    assert_eq!(run.code, 3, "{}", run.account());
    // The process witness read the live environment of the real server.
    let journal =
        std::fs::read_to_string(run.dir.join("evidence/journal.jsonl")).expect("a journal");
    assert!(
        journal.contains("\"record\":\"residents\""),
        "no process was looked into"
    );
}
