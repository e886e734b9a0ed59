//! `perplexity`: how well the build predicts a fixed text, with speculation proven off in the same window.

use super::{score_difference, traffic};
use crate::evidence::body::ScoredWindow;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::movement;
use crate::judge::sample::{Cluster, Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Control, ScoreTask, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Perplexity;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "ppl",
        unit: "",
        unit_aliases: &[],
        words: &[],
        judged: Judged::BySums,
        about: "exp(mean −ln p) over the scored tokens; compared per token with a clustered error.",
    },
    FigureKind {
        name: "bits_per_byte",
        unit: "bit/byte",
        unit_aliases: &[],
        words: &[],
        judged: Judged::Each,
        about: "Σ −log2 p over the UTF-8 bytes of the scored text: comparable across tokenizers.",
    },
    FigureKind {
        name: "rank1_share",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Share of scored tokens that were the likeliest.",
    },
    score_difference::NATS_PER_TOKEN,
    score_difference::DELTA_MAX,
    score_difference::DELTA_P99,
    score_difference::AA_DELTA_MAX,
];

const KEYS: &[Key] = &[
    Key {
        name: "corpora",
        takes: Takes::Texts,
        default: Default::Texts(&["code", "en", "ja"]),
        about: "Texts: `code`, `en`, `ja`, or `file:PATH`.",
    },
    Key {
        name: "window",
        takes: Takes::Count(16, 1_000_000),
        default: Default::Count(1024),
        about: "Tokens of one text window; each is scored without context from the one before.",
    },
    Key {
        name: "windows",
        takes: Takes::Count(1, 100_000),
        default: Default::Count(64),
        about: "Text windows at most.",
    },
    Key {
        name: "controls",
        takes: Takes::Flag,
        default: Default::Flag(true),
        about: "Also scores shuffled text (must be clearly worse) and the text in reverse order (must give the same values).",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "perplexity",
    about: "Perplexity of a fixed text by prompt logprobs, speculation proven off, guarded against zeroed, shifted and order-dependent logprobs.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Perplexity {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        params
            .texts("corpora")
            .iter()
            .map(|c| cell_name(c).to_owned())
            .collect()
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let known = crate::workload::corpus::names();
        let repeated = (check.repeats.max > 1).then(|| KindFault {
            key: Some("repeats"),
            message: "a fixed text is scored once: repeating it adds no text".into(),
            help: "leave `repeats` out and raise `windows`".into(),
        });
        check
            .params
            .texts("corpora")
            .iter()
            .filter(|c| !c.starts_with("file:") && !known.contains(&c.as_str()))
            .map(|c| KindFault {
                key: Some("corpora"),
                message: format!("unknown corpus `{c}`"),
                help: format!("one of `{}`, or `file:PATH`", known.join("`, `")),
            })
            .chain(repeated)
            .collect()
    }
}

fn cell_name(corpus: &str) -> &str {
    match corpus.strip_prefix("file:") {
        Some(path) => path
            .rsplit('/')
            .next()
            .and_then(|f| f.split('.').next())
            .unwrap_or(path),
        None => corpus,
    }
}

/// Windows that the controls score: enough to see an order or a shift, few enough to cost little.
const CONTROL_WINDOWS: u32 = 4;

impl Planned for Perplexity {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let params = &slot.check.params;
        let corpus = params
            .texts("corpora")
            .iter()
            .find(|c| cell_name(c) == slot.cell)
            .cloned()
            .unwrap_or_default();
        let number = |key| {
            params
                .count(key)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(1)
        };
        let wish = |part: &str, windows, control| WindowWish {
            part: part.into(),
            task: Task::Score(ScoreTask {
                corpus: corpus.clone(),
                sha256: None,
                window: number("window"),
                windows,
                control,
            }),
        };
        let all = number("windows");
        let mut wishes = vec![wish("measure", all, Control::Text)];
        if params.flag("controls") {
            wishes.push(wish(
                "control-shuffled",
                all.min(CONTROL_WINDOWS),
                Control::Shuffled,
            ));
            wishes.push(wish(
                "control-reversed",
                all.min(CONTROL_WINDOWS),
                Control::Reversed,
            ));
            wishes.push(wish("control-seams", 1, Control::Seams));
        }
        wishes
    }
}

impl Concludes for Perplexity {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        let windows = view.windows("measure");
        for window in &windows {
            if let Some(why) = window.results.get("unsupported").and_then(|v| v.as_str()) {
                conclusion.reasons.push(Reason::new(
                    "logprobs.unsupported",
                    Verdict::Unproven,
                    format!("this server cannot give the logprobs of a prompt: {why}"),
                    format!("このサーバはプロンプトの logprobs を返せない: {why}"),
                ));
                return conclusion;
            }
            conclusion.reasons.extend(probe(window));
            conclusion.reasons.extend(speculation(view, window));
        }
        let all: Vec<_> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        conclusion.reasons.extend(traffic::failed(&all));
        let scored: Vec<&ScoredWindow> = windows
            .iter()
            .filter_map(|w| view.evidence.scores.get(&w.id))
            .flatten()
            .collect();
        conclusion.reasons.extend(guards::all(view, &scored));
        if scored.is_empty() && conclusion.reasons.is_empty() && !windows.is_empty() {
            conclusion.reasons.push(Reason::new(
                "scores.absent",
                Verdict::Unproven,
                "no logprobs were recorded",
                "logprobs の記録が無い",
            ));
        }
        let ids: Vec<String> = windows.iter().map(|w| w.id.clone()).collect();
        conclusion.measured = figures(&scored, &ids);
        conclusion
            .measured
            .extend(score_difference::figures(view, &scored, &ids));
        conclusion
    }
}

