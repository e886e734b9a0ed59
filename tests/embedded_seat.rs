//! The quickstart gate end to end against the embedded seat: healthy, and with each fault switched on.
//!
//! The gate is `gates/quickstart.toml` itself, with fewer workloads and a shorter needle so that one run takes seconds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use seat::{Run, quickstart, run};

#[test]
fn the_healthy_seat_passes() {
    let run = run("healthy", &quickstart(&[]));
    assert_eq!(run.code, 0, "{}", run.account());
    assert_eq!(run.verdict(), "pass", "{}", run.account());
    // Tokens agree with the seat's own counters in every window of the load, to the token.
    for window in run.report["windows"].as_array().unwrap() {
        if window["completion_tokens"].is_u64() {
            assert_eq!(
                window["completion_tokens"].as_f64(),
                window["seat"]["generation_tokens"].as_f64(),
                "{window}"
            );
        }
    }
}

#[test]
fn judging_again_gives_the_same_bytes() {
    let run = run("judge-again", &quickstart(&[]));
    let before = std::fs::read(run.dir.join("report.json")).unwrap();
    std::fs::remove_file(run.dir.join("report.json")).unwrap();
    let again = seat::sekimon(&["judge", run.dir.to_str().unwrap()]);
    assert_eq!(
        again.status.code(),
        Some(run.code),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    assert_eq!(std::fs::read(run.dir.join("report.json")).unwrap(), before);
}

/// Runs the gate with faults on the candidate, and wants this case to have this verdict for a reason that says so.
fn falls(faults: &[&str], case: &str, verdict: &str, word: &str) -> Run {
    let run = run(&faults.join("+"), &quickstart(faults));
    assert_ne!(run.code, 0, "{faults:?} went through\n{}", run.account());
    assert_eq!(run.case(case)["verdict"], verdict, "{}", run.account());
    let reasons = run.reasons(case);
    assert!(
        reasons.iter().any(|r| r.contains(word)),
        "no reason of {case} says `{word}`\n{}",
        run.account()
    );
    run
}

#[test]
fn a_silent_fallback_fails() {
    falls(
        &["silent-fallback"],
        "throughput/code/1",
        "fail",
        "F3 LNA2 MoE kernel ACTIVE",
    );
}

#[test]
fn a_fallback_on_one_rank_fails() {
    let run = falls(
        &["fallback-on-one-rank"],
        "throughput/code/1",
        "fail",
        "rank",
    );
    assert!(
        run.reasons("throughput/code/1")
            .iter()
            .any(|r| r.contains("not on rank")),
        "{}",
        run.account()
    );
}

#[test]
fn active_at_start_and_declined_in_decode_fails() {
    falls(
        &["active-but-declined"],
        "throughput/code/1",
        "fail",
        "shared pool is busy",
    );
}

#[test]
fn speculation_silently_off_fails_the_accept_length() {
    falls(
        &["spec-off"],
        "accept_length/code/1",
        "fail",
        "speculation is off",
    );
}

#[test]
fn a_truncated_prompt_fails_the_needle() {
    falls(&["prompt-truncated"], "needle", "fail", "were read");
}

#[test]
fn a_cached_prefix_fails_the_needle() {
    falls(&["prefix-cache"], "needle", "fail", "prefix cache");
}

#[test]
fn missing_usage_leaves_the_speed_unproven() {
    falls(&["usage-missing"], "throughput/code/1", "unproven", "usage");
}

#[test]
fn bundled_chunks_leave_the_speed_unproven() {
    falls(
        &["bundled-chunks"],
        "throughput/code/1",
        "unproven",
        "chunk",
    );
}

#[test]
fn an_early_stop_fails() {
    falls(
        &["early-stop"],
        "throughput/code/1",
        "fail",
        "stopped early",
    );
}

#[test]
fn zero_logprobs_fail_the_perplexity() {
    falls(&["zero-logprobs"], "perplexity/en", "fail", "every logprob");
}

#[test]
fn shifted_logprobs_fail_the_perplexity() {
    falls(&["shifted-logprobs"], "perplexity/en", "fail", "logprobs");
}

#[test]
fn foreign_traffic_is_inconclusive() {
    falls(
        &["foreign-traffic"],
        "throughput/code/1",
        "inconclusive",
        "foreign traffic",
    );
}

#[test]
fn a_counter_reset_is_never_green() {
    let run = run("counter-reset", &quickstart(&["counter-reset"]));
    assert_ne!(run.code, 0, "{}", run.account());
    let told = run.report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| run.reasons(c["id"].as_str().unwrap()));
    assert!(
        told.into_iter().any(|r| r.contains("reset")),
        "{}",
        run.account()
    );
}

#[test]
fn a_rotated_log_is_never_green() {
    let run = run(
        "log-rotated",
        &seat::with_log_file(&quickstart(&["log-rotated"])),
    );
    assert_ne!(run.code, 0, "{}", run.account());
    let told = run.report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| run.reasons(c["id"].as_str().unwrap()));
    assert!(
        told.into_iter().any(|r| r.contains("not whole")),
        "{}",
        run.account()
    );
}

#[test]
fn http_500_in_the_middle_fails() {
    falls(&["http-500-mid"], "throughput/code/4", "fail", "500");
}

#[test]
fn a_cut_stream_fails() {
    falls(&["stream-cut"], "throughput/code/4", "fail", "cut");
}

#[test]
fn faults_combine() {
    let run = falls(
        &["silent-fallback", "early-stop"],
        "throughput/code/1",
        "fail",
        "stopped early",
    );
    assert!(
        run.reasons("throughput/code/1")
            .iter()
            .any(|r| r.contains("ACTIVE")),
        "{}",
        run.account()
    );
}

#[test]
fn with_every_proof_removed_nothing_passes() {
    let run = run("no-proof", &quickstart(&["log-absent", "no-metrics"]));
    assert_ne!(run.code, 0, "{}", run.account());
    for check in run.report["checks"].as_array().unwrap() {
        if [
            "throughput",
            "accept_length",
            "needle",
            "perplexity",
            "path",
        ]
        .contains(&check["kind"].as_str().unwrap())
        {
            assert_ne!(check["verdict"], "pass", "{}", run.account());
        }
    }
}
