//! `kv_window`: tokens of KV cache that the server reports, from its log, else from its metrics.

use crate::evidence::window::{Scrape, Window};
use crate::judge::finding::Reason;
use crate::judge::log;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::Task;
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed};

/// The kind.
#[derive(Debug)]
pub(super) struct KvWindow;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "kv_tokens",
        unit: "tokens",
        unit_aliases: &[("", 1.0)],
        words: &[],
        judged: Judged::Each,
        about: "Tokens of KV cache, as the boot's log tells (the metrics' info series where the log is silent).",
    },
    FigureKind {
        name: "kv_gib",
        unit: "GiB",
        unit_aliases: &[],
        words: &[],
        judged: Judged::Each,
        about: "Memory available for the KV cache, as the boot's log tells.",
    },
];

impl Kind for KvWindow {
    fn name(&self) -> &'static str {
        "kv_window"
    }

    fn about(&self) -> &'static str {
        "Tokens (and GiB) of KV cache that the boot reports: a floor, and the drift against another build or a certified run."
    }

    fn keys(&self) -> &'static [Key] {
        &[]
    }

    fn figures(&self) -> &'static [FigureKind] {
        FIGURES
    }

    fn proof(&self) -> ProofNeed {
        ProofNeed::None
    }

    fn default_repeats(&self) -> u32 {
        1
    }

    fn cells(&self, _params: &Params) -> Vec<String> {
        vec![String::new()]
    }

    fn faults(&self, _check: &Check, _gate: &Gate) -> Vec<KindFault> {
        Vec::new()
    }
}

impl Planned for KvWindow {
    fn windows(&self, _slot: &Slot<'_>) -> Vec<WindowWish> {
        vec![WindowWish {
            part: "measure".into(),
            task: Task::Look,
        }]
    }
}

impl Concludes for KvWindow {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let mut conclusion = Conclusion::default();
        let (mut tokens, mut gib) = (Seen::default(), Seen::default());
        for window in view.windows("measure") {
            let logged = log::of_boot(view, window).and_then(|reader| reader.kv_window());
            let told = metric(view, window);
            if let (Some(logged), Some(told)) = (&logged, told)
                && (logged.tokens as f64 - told).abs() > 0.5
            {
                conclusion.reasons.push(Reason::new(
                    "kv.disagree",
                    Verdict::Inconclusive,
                    format!(
                        "the log of {} says {} tokens of KV cache, the metrics say {told}",
                        window.boot, logged.tokens
                    ),
                    format!(
                        "{} のログは KV {} トークン、計数器は {told}",
                        window.boot, logged.tokens
                    ),
                ));
            }
            match logged.as_ref().map(|k| k.tokens as f64).or(told) {
                Some(n) => tokens.add(window, n),
                None => conclusion.reasons.push(Reason::new(
                    "kv.absent",
                    Verdict::Unproven,
                    format!(
                        "neither the log nor the metrics of {} tell the KV window",
                        window.boot
                    ),
                    format!("{} のログにも計数器にも KV 窓が無い", window.boot),
                )),
            }
            if let Some(memory) = logged.and_then(|k| k.gib) {
                gib.add(window, memory);
            }
        }
        conclusion.measured.extend(tokens.measured("kv_tokens"));
        conclusion.measured.extend(gib.measured("kv_gib"));
        conclusion
    }
}

#[derive(Default)]
struct Seen {
    values: Vec<f64>,
    windows: Vec<String>,
}

impl Seen {
    fn add(&mut self, window: &Window, value: f64) {
        self.values.push(value);
        self.windows.push(window.id.clone());
    }

    fn measured(self, figure: &'static str) -> Option<Measured> {
        (!self.values.is_empty()).then_some(Measured {
            figure,
            sample: Sample::Each(self.values),
            windows: self.windows,
        })
    }
}

/// The KV window by the metrics' info series.
fn metric(view: &View<'_>, window: &Window) -> Option<f64> {
    let (series, label) = view.dialect?.metrics.as_ref()?.kv_tokens?;
    let Scrape::Taken { exposition, .. } = &window.counters.after else {
        return None;
    };
    exposition
        .named(series)
        .find_map(|s| s.label(label)?.parse().ok())
}
