//! What the GPUs say against a window: somebody else on them, throttling, a clock below the gate's floor.

use super::finding::Reason;
use super::sample::View;
use super::verdict::Verdict;
use crate::evidence::absence::Sighting;
use crate::evidence::gpu::{GpuSummary, ThrottleWeight};
use crate::evidence::window::Window;

/// What disturbed a window on the GPUs of the seat; each GPU speaks once at most.
pub(super) fn disturbances(view: &View<'_>, window: &Window) -> Vec<Reason> {
    let seat = &view.gate.seat;
    let asked = !seat.gpus.is_empty() || seat.clock_floor_mhz.is_some();
    let summaries = match &window.gpu {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) if asked => {
            return vec![Reason::new(
                "gpu.unseen",
                Verdict::Unproven,
                format!(
                    "{}: the gate asks for the GPUs' clocks, and they were not seen: {}; {}",
                    window.id, absent.why, absent.mend
                ),
                format!(
                    "{}: GPU のクロックを確かめられない: {}; {}",
                    window.id, absent.why, absent.mend
                ),
            )];
        }
        Sighting::Absent(_) => return Vec::new(),
    };
    let ours = ours(view, window);
    summaries
        .iter()
        .filter(|gpu| belongs(view, gpu, &ours))
        .filter_map(|gpu| {
            foreign(window, gpu, &ours)
                .or_else(|| throttled(window, gpu))
                .or_else(|| slow(view, window, gpu))
        })
        .collect()
}

/// Process ids of the seat.
fn ours(view: &View<'_>, window: &Window) -> Vec<u32> {
    let residents = view
        .evidence
        .residents
        .iter()
        .find(|r| r.boot == window.boot);
    let set = residents.and_then(|r| r.set.seen());
    set.map(|s| s.processes.iter().map(|p| p.pin.pid).collect())
        .unwrap_or_default()
}

/// A GPU belongs to the seat if the gate says so, or else if a process of the seat is on it.
fn belongs(view: &View<'_>, gpu: &GpuSummary, ours: &[u32]) -> bool {
    let named = &view.gate.seat.gpus;
    if named.is_empty() {
        gpu.runs_any_of(ours)
    } else {
        named.contains(&gpu.identity.index)
    }
}

fn foreign(window: &Window, gpu: &GpuSummary, ours: &[u32]) -> Option<Reason> {
    let found = gpu.foreign_processes(ours);
    // Without our own processes every process looks foreign.
    let first = found.seen().filter(|_| !ours.is_empty())?.first()?;
    Some(Reason::new(
        "gpu.foreign",
        Verdict::Inconclusive,
        format!(
            "{}: process {} of somebody else ran on GPU {}",
            window.id, first.pid, gpu.identity.index
        ),
        format!(
            "{}: GPU {} に他のプロセス {} がいた",
            window.id, gpu.identity.index, first.pid
        ),
    ))
}

fn throttled(window: &Window, gpu: &GpuSummary) -> Option<Reason> {
    let throttles = gpu.throttles();
    let worst = throttles
        .seen()?
        .iter()
        .find(|t| t.weight == ThrottleWeight::Disturbs)?;
    Some(Reason::new(
        "gpu.throttled",
        Verdict::Inconclusive,
        format!(
            "{}: GPU {} was throttled in {} of {} samples ({})",
            window.id, gpu.identity.index, worst.samples, worst.of, worst.reason
        ),
        format!(
            "{}: GPU {} が {} 回中 {} 回スロットル（{}）",
            window.id, gpu.identity.index, worst.of, worst.samples, worst.reason
        ),
    ))
}

fn slow(view: &View<'_>, window: &Window, gpu: &GpuSummary) -> Option<Reason> {
    let floor = gpu.clock_floor(view.gate.seat.clock_floor_mhz?);
    let seen = floor.seen().filter(|f| f.below > 0)?;
    Some(Reason::new(
        "gpu.clock",
        Verdict::Inconclusive,
        format!(
            "{}: GPU {} ran below {} MHz in {} of {} busy samples, down to {} MHz",
            window.id, gpu.identity.index, seen.floor_mhz, seen.below, seen.of, seen.lowest_mhz
        ),
        format!(
            "{}: GPU {} が {} MHz を {} 回中 {} 回下回った（最低 {} MHz）",
            window.id, gpu.identity.index, seen.floor_mhz, seen.of, seen.below, seen.lowest_mhz
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What our own witness read on an H200 while somebody else's matrix product ran there.
    fn recorded() -> Vec<GpuSummary> {
        let text = include_str!("../../fixtures/gpu/window-h200.json");
        let sighting: Sighting<Vec<GpuSummary>> = serde_json::from_str(text).unwrap();
        sighting.into_result().unwrap()
    }

    #[test]
    fn a_real_reading_shows_the_stranger_and_the_clock_below_the_floor() {
        let gpus = recorded();
        let gpu = &gpus[0];
        let strangers = gpu.foreign_processes(&[1]);
        assert_eq!(strangers.seen().unwrap()[0].pid, 423);
        assert!(gpu.foreign_processes(&[423]).seen().unwrap().is_empty());
        assert_eq!(gpu.clock_floor(1600).seen().unwrap().below, 3);
        assert_eq!(gpu.clock_floor(1400).seen().unwrap().below, 0);
    }

    #[test]
    fn a_power_cap_is_recorded_and_does_not_void_the_figure() {
        let throttles = recorded()[0].throttles();
        assert!(
            throttles
                .seen()
                .unwrap()
                .iter()
                .all(|t| t.weight == ThrottleWeight::Recorded)
        );
    }
}
