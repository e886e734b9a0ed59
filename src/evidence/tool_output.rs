//! What another tool left behind, and the pure readers of its forms: JUnit, JSON lines, text by pattern.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::absence::{Absent, Sighting};

/// What was recorded of one command or result file of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The command, secrets redacted; empty when only a file was read.
    #[serde(default)]
    pub command: Vec<String>,
    /// How the command ended; absent when only a file was read.
    #[serde(default)]
    pub ended: Option<Ended>,
    /// Last bytes of standard error, for messages.
    #[serde(default)]
    pub stderr: String,
    /// The text that figures are read from.
    pub text: Sighting<ToolText>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this exit code.
    Exited {
        /// Exit code.
        code: i32,
        /// Seconds that it ran.
        seconds: f64,
    },
    /// By a signal.
    Signalled {
        /// Signal number.
        signal: i32,
    },
    /// It was killed at its deadline, with everything that it had started.
    TimedOut {
        /// Deadline in seconds.
        deadline_s: u64,
    },
    /// It could not be run at all.
    NotStarted {
        /// Why.
        why: String,
    },
    /// The run was interrupted.
    Interrupted,
}

/// A text of another tool with its provenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolText {
    /// Where it comes from (`standard output`, a file's path as the gate names it).
    pub source: String,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Bytes of the whole.
    pub bytes: u64,
    /// Whether all of it is kept; a longer one is cut.
    pub whole: bool,
    /// Lower-case hex SHA-256 of the whole; for a cut one, of what is kept.
    pub sha256: String,
    /// Seconds since the last change, at the moment of reading; absent for standard output.
    pub age_s: Option<u64>,
}

/// Cases of a test report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cases {
    /// Cases that ran (skipped ones not counted).
    pub ran: u64,
    /// Names of the cases with a `failure` or an `error`, in order.
    pub failed: Vec<String>,
    /// Cases that were skipped.
    pub skipped: u64,
}

/// The cases of a JUnit report, counted one by one: the totals that the file claims are not trusted.
///
/// # Errors
/// When it is no XML, is cut, or holds no `testsuite`.
pub fn junit(text: &str) -> Result<Cases, Absent> {
    let again = "let the tool write JUnit XML, whole";
    let mut reader = Reader::from_str(text);
    let mut cases = Cases::default();
    let (mut name, mut bad, mut skipped) = (None::<String>, false, false);
    let (mut depth, mut suites) = (0_u32, 0_u32);
    loop {
        let event = reader
            .read_event()
            .map_err(|e| Absent::new(format!("it is no well-formed XML: {e}"), again))?;
        let (start, empty) = match &event {
            Event::Start(e) => (Some(e), false),
            Event::Empty(e) => (Some(e), true),
            _ => (None, false),
        };
        if let Some(element) = start {
            depth += u32::from(!empty);
            match element.local_name().as_ref() {
                b"testsuite" | b"testsuites" => suites += 1,
                b"testcase" => (name, bad, skipped) = (Some(case_name(element)), false, false),
                b"failure" | b"error" if name.is_some() => bad = true,
                // A suite that could not be loaded carries its error outside any case.
                b"failure" | b"error" => cases.failed.push("outside any case".into()),
                b"skipped" => skipped = true,
                _ => {}
            }
        }
        let closes = match &event {
            Event::End(e) => {
                depth = depth.saturating_sub(1);
                e.local_name().as_ref() == b"testcase"
            }
            Event::Empty(e) => e.local_name().as_ref() == b"testcase",
            Event::Eof => break,
            _ => false,
        };
        if closes && let Some(name) = name.take() {
            cases.skipped += u64::from(skipped && !bad);
            cases.ran += u64::from(!skipped || bad);
            if bad {
                cases.failed.push(name);
            }
        }
    }
    if depth > 0 {
        return Err(Absent::new("the XML ends in the middle", again));
    }
    if suites == 0 {
        return Err(Absent::new("it holds no `testsuite`", again));
    }
    Ok(cases)
}

fn case_name(element: &BytesStart<'_>) -> String {
    let of = |key: &[u8]| {
        let attribute = element
            .attributes()
            .flatten()
            .find(|a| a.key.as_ref() == key)?;
        Some(String::from_utf8_lossy(&attribute.value).into_owned())
    };
    match (of(b"classname"), of(b"name")) {
        (Some(class), Some(name)) => format!("{class}.{name}"),
        (_, Some(name)) => name,
        _ => "a case without a name".into(),
    }
}

