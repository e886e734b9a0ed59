//! `agreement`: how far the answers of two builds go together, held against how far the incumbent goes with itself.
//!
//! Greedy answers of two sound builds may part at near ties of the model, and so may two runs of one build. What two
//! builds have in common therefore says something only beside what the incumbent has in common with itself.

use super::answers::{Compared, Measure, pairs};
use super::traffic;
use crate::evidence::exchange::Exchange;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ids, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::quality::agreement::{Agreement, hazard};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Agreeing;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "agreement_fraction",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Common beginning over the longer answer, mean over the prompts of a repeat: with the incumbent's answers; of the incumbent, with its own in another repeat.",
    },
    FigureKind {
        name: "self_agreement",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "The same between two repeats of one build.",
    },
    FigureKind {
        name: "common_tokens",
        unit: "tokens",
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Median length of the common beginning; only where every answer came with token ids.",
    },
    FigureKind {
        name: "divergence_hazard",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Divergences over tokens gone through in common (characters without ids), a pair that never parted counted whole.",
    },
    FigureKind {
        name: "excess_hazard",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "The hazard between the builds minus the incumbent's with itself.",
    },
];

const KEYS: &[Key] = &[
    traffic::KEYS[0],
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1]),
        about: "Numbers of streams at once: other batches may round otherwise.",
    },
    Key {
        name: "requests",
        takes: Takes::Count(1, 10_000),
        default: Default::Count(8),
        about: "Requests of each stream in one window; each takes the next prompt of the workload, every window the same ones.",
    },
    traffic::KEYS[3],
    Key {
        name: "ending",
        takes: Takes::Word(&["ignored", "free"]),
        default: Default::Text("free"),
        about: "`free`: an answer ends by itself; `ignored`: the end token is ignored where the server can.",
    },
    traffic::KEYS[5],
];

const DECLARATION: Declaration = Declaration {
    name: "agreement",
    about: "Common beginning of greedy answers with the incumbent's, held against the incumbent's agreement with itself.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 3,
};

impl Kind for Agreeing {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    /// Three: one at a time the incumbent then answers twice on one boot and once on another.
    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let mut faults = traffic::faults(&check.params);
        if check.builds.len() != 2 {
            faults.push(KindFault {
                key: Some("builds"),
                message: "`agreement` compares two builds".into(),
                help: "write `builds = [\"incumbent\", \"candidate\"]`; a build alone is what `repeat` looks at".into(),
            });
        }
        if check.repeats.min < 2 {
            faults.push(KindFault {
                key: Some("repeats"),
                message: "one repeat does not show how far the incumbent agrees with itself".into(),
                help: "write `repeats = 2` or more".into(),
            });
        }
        faults
    }
}

impl Planned for Agreeing {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(&slot.check.params, slot.cell, Prompts::Each, Ids::Wanted);
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(load),
        }]
    }
}

impl Concludes for Agreeing {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let own = view.windows("measure");
        let reference = view.check.builds.first().map_or("", String::as_str);
        let theirs: Vec<&Window> = view
            .evidence
            .windows_of(&view.case.id, reference, "measure")
            .collect();
        let measure = Measure::of(own.iter().chain(&theirs).flat_map(|w| &w.exchanges));
        let mut conclusion = Conclusion {
            reasons: objections(view, &own),
            ..Conclusion::default()
        };
        let selves = with_itself(&own, measure);
        let subject = view.build == view.check.subject();
        let pairs = if subject {
            conclusion.reasons.extend(unknown_self(&theirs, reference));
            conclusion.reasons.extend(other_prompts(&own, &theirs));
            with_reference(&own, &theirs, measure)
        } else {
            with_itself(&own, measure)
        };
        if pairs.iter().all(|p| p.shares.is_empty()) && !own.is_empty() {
            conclusion.reasons.extend(nothing(&conclusion.reasons));
        }
        conclusion.measured.extend(figures(&pairs, measure));
        conclusion
            .measured
            .extend(each("self_agreement", &selves, Compared::share));
        if subject {
            let floor = with_itself(&theirs, measure);
            conclusion.measured.extend(excess(&pairs, &floor));
            conclusion.notes = notes(&pairs, &floor, measure);
        }
        conclusion.notes.extend(traffic::noted(view, &own));
        conclusion
    }
}

/// Each repeat beside the incumbent's repeat of the same number.
fn with_reference(own: &[&Window], theirs: &[&Window], measure: Measure) -> Vec<Compared> {
    own.iter()
        .filter_map(|window| {
            let other = theirs
                .iter()
                .find(|w| w.repeat == window.repeat)
                .or(theirs.last())?;
            Some(Compared::of(window, other, measure))
        })
        .collect()
}

