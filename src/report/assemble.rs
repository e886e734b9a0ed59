//! From evidence and findings to the one document.

use std::collections::BTreeMap;

use super::document::{
    Attempt, BootRecipe, CaseConditions, Conditions, GateRef, NotRun, Report, SCHEMA, SeatCounts,
    SeatRef, Tool, WindowRef,
};
use crate::archive::reading::RecordedRun;
use crate::archive::rundir::sha256_hex;
use crate::evidence::body::Evidence;
use crate::evidence::window::{Boot, LogWitness, Window};
use crate::judge::case::{self, Matter};
use crate::judge::finding::Finding;
use crate::judge::movement;
use crate::judge::recorded::Recorded;
use crate::judge::sample::Concludes;
use crate::judge::verdict::Verdict;
use crate::plan;
use crate::spec::gate::Gate;

/// The report of a recorded run under its gate.
///
/// Pure: the same evidence gives the same report, byte for byte.
pub fn assemble(
    gate: &Gate,
    run: &RecordedRun,
    kind: &dyn Fn(&str) -> Option<&'static dyn Concludes>,
) -> Report {
    let recorded: Vec<Recorded> = run
        .start
        .references
        .iter()
        .map(|r| {
            let build = gate.runs.get(&r.name).and_then(|g| g.build.as_deref());
            Recorded::of(&r.name, build, r.report.as_deref(), r.fault.as_deref())
                .with_sessions(&r.sessions)
        })
        .collect();
    let matter = Matter {
        gate,
        evidence: &run.evidence,
        recorded: &recorded,
        earlier_runs: run.start.earlier_runs,
    };
    let checks: Vec<Finding> = plan::cases(gate)
        .iter()
        .filter_map(|c| {
            let kind = kind(gate.checks[c.check].kind.name())?;
            let mut finding = case::finding(matter, c, kind);
            // Another tool's figures are shown as its own wherever they appear, the references' included.
            let theirs = finding.references.iter_mut().flat_map(|r| &mut r.figures);
            for figure in finding.figures.iter_mut().chain(theirs) {
                figure.origin = kind.origin();
            }
            Some(finding)
        })
        .collect();
    Report {
        schema: SCHEMA.into(),
        id: run.start.id.clone(),
        gate: GateRef {
            name: gate.name.clone(),
            title: gate.title.clone(),
            sha256: sha256_hex(run.gate_source.as_bytes()),
        },
        verdict: Verdict::of_all(checks.iter().map(|f| f.verdict)),
        seat: seat(gate, &run.evidence, &run.start.host),
        not_run: not_run(&checks),
        windows: run
            .evidence
            .windows
            .iter()
            .map(|w| window(w, &run.evidence))
            .collect(),
        checks,
        conditions: conditions(run),
        tool: Tool {
            name: "sekimon".into(),
            version: run.start.tool_version.clone(),
        },
    }
}

/// The seat of the judged build: the last build of the gate that came up.
fn seat(gate: &Gate, evidence: &Evidence, host: &[(String, String)]) -> SeatRef {
    let judged = gate.checks.first().map_or("", |c| c.subject());
    let boot = evidence
        .boots
        .iter()
        .find(|b| b.build == judged)
        .or(evidence.boots.last());
    let identity = boot.map(|b| b.identity.clone()).unwrap_or_default();
    let url = boot.map_or_else(|| gate.seat.url.clone(), |b| b.url.clone());
    let ranks = gate.seat.ranks;
    let mut facts = vec![
        format!("dialect={}", identity.dialect),
        format!("version={}", identity.version.as_deref().unwrap_or("?")),
        format!("model={}", identity.model),
        format!("max_model_len={:?}", identity.max_model_len),
        format!(
            "ranks=tp{} pp{} dp{} nodes{}",
            ranks.tp, ranks.pp, ranks.dp, ranks.nodes
        ),
    ];
    facts.extend(host.iter().map(|(name, value)| format!("{name}={value}")));
    SeatRef {
        url,
        dialect: identity.dialect,
        version: identity.version,
        model: identity.model,
        fingerprint: format!("sha256:{}", sha256_hex(facts.join("\n").as_bytes())),
    }
}

