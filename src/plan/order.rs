//! The order of boots and windows.
//!
//! Builds that are compared with each other form a group. One at a time, a group runs A … B … A: the references take
//! the first half of their repeats before the judged build and the second half after it, so that a steady drift of the
//! machine falls on both sides alike (blocks AAABBB pass 17–38 % of builds wrongly under drift where 5 % was promised).
//! Side by side, the alternation is by window, A B B A.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Case, Planned, PlannedWindow, Slot, Step, Turn, WARM_UP};
use crate::spec::gate::{Check, Gate, Occupancy};

type Lookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn Planned>;

/// Every step of a gate.
pub(super) fn steps(gate: &Gate, cases: &[Case], planned: Lookup<'_>) -> Vec<Step> {
    let mut writer = Writer {
        gate,
        cases,
        planned,
        stretch: Stretch::Planned,
        steps: Vec::new(),
        next: 1,
    };
    for group in groups(gate) {
        let from = writer.steps.len();
        writer.group(&group);
        if goes_on(gate, &group) {
            // Whoever is at the seat stays there while it is decided whether to go on.
            let at = from + before_last_stops(&writer.steps[from..]);
            writer.steps.insert(at, Step::Extend(group));
        }
    }
    if gate.seat.occupancy == Occupancy::OneAtATime
        && let Some(restore) = &gate.seat.restore
    {
        restored(&mut writer.steps, restore);
    }
    writer.steps
}

/// The steps that carry undecided cases of a group to their next look, in the order that the group was measured in;
/// window ids go on from `next`.
///
/// The build that is at the seat stays there at the end: its stop is still to come in the plan.
pub fn further(
    gate: &Gate,
    cases: &[Case],
    planned: Lookup<'_>,
    group: &[String],
    undecided: &[Undecided],
    next: u32,
) -> Vec<Step> {
    let mut writer = Writer {
        gate,
        cases,
        planned,
        stretch: Stretch::Further(
            undecided
                .iter()
                .map(|u| (u.case, u.done..u.until))
                .collect(),
        ),
        steps: Vec::new(),
        next,
    };
    writer.group(group);
    let whole = before_last_stops(&writer.steps);
    writer.steps.truncate(whole);
    if gate.seat.occupancy == Occupancy::SideBySide {
        // All builds are up already.
        writer.steps.retain(|s| matches!(s, Step::Window(_)));
    }
    writer.steps
}

/// A case that its last look left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecided {
    /// Index of the case in the plan.
    pub case: usize,
    /// Repeats that were made.
    pub done: u32,
    /// Repeats in all at the next look.
    pub until: u32,
}

/// Whether any check on these builds may go on after its first repeats.
fn goes_on(gate: &Gate, group: &[String]) -> bool {
    gate.checks
        .iter()
        .any(|c| c.repeats.max > c.repeats.min && c.builds.iter().any(|b| group.contains(b)))
}

/// Where the stops at the end of these steps begin.
fn before_last_stops(steps: &[Step]) -> usize {
    let stops = steps
        .iter()
        .rev()
        .take_while(|s| matches!(s, Step::Stop(_)))
        .count();
    steps.len() - stops
}

/// Which repeats are to be written.
enum Stretch {
    /// Those that are made whatever they show.
    Planned,
    /// Those of undecided cases, by case.
    Further(BTreeMap<usize, Range<u32>>),
}

impl Stretch {
    fn of(&self, case: usize, check: &Check) -> Range<u32> {
        match self {
            Self::Planned => 0..check.repeats.min,
            Self::Further(ranges) => ranges.get(&case).cloned().unwrap_or(0..0),
        }
    }
}

/// The build that is to serve in the end stays after its last boot only if nothing came after; it is booted again
/// otherwise. In the middle of a run it is stopped like any other: the seat holds one build.
fn restored(steps: &mut Vec<Step>, build: &str) {
    match steps.last() {
        Some(Step::Stop(last)) if last == build => {
            steps.pop();
        }
        _ => steps.push(Step::Boot(build.to_owned())),
    }
}

