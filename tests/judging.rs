//! Judging over a whole run: going on until decided, re-runs, unequal conditions, and what the plan says in advance.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod seat;

use std::path::Path;
use std::process::Command;

use sekimon::plan::order::{Undecided, further};
use sekimon::plan::{Plan, Step};
use sekimon::spec::gate::Gate;
use serde_json::Value;

/// Two builds that are alike, compared at a limit that no number of repeats can settle.
fn alike(occupancy: &str, repeats: &str) -> String {
    format!(
        r#"
title = "alike"
[seat]
url = "http://127.0.0.1:0"
model = "sekimon-ngram"
dialect = "vllm"
{occupancy}
[builds.incumbent]
start = ["sekimon", "sim", "--port", "{{port}}", "--path", "lna2"]
[builds.candidate]
start = ["sekimon", "sim", "--port", "{{port}}", "--path", "lna2"]
[paths.lna2]
announced = {{ line = 'F3 LNA2 MoE kernel ACTIVE' }}
moved = {{ counter = 'exl3_moe_calls_total{{kernel="lna2"}}' }}
[[check]]
kind = "throughput"
builds = ["incumbent", "candidate"]
path = "lna2"
workloads = ["en"]
streams = [1]
max_tokens = 24
repeats = {repeats}
expect = {{ decode_tok_s = ">= 1.0 x incumbent" }}
"#
    )
}

fn read(source: &str) -> Gate {
    match sekimon::spec::read::read("alike", "alike.toml", source, &sekimon::check::kinds()) {
        Ok(reading) => reading.gate,
        Err(faults) => panic!("{faults:?}"),
    }
}

fn decode(report: &Value) -> &Value {
    report["checks"][0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == "decode_tok_s")
        .unwrap()
}

/// Either the first look decided, or the run went on and both builds have as many repeats as some later look.
fn went_on_until_decided(report: &Value) {
    let figure = decode(report);
    let n = figure["n"].as_u64().unwrap();
    let decision = figure["limits"][0]["decision"].as_str().unwrap();
    assert!([8, 10, 13].contains(&n), "n = {n}");
    assert!(n == 13 || decision != "open", "open at {n} of 13");
    assert_eq!(figure["against"][0]["n"].as_u64(), Some(n), "{figure}");
}

#[test]
fn an_open_case_goes_on_to_its_next_look_side_by_side() {
    let gate = alike("together = true", "{ min = 8, max = 13 }");
    let run = seat::run("alike", &gate);
    went_on_until_decided(&run.report);
}

#[test]
fn an_open_case_goes_on_to_its_next_look_one_at_a_time() {
    let gate = alike("", "{ min = 8, max = 13 }");
    let run = seat::run("alike", &gate);
    went_on_until_decided(&run.report);
}

#[test]
fn the_steps_of_going_on_keep_the_order_of_the_builds() {
    let gate = read(&alike("", "{ min = 8, max = 20 }"));
    let plan = Plan::of(&gate, &sekimon::check::planned);
    let outline = |steps: &[Step]| -> Vec<String> {
        let mut lines: Vec<String> = steps
            .iter()
            .map(|s| match s {
                Step::Boot(build) => format!("boot {build}"),
                Step::Window(w) => format!("measure {}", w.build),
                Step::Extend(_) => "extend".into(),
                Step::Stop(build) => format!("stop {build}"),
            })
            .collect();
        lines.dedup();
        lines
    };
    let around = [
        "boot incumbent",
        "measure incumbent",
        "stop incumbent",
        "boot candidate",
        "measure candidate",
        "stop candidate",
        "boot incumbent",
        "measure incumbent",
    ];
    let planned = [&around[..], &["extend", "stop incumbent"]].concat();
    assert_eq!(outline(&plan.steps), planned);
    let group = vec!["incumbent".to_owned(), "candidate".to_owned()];
    let open = [Undecided {
        case: 0,
        done: 8,
        until: 13,
    }];
    let planned = sekimon::check::planned;
    let more = further(&gate, &plan.cases, &planned, &group, &open, 100);
    assert_eq!(outline(&more), around);
    let repeats: Vec<u32> = more
        .iter()
        .filter_map(|s| match s {
            Step::Window(w) if w.build == "candidate" && w.part == "measure" => Some(w.repeat),
            _ => None,
        })
        .collect();
    assert_eq!(repeats, [8, 9, 10, 11, 12]);
}

