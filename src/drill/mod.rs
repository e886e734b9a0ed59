//! The drill: takes each proof away and injects each fault into recorded evidence, judges again, and says what survived.
//!
//! A check that cannot fail is not a check. Pure: it edits a copy of the evidence and calls the judge.

mod answers;
mod counters;
mod fault;
mod log;
mod residents;
mod scores;

pub use fault::{FAULTS, Fault, Injection, Target};

use crate::archive::reading::RecordedRun;
use crate::judge::sample::Concludes;
use crate::judge::verdict::Verdict;
use crate::plan;
use crate::report::assemble::assemble;
use crate::report::document::Report;
use crate::spec::gate::Gate;

/// What one fault did to one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name of the fault.
    pub fault: &'static str,
    /// Case id.
    pub case: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a case under a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It fell, with this verdict for this reason.
    Killed(Verdict, String),
    /// It still passes: the gate would not notice.
    Survived,
    /// The fault cannot be simulated on this evidence; the text says why.
    NotSimulated(String),
}

/// The kill table of a gate on one recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KillTable {
    /// One row a fault and case.
    pub rows: Vec<Row>,
    /// Cases that do not pass on the evidence as it is; nothing can be said of them.
    pub already_down: Vec<String>,
}

impl KillTable {
    /// Rows whose case still passes.
    pub fn survivors(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.fate == Fate::Survived)
    }
}

/// Drills a gate on a recorded run.
pub fn drill(
    gate: &Gate,
    run: &RecordedRun,
    kind: &dyn Fn(&str) -> Option<&'static dyn Concludes>,
) -> KillTable {
    let healthy = assemble(gate, run, kind);
    let passes = |report: &Report, case: &str| {
        report
            .checks
            .iter()
            .any(|f| f.id == case && f.verdict == Verdict::Pass)
    };
    let mut table = KillTable {
        already_down: healthy
            .checks
            .iter()
            .filter(|f| f.verdict != Verdict::Pass)
            .map(|f| f.id.clone())
            .collect(),
        ..KillTable::default()
    };
    for fault in FAULTS {
        for target in targets(gate, fault) {
            let cases: Vec<&String> = target
                .cases
                .iter()
                .filter(|c| passes(&healthy, c))
                .collect();
            if cases.is_empty() {
                continue;
            }
            let mut broken = clone(run);
            let injection = (fault.inject)(&mut broken.evidence, &target);
            let report = (injection == Injection::Done).then(|| assemble(gate, &broken, kind));
            for case in cases {
                let fate = match (&report, &injection) {
                    (Some(report), _) => fate(report, case),
                    (None, Injection::Impossible(why)) => Fate::NotSimulated(why.clone()),
                    (None, Injection::Done) => Fate::Survived,
                };
                table.rows.push(Row {
                    fault: fault.name,
                    case: case.clone(),
                    fate,
                });
            }
        }
    }
    table
}

/// The builds that a fault is injected into, with the cases that it concerns there.
fn targets<'a>(gate: &'a Gate, fault: &Fault) -> Vec<Target<'a>> {
    let mut targets: Vec<Target<'a>> = Vec::new();
    for case in plan::cases(gate) {
        let check = &gate.checks[case.check];
        if !(fault.concerns)(check) {
            continue;
        }
        let build = check.subject();
        match targets
            .iter_mut()
            .find(|t| t.build == build && t.path == check.path.as_deref())
        {
            Some(target) => target.cases.push(case.id),
            None => targets.push(Target {
                gate,
                build,
                path: check.path.as_deref(),
                cases: vec![case.id],
            }),
        }
    }
    targets
}

fn fate(report: &Report, case: &str) -> Fate {
    match report.checks.iter().find(|f| f.id == case) {
        Some(finding) if finding.verdict == Verdict::Pass => Fate::Survived,
        Some(finding) => Fate::Killed(
            finding.verdict,
            finding
                .reasons
                .first()
                .map(|r| r.code.clone())
                .unwrap_or_default(),
        ),
        None => Fate::Survived,
    }
}

fn clone(run: &RecordedRun) -> RecordedRun {
    RecordedRun {
        start: run.start.clone(),
        gate_source: run.gate_source.clone(),
        evidence: run.evidence.clone(),
        seconds: run.seconds,
    }
}