/// What the probe of three tokens found, before anything was scored.
fn probe(window: &Window) -> Option<Reason> {
    let fault = window.results.get("probe_fault").and_then(|v| v.as_str())?;
    let infra = window
        .results
        .get("probe_infra")
        .and_then(|v| v.as_bool())
        .unwrap_or(false);
    let (code, verdict) = if infra {
        ("logprobs.infra", Verdict::Inconclusive)
    } else {
        ("logprobs.invalid", Verdict::Fail)
    };
    Some(Reason::new(
        code,
        verdict,
        format!(
            "{}: the logprobs of three tokens already fail: {fault}",
            window.id
        ),
        format!(
            "{}: 3 トークンの試しで logprobs が成り立たない: {fault}",
            window.id
        ),
    ))
}

fn figures(scored: &[&ScoredWindow], ids: &[String]) -> Vec<Measured> {
    let clusters: Vec<Cluster> = scored
        .iter()
        .filter(|s| s.fault.is_none())
        .map(|s| Cluster {
            name: s.name.clone(),
            nll: s.logprobs.iter().flatten().map(|lp| -lp).collect(),
        })
        .filter(|c| !c.nll.is_empty())
        .collect();
    if clusters.is_empty() {
        return Vec::new();
    }
    let mut figures = Vec::new();
    let mut add = |figure, sample| {
        figures.push(Measured {
            figure,
            sample,
            windows: ids.to_vec(),
        })
    };
    let nats: f64 = clusters.iter().flat_map(|c| &c.nll).sum();
    let bytes: Option<u64> = scored
        .iter()
        .filter(|s| s.fault.is_none())
        .map(|s| s.bytes)
        .sum();
    if let Some(bytes) = bytes.filter(|b| *b > 0) {
        add(
            "bits_per_byte",
            Sample::Each(vec![nats / std::f64::consts::LN_2 / bytes as f64]),
        );
    }
    let ranks: Vec<u32> = scored
        .iter()
        .flat_map(|s| s.ranks.iter().flatten().copied())
        .collect();
    if !ranks.is_empty() {
        let first = ranks.iter().filter(|r| **r == 1).count();
        add(
            "rank1_share",
            Sample::Each(vec![first as f64 / ranks.len() as f64]),
        );
    }
    add("ppl", Sample::Tokens(clusters));
    figures
}

/// Speculation must be proven off where prompt logprobs are read: with it they were seen corrupt with HTTP 200
/// (vllm#53488), or all zero (llama.cpp#27972).
pub(super) fn speculation(view: &View<'_>, window: &Window) -> Option<Reason> {
    use crate::dialect::AbsentDrafts;
    let metrics = view.dialect.and_then(|d| d.metrics.as_ref());
    let on = |how: &str, ja: &str| {
        Some(Reason::new(
            "speculation.on",
            Verdict::Fail,
            format!(
                "{}: speculation is on while logprobs are read: {how}",
                window.id
            ),
            format!("{}: logprobs の測定中に投機的復号が有効: {ja}", window.id),
        ))
    };
    let unproven = |how: &str, ja: &str| {
        Some(Reason::new(
            "speculation.unknown",
            Verdict::Unproven,
            format!(
                "{}: nothing proves that speculation is off: {how}",
                window.id
            ),
            format!("{}: 投機的復号が無効だという根拠が無い: {ja}", window.id),
        ))
    };
    let Some(metrics) = metrics else {
        return unproven("this server has no metrics", "計数器が無い");
    };
    if !movement::scraped(window) {
        return unproven(
            "no scrape of the metrics in the window",
            "窓の中で計数器を読めなかった",
        );
    }
    match movement::of(window, metrics.drafts) {
        Some(moved) if moved > 0.0 => on("the draft counter moved", "draft 計数が動いた"),
        Some(_) if metrics.absent_drafts == AbsentDrafts::MeansOff => on(
            "the speculation counters are there, which they are only when it is configured",
            "投機の計数器が現れている（設定時のみ現れる）",
        ),
        Some(_) => None,
        None if metrics.absent_drafts == AbsentDrafts::MeansOff => None,
        None => unproven("the speculation counters are absent", "投機の計数器が無い"),
    }
}

mod guards {
    //! What the logprobs say of themselves before any number is made of them.

    use super::{Reason, ScoredWindow, Verdict, View};
    use crate::quality::logprobs;

