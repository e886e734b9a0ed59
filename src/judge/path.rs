//! Proof of path: what each claim expected in the windows of a case, and what was seen.
//!
//! A path is proven by at least one of moved/behaved and one of announced/resident, on every rank, with nothing
//! contradicting. Evidence that is absent makes it unproven; absence *in* evidence that is whole contradicts it: a line
//! that every rank prints at start and that rank 3 did not print, a counter that is there and stands still.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Proof, ProofItem, ProofVerdict, Tier};
use super::log::{self, Stretch};
use super::movement;
use super::residence;
use super::sample::View;
use crate::dialect::Scope;
use crate::evidence::counters::{self, Continuity, Movement};
use crate::evidence::log_count::Count as Counted;
use crate::evidence::selector::Selector;
use crate::evidence::window::Window;
use crate::spec::gate::{Count, CounterClaim, LineClaim, PathSpec, Ranks, RefutingLine};

/// The proof of a path in the windows of a case on one build.
pub(super) fn prove(view: &View<'_>, path: &PathSpec, windows: &[&Window]) -> Proof {
    let mut items = Vec::new();
    for claim in &path.announced {
        items.extend(per_boot(windows, |w| announced(view, claim, w)));
    }
    for claim in &path.resident {
        items.extend(per_boot(windows, |w| residence::resident(view, claim, w)));
    }
    for claim in &path.moved {
        items.push(moved(view, claim, windows));
    }
    for claim in &path.still {
        items.push(still(view, claim, windows));
    }
    for line in &path.refuted {
        items.extend(refuted(view, line, windows));
    }
    Proof {
        path: path.name.clone(),
        verdict: verdict(&items, windows),
        items,
    }
}

/// The rule: contradiction first, then absence, then enough of both kinds.
fn verdict(items: &[ProofItem], windows: &[&Window]) -> ProofVerdict {
    if items.iter().any(|i| i.ok == Some(false)) {
        return ProofVerdict::Contradicted;
    }
    let holds = |tiers: &[Tier]| {
        items
            .iter()
            .any(|i| tiers.contains(&i.tier) && i.ok == Some(true))
    };
    let enough = holds(&[Tier::Moved, Tier::Behaved]) && holds(&[Tier::Announced, Tier::Resident]);
    if windows.is_empty() || !enough || items.iter().any(|i| i.ok.is_none()) {
        return ProofVerdict::Unproven;
    }
    ProofVerdict::Proven
}

/// One item a boot, from its last window: the log and the processes of a boot are the same for all its windows.
fn per_boot(windows: &[&Window], item: impl Fn(&Window) -> ProofItem) -> Vec<ProofItem> {
    let mut last: BTreeMap<&str, &Window> = BTreeMap::new();
    for window in windows {
        last.insert(&window.boot, window);
    }
    last.into_values().map(item).collect()
}

fn ids(windows: &[&Window]) -> Vec<String> {
    windows.iter().map(|w| w.id.clone()).collect()
}

fn no_log(view: &View<'_>, window: &Window, tier: Tier, expected: String) -> ProofItem {
    let why = view
        .evidence
        .boot(&window.boot)
        .map_or("the boot was not recorded", |b| match &b.log {
            crate::evidence::window::LogWitness::Absent { why } => why.as_str(),
            crate::evidence::window::LogWitness::Followed { .. } => {
                "the window has no stretch of the log"
            }
        });
    ProofItem {
        tier,
        source: format!("log of boot {}", window.boot),
        expected,
        seen: format!("absent: {why}"),
        ok: None,
        ranks: Vec::new(),
        windows: vec![window.id.clone()],
        example: None,
    }
}

fn announced(view: &View<'_>, claim: &LineClaim, window: &Window) -> ProofItem {
    let ranks = view.gate.seat.ranks;
    let expected = format!("`{}` {}", claim.pattern, how_often(claim.on, ranks));
    let Some(stretch) = log::stretch(view, window, claim.when) else {
        return no_log(view, window, Tier::Announced, expected);
    };
    let count = stretch
        .count_in(claim.part, &claim.pattern, None)
        .unwrap_or_default();
    let seen_on = ranks_seen(&count, ranks);
    let holds = match claim.on {
        Count::Each(Scope::EveryRank) => Some(seen_on.len() == ranks.total() as usize),
        Count::Each(Scope::EveryNode) => Some(count.total >= u64::from(ranks.nodes)),
        Count::Each(Scope::Once) => Some(count.total >= 1),
        Count::Exactly(n) => Some(count.total == n),
        Count::AtLeast(n) => Some(count.total >= n),
    };
    ProofItem {
        tier: Tier::Announced,
        source: stretch.name.clone(),
        expected,
        seen: seen(&count, &seen_on, claim.on, ranks, &stretch),
        ok: trusted(holds, &stretch),
        ranks: seen_on.into_iter().collect(),
        windows: vec![window.id.clone()],
        example: count.examples.first().cloned(),
    }
}

