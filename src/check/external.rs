//! `external`: figures that another tool made, held to limits and shown as that tool's, never as ours.

use regex::Regex;

use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::tool_output::{Ended, ToolOutput, ToolText, by_field, by_pattern, junit};
use crate::evidence::window::Window;
use crate::judge::figure::Origin;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{ExternalTask, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct External;

const fn figure(name: &'static str, unit: &'static str, about: &'static str) -> FigureKind {
    FigureKind {
        name,
        unit,
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::Each,
        about,
    }
}

const FIGURES: &[FigureKind] = &[
    figure(
        "value",
        "",
        "A number of the tool, in the unit that its row names; the last one where there are several.",
    ),
    figure(
        "worst",
        "",
        "The largest of the numbers that the tool gives (a relative error over all cases).",
    ),
    figure(
        "least",
        "",
        "The smallest of the numbers that the tool gives (a bandwidth over all devices).",
    ),
    figure(
        "cases",
        "cases",
        "Cases that ran; skipped ones are not counted.",
    ),
    figure(
        "failures",
        "cases",
        "Cases that failed or broke, by the tool's own account.",
    ),
    figure("skipped", "cases", "Cases that the tool skipped."),
    figure("exit_code", "", "Exit code of the command."),
];

const ROW: &[Key] = &[
    Key {
        name: "figure",
        takes: Takes::Word(&["value", "worst", "least", "cases", "failures", "skipped"]),
        default: Default::Required,
        about: "Figure that the row fills; each one once.",
    },
    Key {
        name: "pattern",
        takes: Takes::Text,
        default: Default::Absent,
        about: "For `text`: regular expression whose group `value`, else its first group, is the number.",
    },
    Key {
        name: "field",
        takes: Takes::Text,
        default: Default::Text("value"),
        about: "For `jsonl`: field that holds the number.",
    },
    Key {
        name: "name",
        takes: Takes::Text,
        default: Default::Absent,
        about: "For `jsonl`: only rows whose `name` is this.",
    },
    Key {
        name: "unit",
        takes: Takes::Text,
        default: Default::Absent,
        about: "Unit of the number as the tool means it (`GB/s`); shown, never converted.",
    },
];

const KEYS: &[Key] = &[
    Key {
        name: "command",
        takes: Takes::Texts,
        default: Default::Absent,
        about: "Command that is run now, in the gate's folder; `{url}`, `{port}`, `{model}` and `{gate}` are filled in, SEKIMON_URL and SEKIMON_BUILD are set.",
    },
    Key {
        name: "file",
        takes: Takes::Text,
        default: Default::Absent,
        about: "Result file, relative to the gate's folder; with a command, the command must write it.",
    },
    Key {
        name: "sha256",
        takes: Takes::Text,
        default: Default::Absent,
        about: "SHA-256 that the result file must have.",
    },
    Key {
        name: "max_age",
        takes: Takes::Time,
        default: Default::Absent,
        about: "Age that a result file may have; an older one is unproven.",
    },
    Key {
        name: "deadline",
        takes: Takes::Time,
        default: Default::Number(600.0),
        about: "Time that the command may take; then it is killed with everything that it started.",
    },
    Key {
        name: "format",
        takes: Takes::Word(&["exit", "text", "jsonl", "junit"]),
        default: Default::Text("exit"),
        about: "`exit`: the exit code alone; `text`: numbers by pattern; `jsonl`: JSON lines; `junit`: JUnit XML.",
    },
    Key {
        name: "read",
        takes: Takes::Rows(ROW),
        default: Default::Absent,
        about: "Numbers to read, for `text` and `jsonl`.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "external",
    about: "Figures that another tool made, from a command run now or a result file with its hash and age; shown as external.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for External {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let params = &check.params;
        let mut faults = Vec::new();
        let mut fault = |key, message: String, help: &str| {
            faults.push(KindFault {
                key: Some(key),
                message,
                help: help.into(),
            });
        };
        let format = params.text("format").unwrap_or("exit");
        let (command, rows) = (params.texts("command"), params.rows("read"));
        if command.is_empty() && params.text("file").is_none() {
            fault(
                "command",
                "neither `command` nor `file` is named".into(),
                "name one of them",
            );
        }
        if command.is_empty() && format == "exit" {
            fault(
                "format",
                "a file has no exit code".into(),
                "name another `format`, or a `command`",
            );
        }
        let wants_rows = matches!(format, "text" | "jsonl");
        if wants_rows == rows.is_empty() {
            let message = format!(
                "`format = \"{format}\"` and {} rows under `read`",
                rows.len()
            );
            fault(
                "read",
                message,
                "`text` and `jsonl` need rows, `exit` and `junit` take none",
            );
        }
        for (at, row) in rows.iter().enumerate() {
            let name = row.text("figure");
            if rows[..at].iter().any(|r| r.text("figure") == name) {
                let message = format!("`{}` is read twice", name.unwrap_or_default());
                fault("read", message, "one row a figure; write a second check");
            }
            match (format, row.text("pattern").map(Regex::new)) {
                ("text", None) => fault("read", "a row has no `pattern`".into(), "name one"),
                ("text", Some(Err(cause))) => {
                    fault(
                        "read",
                        format!("no regular expression: {cause}"),
                        "escape what is meant literally",
                    );
                }
                ("text", Some(Ok(regex))) if regex.captures_len() < 2 => {
                    fault(
                        "read",
                        format!("`{regex}` has no group"),
                        "put the number in parentheses",
                    );
                }
                _ => {}
            }
        }
        faults
    }
}

impl Planned for External {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let params = &slot.check.params;
        vec![WindowWish {
            part: "measure".into(),
            task: Task::External(ExternalTask {
                command: params.texts("command").to_vec(),
                file: params.text("file").map(ToOwned::to_owned),
                deadline_s: params.number("deadline").unwrap_or(600.0).ceil().max(1.0) as u64,
            }),
        }]
    }
}

