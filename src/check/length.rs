//! `length`: how long answers are that end by themselves, against a certified run or another build.
//!
//! A build that says less looks faster and is not; MLPerf's compliance tests bound the output length for the same reason.

use super::traffic;
use crate::evidence::exchange::Exchange;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ending, Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::quality::needle::is_cut;
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Length;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "answer_tokens",
        unit: "tokens",
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::ByBound,
        about: "Mean tokens of the answers of a window, thinking included, from usage.",
    },
    FigureKind {
        name: "cut_share",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Share of the answers of a window that `max_tokens` cut: their length is the limit's, not the model's.",
    },
];

const KEYS: &[Key] = &[
    Key {
        name: "workloads",
        takes: Takes::Texts,
        default: Default::Texts(&["code", "en", "ja"]),
        about: "Workloads: `code`, `en`, `ja`, or `file:PATH`.",
    },
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1]),
        about: "Numbers of streams at once.",
    },
    Key {
        name: "requests",
        takes: Takes::Count(1, 10_000),
        default: Default::Count(4),
        about: "Requests of each stream in one window, one after another.",
    },
    Key {
        name: "max_tokens",
        takes: Takes::Count(8, 1_000_000),
        default: Default::Count(4096),
        about: "Tokens of each answer at most: large enough that few answers reach it.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "length",
    about: "Answers that end by themselves are as long as those of the certified run: a build that says less looks faster.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 7,
};

impl Kind for Length {
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

impl Planned for Length {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(
            &slot.check.params,
            slot.cell,
            Prompts::OfRepeat(slot.repeat),
            Ids::Unwanted,
        );
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(Load {
                ending: Ending::Free,
                ..load
            }),
        }]
    }
}

impl Concludes for Length {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all: Vec<(&Window, &Exchange)> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        let whole: Vec<_> = all
            .iter()
            .filter(|(_, e)| e.is_complete())
            .copied()
            .collect();
        let mut conclusion = Conclusion::default();
        conclusion.reasons.extend(traffic::failed(&all));
        conclusion.reasons.extend(traffic::without_usage(&whole));
        conclusion.reasons.extend(all_cut(&whole));
        let (tokens, ids): (Vec<f64>, Vec<String>) = windows
            .iter()
            .filter_map(|w| Some((traffic::mean_tokens(w)?, w.id.clone())))
            .unzip();
        if !tokens.is_empty() {
            conclusion.measured.push(Measured {
                figure: "answer_tokens",
                sample: Sample::Repeats(tokens),
                windows: ids,
            });
        }
        let (shares, ids): (Vec<f64>, Vec<String>) = windows
            .iter()
            .filter_map(|w| Some((cut_share(w)?, w.id.clone())))
            .unzip();
        if !shares.is_empty() {
            conclusion.measured.push(Measured {
                figure: "cut_share",
                sample: Sample::Each(shares),
                windows: ids,
            });
        }
        conclusion
    }
}

fn cut(exchange: &Exchange) -> bool {
    exchange.finish_reason.as_deref().is_some_and(is_cut)
}

/// Share of a window's answers that were cut; absent where a server did not say how an answer ended.
fn cut_share(window: &Window) -> Option<f64> {
    let all = &window.exchanges;
    let said = !all.is_empty() && all.iter().all(|e| e.finish_reason.is_some());
    said.then(|| all.iter().filter(|e| cut(e)).count() as f64 / all.len() as f64)
}

/// Where every answer was cut, all builds are equally long by force, and nothing is shown.
fn all_cut(whole: &[(&Window, &Exchange)]) -> Option<Reason> {
    (!whole.is_empty() && whole.iter().all(|(_, e)| cut(e))).then(|| {
        Reason::new(
            "length.cut",
            Verdict::Unproven,
            "every answer was cut at `max_tokens`: their length is the limit's and says nothing of the build; raise `max_tokens`",
            "すべての応答が `max_tokens` で切れた: 長さは上限そのもので、ビルドについて何も示さない。`max_tokens` を上げること",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, codes, conclude, gate, numbers};
    use super::*;

    const CHECK: &str = "kind = \"length\"\nbuilds = [\"candidate\"]\nrepeats = 5";

    fn said(tokens: usize, finish: &str) -> Exchange {
        Exchange {
            finish_reason: Some(finish.into()),
            ..answer("a", "text", Some(&vec![7; tokens]))
        }
    }

    fn concluded(windows: Vec<Vec<Exchange>>) -> Conclusion {
        let mut hand = Hand::default();
        for window in windows {
            hand.window("length/en/1", "candidate", window);
        }
        conclude(&gate(CHECK), &hand.evidence, "candidate")
    }

    #[test]
    fn a_window_gives_the_mean_length_of_its_answers_and_the_share_that_was_cut() {
        let seen = concluded(vec![vec![said(100, "stop"), said(200, "length")]]);
        assert_eq!(codes(&seen), []);
        assert_eq!(numbers(&seen, "answer_tokens"), [150.0]);
        assert_eq!(numbers(&seen, "cut_share"), [0.5]);
    }

    #[test]
    fn answers_that_are_all_cut_prove_nothing() {
        let seen = concluded(vec![vec![said(64, "length")], vec![said(64, "length")]]);
        assert_eq!(codes(&seen), [("length.cut", Verdict::Unproven)]);
    }

    #[test]
    fn an_ending_that_is_not_said_has_no_cut_share() {
        let mut unsaid = said(100, "stop");
        unsaid.finish_reason = None;
        let seen = concluded(vec![vec![unsaid]]);
        assert!(numbers(&seen, "cut_share").is_empty());
        assert_eq!(numbers(&seen, "answer_tokens"), [100.0]);
    }
}
