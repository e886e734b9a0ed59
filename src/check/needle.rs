//! `needle`: a fact hidden in a very long prompt that the answer must repeat, with the long prompt's TTFT.

use serde_json::{Map, Value};

use super::traffic;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::movement;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{NeedleContent, NeedleTask, Route, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Needle;

/// Words of the answer's class; `exact` is the only one that a healthy seat gives.
const CLASSES: &[&str] = &[
    "exact",
    "decoy",
    "wrong",
    "verbose",
    "empty",
    "think_only",
    "runaway",
    "truncated",
    "cached",
    "infra",
];

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "answer",
        unit: "word",
        unit_aliases: &[],
        words: CLASSES,
        judged: Judged::Each,
        about: "Class of the answer: `exact` when it is the value and nothing else and the answer ended by itself.",
    },
    FigureKind {
        name: "needle_ttft_s",
        unit: "s",
        unit_aliases: &[("ms", 0.001)],
        words: &[],
        judged: Judged::Each,
        about: "Time to the first token of the long prompt, cold.",
    },
    FigureKind {
        name: "needle_prompt_tokens",
        unit: "tokens",
        unit_aliases: &[],
        words: &[],
        judged: Judged::Each,
        about: "Prompt tokens by the answer's usage; must be the asked length exactly.",
    },
];

const KEYS: &[Key] = &[
    Key {
        name: "tokens",
        takes: Takes::Count(256, 10_000_000),
        default: Default::Count(166_000),
        about: "Prompt length in tokens, exact by the server's own tokenizer.",
    },
    Key {
        name: "languages",
        takes: Takes::Words(&["en", "ja"]),
        default: Default::Texts(&["en"]),
        about: "Languages of haystack and question.",
    },
    Key {
        name: "depths",
        takes: Takes::Counts(0, 100),
        default: Default::Counts(&[50]),
        about: "Depths of the needle in percent of the prompt.",
    },
    Key {
        name: "decoys",
        takes: Takes::Count(0, 6),
        default: Default::Count(6),
        about: "Facts of the same form with other keys, at most; 0 only for a model too small to tell them apart.",
    },
    Key {
        name: "max_tokens",
        takes: Takes::Count(8, 100_000),
        default: Default::Count(64),
        about: "Tokens of the answer at most; give a thinking model its budget.",
    },
    Key {
        name: "route",
        takes: Takes::Word(&["chat", "completion"]),
        default: Default::Text("chat"),
        about: "`chat` with the server's template, or plain `completion`.",
    },
    Key {
        name: "controls",
        takes: Takes::Flag,
        default: Default::Flag(true),
        about: "Also asks the needle in a short prompt (must be right), without the needle (the value must not appear), and for a decoy's key.",
    },
    Key {
        name: "deadline",
        takes: Takes::Time,
        default: Default::Number(900.0),
        about: "How long the first token may take.",
    },
];

/// Prompt length of the controls: long enough for haystack and decoys, short enough for any model.
const CONTROL_TOKENS: u64 = 1024;

const DECLARATION: Declaration = Declaration {
    name: "needle",
    about: "A fact in a long prompt of exact length, repeated by the answer: scored strictly, with cold TTFT, truncation and cached prefixes detected.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Needle {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        let (languages, depths) = (params.texts("languages"), params.counts("depths"));
        if languages.len() == 1 && depths.len() == 1 {
            return vec![String::new()];
        }
        languages
            .iter()
            .flat_map(|l| depths.iter().map(move |d| format!("{l}/{d}")))
            .collect()
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let (tokens, answer) = (
            check.params.count("tokens"),
            check.params.count("max_tokens"),
        );
        (tokens <= answer)
            .then(|| KindFault {
                key: Some("tokens"),
                message: "the prompt is no longer than its answer may be".into(),
                help: "a needle wants a long prompt: 166_000, or as much as the seat can hold"
                    .into(),
            })
            .into_iter()
            .collect()
    }
}

