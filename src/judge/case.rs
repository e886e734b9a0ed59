//! One case from its evidence to its finding.

use std::collections::BTreeSet;

use super::conditions;
use super::estimate::{self, Design, Terms};
use super::figure::{Decision, Figure, LimitOutcome};
use super::finding::{Finding, Proof, ProofVerdict, Reason, ReferenceFigures};
use super::limit::{self, Opponent};
use super::looks::{self, Standing};
use super::path;
use super::precondition;
use super::recorded::Recorded;
use super::sample::{Concludes, Conclusion, Measured, View};
use super::steadiness::{self, Repeated, Steadiness};
use super::verdict::Verdict;
use crate::evidence::body::Evidence;
use crate::evidence::window::Window;
use crate::plan::Case;
use crate::spec::expect::{Expectation, Reference};
use crate::spec::gate::{Check, Gate, Occupancy};
use crate::spec::kind::{Judged, ProofNeed};

/// Everything that judging reads.
#[derive(Debug, Clone, Copy)]
pub struct Matter<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// The evidence of the run.
    pub evidence: &'a Evidence,
    /// Recorded runs that expectations refer to.
    pub recorded: &'a [Recorded],
    /// Runs of this gate on this build that came before: a re-run is judged at alpha · 2^-n.
    pub earlier_runs: u32,
}

/// The finding on one case.
pub fn finding(matter: Matter<'_>, case: &Case, kind: &dyn Concludes) -> Finding {
    let check = &matter.gate.checks[case.check];
    let subject = Side::of(matter, check, case, kind, check.subject());
    let references: Vec<Side<'_>> = check
        .builds
        .iter()
        .take(check.builds.len().saturating_sub(1))
        .map(|build| Side::of(matter, check, case, kind, build))
        .collect();
    let mut finding = Finding {
        id: case.id.clone(),
        kind: check.kind.name().into(),
        build: check.subject().into(),
        verdict: Verdict::Pass,
        reasons: Vec::new(),
        figures: Vec::new(),
        references: Vec::new(),
        proof: None,
        windows: subject
            .view
            .all_windows()
            .iter()
            .chain(references.iter().flat_map(|r| r.windows.iter()))
            .map(|w| w.id.clone())
            .collect(),
        line: check.line,
        notes: subject.conclusion.notes.clone(),
    };
    if subject.windows.is_empty() {
        finding.verdict = Verdict::NotRun;
        finding
            .reasons
            .push(not_run(matter.evidence, case, check.subject()));
        return finding;
    }
    let standing = standing(matter, check, &subject);
    finding.figures = figures(matter, check, case, &subject, &references, &standing);
    finding.reasons = reasons(check, &subject, &references, &finding.figures);
    finding
        .reasons
        .extend(unequal(matter, check, case, &subject, &references));
    let steadiness = steadiness(matter, check, case, &subject, &references);
    finding.reasons.extend(steadiness.reasons);
    finding.notes.extend(steadiness.notes);
    finding.proof = subject.proof.clone();
    finding.references = references
        .iter()
        .map(|side| ReferenceFigures {
            build: side.view.build.into(),
            figures: side
                .conclusion
                .measured
                .iter()
                .map(|m| bare(check, m, standing.alpha))
                .collect(),
            proof: side.proof.clone(),
        })
        .collect();
    finding
        .reasons
        .sort_by_key(|r| std::cmp::Reverse(r.verdict));
    finding.verdict = Verdict::of_all(
        std::iter::once(Verdict::Pass).chain(finding.reasons.iter().map(|r| r.verdict)),
    );
    finding
}

/// One build of a case.
struct Side<'a> {
    view: View<'a>,
    windows: Vec<&'a Window>,
    conclusion: Conclusion,
    disturbances: Vec<Reason>,
    proof: Option<Proof>,
}

impl<'a> Side<'a> {
    fn of(
        matter: Matter<'a>,
        check: &'a Check,
        case: &'a Case,
        kind: &dyn Concludes,
        build: &'a str,
    ) -> Self {
        let spoken = matter
            .evidence
            .boots
            .iter()
            .find(|b| b.build == build)
            .map(|b| b.identity.dialect.as_str());
        let view = View {
            gate: matter.gate,
            check,
            case,
            build,
            dialect: spoken.and_then(crate::dialect::named),
            evidence: matter.evidence,
        };
        let windows = view.windows("measure");
        let named = if build == check.subject() {
            check.path.as_deref()
        } else {
            matter.gate.build(build).and_then(|b| b.path.as_deref())
        };
        let needed = check.kind.proof() == ProofNeed::Required;
        let proof = named
            .filter(|_| needed)
            .and_then(|name| matter.gate.path(name))
            .map(|spec| path::prove(&view, spec, &with_traffic(matter.evidence, &windows)));
        Self {
            conclusion: kind.conclude(&view),
            disturbances: precondition::disturbances(&view, &windows, kind),
            windows,
            view,
            proof,
        }
    }