impl Concludes for External {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        let mut seen: Vec<Measured> = Vec::new();
        for window in view.windows("measure") {
            let output = window.results.get("external").cloned();
            let Some(Ok(output)) = output.map(serde_json::from_value::<ToolOutput>) else {
                conclusion.reasons.push(unproven(
                    "external.unread",
                    "the run holds no output of the tool",
                    "外部の道具の出力が記録に無い",
                ));
                continue;
            };
            for (figure, value) in read(&view.check.params, &output, &mut conclusion) {
                add(&mut seen, figure, value, window);
            }
        }
        conclusion.measured = seen;
        conclusion
    }

    fn origin(&self) -> Origin {
        Origin::External
    }
}

fn add(seen: &mut Vec<Measured>, figure: &'static str, value: f64, window: &Window) {
    match seen.iter_mut().find(|m| m.figure == figure) {
        Some(Measured {
            sample: Sample::Each(values),
            windows,
            ..
        }) => {
            values.push(value);
            windows.push(window.id.clone());
        }
        _ => seen.push(Measured {
            figure,
            sample: Sample::Each(vec![value]),
            windows: vec![window.id.clone()],
        }),
    }
}

fn unproven(code: &str, en: impl Into<String>, ja: impl Into<String>) -> Reason {
    Reason::new(code, Verdict::Unproven, en, ja)
}

/// The figures of one output; what speaks against it goes into the conclusion.
fn read(params: &Params, output: &ToolOutput, to: &mut Conclusion) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    if let Some(Ended::Exited { code, .. }) = &output.ended {
        figures.push(("exit_code", f64::from(*code)));
    }
    to.reasons.extend(ending(output));
    let format = params.text("format").unwrap_or("exit");
    let file_wanted = params.text("file").is_some();
    let started = !matches!(
        output.ended,
        Some(Ended::NotStarted { .. } | Ended::TimedOut { .. } | Ended::Interrupted)
    );
    if !started || (format == "exit" && !file_wanted) {
        return figures;
    }
    let text = match &output.text {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => {
            to.reasons.push(not_read("external.absent", absent));
            return figures;
        }
    };
    to.notes.push(provenance(text));
    to.reasons.extend(provenance_faults(params, text));
    let found = match format {
        "junit" => from_junit(&text.text, to),
        "exit" => Vec::new(),
        _ => from_rows(params, format, &text.text, to),
    };
    if found.iter().any(|(f, v)| *f == "cases" && *v == 0.0) {
        to.reasons.push(unproven(
            "external.no_cases",
            "the tool ran no case at all: nothing failed because nothing was tried",
            "1 件も実行されていない: 失敗が無いのは何も試していないから",
        ));
        // Figures of no cases would be held to limits as if something had been tried.
        return figures;
    }
    if let Some((_, failed)) = found.iter().find(|(f, v)| *f == "failures" && *v > 0.0)
        && format != "junit"
    {
        to.reasons.push(Reason::new(
            "external.failures",
            Verdict::Fail,
            format!("{failed} cases failed by the tool's own account"),
            format!("外部の道具の申告で {failed} 件失敗"),
        ));
    }
    figures.extend(found);
    figures
}

fn not_read(code: &str, absent: &Absent) -> Reason {
    unproven(
        code,
        format!("{}; {}", absent.why, absent.mend),
        format!("読み取れない: {}; {}", absent.why, absent.mend),
    )
}

fn provenance(text: &ToolText) -> String {
    let age = text
        .age_s
        .map(|s| format!(", {s} s old"))
        .unwrap_or_default();
    format!(
        "external: {} ({} bytes, sha256 {}{age})",
        text.source, text.bytes, text.sha256
    )
}

