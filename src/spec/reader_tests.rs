//! The reader against good gates, bad ones, and broken ones.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::expect::{Limit, Reference};
use super::faults::{Colour, Faults, Severity};
use super::gate::{Count, LogSource, Occupancy, Ranks, Repeats, ResidentClaim};
use super::kind::Read as _;
use super::read::{Reading, read};
use super::test_kinds::{GOOD, kinds};

fn reading(source: &str) -> Result<Reading, Faults> {
    read("a", "a.toml", source, &kinds())
}

fn good() -> Reading {
    reading(GOOD).unwrap_or_else(|faults| panic!("{}", faults.plain()))
}

fn faults(source: &str) -> Faults {
    match reading(source) {
        Err(faults) => faults,
        Ok(reading) => reading.warnings,
    }
}

/// Folder of the bad gates with what is said of each.
fn bad() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/gates/bad")
}

fn bad_gates() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(bad())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    all.sort();
    all
}

#[test]
fn every_bad_gate_is_told_what_is_wrong_and_where() {
    let all = bad_gates();
    assert!(all.len() >= 40, "{} bad gates", all.len());
    for path in all {
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let found = read(&name, &format!("{name}.toml"), &source, &kinds());
        let refused = found.is_err();
        let said = match found {
            Err(faults) => faults,
            Ok(reading) => reading.warnings,
        };
        assert!(!said.is_empty(), "{name} is not told anything");
        assert_eq!(refused, name != "unused-path", "{name}");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(bad());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name.as_str(), said.plain()));
    }
}

#[test]
fn a_good_gate_is_read_whole() {
    let Reading { gate, warnings } = good();
    assert!(warnings.is_empty(), "{}", warnings.plain());
    assert_eq!(gate.title, "席の門: a gate");
    assert_eq!(gate.seat.url, "http://127.0.0.1:0");
    assert_eq!(gate.seat.dialect.map(|d| d.id), Some("vllm"));
    assert_eq!(
        gate.seat.ranks,
        Ranks {
            tp: 4,
            pp: 2,
            dp: 1,
            nodes: 2
        }
    );
    assert_eq!(gate.seat.occupancy, Occupancy::OneAtATime);
    assert_eq!(gate.seat.clock_floor_mhz, Some(1500));
    assert_eq!(gate.seat.log, Some(LogSource::Docker("dsv4".into())));
    let path = gate.path("lna2").unwrap();
    assert_eq!(path.moved[0].at_least, 16.0);
    assert!(path.resident.iter().any(
        |c| matches!(c, ResidentClaim::Env { name, value: Some(v) } if name == "STRICT" && v.is_empty())
    ));
    assert!(
        path.resident
            .iter()
            .any(|c| matches!(c, ResidentClaim::Env { name, value: None } if name == "FALLBACK"))
    );
    let old = gate.path("old").unwrap();
    assert_eq!(old.announced[0].on, Count::Exactly(8));
    assert!(old.announced.len() > 2, "the presets' lines are added");
    assert_eq!(gate.runs["certified"].path, "reports/certified");
}

#[test]
fn a_check_has_its_keys_limits_and_defaults() {
    let gate = good().gate;
    let speed = gate.check("speed").unwrap();
    assert_eq!(speed.repeats, Repeats { min: 8, max: 20 });
    assert_eq!(
        (speed.alpha, speed.max_swing, speed.subject()),
        (0.01, Some(0.04), "candidate")
    );
    assert_eq!(
        speed.params.count("max_tokens"),
        Some(256),
        "the kind's default"
    );
    let limits: Vec<_> = speed
        .expect
        .iter()
        .map(|e| (e.cell.as_deref(), e.limit.clone(), e.line))
        .collect();
    let line = |text: &str| 1 + GOOD.lines().position(|l| l.contains(text)).unwrap();
    assert_eq!(
        limits,
        [
            (
                None,
                Limit::RatioAtLeast(1.05, Reference::Build("incumbent".into())),
                line("decode_tok_s = [")
            ),
            (
                None,
                Limit::RatioAtLeast(0.98, Reference::Run("certified".into())),
                line("decode_tok_s = [")
            ),
            (None, Limit::AtMost(0.25), line("250 ms")),
            (
                Some("code/1"),
                Limit::Between(100.0, 1000.0),
                line("code/1")
            ),
        ]
    );
    assert_eq!(
        gate.check("needle").unwrap().params.number("deadline"),
        Some(7200.0)
    );
    assert_eq!(gate.check("health").unwrap().params.rows("rows").len(), 1);
}