/// Absence counts only in a log that is whole.
fn trusted(holds: Option<bool>, stretch: &Stretch<'_>) -> Option<bool> {
    match holds {
        Some(false) if !stretch.whole => None,
        other => other,
    }
}

fn how_often(on: Count, ranks: Ranks) -> String {
    match on {
        Count::Each(Scope::EveryRank) => format!("on each of {} ranks", ranks.total()),
        Count::Each(Scope::EveryNode) => format!("on each of {} nodes", ranks.nodes),
        Count::Each(Scope::Once) => "once in all".into(),
        Count::Exactly(n) => format!("exactly {n}×"),
        Count::AtLeast(n) => format!("at least {n}×"),
    }
}

/// Ranks that printed it; with one rank an unranked line is rank 0's.
fn ranks_seen(count: &Counted, ranks: Ranks) -> BTreeSet<u32> {
    let mut seen: BTreeSet<u32> = count
        .by_rank
        .keys()
        .copied()
        .filter(|r| *r < ranks.total())
        .collect();
    if ranks.total() == 1 && count.total > 0 {
        seen.insert(0);
    }
    seen
}

fn seen(
    count: &Counted,
    on: &BTreeSet<u32>,
    asked: Count,
    ranks: Ranks,
    stretch: &Stretch<'_>,
) -> String {
    let mut text = format!("{}×", count.total);
    if asked == Count::Each(Scope::EveryRank) {
        text.push_str(&format!(" on {} of {} ranks", on.len(), ranks.total()));
        let missing: Vec<String> = (0..ranks.total())
            .filter(|r| !on.contains(r))
            .map(|r| r.to_string())
            .collect();
        if !missing.is_empty() && on.len() < ranks.total() as usize {
            text.push_str(&format!(", not on rank {}", missing.join(", ")));
        }
    }
    if !stretch.whole {
        text.push_str(" in a log that is not whole (rotated, cut, or begun after the boot): absence proves nothing");
    }
    text
}

fn moved(view: &View<'_>, claim: &CounterClaim, windows: &[&Window]) -> ProofItem {
    let ranks = view.gate.seat.ranks;
    let each = claim.rank_label.is_some();
    let expected = if each {
        format!("moves in every window on each of {} ranks", ranks.total())
    } else {
        "moves in every window".to_owned()
    };
    let mut item = counter_item(claim, Tier::Moved, expected, windows);
    let Ok(selector) = Selector::parse(&claim.selector) else {
        return item;
    };
    let (mut least, mut absent, mut halted) = (f64::INFINITY, Vec::new(), Vec::new());
    let mut on: Option<BTreeSet<u32>> = None;
    for window in windows {
        let Some(ends) = movement::ends(window) else {
            absent.push(window.id.clone());
            continue;
        };
        match counters::movement(ends.before, ends.after, &selector, &process(view, ends)) {
            Movement::Absent => absent.push(window.id.clone()),
            Movement::Reset { .. } => absent.push(format!("{} (reset)", window.id)),
            other => match other.delta() {
                None => absent.push(format!("{} (new there, its process unknown)", window.id)),
                Some(by) if by < claim.at_least => halted.push(window.id.clone()),
                Some(by) => least = least.min(by),
            },
        }
        if let Some(label) = &claim.rank_label {
            let moving = moving_ranks(view, &selector, label, ends, claim.at_least);
            on = Some(match on {
                Some(on) => on.intersection(&moving).copied().collect(),
                None => moving,
            });
        }
    }
    let on = on.unwrap_or_default();
    let lame: Vec<String> = if each {
        (0..ranks.total())
            .filter(|r| !on.contains(r))
            .map(|r| r.to_string())
            .collect()
    } else {
        Vec::new()
    };
    item.ranks = on.into_iter().collect();
    (item.ok, item.seen) = if windows.is_empty() {
        (None, "no window was measured".into())
    } else if !halted.is_empty() {
        (
            Some(false),
            format!("present and still in {}", halted.join(", ")),
        )
    } else if !absent.is_empty() {
        (None, format!("absent in {}", absent.join(", ")))
    } else if !lame.is_empty() {
        (
            Some(false),
            format!("moved, but not on rank {}", lame.join(", ")),
        )
    } else {
        (
            Some(true),
            format!(
                "moved in {} of {} windows, by {least} at least",
                windows.len(),
                windows.len()
            ),
        )
    };
    item
}

