//! Reports for the tests of every printer, modelled on a seat gate as people run it.

use super::document::{
    Attempt, BootRecipe, CaseConditions, Conditions, GateRef, NotRun, Report, SCHEMA, SeatCounts,
    SeatRef, Tool, WindowRef,
};
use super::sample_findings::{
    accept_length, code, english, japanese, kv_window, needle, perplexity,
};
use crate::judge::finding::Finding;
use crate::judge::verdict::Verdict;

/// Text that tries everything: colours, a window title, markup, a table border, reversed reading, new lines.
pub(super) const HOSTILE: &str = "\u{1b}[31mboo\u{1b}[0m \u{1b}]0;owned\u{7}<script>alert(1)</script> | pipe ]( `tick \u{202e}gnp.exe\u{202c}\n# heading\r\n| a | b |\u{0}\u{9b}2Jend";

/// A gate with one case of every verdict.
pub(super) fn mixed() -> Report {
    report(
        Verdict::Fail,
        vec![
            code(),
            english(),
            japanese(),
            accept_length(),
            needle(),
            kv_window(),
            perplexity(),
        ],
    )
}

/// A gate that passes.
pub(super) fn passing() -> Report {
    let mut report = report(Verdict::Pass, vec![code(), kv_window()]);
    report.not_run.clear();
    report
}

/// A gate with nothing in it.
pub(super) fn empty() -> Report {
    let mut report = report(Verdict::NotRun, Vec::new());
    report.not_run.clear();
    report.windows.clear();
    report.conditions = Conditions::default();
    report
}

/// The same gate with hostile text wherever text comes from outside.
pub(super) fn hostile() -> Report {
    let mut report = mixed();
    report.gate.title = HOSTILE.into();
    report.seat.url = HOSTILE.into();
    report.seat.model = HOSTILE.into();
    report.conditions.boots[0].log = HOSTILE.into();
    report.conditions.boots[0]
        .env
        .push(("EVIL".into(), HOSTILE.into()));
    report.conditions.boots[0].command.push(HOSTILE.into());
    report.not_run[0].reason = HOSTILE.into();
    report.windows[0].incidents = vec![HOSTILE.into()];
    let failed = &mut report.checks[2];
    failed.id = HOSTILE.into();
    failed.reasons[0].text = format!("seen {HOSTILE}");
    failed.reasons[0].text_ja = format!("実際 {HOSTILE}");
    failed.figures[0].limits[0].text = HOSTILE.into();
    failed.notes.push(HOSTILE.into());
    let proof = failed.proof.as_mut().expect("the sample's path");
    proof.path = HOSTILE.into();
    proof.items[0].seen = HOSTILE.into();
    proof.items[0].example = Some(HOSTILE.into());
    report
}

fn report(verdict: Verdict, checks: Vec<Finding>) -> Report {
    Report {
        schema: SCHEMA.into(),
        id: "20260904T104217Z-candidate".into(),
        gate: GateRef {
            name: "lna2".into(),
            title: "lna2 for the certified seat".into(),
            sha256: "5f2c8a1be0d94c3377a6d5be01c94ef2a3b7718c3a5d0f7e6b1249cd80e35a11".into(),
        },
        verdict,
        seat: SeatRef {
            url: "http://127.0.0.1:8899".into(),
            dialect: "vllm".into(),
            version: Some("0.11.2".into()),
            model: "DSV4-Flash".into(),
            fingerprint: "sha256:91d0c3e4a7f25b6680cf1d2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e"
                .into(),
        },
        checks,
        windows: vec![
            window(
                "w3",
                "throughput/code/1",
                "candidate",
                Some(4_312),
                Some(4_312.0),
            ),
            window(
                "w4",
                "throughput/code/1",
                "incumbent",
                Some(4_298),
                Some(4_298.0),
            ),
            window("w9", "accept_length/ja", "candidate", None, None),
        ],
        not_run: vec![NotRun {
            id: "needle/166000/ja".into(),
            reason: NOT_RUN.into(),
        }],
        conditions: conditions(),
        tool: Tool {
            name: "sekimon".into(),
            version: "0.1.0".into(),
        },
    }
}

pub(super) const NOT_RUN: &str = "the run was interrupted by SIGINT before its window";

fn window(
    id: &str,
    case: &str,
    build: &str,
    tokens: Option<u64>,
    counted: Option<f64>,
) -> WindowRef {
    WindowRef {
        id: id.into(),
        case: case.into(),
        part: "measure".into(),
        build: build.into(),
        boot: if build == "candidate" { "b2" } else { "b1" }.into(),
        started: "2026-09-04T10:51:02Z".into(),
        seconds: 39.7,
        requests: 4,
        failed: u64::from(tokens.is_none()),
        prompt_tokens: tokens.map(|_| 1_204),
        completion_tokens: tokens,
        seat: SeatCounts {
            prompt_tokens: counted.map(|_| 1_204.0),
            generation_tokens: counted,
        },
        incidents: if tokens.is_none() {
            vec!["request 3 sent no usage".into()]
        } else {
            Vec::new()
        },
    }
}

fn conditions() -> Conditions {
    let pairs = |list: &[(&str, &str)]| {
        list.iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect::<Vec<_>>()
    };
    let boot = |id: &str, build: &str, env: &[(&str, &str)]| BootRecipe {
        id: id.into(),
        build: build.into(),
        command: vec!["bash".into(), "serve-dsv4-tp8.sh".into()],
        env: pairs(env),
        ready_s: Some(1_312.4),
        identity: pairs(&[
            ("dialect", "vllm"),
            ("model", "DSV4-Flash"),
            ("max_model_len", "389120"),
        ]),
        log: "container `dsv4`".into(),
    };
    Conditions {
        attempt: Attempt {
            earlier: 1,
            new_build: None,
        },
        started: "2026-09-04T10:42:17Z".into(),
        seconds: 14_402.0,
        ended: "interrupted by SIGINT".into(),
        boots: vec![
            boot(
                "b1",
                "incumbent",
                &[
                    ("IMAGE", "dsv4-dense"),
                    ("MAXLEN", "389120"),
                    ("UTIL", "0.97"),
                ],
            ),
            boot(
                "b2",
                "candidate",
                &[
                    ("IMAGE", "dsv4-dense"),
                    ("MAXLEN", "389120"),
                    ("MOE_KERNEL", "lna2"),
                    ("UTIL", "0.972"),
                ],
            ),
        ],
        requests: ["throughput/code/1", "throughput/en/4", "throughput/ja/4"]
            .map(|case| CaseConditions {
                case: case.into(),
                values: pairs(&[
                    ("temperature", "0"),
                    ("max_tokens", "1024"),
                    ("stream", "true"),
                ]),
            })
            .into(),
        host: pairs(&[
            ("kernel", "6.8.0"),
            ("cpu", "AMD EPYC 9354"),
            ("cores", "64"),
        ]),
        gpu: pairs(&[("0–7", "NVIDIA RTX A4000, 16 GiB")]),
    }
}