/// What speaks against the command's end.
fn ending(output: &ToolOutput) -> Option<Reason> {
    let said = output
        .stderr
        .lines()
        .last()
        .map(|l| format!(": {l}"))
        .unwrap_or_default();
    let command = output.command.join(" ");
    let fail = |code: &str, en: String, ja: String| Some(Reason::new(code, Verdict::Fail, en, ja));
    match output.ended.as_ref()? {
        Ended::Exited { code: 0, .. } => None,
        Ended::Exited { code, .. } => fail(
            "external.exit",
            format!("`{command}` ended with exit code {code}{said}"),
            format!("`{command}` が終了コード {code} で終わった{said}"),
        ),
        Ended::Signalled { signal } => fail(
            "external.exit",
            format!("`{command}` was ended by signal {signal}{said}"),
            format!("`{command}` がシグナル {signal} で終わった{said}"),
        ),
        Ended::TimedOut { deadline_s } => fail(
            "external.timeout",
            format!(
                "`{command}` did not end within {deadline_s} s and was killed; raise `deadline` if it needs more"
            ),
            format!(
                "`{command}` が {deadline_s} 秒以内に終わらず止められた（必要なら `deadline` を延ばす）"
            ),
        ),
        Ended::NotStarted { why } => Some(unproven(
            "external.not_started",
            format!("the command could not be run: {why}; install it or mend `command`"),
            format!("コマンドを実行できない: {why}"),
        )),
        Ended::Interrupted => Some(unproven(
            "external.interrupted",
            "the run was interrupted while the command ran",
            "コマンドの途中で中断された",
        )),
    }
}

/// What speaks against a text's hash, age or length.
fn provenance_faults(params: &Params, text: &ToolText) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let source = &text.source;
    if !text.whole {
        reasons.push(unproven(
            "external.cut",
            format!(
                "{source} has {} bytes, more than are kept: what follows was not read",
                text.bytes
            ),
            format!("{source} は {} バイトあり、全体を読んでいない", text.bytes),
        ));
    }
    if let Some(wanted) = params
        .text("sha256")
        .filter(|w| !w.eq_ignore_ascii_case(&text.sha256))
    {
        reasons.push(unproven(
            "external.sha256",
            format!(
                "{source} is not the file that the gate names: SHA-256 {} instead of {wanted}",
                text.sha256
            ),
            format!(
                "{source} はゲートの指すファイルではない: SHA-256 {}（期待 {wanted}）",
                text.sha256
            ),
        ));
    }
    if let (Some(most), Some(age)) = (params.number("max_age"), text.age_s)
        && age as f64 > most
    {
        reasons.push(unproven(
            "external.old",
            format!(
                "{source} is too old: {age} s, and `max_age` allows {most} s; run the tool again"
            ),
            format!("{source} が古すぎる: {age} 秒（`max_age` は {most} 秒）"),
        ));
    }
    reasons
}

fn from_junit(text: &str, to: &mut Conclusion) -> Vec<(&'static str, f64)> {
    let cases = match junit(text) {
        Ok(cases) => cases,
        Err(absent) => {
            to.reasons.push(not_read("external.unreadable", &absent));
            return Vec::new();
        }
    };
    if let Some(first) = cases.failed.first() {
        to.reasons.push(Reason::new(
            "external.failures",
            Verdict::Fail,
            format!(
                "{} of {} cases failed, first `{first}`",
                cases.failed.len(),
                cases.ran
            ),
            format!(
                "{} 件中 {} 件失敗（最初は `{first}`）",
                cases.ran,
                cases.failed.len()
            ),
        ));
    }
    if cases.skipped > 0 {
        to.notes.push(format!(
            "external: {} cases were skipped and prove nothing",
            cases.skipped
        ));
    }
    vec![
        ("cases", cases.ran as f64),
        ("failures", cases.failed.len() as f64),
        ("skipped", cases.skipped as f64),
    ]
}

fn from_rows(
    params: &Params,
    format: &str,
    text: &str,
    to: &mut Conclusion,
) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    for row in params.rows("read") {
        let Some(kind) = FIGURES.iter().find(|f| Some(f.name) == row.text("figure")) else {
            continue;
        };
        let values = if format == "text" {
            by_pattern(text, row.text("pattern").unwrap_or_default())
        } else {
            by_field(text, row.text("name"), row.text("field").unwrap_or("value"))
        };
        let value = values.map(|v| match kind.name {
            "worst" => v.into_iter().reduce(f64::max),
            "least" => v.into_iter().reduce(f64::min),
            _ => v.last().copied(),
        });
        match value {
            Ok(Some(value)) => {
                figures.push((kind.name, value));
                let unit = row.text("unit").unwrap_or(kind.unit);
                to.notes.push(
                    format!("external: {} = {value} {unit}", kind.name)
                        .trim_end()
                        .to_owned(),
                );
            }
            Ok(None) => {}
            Err(absent) => to.reasons.push(not_read("external.no_match", &absent)),
        }
    }
    figures
}
