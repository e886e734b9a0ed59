//! The order of boots and windows.
//!
//! Builds that are compared with each other form a group. One at a time, a group runs A … B … A: the references take
//! the first half of their repeats before the judged build and the second half after it, so that a steady drift of the
//! machine falls on both sides alike (blocks AAABBB pass 17–38 % of builds wrongly under drift where 5 % was promised).
//! Side by side, the alternation is by window, A B B A.

use super::{Case, Planned, PlannedWindow, Slot, Step, Turn, WARM_UP};
use crate::spec::gate::{Check, Gate, Occupancy};

type Lookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn Planned>;

/// Every step of a gate.
pub(super) fn steps(gate: &Gate, cases: &[Case], planned: Lookup<'_>) -> Vec<Step> {
    let mut writer = Writer {
        gate,
        cases,
        planned,
        steps: Vec::new(),
        next: 1,
    };
    for group in groups(gate) {
        match gate.seat.occupancy {
            Occupancy::OneAtATime => writer.one_at_a_time(&group),
            Occupancy::SideBySide => writer.side_by_side(&group),
        }
    }
    if gate.seat.occupancy == Occupancy::OneAtATime
        && let Some(restore) = &gate.seat.restore
    {
        restored(&mut writer.steps, restore);
    }
    writer.steps
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
    fn range(self, repeats: u32) -> std::ops::Range<u32> {
        let middle = repeats.div_ceil(2);
        match self {
            Self::First => 0..middle,
            Self::Second => middle..repeats,
            Self::Whole => 0..repeats,
        }
    }

    /// The repeats of a check on one boot of a build.
    fn range_of(self, check: &Check, build: &str, planned: Lookup<'_>) -> std::ops::Range<u32> {
        let after = build != check.subject() && reference_turn(check, planned) == Turn::After;
        match self {
            Self::First if after => 0..0,
            Self::Second if after => 0..check.repeats.min,
            _ => self.range(check.repeats.min),
        }
    }
}

struct Writer<'a> {
    gate: &'a Gate,
    cases: &'a [Case],
    planned: Lookup<'a>,
    steps: Vec<Step>,
    next: u32,
}

impl Writer<'_> {
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
                repeats: half.range_of(check, build, self.planned),
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
                        First::of(round == 0),
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
        let most = group
            .iter()
            .flat_map(|b| {
                self.cases_of(b)
                    .map(|(_, _, c)| c.repeats.min)
                    .collect::<Vec<_>>()
            })
            .max()
            .unwrap_or(0);
        for repeat in 0..most {
            for (index, case) in self.cases.iter().enumerate() {
                let check = &self.gate.checks[case.check];
                if repeat >= check.repeats.min || !check.builds.iter().any(|b| group.contains(b)) {
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
    repeats: std::ops::Range<u32>,
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