fn not_run(checks: &[Finding]) -> Vec<NotRun> {
    checks
        .iter()
        .filter(|f| f.verdict == Verdict::NotRun)
        .map(|f| NotRun {
            id: f.id.clone(),
            reason: f
                .reasons
                .first()
                .map(|r| r.text.clone())
                .unwrap_or_default(),
        })
        .collect()
}

fn window(window: &Window, evidence: &Evidence) -> WindowRef {
    let usage = |of: fn(&crate::evidence::exchange::Usage) -> u64| {
        window
            .exchanges
            .iter()
            .map(|e| e.usage.as_ref().map(of))
            .sum::<Option<u64>>()
    };
    let metrics = evidence
        .boot(&window.boot)
        .and_then(|b| crate::dialect::named(&b.identity.dialect))
        .and_then(|d| d.metrics.as_ref());
    let moved = |names: Option<crate::dialect::Names>| names.and_then(|n| movement::of(window, n));
    let empty = window.exchanges.is_empty();
    WindowRef {
        id: window.id.clone(),
        case: window.case.clone(),
        part: window.part.clone(),
        build: window.build.clone(),
        boot: window.boot.clone(),
        started: window.started.clone(),
        seconds: window.seconds,
        requests: window.exchanges.len() as u64,
        failed: window.exchanges.iter().filter(|e| !e.is_complete()).count() as u64,
        prompt_tokens: usage(|u| u.prompt).filter(|_| !empty),
        completion_tokens: usage(|u| u.completion).filter(|_| !empty),
        seat: SeatCounts {
            prompt_tokens: moved(metrics.map(|m| m.prompt_tokens)),
            generation_tokens: moved(metrics.map(|m| m.generation_tokens)),
        },
        incidents: window.incidents.clone(),
    }
}

fn conditions(run: &RecordedRun) -> Conditions {
    let mut requests: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    let mut order = Vec::new();
    for window in run.evidence.windows.iter().filter(|w| w.part == "measure") {
        if !order.contains(&window.case.as_str()) {
            order.push(window.case.as_str());
            requests.insert(&window.case, window.conditions.clone());
        }
    }
    let last = run.evidence.windows.last();
    Conditions {
        started: run.start.started.clone(),
        // A run that was killed never wrote its end; its windows still tell how long it went on.
        seconds: run.seconds.unwrap_or_else(|| {
            last.map_or(0.0, |_| {
                run.evidence.windows.iter().map(|w| w.seconds).sum()
            })
        }),
        ended: run
            .evidence
            .ended
            .clone()
            .unwrap_or_else(|| "killed: the journal has no end".into()),
        boots: run.evidence.boots.iter().map(recipe).collect(),
        requests: order
            .into_iter()
            .map(|case| CaseConditions {
                case: case.into(),
                values: requests.remove(case).unwrap_or_default(),
            })
            .filter(|c| !c.values.is_empty())
            .collect(),
        host: run.start.host.clone(),
        gpu: run.start.gpu.clone(),
        attempt: Attempt {
            earlier: run.start.earlier_runs,
            new_build: run.start.new_build.clone(),
        },
    }
}

fn recipe(boot: &Boot) -> BootRecipe {
    let told = &boot.identity;
    let mut identity = vec![
        ("dialect".to_owned(), told.dialect.clone()),
        ("model".to_owned(), told.model.clone()),
    ];
    identity.extend(
        told.version
            .iter()
            .map(|v| ("version".to_owned(), v.clone())),
    );
    identity.extend(
        told.max_model_len
            .iter()
            .map(|n| ("max_model_len".to_owned(), n.to_string())),
    );
    identity.extend(told.facts.iter().cloned());
    BootRecipe {
        id: boot.id.clone(),
        build: boot.build.clone(),
        command: boot.command.clone(),
        env: boot.env.clone(),
        ready_s: boot.ready_s,
        identity,
        log: match &boot.log {
            LogWitness::Followed { source, .. } => source.clone(),
            LogWitness::Absent { why } => format!("absent: {why}"),
        },
    }
}
