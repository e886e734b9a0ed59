//! The kinds that hold answers against each other, end to end against the embedded seat: healthy, and with each fault.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use seat::{Run, run, sekimon};

/// A gate of few tokens with faults on the candidate and on the auditor.
fn gate(candidate: &str, auditor: &str) -> String {
    let build = |name: &str, flags: &str, fault: &str| {
        let fault = match fault {
            "" => String::new(),
            fault => format!(", \"--fault\", \"{fault}\""),
        };
        format!(
            "[builds.{name}]\nstart = [\"sekimon\", \"sim\", \"--port\", \"{{port}}\", \"--path\", \"lna2\", {flags}{fault}]\nready = \"30s\"\n\n"
        )
    };
    let spec = "\"--draft-k\", \"3\"";
    let builds = build("incumbent", spec, "")
        + &build("auditor", "\"--no-spec\"", auditor)
        + &build("candidate", spec, candidate);
    HEAD.to_owned() + &builds + CHECKS
}

const HEAD: &str = r#"
title = "answers"

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
kind       = "agreement"
builds     = ["incumbent", "candidate"]
path       = "lna2"
workloads  = ["en"]
requests   = 2
max_tokens = 40
repeats    = 2
expect     = { agreement_fraction = ">= 0.9 x incumbent", common_tokens = ">= 20", excess_hazard = "<= 0.001" }

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
expect     = { rank1_share = ">= 0.95", worst_gap = "<= 0.5 nats", tokens_audited = ">= 60" }
"#;

/// The audit alone, one build at a time, with the plain route.
fn one_at_a_time() -> String {
    let gate = gate("", "").replace("together = true\n", "");
    let (head, checks) = gate.split_once("[[check]]").unwrap();
    let audit = checks.rsplit("[[check]]").next().unwrap();
    format!("{head}[[check]]{audit}route = \"completion\"\nrepeats = 2\n")
}

/// Wants a case to have this verdict for a reason that says so.
fn wants(run: &Run, case: &str, verdict: &str, word: &str) {
    assert_eq!(run.case(case)["verdict"], verdict, "{}", run.account());
    assert!(
        word.is_empty() || run.reasons(case).iter().any(|r| r.contains(word)),
        "no reason of {case} says `{word}`\n{}",
        run.account()
    );
}

#[test]
fn the_healthy_seat_agrees_repeats_and_is_lossless() {
    let run = run("healthy", &gate("", ""));
    assert_eq!(run.code, 0, "{}", run.account());
    let figures = run.case("agreement/en/1")["figures"].as_array().unwrap();
    let common = figures.iter().find(|f| f["name"] == "common_tokens");
    assert_eq!(common.unwrap()["value"], 40.0, "ids came: {figures:?}");
    let figures = run.case("greedy_audit/en/1")["figures"].as_array().unwrap();
    let value = |name: &str| figures.iter().find(|f| f["name"] == name).unwrap()["value"].clone();
    assert_eq!(value("rank1_share"), 1.0, "{figures:?}");
    assert_eq!(value("tokens_audited"), 80.0, "{figures:?}");
}

#[test]
fn every_fault_of_the_drill_kills_these_kinds() {
    let run = run("drilled", &gate("", ""));
    let file = run.dir.join("gate.toml");
    let out = sekimon(&[
        "drill",
        file.to_str().unwrap(),
        "--run",
        run.dir.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("survivors: 0"), "{said}");
    for fault in [
        "one-answer-differs",
        "answers-part",
        "lossy-token",
        "audit-zeroed",
        "audit-removed",
        "ids-removed",
    ] {
        assert!(said.contains(fault), "`{fault}` was not drilled\n{said}");
    }
}

#[test]
fn an_auditor_that_comes_after_the_judged_build_has_its_answers() {
    let run = run("one-at-a-time", &one_at_a_time());
    assert_eq!(run.code, 0, "{}", run.account());
    let figures = &run.case("greedy_audit/en/1")["figures"];
    assert_eq!(figures[2]["n"], 2, "{figures}");
}

#[test]
fn a_lossy_verification_fails_the_agreement_and_the_audit() {
    let run = run("lossy-spec", &gate("lossy-spec", ""));
    wants(&run, "agreement/en/1", "fail", "agreement_fraction");
    wants(&run, "greedy_audit/en/1", "fail", "of the answer, rank");
    // It is lossy the same way each time.
    wants(&run, "repeat/en/1", "pass", "");
}

#[test]
fn unstable_answers_fail_the_repeat() {
    let run = run("unstable", &gate("unstable", ""));
    wants(&run, "repeat/en/1", "fail", "different answers");
    wants(&run, "agreement/en/1", "fail", "agreement_fraction");
}

#[test]
fn zeroed_logprobs_are_no_audit() {
    let run = run("zero-logprobs", &gate("", "zero-logprobs"));
    wants(&run, "greedy_audit/en/1", "unproven", "every logprob");
}

#[test]
fn shifted_logprobs_do_not_condemn_the_judged_build() {
    let run = run("shifted-logprobs", &gate("", "shifted-logprobs"));
    wants(
        &run,
        "greedy_audit/en/1",
        "unproven",
        "rejects even its own",
    );
}