/// Ranks whose series moved far enough.
fn moving_ranks(
    view: &View<'_>,
    selector: &Selector,
    label: &str,
    ends: movement::Ends<'_>,
    at_least: f64,
) -> BTreeSet<u32> {
    counters::movement_by(
        ends.before,
        ends.after,
        selector,
        label,
        &process(view, ends),
    )
    .into_iter()
    .filter(|(_, m)| m.delta().is_some_and(|by| by >= at_least))
    .filter_map(|(rank, _)| rank.parse().ok())
    .collect()
}

/// Whether both scrapes come from one process.
fn process(view: &View<'_>, ends: movement::Ends<'_>) -> Continuity {
    let start = view
        .dialect
        .and_then(|d| d.metrics.as_ref())
        .map_or(&[][..], |m| m.process_start);
    counters::continuity(ends.before, ends.after, start)
}

fn still(view: &View<'_>, claim: &CounterClaim, windows: &[&Window]) -> ProofItem {
    let mut item = counter_item(
        claim,
        Tier::Moved,
        "stands still in every window".to_owned(),
        windows,
    );
    let Ok(selector) = Selector::parse(&claim.selector) else {
        return item;
    };
    let (mut unread, mut moving) = (Vec::new(), Vec::new());
    for window in windows {
        let Some(ends) = movement::ends(window) else {
            unread.push(window.id.clone());
            continue;
        };
        // A series that is not there has not moved: a path that was never called need not show its counter.
        match counters::movement(ends.before, ends.after, &selector, &process(view, ends)) {
            Movement::Absent | Movement::Still { .. } => {}
            Movement::Moved { by } => moving.push(format!("{} (by {by})", window.id)),
            Movement::AppearedDuring { at: 0.0, .. } => {}
            Movement::AppearedDuring { at, .. } => moving.push(format!("{} (by {at})", window.id)),
            Movement::Reset { .. } => unread.push(format!("{} (reset)", window.id)),
        }
    }
    (item.ok, item.seen) = if windows.is_empty() {
        (None, "no window was measured".into())
    } else if !moving.is_empty() {
        (Some(false), format!("moved in {}", moving.join(", ")))
    } else if !unread.is_empty() {
        (None, format!("metrics not read in {}", unread.join(", ")))
    } else {
        (Some(true), "still".into())
    };
    // What stands still says nothing of the path being taken: it can contradict, never prove.
    item.tier = Tier::Echoed;
    item
}

fn counter_item(
    claim: &CounterClaim,
    tier: Tier,
    expected: String,
    windows: &[&Window],
) -> ProofItem {
    ProofItem {
        tier,
        source: format!("counter `{}`", claim.selector),
        expected,
        seen: "the selector does not read".into(),
        ok: None,
        ranks: Vec::new(),
        windows: ids(windows),
        example: None,
    }
}

fn refuted(view: &View<'_>, line: &RefutingLine, windows: &[&Window]) -> Vec<ProofItem> {
    let expected = match &line.except {
        Some(except) => format!("no `{}` (but for `{except}`)", line.pattern),
        None => format!("no `{}`", line.pattern),
    };
    let one = |window: &Window| {
        let Some(stretch) = log::stretch(view, window, line.when) else {
            return no_log(view, window, Tier::Echoed, expected.clone());
        };
        let count = stretch
            .count(&line.pattern, line.except.as_deref())
            .unwrap_or_default();
        let (ok, seen) = match (count.total, stretch.whole) {
            (0, true) => (Some(true), "none".to_owned()),
            (0, false) => (
                None,
                "none, but the log is not whole: absence proves nothing".to_owned(),
            ),
            (n, _) => (Some(false), format!("{n}×")),
        };
        ProofItem {
            tier: Tier::Echoed,
            source: stretch.name.clone(),
            expected: expected.clone(),
            seen,
            ok,
            ranks: count.by_rank.keys().copied().collect(),
            windows: vec![window.id.clone()],
            example: count.examples.first().cloned(),
        }
    };
    match line.when {
        crate::spec::gate::When::SinceBoot => per_boot(windows, one),
        crate::spec::gate::When::Window => worst(windows.iter().map(|w| one(w)).collect()),
    }
}

/// Many windows, one item: the first that contradicts, else the first that is absent, else one for all.
fn worst(items: Vec<ProofItem>) -> Vec<ProofItem> {
    let windows: Vec<String> = items.iter().flat_map(|i| i.windows.clone()).collect();
    let pick = |want: Option<bool>| items.iter().find(|i| i.ok == want).cloned();
    if let Some(bad) = pick(Some(false)) {
        return vec![bad];
    }
    let mut one = pick(None).or_else(|| pick(Some(true)));
    if let Some(item) = &mut one
        && item.ok == Some(true)
    {
        item.windows = windows;
    }
    one.into_iter().collect()
}
