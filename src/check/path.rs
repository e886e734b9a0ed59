//! `path`: traffic of the workload with no figure but the proof itself.

use super::traffic;
use crate::judge::sample::{Concludes, Conclusion, View};
use crate::plan::task::{Ids, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{Declaration, Kind, KindFault, Params, ProofNeed};

/// The kind.
#[derive(Debug)]
pub(super) struct Path;

const DECLARATION: Declaration = Declaration {
    name: "path",
    about: "Drives the workload and asks only whether the path was taken: lines on every rank, counters inside the window, nothing refuting.",
    keys: traffic::KEYS,
    figures: &[],
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Path {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        traffic::faults(&check.params)
    }
}

impl Planned for Path {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(
            &slot.check.params,
            slot.cell,
            Prompts::OfRepeat(slot.repeat),
            Ids::Unwanted,
        );
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Load(load),
        }]
    }
}

impl Concludes for Path {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all: Vec<_> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        Conclusion {
            reasons: traffic::failed(&all).into_iter().collect(),
            ..Conclusion::default()
        }
    }
}