#[test]
fn a_range_that_can_decide_nothing_is_a_fault_of_the_gate() {
    let source = alike("", "{ min = 3, max = 20 }");
    let faults =
        sekimon::spec::read::read("alike", "alike.toml", &source, &sekimon::check::kinds());
    let text = format!("{:?}", faults.unwrap_err());
    assert!(text.contains("nothing can be decided"), "{text}");
}

fn run_in(home: &Path, more: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_sekimon"))
        .args(["run", "strict.toml", "--json", "--quiet"])
        .args(more)
        .current_dir(home)
        .output()
        .unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}\n{}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn a_run_after_one_that_did_not_pass_is_judged_stricter_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let gate = alike("together = true", "5").replace(">= 1.0 x", ">= 3.0 x");
    std::fs::write(home.path().join("strict.toml"), gate).unwrap();
    let attempt = |report: &Value| report["conditions"]["attempt"].clone();
    assert_eq!(attempt(&run_in(home.path(), &[]))["earlier"], 0);
    let second = run_in(home.path(), &[]);
    assert_eq!(attempt(&second)["earlier"], 1);
    // Five repeats are the least at 5 %; at 2.5 % they give no bound, and the limit stays open.
    assert_eq!(decode(&second)["limits"][0]["decision"], "open");
    let told = run_in(home.path(), &["--new-build", "kernel rebuilt"]);
    assert_eq!(attempt(&told)["earlier"], 0);
    assert_eq!(attempt(&told)["new_build"], "kernel rebuilt");
}

/// One passing report of a run, with its decode rate scaled.
fn session(report: &Value, scale: f64) -> Value {
    let mut report = report.clone();
    report["verdict"] = "pass".into();
    for figure in report["checks"][0]["figures"].as_array_mut().unwrap() {
        let value = figure["value"].as_f64().unwrap_or(1.0);
        figure["value"] = (value * scale).into();
    }
    report
}

#[test]
fn a_baseline_of_several_sessions_judges_by_what_they_predict() {
    let home = tempfile::tempdir().unwrap();
    let gate = alike("together = true", "5").replace(">= 1.0 x incumbent", ">= 0.5 x incumbent");
    std::fs::write(home.path().join("strict.toml"), &gate).unwrap();
    let first = run_in(home.path(), &[]);
    let against_sessions = |scales: &[f64], limit: &str| {
        let sessions = home.path().join("sessions");
        let _ = std::fs::remove_dir_all(&sessions);
        for (at, scale) in scales.iter().enumerate() {
            let dir = sessions.join(format!("2026120{at}T000000Z-candidate"));
            std::fs::create_dir_all(&dir).unwrap();
            let report = session(&first, *scale).to_string();
            std::fs::write(dir.join("report.json"), report).unwrap();
        }
        let gate =
            gate.replace(">= 0.5 x incumbent", limit) + "[runs.certified]\nreport = \"sessions\"\n";
        std::fs::write(home.path().join("strict.toml"), gate).unwrap();
        decode(&run_in(home.path(), &["--new-build", "test"]))["limits"][0].clone()
    };
    // Half the speed of every session, and outside what they predict.
    let slow = against_sessions(&[2.0, 2.02, 1.98, 2.01, 1.99], ">= 0.9 x run:certified");
    assert_eq!(slow["decision"], "misses", "{slow}");
    assert!(
        slow["because"]
            .as_str()
            .unwrap()
            .contains("5 sessions predict"),
        "{slow}"
    );
    // The margin is kept, but no session was ever so slow.
    let odd = against_sessions(&[1.5, 1.51, 1.49, 1.5, 1.505], ">= 0.5 x run:certified");
    assert_eq!(odd["decision"], "open", "{odd}");
    // Sessions that lie around it.
    let usual = against_sessions(&[0.7, 1.3, 0.9, 1.2, 1.0], ">= 0.5 x run:certified");
    assert_eq!(usual["decision"], "clears", "{usual}");
}
