//! `essays`: tasks that must end by themselves, with empty, cut and looped answers told apart.

use std::collections::BTreeMap;

use super::traffic;
use crate::evidence::exchange::Exchange;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ending as Rule, Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::quality::essay::{Ending, ending};
use crate::quality::needle::Answer;
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};
use crate::stats::alpha::Alpha;
use crate::stats::proportion::{self, Count};

/// The kind.
#[derive(Debug)]
pub(super) struct Essays;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "ended",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Share of the answers of a window that ended by themselves with real text.",
    },
    FigureKind {
        name: "answer_tokens",
        unit: "tokens",
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Mean tokens of the answers of a window, thinking included, from usage.",
    },
];

const KEYS: &[Key] = &[
    Key {
        name: "workloads",
        takes: Takes::Texts,
        default: Default::Texts(&["essays"]),
        about: "Workloads whose every task is asked once: a built-in name, or `file:PATH`.",
    },
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1]),
        about: "Numbers of streams at once.",
    },
    Key {
        name: "tasks",
        takes: Takes::Count(1, 10_000),
        default: Default::Count(12),
        about: "Tasks at most.",
    },
    Key {
        name: "max_tokens",
        takes: Takes::Count(8, 1_000_000),
        default: Default::Count(8192),
        about: "Tokens of each answer at most, thinking included: large enough that only a runaway reaches it.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "essays",
    about: "Tasks that must end by themselves do; empty, cut, think-only, looped and stopped answers are told apart.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Essays {
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

impl Planned for Essays {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let params = &slot.check.params;
        let load = traffic::load(params, slot.cell, Prompts::Each, Ids::Unwanted);
        let tasks = params.count("tasks").unwrap_or(1);
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(Load {
                requests: u32::try_from(tasks.div_ceil(u64::from(load.streams.max(1))))
                    .unwrap_or(u32::MAX),
                ending: Rule::Free,
                ..load
            }),
        }]
    }
}

impl Concludes for Essays {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all: Vec<(&Window, &Exchange)> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        let mut conclusion = Conclusion::default();
        conclusion.reasons.extend(traffic::failed(&all));
        let whole: Vec<_> = all
            .iter()
            .filter(|(_, e)| e.is_complete())
            .copied()
            .collect();
        conclusion.reasons.extend(traffic::without_usage(&whole));
        if all.is_empty() && !windows.is_empty() {
            conclusion.reasons.push(Reason::new(
                "essays.none",
                Verdict::Unproven,
                "no task was asked: no essay that failed to end is no essay that ended",
                "課題が 1 件も出されていない",
            ));
        }
        conclusion.reasons.extend(endings(&whole));
        let share = |w: &Window| {
            let ended = w
                .exchanges
                .iter()
                .filter(|e| e.is_complete() && of(e) == Ending::Ended);
            (!w.exchanges.is_empty()).then(|| ended.count() as f64 / w.exchanges.len() as f64)
        };
        for (figure, value) in [
            ("ended", &share as &dyn Fn(&Window) -> Option<f64>),
            ("answer_tokens", &traffic::mean_tokens),
        ] {
            let (values, ids): (Vec<f64>, Vec<String>) = windows
                .iter()
                .filter_map(|w| Some((value(w)?, w.id.clone())))
                .unzip();
            if !values.is_empty() {
                conclusion.measured.push(Measured {
                    figure,
                    sample: Sample::Each(values),
                    windows: ids,
                });
            }
        }
        conclusion.notes.extend(bound(&whole));
        let thought = whole
            .iter()
            .filter(|(_, e)| !e.reasoning.is_empty())
            .count();
        conclusion
            .notes
            .push(format!("thinking: {thought} of {} answers", whole.len()));
        let rates: Vec<f64> = whole.iter().filter_map(|(_, e)| e.decode_tok_s()).collect();
        if !rates.is_empty() {
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            conclusion.notes.push(format!(
                "{}: {mean:.1} tok/s decode, not judged",
                view.case.cell
            ));
        }
        conclusion
    }
}

