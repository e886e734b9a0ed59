//! `accept_length`: tokens per verification step of speculative decoding, from the counters inside the window.

use super::{attribution, traffic};
use crate::dialect::{AbsentDrafts, Metrics};
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::movement;
use crate::judge::sample::{Concludes, Conclusion, Measured, Pair, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ids, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{Declaration, FigureKind, Judged, Kind, KindFault, Params, ProofNeed};

/// The kind.
#[derive(Debug)]
pub(super) struct AcceptLength;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "accept_length",
        unit: "tokens/step",
        unit_aliases: &[("", 1.0), ("tokens", 1.0)],
        words: &[],
        judged: Judged::BySums,
        about: "1 + accepted / drafts over the window's counters, the bonus token included.",
    },
    FigureKind {
        name: "acceptance_rate",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::BySums,
        about: "Accepted draft tokens over draft tokens.",
    },
    FigureKind {
        name: "steps_per_s",
        unit: "steps/s",
        unit_aliases: &[],
        words: &[],
        judged: Judged::ByBound,
        about: "Verification steps a second of one stream: decode rate over accept length.",
    },
    FigureKind {
        name: "equal_text_acceptance",
        unit: "word",
        unit_aliases: &[],
        words: &["equal", "differs", "other_texts"],
        judged: Judged::Each,
        about: "On equal texts a sound build accepts what the first reference accepts, to the token (`is equal`).",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "accept_length",
    about: "Mean tokens per verification step by language and concurrency, from counter deltas inside the measured window.",
    keys: traffic::KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 5,
};

impl Kind for AcceptLength {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        traffic::faults(&check.params)
    }
}

impl Planned for AcceptLength {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(
            &slot.check.params,
            slot.cell,
            Prompts::OfRepeat(slot.repeat),
            Ids::Unwanted,
        );
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(load),
        }]
    }
}

impl Concludes for AcceptLength {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let mut conclusion = Conclusion {
            reasons: traffic::objections(view, &windows),
            ..Conclusion::default()
        };
        let Some(metrics) = view.dialect.and_then(|d| d.metrics.as_ref()) else {
            conclusion.reasons.push(no_counters(
                "this server has no metrics",
                "このサーバには計数器が無い",
            ));
            return conclusion;
        };
        let mut lengths = Seen::default();
        let mut rates = Seen::default();
        for window in &windows {
            match counted(window, metrics) {
                Ok(counts) => {
                    lengths.add(window, counts.accepted, counts.drafts);
                    rates.add(window, counts.accepted, counts.draft_tokens);
                }
                Err(reason) => conclusion.reasons.push(reason),
            }
        }
        conclusion.notes.extend(traffic::noted(view, &windows));
        conclusion.reasons.dedup_by(|a, b| a.code == b.code);
        conclusion
            .measured
            .extend(lengths.measured("accept_length", 1.0));
        conclusion
            .measured
            .extend(rates.measured("acceptance_rate", 0.0));
        conclusion.measured.extend(steps(&windows, metrics));
        conclusion.measured.extend(equal(view, metrics));
        conclusion.notes.extend(attribution::notes(view, metrics));
        conclusion
    }
}

fn steps(windows: &[&Window], metrics: &Metrics) -> Option<Measured> {
    let (values, windows): (Vec<f64>, Vec<String>) = windows
        .iter()
        .filter_map(|w| Some((attribution::of(w, metrics)?.steps_per_s, w.id.clone())))
        .unzip();
    (!values.is_empty()).then_some(Measured {
        figure: "steps_per_s",
        sample: Sample::Repeats(values),
        windows,
    })
}

fn equal(view: &View<'_>, metrics: &Metrics) -> Option<Measured> {
    let (words, windows): (Vec<String>, Vec<String>) = attribution::equal_texts(view, metrics)
        .into_iter()
        .map(|(word, window)| (word.to_owned(), window))
        .unzip();
    (!words.is_empty()).then_some(Measured {
        figure: "equal_text_acceptance",
        sample: Sample::Words(words),
        windows,
    })
}

#[derive(Default)]
struct Seen {
    pairs: Vec<Pair>,
    windows: Vec<String>,
}

impl Seen {
    fn add(&mut self, window: &Window, over: f64, under: f64) {
        self.pairs.push(Pair { over, under });
        self.windows.push(window.id.clone());
    }

    fn measured(self, figure: &'static str, base: f64) -> Option<Measured> {
        (!self.pairs.is_empty()).then_some(Measured {
            figure,
            sample: Sample::Ratio {
                base,
                pairs: self.pairs,
            },
            windows: self.windows,
        })
    }
}

struct Counts {
    drafts: f64,
    draft_tokens: f64,
    accepted: f64,
}

/// The window's speculation counts; a reason when there was no speculation or nothing to count it by.
fn counted(window: &Window, metrics: &Metrics) -> Result<Counts, Reason> {
    if !movement::scraped(window) {
        return Err(no_counters(
            "no scrape of the metrics in the window",
            "窓の中で計数器を読めなかった",
        ));
    }
    let moved = |names| movement::of(window, names);
    match (
        moved(metrics.drafts),
        moved(metrics.draft_tokens),
        moved(metrics.accepted_tokens),
    ) {
        (Some(drafts), Some(draft_tokens), Some(accepted)) if drafts > 0.0 => Ok(Counts {
            drafts,
            draft_tokens,
            accepted,
        }),
        (Some(_), _, _) => Err(off(
            "the draft counter stands still while tokens are generated",
            "生成中も draft 計数が動かない",
        )),
        _ if metrics.absent_drafts == AbsentDrafts::MeansOff
            && movement::of(window, metrics.generation_tokens).is_some() =>
        {
            Err(off(
                "this server shows no speculation counters, which it always does when speculation is on",
                "投機の計数器が無い（有効なら必ず現れる）",
            ))
        }
        _ => Err(no_counters(
            "the speculation counters are absent",
            "投機の計数器が無い",
        )),
    }
}

fn off(en: &str, ja: &str) -> Reason {
    Reason::new(
        "speculation.off",
        Verdict::Fail,
        format!("speculation is off: {en}"),
        format!("投機的復号が効いていない: {ja}"),
    )
}

fn no_counters(en: &str, ja: &str) -> Reason {
    Reason::new(
        "counters.absent",
        Verdict::Unproven,
        format!("accept length cannot be counted: {en}"),
        format!("受理長を数えられない: {ja}"),
    )
}
