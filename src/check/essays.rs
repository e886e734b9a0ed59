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
    Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _, Takes,
};

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

impl Kind for Essays {
    fn name(&self) -> &'static str {
        "essays"
    }

    fn about(&self) -> &'static str {
        "Tasks that must end by themselves do; empty, cut, think-only, looped and stopped answers are told apart."
    }

    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn figures(&self) -> &'static [FigureKind] {
        FIGURES
    }

    fn proof(&self) -> ProofNeed {
        ProofNeed::Required
    }

    fn default_repeats(&self) -> u32 {
        1
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        params
            .texts("workloads")
            .iter()
            .map(|w| traffic::cell_name(w).to_owned())
            .collect()
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        traffic::faults(&check.params)
    }
}

impl Planned for Essays {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let params = &slot.check.params;
        let load = traffic::load(
            params,
            &format!("{}/1", slot.cell),
            Prompts::Each,
            Ids::Unwanted,
        );
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(Load {
                requests: params
                    .count("tasks")
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(1),
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
