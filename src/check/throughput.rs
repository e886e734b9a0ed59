//! `throughput`: decode and aggregate rate of a workload at a number of streams.

use super::traffic;
use crate::evidence::window::Window;
use crate::judge::sample::{Concludes, Conclusion, Measured, Sample, View};
use crate::plan::task::{Ids, Load, Prompts, Task};
use crate::plan::{Planned, Slot, WindowWish};
use crate::spec::expect::Expectation;
use crate::spec::gate::{Check, Gate};
use crate::spec::kind::{
    Declaration, FigureKind, Judged, Kind, KindFault, Params, ProofNeed, Read as _,
};
use crate::stats::alpha::Alpha;
use crate::stats::order;

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
    TTFT_P95,
    TTFT_P99,
];

const TTFT_P95: FigureKind = ttft_percentile(
    "ttft_p95_s",
    0.95,
    "Time to the first token that 95 % of all requests do not exceed; held by `<= X`, counting the requests over it (59 or more).",
);
const TTFT_P99: FigureKind = ttft_percentile(
    "ttft_p99_s",
    0.99,
    "Time to the first token that 99 % of all requests do not exceed; held by `<= X`, counting the requests over it (299 or more).",
);

const fn ttft_percentile(name: &'static str, q: f64, about: &'static str) -> FigureKind {
    FigureKind {
        name,
        unit: "s",
        unit_aliases: &[("ms", 0.001)],
        words: &[],
        judged: Judged::ByCount { q },
        about,
    }
}

const DECLARATION: Declaration = Declaration {
    name: "throughput",
    about: "Tokens per second by workload and number of streams, counted from usage and held against the server's own counters.",
    keys: traffic::KEYS,
    figures: FIGURES,
    proof: ProofNeed::Required,
    repeats: 7,
};

impl Kind for Throughput {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        traffic::cells(params)
    }

    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let percentiles = [TTFT_P95, TTFT_P99];
        traffic::faults(&check.params)
            .into_iter()
            .chain(percentiles.iter().filter_map(|p| too_few(check, p)))
            .collect()
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
        conclusion.measured.extend(percentiles(view, &windows));
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

/// A percentile that so few requests can never decide, whatever they show.
fn too_few(check: &Check, figure: &FigureKind) -> Option<KindFault> {
    let Judged::ByCount { q } = figure.judged else {
        return None;
    };
    let alpha = Alpha::new(check.alpha).ok()?;
    let need = order::requests_needed(q, 0, alpha).ok()?;
    let each = check.params.count("requests").unwrap_or(1) * u64::from(check.repeats.max);
    let held = |cell: &str| {
        let of = |e: &&Expectation| e.cell.as_deref().is_none_or(|c| c == cell);
        check
            .expect
            .iter()
            .filter(of)
            .any(|e| e.figure == figure.name)
    };
    let cells = traffic::cells(&check.params);
    let (cell, have) = cells
        .iter()
        .filter(|cell| held(cell))
        .map(|cell| {
            let streams = cell.rsplit_once('/').and_then(|c| c.1.parse::<u64>().ok());
            (cell, streams.unwrap_or(1) * each)
        })
        .min_by_key(|c| c.1)?;
    (have < need).then(|| KindFault {
        key: Some("requests"),
        message: format!(
            "`{}` of `{cell}` can never be decided: {have} requests in all, and {need} without one over the limit are the least at alpha {}",
            figure.name, check.alpha
        ),
        help: format!(
            "raise `requests` or `repeats` until streams × requests × repeats is {need} or more"
        ),
    })
}

/// The percentiles that a limit of this case asks for.
fn percentiles(view: &View<'_>, windows: &[&Window]) -> Vec<Measured> {
    [TTFT_P95, TTFT_P99]
        .into_iter()
        .filter(|p| view.check.expect.iter().any(|e| e.figure == p.name))
        .filter_map(|figure| {
            let Judged::ByCount { q } = figure.judged else {
                return None;
            };
            let requests: Option<Vec<Vec<f64>>> = windows
                .iter()
                .map(|w| w.exchanges.iter().map(|e| e.ttft_s()).collect())
                .collect();
            Some(Measured {
                figure: figure.name,
                sample: Sample::Percentile {
                    q,
                    requests: requests.filter(|r| !r.is_empty())?,
                },
                windows: windows.iter().map(|w| w.id.clone()).collect(),
            })
        })
        .collect()
}

/// Mean decode rate over the streams of a window; absent if any request has none.
pub(super) fn decode_rate(window: &Window) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, faults, gate};
    use super::*;
    use crate::evidence::exchange::Exchange;
    use crate::judge::case::{Matter, finding};
    use crate::judge::figure::Decision;
    use crate::plan;

    fn check(requests: u32) -> String {
        format!(
            "kind = \"throughput\"\nbuilds = [\"candidate\"]\nrequests = {requests}\nrepeats = 5\nexpect = {{ ttft_p95_s = \"<= 1 s\" }}"
        )
    }

    fn decision(slow: usize) -> Decision {
        let mut hand = Hand::default();
        for repeat in 0..5 {
            let answers = (0..12).map(|at| Exchange {
                first_token_s: Some(if at < slow && repeat < 1 { 2.0 } else { 0.5 }),
                ..answer("p", "text", Some(&[1; 8]))
            });
            hand.window("throughput/en/1", "candidate", answers.collect());
        }
        let gate = gate(&check(12));
        let matter = Matter {
            gate: &gate,
            evidence: &hand.evidence,
            recorded: &[],
            earlier_runs: 0,
        };
        let found = finding(matter, &plan::cases(&gate)[0], &Throughput);
        let figure = found.figures.iter().find(|f| f.name == "ttft_p95_s");
        figure.unwrap().limits[0].decision
    }

    #[test]
    fn a_percentile_needs_sixty_requests_below_its_limit_and_one_above_leaves_it_open() {
        assert_eq!(decision(0), Decision::Clears);
        assert_eq!(decision(1), Decision::Open);
        assert_eq!(decision(12), Decision::Misses);
    }

    #[test]
    fn a_percentile_that_can_never_be_decided_is_a_fault_of_the_gate() {
        let told = faults(&check(4));
        assert!(
            told.iter()
                .any(|f| f.contains("20 requests in all, and 59")),
            "{told:?}"
        );
        assert!(faults(&check(12)).is_empty());
    }
}
