//! `canary`: one small, fixed workload between the other windows; it vouches that the machine did not move under them.
//!
//! It judges the machine and not the build: when it moves, its case (and with it the gate) is INCONCLUSIVE, never FAIL.

use super::throughput::decode_rate;
use super::traffic;
use crate::evidence::exchange::Exchange;
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};
use crate::stats::drift::{self, Movement};

/// The kind.
#[derive(Debug)]
pub(super) struct Canary;

const FIGURES: &[FigureKind] = &[FigureKind {
    name: "canary_tok_s",
    unit: "tok/s",
    unit_aliases: &[("tokens/s", 1.0), ("t/s", 1.0)],
    words: &[],
    judged: Judged::Each,
    about: "Decode rate of the fixed workload, one reading a repeat.",
}];

const KEYS: &[Key] = &[
    Key {
        name: "workloads",
        takes: Takes::Texts,
        default: Default::Texts(&["en"]),
        about: "The workload; its first task is asked every time.",
    },
    Key {
        name: "streams",
        takes: Takes::Counts(1, 1024),
        default: Default::Counts(&[1]),
        about: "Numbers of streams at once.",
    },
    Key {
        name: "max_tokens",
        takes: Takes::Count(8, 1_000_000),
        default: Default::Count(64),
        about: "Tokens of the answer: enough for a rate, few enough to cost little.",
    },
    Key {
        name: "allowance",
        takes: Takes::Fraction,
        default: Default::Number(0.03),
        about: "How far the readings may lie apart, as a share of their median; its own noise belongs into it.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "canary",
    about: "One small fixed workload between the other windows: when its rate moves, the machine drifted and the gate is INCONCLUSIVE.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    // A reading beside each repeat of a throughput check, which has seven.
    repeats: 7,
};

impl Kind for Canary {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let once = (check.repeats.min < 2).then(|| KindFault {
            key: Some("repeats"),
            message: "one reading of a canary has nothing to move from".into(),
            help: "give it as many `repeats` as the checks that it stands beside".into(),
        });
        traffic::faults(&check.params)
            .into_iter()
            .chain(once)
            .collect()
    }
}

impl Planned for Canary {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(&slot.check.params, slot.cell, Prompts::Same, Ids::Unwanted);
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(Load {
                requests: 1,
                ..load
            }),
        }]
    }
}

impl Concludes for Canary {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all: Vec<(&Window, &Exchange)> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        let mut conclusion = Conclusion::default();
        conclusion.reasons.extend(traffic::failed(&all));
        let (readings, ids): (Vec<f64>, Vec<String>) = windows
            .iter()
            .filter_map(|w| Some((decode_rate(w)?, w.id.clone())))
            .unzip();
        let allowance = view.check.params.number("allowance").unwrap_or_default();
        match drift::canary(&readings, allowance) {
            Ok(canary) if canary.movement == Movement::Moved => {
                conclusion.reasons.push(moved(&readings, allowance));
            }
            Ok(_) => {}
            Err(cause) => conclusion.reasons.push(Reason::new(
                "canary.absent",
                Verdict::Unproven,
                format!("nothing vouches for the machine: {cause}"),
                format!("計測機の安定を示すものが無い: {cause}"),
            )),
        }
        if !readings.is_empty() {
            conclusion.measured.push(Measured {
                figure: "canary_tok_s",
                sample: Sample::Each(readings),
                windows: ids,
            });
        }
        conclusion
    }
}

fn moved(readings: &[f64], allowance: f64) -> Reason {
    let low = readings.iter().copied().fold(f64::INFINITY, f64::min);
    let high = readings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Reason::new(
        "canary.moved",
        Verdict::Inconclusive,
        format!(
            "the same small workload ran at {low:.2} to {high:.2} tok/s, more than {:.1} % apart: the machine moved under the measurement",
            allowance * 100.0
        ),
        format!(
            "同じ小さな仕事が {low:.2}〜{high:.2} tok/s と {:.1} % を超えて動いた: 計測中に機械の速さが変わった",
            allowance * 100.0
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, codes, conclude, gate, numbers};
    use super::*;

    const CHECK: &str = "kind = \"canary\"\nbuilds = [\"candidate\"]\nrepeats = 3";

    fn at(rates: &[f64]) -> Conclusion {
        let mut hand = Hand::default();
        for rate in rates {
            let reading = Exchange {
                first_token_s: Some(1.0),
                last_token_s: Some(1.0 + 64.0 / rate),
                first_chunk_tokens: Some(1),
                token_chunks: 8,
                ..answer("p", "text", Some(&[1; 65]))
            };
            hand.window("canary/en/1", "candidate", vec![reading]);
        }
        conclude(&gate(CHECK), &hand.evidence, "candidate")
    }

    #[test]
    fn a_machine_that_stands_still_raises_nothing() {
        let seen = at(&[100.0, 101.0, 99.5]);
        assert_eq!(codes(&seen), []);
        assert_eq!(numbers(&seen, "canary_tok_s").len(), 3);
    }

    #[test]
    fn a_machine_that_moved_is_inconclusive_and_not_a_failure() {
        assert_eq!(
            codes(&at(&[100.0, 97.0, 90.0])),
            [("canary.moved", Verdict::Inconclusive)]
        );
    }

    #[test]
    fn one_reading_vouches_for_nothing() {
        assert_eq!(codes(&at(&[100.0])), [("canary.absent", Verdict::Unproven)]);
    }
}