/// Every number that a pattern's capture group holds (the one named `value`, else the first), in order.
///
/// # Errors
/// When the pattern does not compile, has no group, matches nothing, or holds something that is no finite number.
pub fn by_pattern(text: &str, pattern: &str) -> Result<Vec<f64>, Absent> {
    let regex = Regex::new(pattern).map_err(|e| {
        Absent::new(
            format!("`{pattern}` does not compile: {e}"),
            "mend the gate",
        )
    })?;
    let mut values = Vec::new();
    for found in regex.captures_iter(text) {
        let group = found
            .name("value")
            .or_else(|| found.get(1))
            .ok_or_else(|| {
                Absent::new(
                    format!("`{pattern}` captured no group"),
                    "put the number in parentheses",
                )
            })?;
        values.push(number(group.as_str())?);
    }
    if values.is_empty() {
        return Err(Absent::new(
            format!("`{pattern}` matches nothing"),
            "mend the pattern, or look why the tool did not print it",
        ));
    }
    Ok(values)
}

/// Every number under a field of JSON lines, in order; with a name, only of rows whose `name` is that.
///
/// # Errors
/// When a line is no JSON object, no row has the field, or one holds something that is no finite number.
pub fn by_field(text: &str, name: Option<&str>, field: &str) -> Result<Vec<f64>, Absent> {
    let mut values = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let row: Value = serde_json::from_str(line).map_err(|e| {
            Absent::new(
                format!("line {} is no JSON: {e}", at + 1),
                "one JSON object a line",
            )
        })?;
        let named = name.is_none_or(|n| row.get("name").and_then(Value::as_str) == Some(n));
        match row.get(field).filter(|_| named) {
            None => {}
            Some(Value::String(text)) => values.push(number(text)?),
            Some(value) => values.push(value.as_f64().ok_or_else(|| {
                Absent::new(
                    format!("line {}: `{field}` is no number", at + 1),
                    "name another field",
                )
            })?),
        }
    }
    if values.is_empty() {
        let of = name.map(|n| format!(" named `{n}`")).unwrap_or_default();
        return Err(Absent::new(
            format!("no row{of} has the field `{field}`"),
            "mend `field`, or look why the tool did not write it",
        ));
    }
    Ok(values)
}

fn number(text: &str) -> Result<f64, Absent> {
    let plain = text.trim().replace([',', '_'], "");
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(Absent::new(
            format!("`{text}` is no finite number"),
            "capture the number alone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_cases_are_counted_one_by_one() {
        let text = r#"<testsuites tests="99"><testsuite name="k"><testcase name="a"/><testcase classname="k" name="b"><failure message="x"/></testcase><testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite></testsuites>"#;
        let cases = junit(text).unwrap();
        assert_eq!((cases.ran, cases.skipped), (3, 1));
        assert_eq!(cases.failed, ["k.b", "d"]);
    }

    #[test]
    fn an_error_outside_any_case_counts_wherever_it_stands() {
        let before = r#"<testsuite><error message="no import"/><testcase name="a"/></testsuite>"#;
        let after = r#"<testsuite><testcase name="a"/><error message="no import"/></testsuite>"#;
        for text in [before, after] {
            assert_eq!(junit(text).unwrap().failed, ["outside any case"], "{text}");
        }
    }

    #[test]
    fn junit_that_is_cut_or_something_else_is_absent() {
        assert!(junit("<testsuite><testcase name=\"a\"/>").is_err());
        assert!(junit("<html></html>").is_err());
        assert!(junit("171 cases passed").is_err());
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_absent_and_not_zero() {
        assert_eq!(
            by_pattern("171 cases passed", r"(\d+) cases").unwrap(),
            [171.0]
        );
        assert_eq!(
            by_pattern("rel 1.64e-3", r"rel (?P<value>\S+)").unwrap(),
            [1.64e-3]
        );
        assert!(by_pattern("nothing", r"(\d+) cases").is_err());
        assert!(by_pattern("rel nan", r"rel (\S+)").is_err());
        assert!(by_pattern("7 cases", r"\d+ cases").is_err());
    }

    #[test]
    fn json_lines_are_read_by_name_and_field() {
        let text = "{\"name\":\"copy\",\"value\":270.5}\n{\"name\":\"add\",\"value\":\"250\"}\n";
        assert_eq!(by_field(text, Some("copy"), "value").unwrap(), [270.5]);
        assert_eq!(by_field(text, None, "value").unwrap(), [270.5, 250.0]);
        assert!(by_field(text, None, "gbs").is_err());
        assert!(by_field("copy 270", None, "value").is_err());
    }
}