/// Names of builds that are compared with each other, references first, each group in the order of the gate; the
/// build to be restored comes last.
pub fn groups(gate: &Gate) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for check in &gate.checks {
        let (mut joined, rest): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|g| g.iter().any(|b| check.builds.contains(b)));
        let mut all: Vec<String> = joined.drain(..).flatten().collect();
        all.extend(check.builds.iter().cloned());
        all.sort_by_key(|b| gate.builds.iter().position(|x| x.name == *b));
        all.dedup();
        groups = rest;
        groups.push(all);
    }
    let place = |g: &Vec<String>| {
        let restored = gate.seat.restore.as_ref().is_some_and(|r| g.contains(r));
        let first = g
            .first()
            .and_then(|b| gate.builds.iter().position(|x| x.name == *b));
        (restored, first)
    };
    groups.sort_by_key(place);
    if let Some(restore) = &gate.seat.restore
        && !groups.iter().any(|g| g.contains(restore))
    {
        groups.push(vec![restore.clone()]);
    }
    groups
}

/// Which half of the repeats a boot takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    /// The first half, rounded up.
    First,
    /// The rest.
    Second,
    /// All.
    Whole,
}

impl Half {
    fn of(self, all: Range<u32>) -> Range<u32> {
        let middle = all.start + (all.end - all.start).div_ceil(2);
        match self {
            Self::First => all.start..middle,
            Self::Second => middle..all.end,
            Self::Whole => all,
        }
    }

    /// This half of a check's repeats on one boot of a build.
    fn on(self, all: Range<u32>, check: &Check, build: &str, planned: Lookup<'_>) -> Range<u32> {
        let after = build != check.subject() && reference_turn(check, planned) == Turn::After;
        match self {
            Self::First if after => all.start..all.start,
            Self::Second if after => all,
            _ => self.of(all),
        }
    }
}

struct Writer<'a> {
    gate: &'a Gate,
    cases: &'a [Case],
    planned: Lookup<'a>,
    stretch: Stretch,
    steps: Vec<Step>,
    next: u32,
}

