//! `sekimon drill`: each proof knocked out, each fault injected, on the evidence of a real run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows what it saw"
)]

mod seat;

use seat::{quickstart, run, sekimon};

/// Drills a gate on its own run; standard output and exit code.
fn drill(name: &str, gate: &str) -> (String, i32) {
    let run = run(name, gate);
    let out = sekimon(&[
        "drill",
        run.dir.join("gate.toml").to_str().unwrap(),
        "--run",
        run.dir.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    println!("{said}");
    (said, out.status.code().unwrap_or(-1))
}

#[test]
fn every_fault_kills_every_check_of_the_quickstart_gate() {
    let (said, code) = drill("drilled", &quickstart(&[]));
    assert!(said.contains("survivors: 0"), "{said}");
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_weak_gate_shows_its_survivors_and_exits_1() {
    let weak = quickstart(&[])
        .lines()
        .filter(|l| !l.starts_with("expect     = { decode_tok_s") && !l.starts_with("still     ="))
        .collect::<Vec<_>>()
        .join("\n");
    let (said, code) = drill("weak", &weak);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("still passes under `half-speed`"), "{said}");
}
