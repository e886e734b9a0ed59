//! Running gates through the real program.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// One run of a gate.
#[derive(Debug)]
pub(crate) struct Run {
    /// Exit code.
    pub(crate) code: i32,
    /// `report.json`.
    pub(crate) report: Value,
    /// Run directory.
    pub(crate) dir: PathBuf,
    /// Standard error.
    pub(crate) said: String,
    _home: tempfile::TempDir,
}

impl Run {
    /// The gate's verdict.
    pub(crate) fn verdict(&self) -> &str {
        self.report["verdict"].as_str().unwrap_or("none")
    }

    /// One case of the report.
    pub(crate) fn case(&self, id: &str) -> &Value {
        let checks = self.report["checks"].as_array().expect("checks");
        checks
            .iter()
            .find(|c| c["id"] == id)
            .unwrap_or_else(|| panic!("no case {id}\n{}", self.account()))
    }

    /// The reasons of one case.
    pub(crate) fn reasons(&self, id: &str) -> Vec<String> {
        let reasons = self.case(id)["reasons"].as_array().expect("reasons");
        reasons
            .iter()
            .filter_map(|r| r["text"].as_str())
            .map(ToOwned::to_owned)
            .collect()
    }

    /// Everything that a failing test should show.
    pub(crate) fn account(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for check in self.report["checks"].as_array().into_iter().flatten() {
            text.push_str(&format!("{} {}\n", check["id"], check["verdict"]));
            for reason in check["reasons"].as_array().into_iter().flatten() {
                text.push_str(&format!("    {}\n", reason["text"]));
            }
        }
        text + &self.said
    }
}

/// Runs the program in the crate's folder.
pub(crate) fn sekimon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sekimon"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("sekimon runs")
}

/// Runs a gate, given as text, in a folder of its own.
pub(crate) fn run(name: &str, gate: &str) -> Run {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join(format!("{name}.toml"));
    std::fs::write(&file, gate).expect("the gate is written");
    let dir = home.path().join("run");
    let out = sekimon(&[
        "run",
        path(&file),
        "--out",
        path(&dir),
        "--json",
        "--seed",
        "7",
    ]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let report = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("no report on standard output: {e}\n{said}"));
    Run {
        code: out.status.code().unwrap_or(-1),
        report,
        dir,
        said,
        _home: home,
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// The quickstart gate, smaller, with these faults on both candidates.
pub(crate) fn quickstart(faults: &[&str]) -> String {
    let mut gate = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/gates/quickstart.toml"
    ))
    .expect("a gate");
    let flags: String = faults
        .iter()
        .map(|f| format!(", \"--fault\", \"{f}\""))
        .collect();
    for build in [
        "\"--path\", \"lna2\", \"--ranks\", \"8\", \"--draft-k\", \"3\"",
        "\"--path\", \"lna2\", \"--ranks\", \"8\", \"--no-spec\"",
    ] {
        assert!(gate.contains(build), "the quickstart gate has changed");
        gate = gate.replace(build, &format!("{build}{flags}"));
    }
    for (long, short) in [
        (
            "workloads  = [\"code\", \"en\", \"ja\"]\nstreams    = [1, 4]",
            "workloads  = [\"code\"]\nstreams    = [1, 4]",
        ),
        (
            "workloads  = [\"code\", \"en\", \"ja\"]\nstreams    = [1]",
            "workloads  = [\"code\"]\nstreams    = [1]",
        ),
        ("  \"en/1\"   = { accept_length = \">= 1.5\" }\n", ""),
        ("  \"ja/1\"   = { accept_length = \">= 1.3\" }\n", ""),
        ("tokens = 166_000", "tokens = 12_000"),
        ("= 166_000 tokens", "= 12_000 tokens"),
        ("<= 30 s", "<= 5 s"),
        ("corpora = [\"en\", \"ja\"]", "corpora = [\"en\"]"),
        ("repeats    = 7", "repeats    = 5"),
    ] {
        assert!(
            gate.contains(long),
            "the quickstart gate has changed: {long}"
        );
        gate = gate.replace(long, short);
    }
    gate
}

/// The same gate with each build's log in a file of its own, for faults that need one.
pub(crate) fn with_log_file(gate: &str) -> String {
    let dir = std::env::temp_dir().join(format!("sekimon-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let log = dir.join("sim-{port}.log");
    gate.replace(
        "\"--port\", \"{port}\"",
        &format!("\"--port\", \"{{port}}\", \"--log\", {:?}", path(&log)),
    )
    .replace(
        "together = true",
        &format!("log      = {{ file = {:?} }}\ntogether = true", path(&log)),
    )
}