/// How sure the share of ended answers is: a dozen that all ended do not make 100 %.
fn bound(whole: &[(&Window, &Exchange)]) -> Option<String> {
    let ended = whole.iter().filter(|(_, e)| of(e) == Ending::Ended).count();
    let count = Count {
        passed: ended as u64,
        tried: whole.len() as u64,
    };
    let share = proportion::clopper_pearson(count, Alpha::FIVE_PERCENT);
    share.ok().map(|share| {
        format!(
            "{ended} of {} answers ended by themselves: {:.1} % or more of all such answers, at 95 % (Clopper–Pearson)",
            whole.len(),
            share.lower * 100.0
        )
    })
}

fn of(exchange: &Exchange) -> Ending {
    ending(&Answer {
        text: &exchange.text,
        reasoning: &exchange.reasoning,
        finish_reason: exchange.finish_reason.as_deref(),
    })
}

/// One reason for each way in which answers did not end, with the names of their prompts.
fn endings(whole: &[(&Window, &Exchange)]) -> Vec<Reason> {
    let mut by: BTreeMap<Ending, Vec<&str>> = BTreeMap::new();
    for (_, exchange) in whole {
        by.entry(of(exchange)).or_default().push(&exchange.prompt);
    }
    by.remove(&Ending::Ended);
    by.into_iter()
        .map(|(ending, prompts)| {
            let verdict = if ending == Ending::Unsaid {
                Verdict::Unproven
            } else {
                Verdict::Fail
            };
            // Ten names show a pattern; a thousand hide it.
            let named = prompts
                .iter()
                .take(10)
                .copied()
                .collect::<Vec<_>>()
                .join("`, `");
            let word = ending.word();
            Reason::new(
                &format!("essays.{word}"),
                verdict,
                format!(
                    "{} of {} answers are {word}: `{named}`",
                    prompts.len(),
                    whole.len()
                ),
                format!(
                    "{} 件中 {} 件の応答が {word}: `{named}`",
                    whole.len(),
                    prompts.len()
                ),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, codes, conclude, gate, numbers};
    use super::*;

    const CHECK: &str = "kind = \"essays\"\nbuilds = [\"candidate\"]\ntasks = 3";
    const TEXT: &str = "The harbour was quiet that evening. Two boats came in late, and nobody asked where they had been.";

    fn essay(prompt: &str, text: &str, finish: &str) -> Exchange {
        Exchange {
            finish_reason: Some(finish.into()),
            ..answer(prompt, text, None)
        }
    }

    fn concluded(essays: Vec<Exchange>) -> Conclusion {
        let mut hand = Hand::default();
        hand.window("essays/en/1", "candidate", essays);
        conclude(&gate(CHECK), &hand.evidence, "candidate")
    }

    #[test]
    fn essays_that_end_by_themselves_pass_and_the_note_bounds_their_share() {
        let seen = concluded(vec![essay("a", TEXT, "stop"), essay("b", TEXT, "stop")]);
        assert_eq!(codes(&seen), []);
        assert_eq!(numbers(&seen, "ended"), [1.0]);
        assert!(
            seen.notes[0].contains("2 of 2 answers ended"),
            "{:?}",
            seen.notes
        );
    }

    #[test]
    fn a_cut_and_an_empty_essay_are_told_apart_by_name() {
        let seen = concluded(vec![
            essay("a", TEXT, "stop"),
            essay("long", TEXT, "length"),
            essay("mute", "", "stop"),
        ]);
        assert_eq!(
            codes(&seen),
            [
                ("essays.cut", Verdict::Fail),
                ("essays.empty", Verdict::Fail)
            ]
        );
        assert!(seen.reasons[0].text.contains("`long`"));
        assert!((numbers(&seen, "ended")[0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_window_without_essays_is_unproven() {
        assert_eq!(
            codes(&concluded(Vec::new())),
            [("essays.none", Verdict::Unproven)]
        );
    }

    #[test]
    fn a_server_that_does_not_say_how_it_ended_leaves_it_unproven() {
        let mut unsaid = essay("a", TEXT, "stop");
        unsaid.finish_reason = None;
        assert_eq!(
            codes(&concluded(vec![unsaid])),
            [("essays.unsaid", Verdict::Unproven)]
        );
    }
}