impl Planned for Needle {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let params = &slot.check.params;
        let (language, depth) = place(params, slot.cell);
        let needle = |part: &str, tokens, content| WindowWish {
            part: part.into(),
            task: Task::Needle(NeedleTask {
                tokens,
                language: language.clone(),
                depth,
                draw: slot.repeat,
                decoys: u32::try_from(params.count("decoys").unwrap_or(6)).unwrap_or(6),
                content,
                max_tokens: u32::try_from(params.count("max_tokens").unwrap_or(64))
                    .unwrap_or(u32::MAX),
                route: if params.text("route") == Some("completion") {
                    Route::Completion
                } else {
                    Route::Chat
                },
                deadline_s: params.number("deadline").unwrap_or(900.0),
            }),
        };
        let tokens = params.count("tokens").unwrap_or(166_000);
        let mut wishes = Vec::new();
        if params.flag("controls") && slot.repeat == 0 {
            let short = CONTROL_TOKENS.min(tokens);
            wishes.push(needle("control-short", short, NeedleContent::Needle));
            wishes.push(needle("control-missing", short, NeedleContent::Missing));
            if params.count("decoys") != Some(0) {
                wishes.push(needle("control-swapped", short, NeedleContent::Swapped));
            }
        }
        wishes.push(needle("measure", tokens, NeedleContent::Needle));
        wishes
    }
}

/// Language and depth of a cell.
fn place(params: &Params, cell: &str) -> (String, f64) {
    let first = || {
        let language = params
            .texts("languages")
            .first()
            .cloned()
            .unwrap_or_else(|| "en".into());
        (
            language,
            params.counts("depths").first().copied().unwrap_or(50) as f64 / 100.0,
        )
    };
    match cell.split_once('/') {
        Some((language, depth)) => (
            language.into(),
            depth.parse::<f64>().unwrap_or(50.0) / 100.0,
        ),
        None => first(),
    }
}

impl Concludes for Needle {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        for part in ["control-short", "control-missing", "control-swapped"] {
            conclusion
                .reasons
                .extend(view.windows(part).iter().filter_map(|w| control(w, part)));
        }
        let windows = view.windows("measure");
        let all: Vec<_> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        conclusion.reasons.extend(traffic::failed(&all));
        conclusion
            .reasons
            .extend(windows.iter().flat_map(|w| objections(view, w)));
        let ids: Vec<String> = windows.iter().map(|w| w.id.clone()).collect();
        let mut add = |figure, sample: Sample| {
            if !sample.is_empty() {
                conclusion.measured.push(Measured {
                    figure,
                    sample,
                    windows: ids.clone(),
                });
            }
        };
        add(
            "answer",
            Sample::Words(windows.iter().map(|w| class(view, w)).collect()),
        );
        let exchanges = || windows.iter().flat_map(|w| &w.exchanges);
        add(
            "needle_ttft_s",
            Sample::Each(exchanges().filter_map(|e| e.ttft_s()).collect()),
        );
        let tokens = exchanges().filter_map(|e| e.usage).map(|u| u.prompt as f64);
        add("needle_prompt_tokens", Sample::Each(tokens.collect()));
        conclusion
    }
}

fn fact<'a>(results: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    results.get(name).and_then(Value::as_str)
}

