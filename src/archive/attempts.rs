//! Earlier attempts: runs of the same gate that did not pass, so that "again until it is green" is seen and paid for.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::record::{Record, Start};

/// How long an attempt counts. A re-run follows within the working day; a nightly run, which begins a day later on a seat
/// that served in between, is a new question and not another try.
const COUNTS_FOR: SignedDuration = SignedDuration::from_hours(12);

/// What a run is asked about: two runs that agree in this ask the same question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question<'a> {
    /// SHA-256 of the gate file.
    pub gate_sha256: &'a str,
    /// URL in place of the gate's, if any.
    pub seat: Option<&'a str>,
}

/// Ids of the attempts at a question since it last passed, oldest first.
///
/// `home` is the folder of the gate's runs. A run that measured nothing (the seat never came up) is no attempt; one that was
/// broken off in the middle is: somebody may have seen where it went.
pub fn earlier(home: &Path, question: Question<'_>, now: Timestamp) -> Vec<String> {
    let mut runs: Vec<Attempt> = fs::read_dir(home)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Attempt::read(&entry.path()))
        .filter(|a| a.start.gate_sha256 == question.gate_sha256)
        .filter(|a| a.start.seat_override.as_deref() == question.seat)
        .filter(|a| now.duration_since(a.started) <= COUNTS_FOR)
        .collect();
    runs.sort_by_key(|a| a.started);
    let since_pass = runs
        .iter()
        .rposition(|a| a.ending == Ending::Passed || a.start.new_build.is_some())
        .map_or(0, |at| {
            // A run that began with a new build is an attempt itself, unless it passed.
            at + usize::from(runs[at].ending == Ending::Passed)
        });
    runs.drain(..since_pass);
    runs.into_iter()
        .filter(|a| a.ending == Ending::Looked)
        .map(|a| a.start.id)
        .collect()
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Ending {
    /// The gate passed.
    Passed,
    /// Something was measured, and it did not pass or was broken off.
    Looked,
    /// Nothing was measured.
    Nothing,
}

struct Attempt {
    start: Start,
    started: Timestamp,
    ending: Ending,
}

/// As much of a report as matters here.
#[derive(Deserialize)]
struct Verdict {
    verdict: String,
}

impl Attempt {
    fn read(dir: &Path) -> Option<Self> {
        let file = File::open(dir.join("evidence/journal.jsonl")).ok()?;
        let mut lines = BufReader::new(file).lines();
        let Ok(Record::Start(start)) = serde_json::from_str(&lines.next()?.ok()?) else {
            return None;
        };
        let started = start.started.parse().ok()?;
        let passed = fs::read(dir.join("report.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Verdict>(&bytes).ok())
            .is_some_and(|report| report.verdict == "pass");
        let ending = if passed {
            Ending::Passed
        } else if lines.map_while(Result::ok).any(|l| is_window(&l)) {
            Ending::Looked
        } else {
            Ending::Nothing
        };
        Some(Self {
            start: *start,
            started,
            ending,
        })
    }
}

/// Whether a journal line closes a window; the tag stands first, so the line need not be parsed.
fn is_window(line: &str) -> bool {
    line.starts_with(r#"{"record":"window""#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: &str = "2026-12-01T12:00:00Z";
    const ASKED: Question<'_> = Question {
        gate_sha256: "g",
        seat: None,
    };

    fn run(home: &Path, id: &str, started: &str, sha: &str, verdict: Option<&str>) {
        let dir = home.join(id);
        fs::create_dir_all(dir.join("evidence")).unwrap();
        let start = json!({
            "record": "start", "id": id, "started": started, "tool_version": "0", "gate": "g", "gate_file": "g.toml",
            "gate_sha256": sha, "seed": 1, "host": [],
        });
        fs::write(
            dir.join("evidence/journal.jsonl"),
            format!("{start}\n{{\"record\":\"window\",\"id\":\"w1\"}}\n"),
        )
        .unwrap();
        if let Some(verdict) = verdict {
            let report = json!({ "verdict": verdict, "checks": [] });
            fs::write(dir.join("report.json"), report.to_string()).unwrap();
        }
    }

    fn earlier_at_noon(home: &Path) -> Vec<String> {
        earlier(home, ASKED, NOW.parse().unwrap())
    }

    #[test]
    fn runs_since_the_last_pass_count_and_so_does_one_that_was_broken_off() {
        let home = tempfile::tempdir().unwrap();
        run(home.path(), "a", "2026-12-01T08:00:00Z", "g", Some("fail"));
        run(home.path(), "b", "2026-12-01T09:00:00Z", "g", Some("pass"));
        run(
            home.path(),
            "c",
            "2026-12-01T10:00:00Z",
            "g",
            Some("inconclusive"),
        );
        run(home.path(), "d", "2026-12-01T11:00:00Z", "g", None);
        assert_eq!(earlier_at_noon(home.path()), ["c", "d"]);
    }

    #[test]
    fn another_gate_and_last_night_do_not_count() {
        let home = tempfile::tempdir().unwrap();
        run(
            home.path(),
            "other",
            "2026-12-01T10:00:00Z",
            "x",
            Some("fail"),
        );
        run(
            home.path(),
            "night",
            "2026-11-30T23:00:00Z",
            "g",
            Some("fail"),
        );
        assert!(earlier_at_noon(home.path()).is_empty());
    }

    #[test]
    fn a_run_that_measured_nothing_is_no_attempt() {
        let home = tempfile::tempdir().unwrap();
        run(
            home.path(),
            "a",
            "2026-12-01T10:00:00Z",
            "g",
            Some("not_run"),
        );
        let journal = home.path().join("a/evidence/journal.jsonl");
        let first = fs::read_to_string(&journal).unwrap();
        fs::write(&journal, first.lines().next().unwrap()).unwrap();
        assert!(earlier_at_noon(home.path()).is_empty());
    }

    #[test]
    fn a_folder_without_runs_has_no_attempts() {
        let home = tempfile::tempdir().unwrap();
        assert!(earlier_at_noon(&home.path().join("none")).is_empty());
        fs::create_dir(home.path().join("stray")).unwrap();
        assert!(earlier_at_noon(home.path()).is_empty());
    }
}