#[test]
fn like_takes_everything_and_an_empty_value_stays_a_value() {
    let gate = good().gate;
    let candidate = gate.build("candidate").unwrap();
    assert_eq!(candidate.start, ["serve", "--port", "{port}"]);
    assert_eq!(candidate.ready, Duration::from_secs(45 * 60));
    assert_eq!(candidate.cwd.as_deref(), Some("recipes"));
    let env: Vec<_> = candidate
        .env
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(env, [("KERNEL", "lna2"), ("SEQS", "4"), ("SPEC", "")]);
    assert_eq!(candidate.path.as_deref(), Some("lna2"));
}

#[test]
fn a_gate_without_builds_attaches_to_what_serves() {
    let source = "title = 't'\n[seat]\nurl = 'http://h:1'\n[[check]]\nkind = 'health'\n";
    let gate = reading(source).unwrap().gate;
    assert_eq!(gate.builds.len(), 1);
    assert!(gate.builds[0].start.is_empty());
    assert_eq!(gate.checks[0].builds, ["seat"]);
}

/// Every deletion of one character, and every place with a character too many, is read to the end.
#[test]
fn a_gate_with_one_character_wrong_is_a_gate_or_has_faults_in_the_file() {
    let mut refused = 0;
    let places = GOOD
        .char_indices()
        .map(|(at, c)| (at, at + c.len_utf8()))
        .filter(|(at, _)| GOOD.is_char_boundary(*at));
    for (at, next) in places {
        for new in ["", "門", "\""] {
            // One foreign character in three places is enough for each kind of place.
            if !new.is_empty() && at % 3 != 0 {
                continue;
            }
            let source = [&GOOD[..at], new, &GOOD[next..]].concat();
            let found = reading(&source);
            let (said, is_refused) = match &found {
                Ok(reading) => (&reading.warnings, false),
                Err(faults) => (faults, true),
            };
            for fault in &said.list {
                assert!(fault.span.end <= source.len(), "{at}: {fault:?}");
            }
            assert_eq!(said.render(Colour::Ansi).is_empty(), said.is_empty());
            assert!(!is_refused || !said.is_empty(), "refused without a word");
            refused += usize::from(is_refused);
        }
    }
    assert!(refused > 1000, "only {refused} were refused");
}

#[test]
fn many_faults_in_one_file_are_told_at_once_each_at_its_line() {
    let source = "title = 't'\nextra = 1\n\n[seat]\nurl = 'ftp://h'\nranks = 0\n\n[builds.a]\nlike = 'b'\n\n[paths.p]\nannounced = { line = '(' }\nmoved = { counter = 'x{' }\n\n[[check]]\nkind = 'throughput'\npath = 'q'\nrepeats = 0\nexpect = { decode_tok_s = '>= 1 s', decode = '>= 1' }\n\n[[check]]\nkind = 'nedle'\n";
    let faults = faults(source);
    let mut lines: Vec<u64> = faults
        .to_json()
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["severity"] == "error")
        .map(|f| f["line"].as_u64().unwrap())
        .collect();
    assert!(lines.is_sorted(), "in the order of the file: {lines:?}");
    lines.dedup();
    assert_eq!(lines, [2, 5, 6, 9, 12, 13, 17, 18, 19, 22]);
}

#[test]
fn a_fault_for_scripts_says_where_by_line_column_and_byte() {
    let source = GOOD.replace(">= 1.05 x incumbent", ">= 1.05 x 現職");
    let said = faults(&source);
    assert_eq!(said.list.len(), 1, "{}", said.plain());
    let json = &said.to_json()[0];
    let at = source.find("現職").unwrap();
    assert_eq!(
        (json["start"].as_u64(), json["end"].as_u64()),
        (Some(at as u64), Some(at as u64 + 6))
    );
    assert_eq!(json["column"], 30);
    assert_eq!(json["file"], "a.toml");
    assert_eq!(said.list[0].severity, Severity::Error);
    assert_eq!(&source[said.list[0].span.clone()], "現職");
}

#[test]
fn no_rendering_carries_terminal_codes_or_a_secret() {
    for path in bad_gates() {
        let source = std::fs::read_to_string(&path).unwrap();
        let said = read("n\u{1b}", "f\u{1b}[2J.toml", &source, &kinds())
            .map_or_else(|faults| faults.plain(), |reading| reading.warnings.plain());
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert_eq!(said.find(steers), None, "{}: {said}", path.display());
        for secret in ["sk-live", "hunter2"] {
            assert!(!said.contains(secret), "{}: {said}", path.display());
        }
    }
}

#[test]
fn colour_is_a_matter_of_asking() {
    let said = faults("");
    assert!(said.render(Colour::Ansi).contains("\u{1b}["));
    assert!(!said.render(Colour::Plain).contains('\u{1b}'));
}

#[test]
fn a_return_that_ends_no_line_is_shown() {
    let said = faults("title = 3 # \rtitle = 'safe'\r\n");
    assert!(!said.plain().contains('\r'), "{}", said.plain());
}
