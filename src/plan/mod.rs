//! From a gate to ordered boots and windows, printable before anything is started.
//!
//! Pure. What a kind wants to see in one repeat comes from the kind itself ([`Planned`]); the order of boots and
//! windows, and what can never be decided, are worked out here.

pub mod notes;
pub mod order;
pub mod task;

use crate::spec::gate::{Check, Gate};
use crate::spec::kind::Kind;
use task::Task;

/// A kind of check, as the plan knows it.
pub trait Planned: Kind {
    /// The windows of one repeat of one cell on one build, in order.
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish>;

    /// When a reference build takes its repeats.
    fn reference_turn(&self) -> Turn {
        Turn::Around
    }
}

/// One repeat of one cell on one build.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// The check.
    pub check: &'a Check,
    /// The cell (`code/1`).
    pub cell: &'a str,
    /// The repeat, from 0.
    pub repeat: u32,
    /// The build.
    pub build: &'a str,
}

impl Slot<'_> {
    /// Whether the build is the judged one.
    pub fn on_subject(&self) -> bool {
        self.build == self.check.subject()
    }
}

/// When a reference build takes its repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Half before the judged build and half after it, so that a drift falls on both alike.
    Around,
    /// All after the judged build: it works on what that build left.
    After,
}

/// One window that a kind wishes for.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowWish {
    /// Part of the case's programme (`measure`, `control`).
    pub part: String,
    /// What is done in it.
    pub task: Task,
}

/// One case: one cell of one check, judged on one build against its references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Id (`throughput/code/1`).
    pub id: String,
    /// Index of the check in the gate.
    pub check: usize,
    /// Cell (`code/1`); empty for a kind of one cell.
    pub cell: String,
}

/// What will be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Every case, in the order of the gate.
    pub cases: Vec<Case>,
    /// Every step, in the order of the run.
    pub steps: Vec<Step>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Bring a build to the seat and wait until it is ready.
    Boot(String),
    /// Measure.
    Window(Box<PlannedWindow>),
    /// Let the undecided cases of these builds go on to their next look, and again, until none is left that could.
    Extend(Vec<String>),
    /// Take a build from the seat.
    Stop(String),
}

/// One window to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedWindow {
    /// Id (`w7`).
    pub id: String,
    /// Index of the case in the plan.
    pub case: usize,
    /// Build.
    pub build: String,
    /// Repeat of the case on this build, from 0.
    pub repeat: u32,
    /// Part of the case's programme.
    pub part: String,
    /// What is done in it.
    pub task: Task,
}

/// Name of the part that is run and thrown away before a case's first window on a boot.
pub const WARM_UP: &str = "warm-up";

impl Plan {
    /// The plan of a gate.
    ///
    /// `planned` gives a kind's plan by its name; a name that it does not know has no windows.
    pub fn of(gate: &Gate, planned: &dyn Fn(&str) -> Option<&'static dyn Planned>) -> Self {
        let cases = cases(gate);
        let steps = order::steps(gate, &cases, planned);
        Self { cases, steps }
    }

    /// The windows, in the order of the run.
    pub fn windows(&self) -> impl Iterator<Item = &PlannedWindow> {
        self.steps.iter().filter_map(|step| match step {
            Step::Window(window) => Some(window.as_ref()),
            Step::Boot(_) | Step::Extend(_) | Step::Stop(_) => None,
        })
    }

    /// How many boots there are.
    pub fn boots(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| matches!(step, Step::Boot(_)))
            .count()
    }

    /// Expected seconds of the windows alone, under the assumptions of [`Task::expected_seconds`].
    pub fn expected_seconds(&self) -> f64 {
        self.windows().map(|w| w.task.expected_seconds()).sum()
    }
}

/// Every case of a gate, in its order.
pub fn cases(gate: &Gate) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, check) in gate.checks.iter().enumerate() {
        for cell in check.kind.cells(&check.params) {
            let id = if cell.is_empty() {
                check.id.clone()
            } else {
                format!("{}/{cell}", check.id)
            };
            cases.push(Case {
                id,
                check: index,
                cell,
            });
        }
    }
    cases
}
