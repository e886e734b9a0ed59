//! `kv_window`: tokens of KV cache that the server reports, from its log, else from its metrics.

use crate::evidence::kv::{KvAttention, KvGeometry, KvIdentity};
use crate::evidence::window::{Scrape, Window};
use crate::judge::finding::Reason;
use crate::judge::log;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::judge::verdict::Verdict;
use crate::plan::task::Task;
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

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
    FigureKind {
        name: "kv_dtype",
        unit: "word",
        unit_aliases: &[],
        words: &["f32", "bf16_or_f16", "fp8_or_int8", "int4", "unexplained"],
        judged: Judged::Each,
        about: "Width of the numbers that are really stored, by tokens × bytes = memory; needs the model's geometry.",
    },
];

const fn geometry(name: &'static str, about: &'static str) -> Key {
    Key {
        name,
        takes: Takes::Count(1, 1_000_000),
        default: Default::Absent,
        about,
    }
}

const KEYS: &[Key] = &[
    geometry(
        "layers",
        "Layers with a cache on one rank, a draft model's included; with the keys below it tells what is stored.",
    ),
    geometry(
        "kv_heads",
        "KV heads of a layer (`num_key_value_heads` of config.json).",
    ),
    geometry("head_dim", "Elements of a head."),
    geometry(
        "kv_lora_rank",
        "For MLA models instead of heads: elements of the latent.",
    ),
    geometry("rope_dim", "For MLA models: elements of the rotary part."),
];

const DECLARATION: Declaration = Declaration {
    name: "kv_window",
    about: "Tokens (and GiB) of KV cache that the boot reports: a floor, and the drift against another build or a certified run.",
    keys: KEYS,
    figures: FIGURES,
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for KvWindow {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn faults(&self, check: &Check, gate: &Gate) -> Vec<KindFault> {
        let named = KEYS.iter().any(|k| check.params.contains_key(k.name));
        let wanted = check.expect.iter().any(|e| e.figure == "kv_dtype");
        ((named || wanted) && of_model(&check.params, gate).is_none())
            .then(|| KindFault {
                key: Some("layers"),
                message: "what is stored in the KV cache cannot be worked out from these keys".into(),
                help: "give `layers` with `kv_heads` and `head_dim`, or with `kv_lora_rank` and `rope_dim`, from the model's config.json".into(),
            })
            .into_iter()
            .collect()
    }
}

/// The model's geometry; absent unless the keys are whole.
fn of_model(params: &Params, gate: &Gate) -> Option<KvGeometry> {
    let key = |name: &str| params.count(name).and_then(|n| u32::try_from(n).ok());
    let grouped = || {
        Some(KvAttention::Grouped {
            kv_heads: key("kv_heads")?,
            head_dim: key("head_dim")?,
        })
    };
    let latent = || {
        Some(KvAttention::Latent {
            kv_lora_rank: key("kv_lora_rank")?,
            rope_dim: key("rope_dim")?,
        })
    };
    Some(KvGeometry {
        layers: key("layers")?,
        attention: grouped().or_else(latent)?,
        tp: gate.seat.ranks.tp,
    })
}

/// What is stored by the arithmetic, as the gate's word, and the sentence for people.
fn stored(geometry: &KvGeometry, tokens: u64, gib: f64) -> Option<(&'static str, String)> {
    let elements = geometry.elements_per_token();
    Some(match geometry.identify(tokens, gib)? {
        KvIdentity::Stored(dtype) => (
            dtype.word(),
            format!(
                "{tokens} tokens × {elements} elements × {} bytes are the {gib} GiB told: {} is stored",
                dtype.bytes(),
                dtype.name()
            ),
        ),
        KvIdentity::Unexplained { bytes_per_element } => (
            "unexplained",
            format!(
                "{tokens} tokens × {elements} elements in {gib} GiB make {bytes_per_element:.3} bytes an element, which is no type's width"
            ),
        ),
    })
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
        let (mut words, mut ids) = (Vec::new(), Vec::new());
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
            let Some(logged) = logged else { continue };
            if let Some(memory) = logged.gib {
                gib.add(window, memory);
                let told = of_model(&view.check.params, view.gate)
                    .and_then(|geometry| stored(&geometry, logged.tokens, memory));
                if let Some((word, sentence)) = told {
                    words.push(word.to_owned());
                    ids.push(window.id.clone());
                    conclusion.notes.push(sentence);
                }
            }
        }
        conclusion.measured.extend(tokens.measured("kv_tokens"));
        conclusion.measured.extend(gib.measured("kv_gib"));
        if !words.is_empty() {
            conclusion.measured.push(Measured {
                figure: "kv_dtype",
                sample: Sample::Words(words),
                windows: ids,
            });
        }
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
