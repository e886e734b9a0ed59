//! `throughput`: decode and aggregate rate of a workload at a number of streams.

use super::traffic;
use crate::evidence::window::Window;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::plan::task::{Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _};

/// The kind.
#[derive(Debug)]
pub(super) struct Throughput;

const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "decode_tok_s",
        unit: "tok/s",
        unit_aliases: &[("tokens/s", 1.0), ("t/s", 1.0)],
        words: &[],
        judged: Judged::ByBound,
        about: "Decode rate of one stream: (C − c_first)/(t_last − t_first), mean over the streams of a window, tokens from usage.",
    },
    FigureKind {
        name: "aggregate_tok_s",
        unit: "tok/s",
        unit_aliases: &[("tokens/s", 1.0), ("t/s", 1.0)],
        words: &[],
        judged: Judged::ByBound,
        about: "All generated tokens of a window over its wall time, prefill included.",
    },
    FigureKind {
        name: "ttft_s",
        unit: "s",
        unit_aliases: &[("ms", 0.001)],
        words: &[],
        judged: Judged::ByBound,
        about: "Time to the first token, median over the requests of a window.",
    },
];

impl Kind for Throughput {
    fn name(&self) -> &'static str {
        "throughput"
    }

    fn about(&self) -> &'static str {
        "Tokens per second by workload and number of streams, counted from usage and held against the server's own counters."
    }

    fn keys(&self) -> &'static [Key] {
        traffic::KEYS
    }

    fn figures(&self) -> &'static [FigureKind] {
        FIGURES
    }

    fn proof(&self) -> ProofNeed {
        ProofNeed::Required
    }

    fn default_repeats(&self) -> u32 {
        7
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        traffic::faults(&check.params)
    }
}

impl Planned for Throughput {
    fn windows(&self, slot: &Slot<'_>) -> Vec<WindowWish> {
        let load: Load = traffic::load(
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

impl Concludes for Throughput {
    fn conclude(&self, view: &View<'_>) -> Conclusion {
        let windows = view.windows("measure");
        let mut conclusion = Conclusion {
            reasons: traffic::objections(view, &windows),
            ..Conclusion::default()
        };
        let mut add = |figure: &'static str, of: &dyn Fn(&Window) -> Option<f64>| {
            let seen: Vec<(f64, String)> = windows
                .iter()
                .filter_map(|w| of(w).map(|value| (value, w.id.clone())))
                .collect();
            if !seen.is_empty() {
                let (values, windows) = seen.into_iter().unzip();
                conclusion.measured.push(Measured {
                    figure,
                    sample: Sample::Repeats(values),
                    windows,
                });
            }
        };
        add("decode_tok_s", &decode_rate);
        add("aggregate_tok_s", &aggregate_rate);
        add("ttft_s", &median_ttft);
        if view
            .check
            .params
            .count("max_tokens")
            .is_some_and(|n| n < 64)
        {
            conclusion
                .notes
                .push("answers under 64 tokens: the decode rate rests on few steps".into());
        }
        conclusion.notes.extend(traffic::noted(view, &windows));
        conclusion
    }
}

/// Mean decode rate over the streams of a window; absent if any request has none.
fn decode_rate(window: &Window) -> Option<f64> {
    let rates: Option<Vec<f64>> = window.exchanges.iter().map(|e| e.decode_tok_s()).collect();
    let rates = rates.filter(|r| !r.is_empty())?;
    Some(rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Generated tokens over the time from the first request's start to the last token; absent if any request has no usage.
fn aggregate_rate(window: &Window) -> Option<f64> {
    let tokens: Option<u64> = window
        .exchanges
        .iter()
        .map(|e| e.usage.map(|u| u.completion))
        .sum();
    let start = window.exchanges.iter().map(|e| e.sent_s).reduce(f64::min)?;
    let end = window
        .exchanges
        .iter()
        .map(|e| e.last_token_s)
        .collect::<Option<Vec<_>>>()?;
    let end = end.into_iter().reduce(f64::max)?;
    tokens
        .filter(|_| end > start)
        .map(|t| t as f64 / (end - start))
}

/// Median time to the first token; absent if any request has none.
fn median_ttft(window: &Window) -> Option<f64> {
    let mut times: Vec<f64> = window
        .exchanges
        .iter()
        .map(|e| e.ttft_s())
        .collect::<Option<_>>()?;
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    match times.len() {
        0 => None,
        n if n % 2 == 1 => Some(times[middle]),
        _ => Some(f64::midpoint(times[middle - 1], times[middle])),
    }
}
