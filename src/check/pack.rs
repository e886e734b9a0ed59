//! `pack`: a model pack against its manifest, and whether the seat could start from it again.

use crate::judge::finding::Reason;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::{PackTask, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, ProofNeed, Read as _, Takes,
};

/// The kind.
#[derive(Debug)]
pub(super) struct Pack;

const FIGURES: &[FigureKind] = &[FigureKind {
    name: "pack_faults",
    unit: "faults",
    unit_aliases: &[("", 1.0)],
    words: &[],
    judged: Judged::Each,
    about: "Changed, missing and extra files, links that leave the pack or dangle, and what a restart would miss.",
}];

const KEYS: &[Key] = &[
    Key {
        name: "dir",
        takes: Takes::Text,
        default: Default::Required,
        about: "Folder of the pack.",
    },
    Key {
        name: "manifest",
        takes: Takes::Text,
        default: Default::Absent,
        about: "Manifest that `sekimon pack manifest DIR` wrote; without one only links and restart needs are looked at.",
    },
];

const DECLARATION: Declaration = Declaration {
    name: "pack",
    about: "The model pack is the certified one, no link leaves it or dangles, and nothing that a restart would need is missing.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for Pack {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }
}

impl Planned for Pack {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let text = |key| slot.check.params.text(key).unwrap_or_default().to_owned();
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Pack(PackTask {
                dir: text("dir"),
                manifest: text("manifest"),
            }),
        }]
    }
}

impl Concludes for Pack {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        for window in view.windows("measure") {
            if let Some(why) = window.results.get("pack_absent").and_then(|v| v.as_str()) {
                conclusion
                    .reasons
                    .push(Reason::new("pack.unread", Verdict::Unproven, why, why));
                continue;
            }
            let Some(list) = window.results.get("pack_faults").and_then(|v| v.as_array()) else {
                conclusion.reasons.push(Reason::new(
                    "pack.unread",
                    Verdict::Unproven,
                    "the run holds no look at the pack: no list of faults is not an empty one",
                    "パックを調べた記録が無い（欠落の一覧が無いことは、欠落が無いことではない）",
                ));
                continue;
            };
            let faults: Vec<&str> = list.iter().filter_map(|f| f.as_str()).collect();
            // Twenty faults tell what is wrong with a pack; ten thousand would hide it.
            conclusion.reasons.extend(
                faults
                    .iter()
                    .take(20)
                    .map(|f| Reason::new("pack.fault", Verdict::Fail, *f, *f)),
            );
            conclusion.measured.push(Measured {
                figure: "pack_faults",
                sample: Sample::Each(vec![faults.len() as f64]),
                windows: vec![window.id.clone()],
            });
        }
        conclusion
    }
}
