//! Essays, lengths and external figures end to end against the embedded seat, healthy and with each fault.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use std::fs;

const SEAT: &str = r#"
title = "external"
[seat]
url = "http://127.0.0.1:0"
model = "sekimon-ngram"
dialect = "vllm"
[builds.candidate]
start = ["sekimon", "sim", "--port", "{port}"]
ready = "30s"
"#;

fn check(id: &str, body: &str) -> String {
    format!("\n[[check]]\nid = \"{id}\"\nkind = \"external\"\nbuilds = [\"candidate\"]\n{body}\n")
}

#[test]
fn each_external_figure_gets_the_verdict_that_it_deserves() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file(
        "good.xml",
        "<testsuite><testcase name=\"a\"/><testcase name=\"b\"/></testsuite>",
    );
    let bad = file(
        "bad.xml",
        "<testsuite><testcase name=\"a\"><error/></testcase></testsuite>",
    );
    let none = file(
        "none.xml",
        "<testsuite tests=\"171\"><testcase name=\"a\"><skipped/></testcase></testsuite>",
    );
    let old = file("old.jsonl", "{\"name\":\"copy\",\"value\":270.5}\n");
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    let missing = home.path().join("missing.xml").to_str().unwrap().to_owned();
    let parity = |echo: &str| {
        format!(
            "command = [\"sh\", \"-c\", \"{echo}\"]\nformat = \"text\"\nread = [{{ figure = \"cases\", pattern = '(\\d+) cases' }}, {{ figure = \"worst\", pattern = 'rel (\\S+)' }}]\nexpect = {{ cases = \"= 171 cases\", worst = \"<= 0.00164\" }}"
        )
    };
    let jsonl = "format = \"jsonl\"\nread = [{ figure = \"least\", unit = \"GB/s\" }]\nexpect = { least = \">= 250\" }";
    let junit = |path: &str| {
        format!("file = {path:?}\nformat = \"junit\"\nexpect = {{ failures = \"= 0 cases\" }}")
    };
    let rows = [
        ("parity", parity("echo 171 cases rel 1.5e-3"), "pass", ""),
        ("inexact", parity("echo 171 cases rel 1.7e-3 rel 1e-9"), "fail", ""),
        ("silent", parity("echo nothing"), "unproven", "matches nothing"),
        ("zero", parity("echo 0 cases rel 0.0"), "unproven", "no case at all"),
        ("url", "command = [\"sh\", \"-c\", \"test $SEKIMON_URL = {url} && test $SEKIMON_BUILD = candidate\"]\nexpect = { exit_code = \"= 0\" }".into(), "pass", ""),
        ("exit", "command = [\"sh\", \"-c\", \"echo broken >&2; exit 3\"]\nexpect = { exit_code = \"= 0\" }".into(), "fail", "exit code 3: broken"),
        ("hang", "command = [\"sh\", \"-c\", \"sleep 600 & wait\"]\ndeadline = \"1 s\"\nexpect = { exit_code = \"= 0\" }".into(), "fail", "did not end within 1 s"),
        ("absent", "command = [\"no-such-tool\"]\nexpect = { exit_code = \"= 0\" }".into(), "unproven", "could not be run"),
        ("junit", junit(&good), "pass", ""),
        ("junit-bad", junit(&bad), "fail", "first `a`"),
        ("junit-skipped", junit(&none), "unproven", "no case at all"),
        ("missing", junit(&missing), "unproven", "cannot be read"),
        ("fresh", format!("file = {old:?}\nmax_age = \"24 h\"\n{jsonl}"), "pass", ""),
        ("old", format!("file = {old:?}\nmax_age = \"60 s\"\n{jsonl}"), "unproven", "too old"),
        ("hash", format!("file = {old:?}\nsha256 = \"{}\"\n{jsonl}", "0".repeat(64)), "unproven", "not the file that the gate names"),
        ("stale", format!("command = [\"true\"]\nfile = {old:?}\n{jsonl}"), "unproven", "did not write it"),
    ];
    let gate: String = rows.iter().map(|(id, body, ..)| check(id, body)).collect();
    let run = seat::run("external", &format!("{SEAT}{gate}"));
    for (id, _, verdict, word) in &rows {
        assert_eq!(run.case(id)["verdict"], *verdict, "{id}\n{}", run.account());
        let told = run.reasons(id).join("\n");
        assert!(told.contains(word), "{id}: {told}");
    }
    assert_eq!(run.case("parity")["figures"][0]["origin"], "external");
}

