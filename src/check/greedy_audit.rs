//! `greedy_audit`: what the judged build wrote greedily, scored token by token by a build that does not speculate.
//!
//! Lossless speculation writes what the target alone would have written. The auditor reads prompt and answer as one
//! prompt; each token of the answer must be the likeliest of its place, or a near tie. Writing is decode and scoring is
//! prefill, so that the auditor first has to confirm an answer of its own; if it cannot, nothing follows.

use super::scored_answers::{self, Ledger};
use super::{perplexity, traffic};
use crate::evidence::window::Window;
use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{AuditTask, Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, Turn, WindowWish};
use crate::spec::gate::{Check, Gate, Occupancy};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct GreedyAudit;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "rank1_share",
        unit: "",
        unit_aliases: &[("%", 0.01)],
        words: &[],
        judged: Judged::Each,
        about: "Share of the audited tokens that are the likeliest of their places.",
    },
    FigureKind {
        name: "worst_gap",
        unit: "nats",
        unit_aliases: &[("nat", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Largest distance of an audited token from the likeliest of its place.",
    },
    FigureKind {
        name: "tokens_audited",
        unit: "tokens",
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Tokens of the answers that were scored in a window.",
    },
];

/// Nats behind the likeliest that are still a near tie. Between equal kernels 0.05 is enough; but an answer is written by
/// decode kernels and scored by prefill kernels, and between those bf16 moves a logprob by up to 0.36 (SGLang's own test
/// of decode against prefill allows 0.5; a sound vLLM on CPU with n-gram drafts showed 0.125).
const GAP: f64 = 0.5;

const KEYS: &[Key] = &[
    traffic::KEYS[0],
    traffic::KEYS[1],
    Key {
        name: "requests",
        takes: Takes::Count(1, 10_000),
        default: Default::Count(4),
        about: "Requests of each stream in one window, one after another.",
    },
    traffic::KEYS[3],
    Key {
        name: "ending",
        takes: Takes::Word(&["ignored", "free"]),
        default: Default::Text("free"),
        about: "`free`: an answer ends by itself; `ignored`: the end token is passed over, and what comes after it is not greedy on every server.",
    },
    traffic::KEYS[5],
    Key {
        name: "route",
        takes: Takes::Word(&["chat", "completion"]),
        default: Default::Text("chat"),
        about: "Route of the answers: `chat`, whose prompt the auditor's tokenizer must be able to render, or `completion`.",
    },
    Key {
        name: "gap",
        takes: Takes::Number(0.0, 10.0),
        default: Default::Number(GAP),
        about: "Nats by which a token may stand behind the likeliest as a near tie: 0.05 between equal kernels, 0.5 where bf16 decode is scored by bf16 prefill.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "greedy_audit",
    about: "Greedy answers of the judged build scored by a build without speculation: each token the likeliest, or a near tie.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for GreedyAudit {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, gate: &Gate) -> Vec<KindFault> {
        let mut faults = traffic::faults(&check.params);
        let Some((subject, auditors)) = check.builds.split_last() else {
            return faults;
        };
        if auditors.is_empty() {
            faults.push(KindFault {
                key: Some("builds"),
                message: "`greedy_audit` needs a build that scores the answers".into(),
                help: "write `builds = [\"candidate-spec-off\", \"candidate\"]`: the last one is judged".into(),
            });
        }
        faults.extend(
            auditors
                .iter()
                .filter_map(|auditor| too_early(gate, auditor, subject)),
        );
        faults
    }
}

/// One at a time, builds come in the order of the file and the references once more in reverse order: an auditor that
/// is declared below the judged build would be gone before the last answers are there.
fn too_early(gate: &Gate, auditor: &str, subject: &str) -> Option<KindFault> {
    let place = |name: &str| gate.builds.iter().position(|b| b.name == name);
    let below = place(auditor)? > place(subject)?;
    (below && gate.seat.occupancy == Occupancy::OneAtATime).then(|| KindFault {
        key: Some("builds"),
        message: format!(
            "`{auditor}` is declared below `{subject}`, so that it does not come after the answers that it scores"
        ),
        help: format!(
            "move `[builds.{auditor}]` above `[builds.{subject}]`, or write `together = true` under `[seat]`"
        ),
    })
}

/// Tokens of the auditor's own answer: enough to see a shifted or broken scorer, few enough to cost little.
const CONTROL_TOKENS: u32 = 64;

impl Planned for GreedyAudit {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(
            &slot.check.params,
            slot.cell,
            Prompts::OfRepeat(slot.repeat),
            Ids::Wanted,
        );
        let wish = |part: &str, task| WindowWish {
            part: part.into(),
            task,
        };
        if slot.on_subject() {
            return vec![wish("measure", Task::Load(load))];
        }
        let control = Load {
            streams: 1,
            requests: 1,
            max_tokens: load.max_tokens.min(CONTROL_TOKENS),
            ..load.clone()
        };
        let audit = |written_by: &str, load| {
            Task::Audit(AuditTask {
                written_by: written_by.into(),
                load,
            })
        };
        vec![
            wish("control", Task::Load(control.clone())),
            wish("control-audit", audit(slot.build, control)),
            wish("measure", audit(slot.check.subject(), load)),
        ]
    }

    fn reference_turn(&self) -> Turn {
        Turn::After
    }
}