impl Writer<'_> {
    fn group(&mut self, group: &[String]) {
        match self.gate.seat.occupancy {
            Occupancy::OneAtATime => self.one_at_a_time(group),
            Occupancy::SideBySide => self.side_by_side(group),
        }
    }

    fn one_at_a_time(&mut self, group: &[String]) {
        let Some((subject, references)) = group.split_last() else {
            return;
        };
        if references.is_empty() {
            self.boot(subject, Half::Whole);
            return;
        }
        for reference in references {
            self.boot(reference, Half::First);
        }
        self.boot(subject, Half::Whole);
        for reference in references.iter().rev() {
            self.boot(reference, Half::Second);
        }
    }

    fn boot(&mut self, build: &str, half: Half) {
        let row: Vec<Turns> = self
            .cases_of(build)
            .map(|(case, of, check)| Turns {
                case,
                cell: of.cell.clone(),
                check,
                repeats: half.on(self.stretch.of(case, check), check, build, self.planned),
            })
            .collect();
        let rounds = row.iter().map(|t| t.repeats.len()).max().unwrap_or(0);
        let mut windows = Vec::new();
        for round in 0..u32::try_from(rounds).unwrap_or(u32::MAX) {
            let mut turns: Vec<&Turns> = row.iter().collect();
            if round % 2 == 1 {
                // Every other repeat runs the cases backwards, so that no case always follows the same neighbour.
                turns.reverse();
            }
            for turn in turns {
                let repeat = turn.repeats.start + round;
                if turn.repeats.contains(&repeat) {
                    windows.extend(self.windows(
                        turn.case,
                        turn.slot(build, repeat),
                        First::of(repeat == turn.repeats.start),
                    ));
                }
            }
        }
        if windows.is_empty() {
            return;
        }
        self.steps.push(Step::Boot(build.to_owned()));
        self.push(windows);
        self.steps.push(Step::Stop(build.to_owned()));
    }

    fn side_by_side(&mut self, group: &[String]) {
        for build in group {
            self.steps.push(Step::Boot(build.clone()));
        }
        let ranges: Vec<Range<u32>> = self
            .cases
            .iter()
            .enumerate()
            .map(|(index, case)| (index, &self.gate.checks[case.check]))
            .map(|(index, check)| {
                if check.builds.iter().any(|b| group.contains(b)) {
                    self.stretch.of(index, check)
                } else {
                    0..0
                }
            })
            .collect();
        let first = ranges.iter().map(|r| r.start).min().unwrap_or(0);
        let end = ranges.iter().map(|r| r.end).max().unwrap_or(0);
        for repeat in first..end {
            for (index, case) in self.cases.iter().enumerate() {
                let check = &self.gate.checks[case.check];
                if !ranges[index].contains(&repeat) {
                    continue;
                }
                let mut builds = check.builds.clone();
                if repeat % 2 == 1 || reference_turn(check, self.planned) == Turn::After {
                    builds.reverse();
                }
                for build in builds {
                    let slot = Slot {
                        check,
                        cell: &case.cell,
                        repeat,
                        build: &build,
                    };
                    let windows = self.windows(index, slot, First::of(repeat == 0));
                    self.push(windows);
                }
            }
        }
        for build in group {
            if self.gate.seat.restore.as_deref() != Some(build.as_str()) {
                self.steps.push(Step::Stop(build.clone()));
            }
        }
    }

    fn cases_of<'s>(
        &'s self,
        build: &'s str,
    ) -> impl Iterator<Item = (usize, &'s Case, &'s Check)> + 's {
        self.cases
            .iter()
            .enumerate()
            .filter_map(move |(index, case)| {
                let check = &self.gate.checks[case.check];
                check
                    .builds
                    .iter()
                    .any(|b| b == build)
                    .then_some((index, case, check))
            })
    }

    fn windows(&self, case: usize, slot: Slot<'_>, first: First) -> Vec<PlannedWindow> {
        let Some(kind) = (self.planned)(slot.check.kind.name()) else {
            return Vec::new();
        };
        let wishes = kind.windows(&slot);
        let made = |part: String, task| PlannedWindow {
            id: String::new(),
            case,
            build: slot.build.to_owned(),
            repeat: slot.repeat,
            part,
            task,
        };
        let warm_up = wishes
            .iter()
            .find_map(|w| w.task.warm_up())
            .filter(|_| first == First::OnBoot);
        warm_up
            .map(|task| made(WARM_UP.into(), task))
            .into_iter()
            .chain(wishes.into_iter().map(|w| made(w.part, w.task)))
            .collect()
    }

    fn push(&mut self, windows: Vec<PlannedWindow>) {
        for mut window in windows {
            window.id = format!("w{}", self.next);
            self.next += 1;
            self.steps.push(Step::Window(Box::new(window)));
        }
    }
}

/// The repeats that one case takes on one boot.
struct Turns<'a> {
    case: usize,
    cell: String,
    check: &'a Check,
    repeats: Range<u32>,
}

impl Turns<'_> {
    fn slot<'s>(&'s self, build: &'s str, repeat: u32) -> Slot<'s> {
        Slot {
            check: self.check,
            cell: &self.cell,
            repeat,
            build,
        }
    }
}

/// Whether a window is a case's first on a boot, which is warmed up before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    OnBoot,
    Later,
}

impl First {
    fn of(round_is_first: bool) -> Self {
        if round_is_first {
            Self::OnBoot
        } else {
            Self::Later
        }
    }
}

fn reference_turn(check: &Check, planned: Lookup<'_>) -> Turn {
    planned(check.kind.name()).map_or(Turn::Around, |kind| kind.reference_turn())
}