/// Each repeat of one build beside the one before it, and from the third on the last beside the first, so that the two
/// boots of an incumbent that is measured before and after are compared twice.
fn with_itself(own: &[&Window], measure: Measure) -> Vec<Compared> {
    let mut all: Vec<Compared> = own
        .windows(2)
        .map(|pair| Compared::of(pair[1], pair[0], measure))
        .collect();
    if let [first, _, .., last] = own {
        all.push(Compared::of(last, first, measure));
    }
    all
}

fn each(
    figure: &'static str,
    all: &[Compared],
    of: fn(&Compared) -> Option<f64>,
) -> Option<Measured> {
    let seen: Vec<(f64, String)> = all
        .iter()
        .filter_map(|c| Some((of(c)?, c.window.clone())))
        .collect();
    if seen.is_empty() {
        return None;
    }
    let (values, windows) = seen.into_iter().unzip();
    Some(Measured {
        figure,
        sample: Sample::Each(values),
        windows,
    })
}

fn figures(pairs: &[Compared], measure: Measure) -> Vec<Measured> {
    let tokens = match measure {
        Measure::Tokens => each("common_tokens", pairs, Compared::median),
        Measure::Characters => None,
    };
    each("agreement_fraction", pairs, Compared::share)
        .into_iter()
        .chain(tokens)
        .chain(each("divergence_hazard", pairs, Compared::hazard))
        .collect()
}

/// The hazard of all pairs together.
fn pooled(all: &[Compared]) -> Option<f64> {
    let pairs: Vec<Agreement> = all.iter().flat_map(|c| c.agreements.clone()).collect();
    hazard(&pairs)
}

fn excess(pairs: &[Compared], floor: &[Compared]) -> Option<Measured> {
    let base = pooled(floor)?;
    let mut measured = each("excess_hazard", pairs, Compared::hazard)?;
    if let Sample::Each(values) = &mut measured.sample {
        values.iter_mut().for_each(|h| *h -= base);
    }
    Some(measured)
}

fn notes(pairs: &[Compared], floor: &[Compared], measure: Measure) -> Vec<String> {
    let mut notes = vec![measure.note()];
    if let (Some(ours), Some(base)) = (pooled(pairs), pooled(floor)) {
        notes.push(format!(
            "divergences per 1000 {}: {:.2} between the builds, {:.2} of the incumbent with itself",
            measure.word(),
            ours * 1000.0,
            base * 1000.0
        ));
    }
    if let Some(told) = pairs.iter().find_map(|c| c.parting.clone()) {
        notes.push(format!("first divergence: {told}"));
        notes.push("the gap in nats at a divergence is not known, because answers carry no logprobs; `greedy_audit` measures it".into());
    }
    if let Some(told) = floor.iter().find_map(|c| c.parting.clone()) {
        notes.push(format!(
            "first divergence of the incumbent with itself: {told}"
        ));
    }
    notes
}

/// What speaks against the answers themselves.
fn objections(view: &View<'_>, own: &[&Window]) -> Vec<Reason> {
    let all = traffic::all(own);
    let loops = traffic::degenerate(&all).filter(|_| traffic::voids_loops(view));
    traffic::failed(&all).into_iter().chain(loops).collect()
}

fn unknown_self(theirs: &[&Window], reference: &str) -> Option<Reason> {
    let answered = theirs.iter().filter(|w| !w.exchanges.is_empty()).count();
    (answered < 2).then(|| {
        Reason::new(
            "self.unknown",
            Verdict::Unproven,
            format!("`{reference}` answered in {answered} repeats: how far it agrees with itself is not known; two are needed"),
            format!("`{reference}` の応答は {answered} 回分だけ: 自分自身との一致が分からない（2 回要る）"),
        )
    })
}

/// Two builds whose servers rendered one prompt differently were not asked the same.
fn other_prompts(own: &[&Window], theirs: &[&Window]) -> Option<Reason> {
    let (left, right) = own.iter().zip(theirs).find_map(|(left, right)| {
        pairs(left, right).find(|(a, b)| {
            a.prompt_ids.is_some() && b.prompt_ids.is_some() && a.prompt_ids != b.prompt_ids
        })
    })?;
    let tokens = |e: &Exchange| e.prompt_ids.as_ref().map_or(0, |d| d.count);
    Some(Reason::new(
        "prompt.differs",
        Verdict::Inconclusive,
        format!(
            "the builds did not read the same prompt: {} is other token ids ({} and {} of them); look at the chat templates",
            left.prompt,
            tokens(left),
            tokens(right)
        ),
        format!(
            "両ビルドが読んだプロンプトが違う: {} のトークン列（{} 個と {} 個）。チャットテンプレートを確認",
            left.prompt,
            tokens(left),
            tokens(right)
        ),
    ))
}

fn nothing(already: &[Reason]) -> Option<Reason> {
    already.is_empty().then(|| {
        Reason::new(
            "answers.absent",
            Verdict::Unproven,
            "no two answers to one prompt can be compared: they are empty or not there",
            "同じプロンプトへの比べられる応答が無い（空か欠落）",
        )
    })
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
