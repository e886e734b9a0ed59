//! `health`: the seat answers, offers the model, and its log shows no crash and nothing that forbids acceptance.

use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::log;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::Task;
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, ProofNeed, Read as _, Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Health;

const FIGURES: &[FigureKind] = &[FigureKind {
    name: "health",
    unit: "word",
    unit_aliases: &[],
    words: &["ok", "unwell"],
    judged: Judged::Each,
    about: "`ok` when the health route answers 2xx and the model is offered.",
}];

const KEYS: &[Key] = &[Key {
    name: "log",
    takes: Takes::Word(&["wanted", "none"]),
    default: Default::Text("wanted"),
    about: "`wanted`: without a whole log the case is UNPROVEN; `none`: this seat gives no log, and only its answers are looked at.",
}];

/// Lines that no healthy log holds, with what they mean.
const CRASHES: &[(&str, &str)] = &[
    (r"Traceback \(most recent call last\)", "a Python traceback"),
    (
        r"(?i)\bCUDA (?:error|out of memory)\b|OutOfMemoryError",
        "a CUDA error",
    ),
    (r"(?i)segmentation fault|core dumped", "a crash"),
    (
        r"EngineDeadError|EngineCore encountered a fatal error",
        "a dead engine",
    ),
];

const DECLARATION: Declaration = Declaration {
    name: "health",
    about: "The seat answers, offers the model, and its log holds no crash and no line that forbids acceptance (synthetic acceptance, dummy weights).",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for Health {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }
}

impl Planned for Health {
    fn windows(&self, _slot: &Slot<'_>) -> Vec<WindowWish> {
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Look,
        }]
    }
}

impl Concludes for Health {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let mut conclusion = Conclusion::default();
        for window in &windows {
            conclusion.reasons.extend(unwell(window));
            conclusion.reasons.extend(bad_lines(view, window));
        }
        conclusion.measured.push(Measured {
            figure: "health",
            sample: Sample::Words(
                windows
                    .iter()
                    .map(|w| if unwell(w).is_some() { "unwell" } else { "ok" }.to_owned())
                    .collect(),
            ),
            windows: windows.iter().map(|w| w.id.clone()).collect(),
        });
        conclusion.measured.retain(|m| !m.sample.is_empty());
        conclusion
    }
}

fn unwell(window: &Window) -> Option<Reason> {
    let fault = window
        .results
        .get("health_fault")
        .and_then(|v| v.as_str())?;
    Some(Reason::new(
        "health.unwell",
        Verdict::Fail,
        format!("{}: {fault}", window.id),
        format!("{}: {fault}", window.id),
    ))
}

fn no_log(window: &Window) -> Reason {
    Reason::new(
        "log.absent",
        Verdict::Unproven,
        format!(
            "there is no log of {}: that it holds no crash and nothing that forbids acceptance is not proven; name the log (`[seat] log = …`), or say `log = \"none\"`",
            window.boot
        ),
        format!(
            "{} のログが無い: クラッシュや禁止行が無いことを証明できない。`[seat] log = …` でログを指定するか、`log = \"none\"` と書くこと",
            window.boot
        ),
    )
}

fn bad_lines(view: &View<'_>, window: &Window) -> Vec<Reason> {
    let reader = match log::of_boot(view, window) {
        Some(reader) => reader,
        None if view.check.params.text("log") == Some("none") => return Vec::new(),
        None => return vec![no_log(window)],
    };
    let crashes = CRASHES.iter().copied();
    let forbidden = view
        .dialect
        .map_or(&[][..], |d| d.forbidden)
        .iter()
        .map(|f| (f.pattern, f.why));
    crashes
        .chain(forbidden)
        .filter_map(|(pattern, why)| {
            let count = reader.count(pattern, None)?;
            (count.total > 0).then(|| {
                let example = count.examples.first().cloned().unwrap_or_default();
                Reason::new(
                    "log.forbidden",
                    Verdict::Fail,
                    format!(
                        "the log of {} holds {why} ({}×): {example}",
                        window.boot, count.total
                    ),
                    format!(
                        "{} のログに {why}（{} 回）: {example}",
                        window.boot, count.total
                    ),
                )
            })
        })
        .collect()
}