/// The answer's class, with what only the window knows (truncated, cached, infra) before what the text says.
fn class(view: &View<'_>, window: &Window) -> String {
    let Some(exchange) = window.exchanges.first().filter(|e| e.is_complete()) else {
        return "infra".into();
    };
    if truncation(window).is_some() {
        return "truncated".into();
    }
    if cached(view, window).is_some() {
        return "cached".into();
    }
    let value = fact(&window.results, "value").unwrap_or_default();
    let decoys: Vec<&str> = window
        .results
        .get("decoys")
        .and_then(Value::as_array)
        .map(|d| d.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let facts = crate::quality::needle::Answer {
        text: &exchange.text,
        reasoning: &exchange.reasoning,
        finish_reason: exchange.finish_reason.as_deref(),
    };
    crate::quality::needle::classify(&facts, value, &decoys)
        .word()
        .into()
}

fn objections(view: &View<'_>, window: &Window) -> Vec<Reason> {
    let whole: Vec<_> = window
        .exchanges
        .iter()
        .filter(|e| e.is_complete())
        .map(|e| (window, e))
        .collect();
    let mut reasons: Vec<Reason> = truncation(window).into_iter().collect();
    reasons.extend(cached(view, window));
    reasons.extend(traffic::without_usage(&whole));
    if let Some(fault) = fact(&window.results, "fault") {
        reasons.push(Reason::new(
            "needle.length",
            Verdict::Unproven,
            format!("{}: the prompt could not be made exact: {fault}", window.id),
            format!("{}: プロンプト長を正確に作れなかった: {fault}", window.id),
        ));
    }
    reasons
}

/// Fewer prompt tokens than were sent: the front or the middle was cut away in silence.
fn truncation(window: &Window) -> Option<Reason> {
    let sent = window.results.get("tokens").and_then(Value::as_u64)?;
    let exchange = window.exchanges.first()?;
    let read = exchange.usage.map(|u| u.prompt)?;
    (read != sent).then(|| {
        Reason::new(
            "prompt.truncated",
            Verdict::Fail,
            format!("{}: {sent} prompt tokens were sent and {read} were read: the prompt was changed on its way", window.id),
            format!("{}: 送ったのは {sent} トークン、読まれたのは {read} トークン: 途中でプロンプトが変わっている", window.id),
        )
    })
}

/// Prompt tokens from the cache although each needle is new: the TTFT is not a cold one.
fn cached(view: &View<'_>, window: &Window) -> Option<Reason> {
    let told = window
        .exchanges
        .first()
        .and_then(|e| e.usage.and_then(|u| u.cached));
    let metrics = view.dialect.and_then(|d| d.metrics.as_ref());
    let moved = metrics
        .and_then(|m| movement::of(window, m.prefix_hits))
        .map(|n| n as u64);
    let hits = told.max(moved).filter(|n| *n > 0)?;
    let sent = window
        .results
        .get("tokens")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    // One block may be shared by the template's own front; a hundredth of the prompt cannot change a verdict on TTFT.
    (hits > (sent / 100).max(64)).then(|| {
        Reason::new(
            "prompt.cached",
            Verdict::Fail,
            format!("{}: {hits} of {sent} prompt tokens came from the prefix cache although every needle prompt is new: TTFT is not cold", window.id),
            format!("{}: {sent} 中 {hits} トークンがプレフィックスキャッシュから答えられた: TTFT は冷えた値ではない", window.id),
        )
    })
}

/// What a control says against the needle.
fn control(window: &Window, part: &str) -> Option<Reason> {
    let exchange = window.exchanges.first()?;
    let value = fact(&window.results, "value").unwrap_or_default();
    let seen = exchange.text.contains(value) && !value.is_empty();
    let (holds, en, ja) = match part {
        "control-missing" => (
            !seen,
            "the value appears in an answer whose prompt does not hold it",
            "プロンプトに無い値が答えに現れた",
        ),
        "control-swapped" => (
            seen,
            "asked for a decoy's key, it does not give the decoy's value",
            "おとりの鍵を尋ねたのに、おとりの値を答えない",
        ),
        _ => (
            seen,
            "even a short prompt is not answered: this is the model or the format, not the length",
            "短いプロンプトでも答えられない: 長さではなくモデルか書式の問題",
        ),
    };
    (!holds).then(|| {
        Reason::new(
            "needle.control",
            Verdict::Inconclusive,
            format!("{} ({part}): {en}", window.id),
            format!("{}（{part}）: {ja}", window.id),
        )
    })
}
