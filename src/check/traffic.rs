//! What every kind that sends a workload shares: its keys, its cells, and what its answers may say against it.

use crate::evidence::exchange::{Exchange, Outcome};
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::View;
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ending, Ids, Load, Prompts, Route};
use crate::spec::kind::{Default, Key, KindFault, Params, Read as _, Takes};

/// Keys of a workload.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "workloads",
        takes: Takes::Texts,
        default: Default::Texts(&["code", "en", "ja"]),
        about: "Workloads: `code`, `en`, `ja`, or `file:PATH` (JSON lines of messages, or paragraphs of plain text).",
    },
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1, 4]),
        about: "Numbers of streams at once.",
    },
    Key {
        name: "requests",
        takes: Takes::Count(1, 10_000),
        default: Default::Count(1),
        about: "Requests of each stream in one window, one after another.",
    },
    Key {
        name: "max_tokens",
        takes: Takes::Count(8, 1_000_000),
        default: Default::Count(256),
        about: "Tokens of each answer at most.",
    },
    Key {
        name: "ending",
        takes: Takes::Word(&["ignored", "free"]),
        default: Default::Text("ignored"),
        about: "`ignored`: the end token is ignored where the server can, so that every answer has `max_tokens` tokens; `free`: it ends by itself.",
    },
    Key {
        name: "repetition",
        takes: Takes::Word(&["void", "noted"]),
        default: Default::Text("void"),
        about: "Answers that fall into a loop: `void` the case (a loop is fast and is accepted by every drafter), or are only `noted` for a model too small to write.",
    },
];

/// Cells `workload/streams`.
pub(super) fn cells(params: &Params) -> Vec<String> {
    let streams = params.counts("streams");
    params
        .texts("workloads")
        .iter()
        .flat_map(|workload| {
            streams
                .iter()
                .map(move |n| format!("{}/{n}", cell_name(workload)))
        })
        .collect()
}

/// A workload's name in a cell: the file's stem for a file.
pub(super) fn cell_name(workload: &str) -> &str {
    match workload.strip_prefix("file:") {
        Some(path) => path
            .rsplit('/')
            .next()
            .and_then(|f| f.split('.').next())
            .unwrap_or(path),
        None => workload,
    }
}

/// Faults of the keys.
pub(super) fn faults(params: &Params) -> Vec<KindFault> {
    let known = crate::workload::names();
    params
        .texts("workloads")
        .iter()
        .filter(|w| !w.starts_with("file:") && !known.contains(&w.as_str()))
        .map(|w| KindFault {
            key: Some("workloads"),
            message: format!("unknown workload `{w}`"),
            help: format!("one of `{}`, or `file:PATH`", known.join("`, `")),
        })
        .collect()
}

/// The load of a cell.
pub(super) fn load(params: &Params, cell: &str, prompts: Prompts, ids: Ids) -> Load {
    let (name, streams) = cell.rsplit_once('/').unwrap_or((cell, "1"));
    let workload = params
        .texts("workloads")
        .iter()
        .find(|w| cell_name(w) == name)
        .cloned()
        .unwrap_or_default();
    Load {
        workload,
        sha256: None,
        streams: streams.parse().unwrap_or(1),
        requests: small(params.count("requests")),
        max_tokens: small(params.count("max_tokens")),
        ending: if params.text("ending") == Some("free") {
            Ending::Free
        } else {
            Ending::Ignored
        },
        prompts,
        ids,
        route: if params.text("route") == Some("completion") {
            Route::Completion
        } else {
            Route::Chat
        },
    }
}

/// Mean tokens of a window's answers; absent if any answer carries no count.
pub(super) fn mean_tokens(window: &Window) -> Option<f64> {
    let tokens: Option<Vec<u64>> = window
        .exchanges
        .iter()
        .map(|e| e.usage.map(|u| u.completion))
        .collect();
    crate::quality::length::mean(&tokens?)
}

fn small(n: Option<u64>) -> u32 {
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
}

/// What the answers of these windows say against the case.
pub(super) fn objections(view: &View<'_>, windows: &[&Window]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let all = all(windows);
    reasons.extend(failed(&all));
    let whole: Vec<_> = all
        .iter()
        .filter(|(_, e)| e.is_complete())
        .copied()
        .collect();
    reasons.extend(without_usage(&whole));
    if view.check.params.text("ending") == Some("ignored") {
        reasons.extend(short(
            &whole,
            view.check.params.count("max_tokens").unwrap_or(0),
        ));
    }
    reasons.extend(bundled(view, &whole));
    if voids_loops(view) {
        reasons.extend(degenerate(&whole));
    }
    reasons
}

/// A note on answers that fell into a loop, where they do not void the case.
pub(super) fn noted(view: &View<'_>, windows: &[&Window]) -> Option<String> {
    let reason = degenerate(&all(windows)).filter(|_| !voids_loops(view))?;
    Some(format!(
        "accepted by `repetition = \"noted\"`: {}",
        reason.text
    ))
}

/// Every request of these windows, with its window.
pub(super) fn all<'a>(windows: &[&'a Window]) -> Vec<(&'a Window, &'a Exchange)> {
    windows
        .iter()
        .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
        .collect()
}

/// Whether an answer that fell into a loop voids the case.
pub(super) fn voids_loops(view: &View<'_>) -> bool {
    view.check.params.text("repetition") != Some("noted")
}