impl Concludes for GreedyAudit {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let own = view.windows("measure");
        if view.build != view.check.subject() {
            // Logprobs are corrupt on some servers while they speculate.
            let reasons = own.iter().filter_map(|w| perplexity::speculation(view, w));
            return Conclusion {
                reasons: reasons.take(1).collect(),
                ..Conclusion::default()
            };
        }
        let all = traffic::all(&own);
        let loops = traffic::degenerate(&all).filter(|_| traffic::voids_loops(view));
        let mut conclusion = Conclusion {
            reasons: traffic::failed(&all).into_iter().chain(loops).collect(),
            notes: traffic::noted(view, &own).into_iter().collect(),
            ..Conclusion::default()
        };
        if let Some(reason) = without_ids(&own) {
            conclusion.reasons.push(reason);
            return conclusion;
        }
        let gap = view.check.params.number("gap").unwrap_or(GAP);
        let mut ledger = Ledger::default();
        for auditor in view.check.builds.iter().filter(|b| *b != view.build) {
            match scored_answers::credible(view, auditor, gap) {
                Ok(()) => ledger.add(view, auditor, &own, gap),
                Err(reason) => conclusion.reasons.push(reason),
            }
        }
        conclusion.measured = figures(&ledger);
        conclusion.notes.extend(note(&ledger, gap));
        conclusion.reasons.extend(ledger.reasons);
        conclusion
    }
}

/// No answer came with the ids of its tokens.
fn without_ids(own: &[&Window]) -> Option<Reason> {
    let mut whole = own
        .iter()
        .flat_map(|w| &w.exchanges)
        .filter(|e| e.is_complete())
        .peekable();
    whole.peek()?;
    whole.all(|e| e.token_ids.is_none()).then(|| {
        Reason::new(
            "ids.absent",
            Verdict::Unproven,
            "the answers came without token ids, so that nobody can score them: a server with `return_token_ids` (vLLM 0.10.2 and later) gives them",
            "応答にトークン ID が無く採点できない: `return_token_ids` を持つサーバ（vLLM 0.10.2 以降）が要る",
        )
    })
}

fn figures(ledger: &Ledger) -> Vec<Measured> {
    let row = |figure, of: &dyn Fn(&scored_answers::Total) -> f64| Measured {
        figure,
        sample: Sample::Each(ledger.totals.iter().map(of).collect()),
        windows: ledger.totals.iter().map(|t| t.window.clone()).collect(),
    };
    if ledger.totals.is_empty() {
        return Vec::new();
    }
    vec![
        row("rank1_share", &|t| t.first as f64 / t.tokens as f64),
        row("worst_gap", &|t| t.worst_gap),
        row("tokens_audited", &|t| t.tokens as f64),
    ]
}

fn note(ledger: &Ledger, gap: f64) -> Option<String> {
    let tokens: usize = ledger.totals.iter().map(|t| t.tokens).sum();
    let near = tokens
        - ledger
            .totals
            .iter()
            .map(|t| t.first + t.departures)
            .sum::<usize>();
    (tokens > 0).then(|| {
        format!("{tokens} tokens audited; near ties within {gap} nats of the likeliest: {near}")
    })
}

#[cfg(test)]
#[path = "greedy_audit_tests.rs"]
mod tests;