fn essays(fault: &str) -> seat::Run {
    seat::run("essays", &essays_gate(fault))
}

fn essays_gate(fault: &str) -> String {
    let fault = match fault {
        "" => String::new(),
        fault => format!(", \"--fault\", \"{fault}\""),
    };
    format!(
        r#"
title = "essays"
[seat]
url = "http://127.0.0.1:0"
model = "sekimon-ngram"
dialect = "vllm"
together = true
[builds.incumbent]
start = ["sekimon", "sim", "--port", "{{port}}", "--path", "lna2"]
[builds.candidate]
start = ["sekimon", "sim", "--port", "{{port}}", "--path", "lna2"{fault}]
[paths.lna2]
announced = {{ line = 'F3 LNA2 MoE kernel ACTIVE' }}
moved = {{ counter = 'exl3_moe_calls_total{{kernel="lna2"}}' }}
[[check]]
kind = "essays"
builds = ["candidate"]
path = "lna2"
tasks = 2
max_tokens = 640
expect = {{ ended = ">= 100 %" }}
[[check]]
kind = "length"
builds = ["incumbent", "candidate"]
path = "lna2"
workloads = ["en"]
requests = 2
max_tokens = 640
repeats = 5
expect = {{ answer_tokens = "within 10 % of incumbent" }}
"#
    )
}

#[test]
fn a_healthy_seat_ends_its_essays_and_writes_as_much_as_the_incumbent() {
    let run = essays("");
    assert_eq!(run.verdict(), "pass", "{}", run.account());
}

#[test]
fn every_fault_of_the_drill_kills_essays_lengths_canaries_and_external_figures() {
    let gate = essays_gate("")
        + &check(
            "parity",
            "command = [\"sh\", \"-c\", \"echo 171 cases\"]\nformat = \"text\"\nread = [{ figure = \"cases\", pattern = '(\\d+) cases' }]\nexpect = { cases = \"= 171 cases\" }",
        )
        + "\n[[check]]\nkind = \"canary\"\nbuilds = [\"candidate\"]\nrepeats = 3\nallowance = \"60 %\"\n";
    let run = seat::run("drilled", &gate);
    let file = run.dir.join("gate.toml");
    let out = seat::sekimon(&[
        "drill",
        file.to_str().unwrap(),
        "--run",
        run.dir.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("survivors: 0"), "{said}\n{}", run.account());
    for fault in ["essay-cut", "essay-looped", "canary-moved", "tool-unread"] {
        assert!(said.contains(fault), "`{fault}` was not drilled\n{said}");
    }
}

#[test]
fn essays_that_stop_early_are_too_short() {
    let run = essays("early-stop");
    assert_eq!(
        run.case("length/en/1")["verdict"],
        "fail",
        "{}",
        run.account()
    );
}

#[test]
fn essays_that_loop_or_only_think_do_not_end() {
    for (fault, word) in [("repetition-loop", "looped"), ("think-only", "think_only")] {
        let run = essays(fault);
        let case = run.case("essays/essays/1");
        assert_eq!(case["verdict"], "fail", "{fault}: {}", run.account());
        let told = run.reasons("essays/essays/1").join("\n");
        assert!(
            told.contains(word) || told.contains("cut"),
            "{fault}: {told}"
        );
    }
}
