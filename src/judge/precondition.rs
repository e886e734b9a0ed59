//! What must hold for a window to be a measurement at all: one process, nobody else, the load that was meant.

use super::finding::Reason;
use super::gpu;
use super::movement;
use super::sample::View;
use super::symmetry;
use super::verdict::Verdict;
use crate::evidence::invariants::{Expected, Holds, Invariant, invariants};
use crate::evidence::processes::Difference;
use crate::evidence::window::Window;
use crate::plan::{Planned, Slot, task::Task};

/// What disturbed the windows of a case: each kind of disturbance once, with its first window.
pub(super) fn disturbances(
    view: &View<'_>,
    windows: &[&Window],
    kind: &dyn Planned,
) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for window in windows.iter().filter(|w| !w.exchanges.is_empty()) {
        for invariant in of_window(view, window, kind) {
            if invariant.holds == Holds::No
                && !reasons.iter().any(|r| r.code.ends_with(invariant.name))
            {
                reasons.push(reason(window, &invariant));
            }
        }
    }
    for window in windows.iter().filter(|w| !w.exchanges.is_empty()) {
        for told in gpu::disturbances(view, window)
            .into_iter()
            .chain(moved_processes(window))
        {
            if !reasons.iter().any(|r| r.code == told.code) {
                reasons.push(told);
            }
        }
    }
    reasons.extend(symmetry::of_windows(view, windows));
    reasons
}

/// The processes at the port are not the same at both ends of the window.
fn moved_processes(window: &Window) -> Option<Reason> {
    let (before, after) = (
        window.processes.before.seen()?,
        window.processes.after.seen()?,
    );
    let change = before
        .same_as(after)
        .into_iter()
        .find(Difference::breaks_identity)?;
    Some(Reason::new(
        "precondition.processes",
        Verdict::Inconclusive,
        format!(
            "{}: the processes at the port changed inside the window: {change}",
            window.id
        ),
        format!(
            "{}: 窓の中で席のプロセスが入れ替わった: {change}",
            window.id
        ),
    ))
}

/// Every invariant of one window; none where the seat has no counters.
pub(super) fn of_window(view: &View<'_>, window: &Window, kind: &dyn Planned) -> Vec<Invariant> {
    let Some(metrics) = view.dialect.and_then(|d| d.metrics.as_ref()) else {
        return Vec::new();
    };
    let Some(ends) = movement::ends(window) else {
        return Vec::new();
    };
    invariants(
        metrics,
        ends.before,
        ends.after,
        &expected(view, window, kind),
        &window.counters.gauges,
    )
}

fn expected(view: &View<'_>, window: &Window, kind: &dyn Planned) -> Expected {
    let whole = window.exchanges.iter().filter(|e| e.is_complete()).count() as u64;
    let sum = |of: fn(&crate::evidence::exchange::Usage) -> u64| {
        window
            .exchanges
            .iter()
            .map(|e| e.usage.as_ref().map(of))
            .sum::<Option<u64>>()
    };
    let cached = window
        .exchanges
        .iter()
        .map(|e| e.usage.and_then(|u| u.cached))
        .sum::<Option<u64>>();
    let wish = kind
        .windows(&Slot {
            check: view.check,
            cell: &view.case.cell,
            repeat: window.repeat,
            build: view.build,
        })
        .into_iter()
        .find(|w| w.part == window.part);
    let concurrency = match wish.map(|w| w.task) {
        Some(Task::Load(load)) => Some(load.streams),
        _ => None,
    };
    Expected {
        requests: whole,
        broken_off: window.exchanges.len() as u64 - whole,
        prompt_tokens: sum(|u| u.prompt),
        cached_tokens: cached,
        generation_tokens: sum(|u| u.completion),
        length_stops: None,
        concurrency,
        draft_limit: None,
        prefix_hits_allowed: None,
        ttft_mean_s: None,
    }
}

fn reason(window: &Window, invariant: &Invariant) -> Reason {
    Reason::new(
        &format!("precondition.{}", invariant.name),
        Verdict::Inconclusive,
        format!(
            "{}: {} — expected {}, seen {}",
            window.id,
            meaning(invariant.name),
            invariant.expected,
            invariant.seen
        ),
        format!(
            "{}: {} — 期待 {}、実際 {}",
            window.id,
            meaning_ja(invariant.name),
            invariant.expected,
            invariant.seen
        ),
    )
}

/// What a broken invariant means for a person.
fn meaning(name: &str) -> &'static str {
    match name {
        "same-process" => "the counters were reset or the process restarted inside the window",
        "alone" => "somebody else used the seat (foreign traffic)",
        "concurrency" => "the asked concurrency was never reached",
        "no-preemption" => "requests were preempted",
        _ => "the seat's counters and our own counts disagree",
    }
}

fn meaning_ja(name: &str) -> &'static str {
    match name {
        "same-process" => "窓の中で計数器が初期化されたか、プロセスが再起動した",
        "alone" => "他の誰かが席を使っていた",
        "concurrency" => "指定の並列度に達していない",
        "no-preemption" => "要求がプリエンプトされた",
        _ => "席の計数と手元の計数が合わない",
    }
}