    /// Every guard.
    pub(super) fn all(view: &View<'_>, scored: &[&ScoredWindow]) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = scored.iter().filter_map(|s| fault(s)).take(1).collect();
        let usable: Vec<&&ScoredWindow> = scored.iter().filter(|s| s.fault.is_none()).collect();
        if let Some(first) = usable.iter().find_map(|s| {
            let vocabulary = vocabulary(view);
            logprobs::guard(&s.logprobs, vocabulary)
                .err()
                .map(|why| (s, why))
        }) {
            let (window, why) = first;
            reasons.push(Reason::new(
                "logprobs.invalid",
                Verdict::Fail,
                format!("text window {}: {why}", window.name),
                format!("テキスト窓 {}: {why}", window.name),
            ));
        }
        reasons.extend(shuffled(view, &usable));
        reasons.extend(reversed(view, &usable));
        reasons.extend(seams(view));
        reasons
    }

    fn fault(scored: &ScoredWindow) -> Option<Reason> {
        let fault = scored.fault.as_ref()?;
        let verdict = if fault.infra {
            Verdict::Inconclusive
        } else {
            Verdict::Fail
        };
        let code = if fault.infra {
            "logprobs.infra"
        } else {
            "logprobs.invalid"
        };
        Some(Reason::new(
            code,
            verdict,
            format!("text window {}: {}", scored.name, fault.text),
            format!("テキスト窓 {}: {}", scored.name, fault.text),
        ))
    }

    fn vocabulary(_view: &View<'_>) -> Option<u64> {
        // No dialect tells its vocabulary over HTTP; the guard then uses the largest in use (262,144).
        None
    }

    fn part<'a>(view: &View<'a>, part: &str) -> Vec<&'a ScoredWindow> {
        view.windows(part)
            .iter()
            .filter_map(|w| view.evidence.scores.get(&w.id))
            .flatten()
            .filter(|s| s.fault.is_none())
            .collect()
    }

    fn mean_nll(scored: &ScoredWindow) -> Option<f64> {
        let all: Vec<f64> = scored.logprobs.iter().flatten().map(|lp| -lp).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Shuffled text must be worse: logprobs that are shifted by one, or not of this text, do not care for its order.
    fn shuffled(view: &View<'_>, usable: &[&&ScoredWindow]) -> Option<Reason> {
        let (mut sum, mut n) = (0.0, 0u32);
        for control in part(view, "control-shuffled") {
            let text = usable.iter().find(|s| s.name == control.name)?;
            sum += mean_nll(control)? - mean_nll(text)?;
            n += 1;
        }
        let rise = (n > 0).then(|| sum / f64::from(n))?;
        (rise < logprobs::SHUFFLED_RISE).then(|| {
            Reason::new(
                "logprobs.shifted",
                Verdict::Fail,
                format!("shuffling the text worsens it by {rise:.2} nats a token only (at least {:.1} is natural): the logprobs are not of these tokens in this order (shifted by one?)", logprobs::SHUFFLED_RISE),
                format!("本文を混ぜても 1 トークン {rise:.2} nat しか悪化しない（自然なら {:.1} 以上）: 値がこの並びのものではない（1 つずれ?）", logprobs::SHUFFLED_RISE),
            )
        })
    }

    /// The same windows in reverse order must give the same values (vllm#42019).
    fn reversed(view: &View<'_>, usable: &[&&ScoredWindow]) -> Option<Reason> {
        let worst = part(view, "control-reversed")
            .iter()
            .filter_map(|control| {
                let text = usable.iter().find(|s| s.name == control.name)?;
                logprobs::largest_difference(&text.logprobs, &control.logprobs)
                    .map(|d| (control.name.clone(), d))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (worst.1 > logprobs::ORDER_TOLERANCE).then(|| {
            Reason::new(
                "logprobs.order",
                Verdict::Fail,
                format!("text window {} changes by up to {:.3} nats with the order of the requests: the values depend on what was asked before", worst.0, worst.1),
                format!("テキスト窓 {} の値が要求の順序で最大 {:.3} nat 変わる: 前の要求に依存している", worst.0, worst.1),
            )
        })
    }

    /// Prefixes of one text at lengths around the engine's seams must agree on what they share (vllm#53488, #48271).
    fn seams(view: &View<'_>) -> Option<Reason> {
        let scored = part(view, "control-seams");
        let longest = scored.iter().max_by_key(|s| s.ids.len())?;
        let worst = scored
            .iter()
            .filter_map(|s| {
                logprobs::largest_difference(&longest.logprobs, &s.logprobs)
                    .map(|d| (s.ids.len(), d))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (worst.1 > logprobs::SEAM_TOLERANCE).then(|| {
            Reason::new(
                "logprobs.seam",
                Verdict::Fail,
                format!("the same tokens score differently by up to {:.3} nats when the prompt is {} tokens long", worst.1, worst.0),
                format!("プロンプトが {} トークンのとき、同じトークンの値が最大 {:.3} nat 変わる", worst.0, worst.1),
            )
        })
    }
}
