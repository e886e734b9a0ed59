//! `beyond`: drives more streams than the recipe and shows where the path leaves.
//!
//! A row ceiling that is exactly the recipe's rows passes every gate at the recipe; one more sequence goes back to the old
//! kernel in silence.

use super::traffic;
use crate::judge::sample::{Concludes, Conclusion, View};
use crate::plan::task::{Ids, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{Declaration, Kind, KindFault, Params, ProofNeed, Read as _};

/// The kind.
#[derive(Debug)]
pub(super) struct Beyond;

const DECLARATION: Declaration = Declaration {
    name: "beyond",
    about: "One stream more than each of `streams`: the path must still be taken one step beyond the recipe, or the gate says where it leaves.",
    keys: traffic::KEYS,
    figures: &[],
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Beyond {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(&one_more(params))
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        traffic::faults(&check.params)
    }
}

/// The same keys with one stream more.
fn one_more(params: &Params) -> Params {
    let mut params = params.clone();
    let streams = params.counts("streams").iter().map(|n| n + 1).collect();
    params.insert("streams", crate::spec::kind::Value::Counts(streams));
    params
}

impl Planned for Beyond {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load = traffic::load(
            &one_more(&slot.check.params),
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

impl Concludes for Beyond {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let all: Vec<_> = windows
            .iter()
            .flat_map(|w| w.exchanges.iter().map(move |e| (*w, e)))
            .collect();
        Conclusion {
            reasons: traffic::failed(&all).into_iter().collect(),
            notes: vec![format!(
                "driven one stream beyond the recipe: {}",
                view.case.cell
            )],
            ..Conclusion::default()
        }
    }
}