    fn measured(&self, figure: &str) -> Option<&Measured> {
        self.conclusion.measured.iter().find(|m| m.figure == figure)
    }
}

/// The windows in which the seat was asked for anything; the others can neither prove nor refute a path.
fn with_traffic<'a>(evidence: &Evidence, windows: &[&'a Window]) -> Vec<&'a Window> {
    windows
        .iter()
        .copied()
        .filter(|w| !w.exchanges.is_empty() || evidence.scores.contains_key(&w.id))
        .collect()
}

/// Where the case stands between its looks: by the repeats that were made on the judged build.
fn standing(matter: Matter<'_>, check: &Check, subject: &Side<'_>) -> Standing {
    let made: BTreeSet<u32> = subject.windows.iter().map(|w| w.repeat).collect();
    looks::standing(check, matter.earlier_runs, made.len())
}

/// How the repeats of two builds stand to each other.
fn design(gate: &Gate) -> Design {
    match gate.seat.occupancy {
        Occupancy::SideBySide => Design::Pairs,
        Occupancy::OneAtATime => Design::Blocks,
    }
}

fn bare(check: &Check, measured: &Measured, alpha: f64) -> Figure {
    estimate::figure(check, measured, alpha)
}

fn figures(
    matter: Matter<'_>,
    check: &Check,
    case: &Case,
    subject: &Side<'_>,
    references: &[Side<'_>],
    standing: &Standing,
) -> Vec<Figure> {
    let alpha = standing.alpha;
    let mut figures: Vec<Figure> = Vec::new();
    for measured in &subject.conclusion.measured {
        let mut figure = bare(check, measured, alpha);
        for side in references {
            if let Some(theirs) = side.measured(measured.figure) {
                let terms = Terms {
                    alpha,
                    design: design(matter.gate),
                };
                figure.against.extend(estimate::against_build(
                    side.view.build,
                    measured,
                    theirs,
                    terms,
                ));
            }
        }
        for recorded in matter.recorded {
            if let Some(theirs) = recorded.figure(&case.id, subject.view.build, measured.figure) {
                figure.against.push(estimate::against_recorded(
                    &recorded.name,
                    measured,
                    theirs,
                    alpha,
                ));
            }
        }
        for expectation in expectations(check, case).filter(|e| e.figure == measured.figure) {
            let opponent = opponent(expectation, subject, references, matter.recorded, case);
            let terms = Terms {
                alpha,
                design: design(matter.gate),
            };
            let mut outcome = limit::hold(measured, &figure, expectation, &opponent, terms);
            if let Some(why) = standing
                .between
                .as_deref()
                .filter(|_| by_bound(check, measured))
            {
                looks::between(&mut outcome, why);
            }
            figure.limits.push(outcome);
        }
        figures.push(figure);
    }
    figures
}

/// Whether a figure is held by its bound, which may be looked at on a look only.
fn by_bound(check: &Check, measured: &Measured) -> bool {
    estimate::declared(check, measured.figure).is_some_and(|f| f.judged != Judged::Each)
}

/// Refusals of comparisons with builds and runs that were measured under other conditions; only where a limit compares.
fn unequal(
    matter: Matter<'_>,
    check: &Check,
    case: &Case,
    subject: &Side<'_>,
    references: &[Side<'_>],
) -> Vec<Reason> {
    let ours = conditions::of(&subject.windows);
    let mut reasons: Vec<Reason> = Vec::new();
    for expectation in expectations(check, case) {
        let refusal = match expectation.limit.reference() {
            Some(Reference::Build(name)) => references
                .iter()
                .find(|side| side.view.build == name)
                .map(|side| conditions::of(&side.windows))
                .and_then(|theirs| {
                    conditions::refusal(name, &conditions::differences(ours, theirs))
                }),
            Some(Reference::Run(name)) => matter
                .recorded
                .iter()
                .find(|run| run.name == *name)
                .and_then(|run| run.conditions.get(&case.id))
                .and_then(|theirs| {
                    conditions::refusal(
                        &format!("run:{name}"),
                        &conditions::differences(ours, theirs),
                    )
                }),
            None => None,
        };
        reasons.extend(refusal.filter(|r| !reasons.contains(r)));
    }
    reasons
}

/// Chance that a gate of steady builds is disturbed by any of its steadiness tests.
const FALSE_ALARMS: f64 = 0.05;

fn steadiness(
    matter: Matter<'_>,
    check: &Check,
    case: &Case,
    subject: &Side<'_>,
    references: &[Side<'_>],
) -> Steadiness {
    let mut all = Steadiness::default();
    // Two tests for each figure that a limit of the gate holds.
    let tests = 2 * held_figures(matter.gate).max(1);
    for measured in &subject.conclusion.measured {
        let limits: Vec<&Expectation> = expectations(check, case)
            .filter(|e| e.figure == measured.figure)
            .collect();
        if limits.is_empty() || !by_bound(check, measured) {
            continue;
        }
        let found = steadiness::look(Repeated {
            figure: measured.figure,
            ours: &measured.sample,
            theirs: references
                .first()
                .and_then(|side| side.measured(measured.figure))
                .map(|m| &m.sample),
            limits: &limits,
            design: design(matter.gate),
            max_swing: check.max_swing,
            share: FALSE_ALARMS / tests as f64,
        });
        all.reasons.extend(found.reasons);
        all.notes.extend(found.notes);
    }
    all
}

/// How many figures the limits of a gate hold, over all its cases.
fn held_figures(gate: &Gate) -> usize {
    crate::plan::cases(gate)
        .iter()
        .map(|case| {
            let held: BTreeSet<&str> = expectations(&gate.checks[case.check], case)
                .map(|e| e.figure.as_str())
                .collect();
            held.len()
        })
        .sum()
}

fn expectations<'a>(check: &'a Check, case: &'a Case) -> impl Iterator<Item = &'a Expectation> {
    check
        .expect
        .iter()
        .filter(|e| e.cell.as_deref().is_none_or(|cell| cell == case.cell))
}

/// What a limit compares with.
fn opponent<'a>(
    expectation: &'a Expectation,
    subject: &Side<'_>,
    references: &'a [Side<'_>],
    recorded: &'a [Recorded],
    case: &Case,
) -> Opponent<'a> {
    match expectation.limit.reference() {
        None => Opponent::None,
        Some(Reference::Build(name)) => references
            .iter()
            .find(|side| side.view.build == name)
            .and_then(|side| side.measured(&expectation.figure))
            .map_or_else(
                || Opponent::Missing(format!("`{name}` has no such figure")),
                Opponent::Measured,
            ),
        Some(Reference::Run(name)) => {
            match recorded.iter().find(|r| r.name == *name) {
                None => Opponent::Missing(format!("the recorded run `{name}` was not read")),
                Some(run) => match (
                    &run.fault,
                    run.figure(&case.id, subject.view.build, &expectation.figure),
                ) {
                    (Some(fault), _) => Opponent::Missing(fault.clone()),
                    (None, None) => Opponent::Missing(format!(
                        "the recorded run `{name}` has no such figure for {}",
                        case.id
                    )),
                    (None, Some(_)) if run.sessions.len() > 1 => Opponent::Sessions(
                        run.sessions_of(&case.id, subject.view.build, &expectation.figure),
                    ),
                    (None, Some(figure)) => Opponent::Recorded(figure),
                },
            }
        }
    }
}