/// Requests that did not end whole.
pub(super) fn failed(all: &[(&Window, &Exchange)]) -> Option<Reason> {
    let bad: Vec<_> = all.iter().filter(|(_, e)| !e.is_complete()).collect();
    let (window, first) = bad.first()?;
    let cause = outcome_text(first);
    Some(Reason::new(
        "request.failed",
        Verdict::Fail,
        format!(
            "{} of {} requests failed, first in {}: {cause}",
            bad.len(),
            all.len(),
            window.id
        ),
        format!(
            "{} 件中 {} 件の要求が失敗（最初は {}）: {cause}",
            all.len(),
            bad.len(),
            window.id
        ),
    ))
}

/// How a request ended, in one line.
pub(super) fn outcome_text(exchange: &Exchange) -> String {
    match &exchange.outcome {
        Outcome::Complete => "complete".into(),
        Outcome::Refused { body } => {
            let status = exchange
                .status
                .map_or_else(|| "an error in the stream".into(), |s| format!("HTTP {s}"));
            format!("{status} {}", body.chars().take(160).collect::<String>())
        }
        Outcome::Unreachable { cause } => format!("not reachable: {cause}"),
        Outcome::Cut { cause } => format!("cut: {cause}"),
        Outcome::Stalled { deadline_s } => format!("nothing came for {deadline_s} s"),
        Outcome::Malformed { cause } => format!("not readable: {cause}"),
        Outcome::Interrupted => "interrupted".into(),
    }
}

/// Answers that carry no token counts.
pub(super) fn without_usage(whole: &[(&Window, &Exchange)]) -> Option<Reason> {
    let bad = whole.iter().filter(|(_, e)| e.usage.is_none()).count();
    (bad > 0).then(|| {
        Reason::new(
            "usage.missing",
            Verdict::Unproven,
            format!("{bad} of {} answers carry no `usage`: their tokens are not counted by anybody; chunks are not tokens", whole.len()),
            format!("{} 件中 {bad} 件の応答に `usage` が無い: トークン数の根拠が無い（チャンク数はトークン数ではない）", whole.len()),
        )
    })
}

/// Answers that ended before `max_tokens` although the end token was to be ignored.
fn short(whole: &[(&Window, &Exchange)], max_tokens: u64) -> Option<Reason> {
    let bad: Vec<_> = whole
        .iter()
        .filter(|(_, e)| e.usage.is_some_and(|u| u.completion < max_tokens))
        .collect();
    let (window, first) = bad.first()?;
    let got = first.usage.map_or(0, |u| u.completion);
    Some(Reason::new(
        "answer.short",
        Verdict::Fail,
        format!(
            "{} of {} answers stopped early: {got} of {max_tokens} tokens in {} (finish_reason `{}`) although the end token was to be ignored",
            bad.len(),
            whole.len(),
            window.id,
            first.finish_reason.as_deref().unwrap_or("none")
        ),
        format!(
            "{} 件中 {} 件の応答が早く終わった: {} で {max_tokens} 中 {got} トークン（終端無視を指定済み）",
            whole.len(),
            bad.len(),
            window.id
        ),
    ))
}

/// Streams whose chunks carry more tokens than one step can yield: their times are not the tokens' times.
fn bundled(view: &View<'_>, whole: &[(&Window, &Exchange)]) -> Option<Reason> {
    let (window, worst, mean) = whole
        .iter()
        .filter_map(|(w, e)| {
            let usage = e.usage?;
            // Four chunks at least: a short answer may well come in two.
            (e.token_chunks >= 1 && usage.completion >= 16)
                .then(|| (*w, *e, usage.completion as f64 / f64::from(e.token_chunks)))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let most = most_tokens_a_step(view, window);
    (mean > most).then(|| {
        Reason::new(
            "chunks.bundled",
            Verdict::Unproven,
            format!(
                "several tokens arrive in one chunk: {:.1} a chunk in {} ({} chunks), but a step of this seat yields at most {most:.0}; the times of the tokens are not known (set the stream interval to 1, look for a buffering proxy)",
                mean, window.id, worst.token_chunks
            ),
            format!("1 チャンクに複数トークン: {} で平均 {mean:.1}、この席の 1 ステップは最大 {most:.0}。トークンの時刻が分からない", window.id),
        )
    })
}

/// Tokens that one step can yield: 1 + draft tokens per drafting step by the window's own counters, 1 without speculation.
fn most_tokens_a_step(view: &View<'_>, window: &Window) -> f64 {
    let drafted = view.dialect.and_then(|d| d.metrics.as_ref()).and_then(|m| {
        let moved = |names| crate::judge::movement::of(window, names);
        let drafts = moved(m.drafts)?;
        (drafts > 0.0).then(|| moved(m.draft_tokens).map(|tokens| tokens / drafts))?
    });
    // Half a token of tolerance: the last chunk of a stream is short, never long.
    1.5 + drafted.unwrap_or(0.0)
}

/// Answers that collapsed into repetition: their speed and accept length are not a model's.
pub(super) fn degenerate(whole: &[(&Window, &Exchange)]) -> Option<Reason> {
    let bad: Vec<_> = whole
        .iter()
        .filter_map(|(w, e)| crate::quality::degeneration::degenerate(&e.text).map(|why| (*w, why)))
        .collect();
    let (window, why) = bad.first()?;
    Some(Reason::new(
        "text.degenerate",
        Verdict::Inconclusive,
        format!(
            "{} of {} answers are void, first in {}: {why}; a loop is fast and is accepted by every drafter",
            bad.len(),
            whole.len(),
            window.id
        ),
        format!(
            "{} 件中 {} 件の応答が無効（最初は {}）: {why}。繰り返しは速く、受理長も上がる",
            whole.len(),
            bad.len(),
            window.id
        ),
    ))
}