fn reasons(
    check: &Check,
    subject: &Side<'_>,
    references: &[Side<'_>],
    figures: &[Figure],
) -> Vec<Reason> {
    let mut reasons = subject.conclusion.reasons.clone();
    reasons.extend(proof_reasons(subject));
    reasons.extend(subject.disturbances.iter().cloned());
    for side in references {
        reasons.extend(side_reasons(side));
    }
    let disturbed = reasons.iter().any(|r| r.verdict == Verdict::Inconclusive);
    for figure in figures {
        for outcome in &figure.limits {
            reasons.extend(limit_reason(figure, outcome, disturbed));
        }
    }
    for expectation in expectations(check, subject.view.case) {
        if !figures.iter().any(|f| f.name == expectation.figure) {
            reasons.push(Reason::new(
                "figure.absent",
                Verdict::Unproven,
                format!(
                    "`{}` was not measured, so `{}` cannot hold",
                    expectation.figure, expectation.text
                ),
                format!(
                    "`{}` を測れなかったので「{}」は判定できない",
                    expectation.figure, expectation.text
                ),
            ));
        }
    }
    reasons
}

/// What a reference build's own evidence does to a comparison with it.
fn side_reasons(side: &Side<'_>) -> Vec<Reason> {
    let build = side.view.build;
    let mut reasons: Vec<Reason> = side.disturbances.clone();
    reasons.extend(side.conclusion.reasons.iter().cloned());
    if let Some(proof) = &side.proof
        && proof.verdict != ProofVerdict::Proven
    {
        let word = if proof.verdict == ProofVerdict::Contradicted {
            "contradicted"
        } else {
            "not proven"
        };
        reasons.push(Reason::new(
            "reference.path",
            Verdict::Inconclusive,
            format!("the path `{}` of the reference is {word}", proof.path),
            format!("参照ビルドの経路 `{}` が証明されていない", proof.path),
        ));
    }
    for reason in &mut reasons {
        // A sick reference makes a comparison worthless; it does not condemn the candidate.
        reason.verdict = Verdict::Inconclusive;
        reason.text = format!("reference `{build}`: {}", reason.text);
        reason.text_ja = format!("参照 `{build}`: {}", reason.text_ja);
    }
    reasons
}

fn proof_reasons(subject: &Side<'_>) -> Vec<Reason> {
    let Some(proof) = &subject.proof else {
        return Vec::new();
    };
    let speaking = |ok: Option<bool>| proof.items.iter().filter(move |i| i.ok == ok);
    let told =
        |items: Vec<&super::finding::ProofItem>, code: &str, verdict, head: &str, head_ja: &str| {
            items
                .into_iter()
                .map(|i| {
                    let example = i
                        .example
                        .as_ref()
                        .map(|e| format!(" — {e}"))
                        .unwrap_or_default();
                    Reason::new(
                        code,
                        verdict,
                        format!(
                            "{head} `{}`: {}: expected {}, seen {}{example}",
                            proof.path, i.source, i.expected, i.seen
                        ),
                        format!(
                            "経路 `{}` {head_ja}: {}: 期待 {}、実際 {}{example}",
                            proof.path, i.source, i.expected, i.seen
                        ),
                    )
                })
                .collect::<Vec<_>>()
        };
    match proof.verdict {
        ProofVerdict::Proven => Vec::new(),
        ProofVerdict::Contradicted => told(
            speaking(Some(false)).collect(),
            "path.contradicted",
            Verdict::Fail,
            "the evidence contradicts the path",
            "を証拠が否定",
        ),
        ProofVerdict::Unproven => {
            let absent = told(
                speaking(None).collect(),
                "path.unproven",
                Verdict::Unproven,
                "unproven path",
                "が未証明",
            );
            if absent.is_empty() {
                vec![Reason::new(
                    "path.thin",
                    Verdict::Unproven,
                    format!(
                        "unproven path `{}`: a proof wants one item that moved in the window and one that was announced or is resident",
                        proof.path
                    ),
                    format!(
                        "経路 `{}` が未証明: 窓の中で動いた証拠と、起動時の宣言か常駐の証拠が一つずつ要る",
                        proof.path
                    ),
                )]
            } else {
                absent
            }
        }
    }
}

fn limit_reason(figure: &Figure, outcome: &LimitOutcome, disturbed: bool) -> Option<Reason> {
    let (code, verdict) = match outcome.decision {
        Decision::Clears => return None,
        // What was measured under a disturbance is no ground for a refusal either.
        Decision::Misses if disturbed => ("limit.missed", Verdict::Inconclusive),
        Decision::Misses => ("limit.missed", Verdict::Fail),
        Decision::Open => ("limit.open", Verdict::Inconclusive),
        Decision::Absent => ("limit.absent", Verdict::Unproven),
    };
    let word = match outcome.decision {
        Decision::Misses => "misses",
        Decision::Open => "does not decide",
        Decision::Absent | Decision::Clears => "cannot be held to",
    };
    let word_ja = match outcome.decision {
        Decision::Misses => "を満たさない",
        Decision::Open => "を判定できない",
        Decision::Absent | Decision::Clears => "を照合できない",
    };
    Some(Reason::new(
        code,
        verdict,
        format!(
            "`{}` {word} `{}`: {}",
            figure.name, outcome.text, outcome.because
        ),
        format!(
            "`{}` は「{}」{word_ja}: {}",
            figure.name, outcome.text, outcome.because
        ),
    ))
}

fn not_run(evidence: &Evidence, case: &Case, build: &str) -> Reason {
    let why = evidence
        .not_run
        .iter()
        .find(|o| o.case == case.id && o.build == build)
        .map(|o| o.reason.clone())
        .or_else(|| {
            evidence
                .ended
                .clone()
                .filter(|e| e != "complete")
                .map(|e| format!("the run was {e}"))
        })
        .unwrap_or_else(|| "no window of it was recorded".into());
    Reason::new("not.run", Verdict::NotRun, why.clone(), why)
}
