//! The algebra of a window: what must be true of the server's own counters if it did our work and nobody else's.
//!
//! Pure functions over two scrapes and what the client knows. What cannot be known is `Unknown` with its reason, never
//! `Yes`. Speculation is looked at only where the server counts drafts: whether it had to draft is a check's question.

use super::counters::{Continuity, Movement, continuity, movement, movement_by};
use super::exposition::Exposition;
use super::selector::Selector;
use super::window::GaugeSample;
use crate::dialect::{Metrics, Names, PromptCount};

/// What the client knows of its own window; absent is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Expected {
    /// Requests that came whole.
    pub requests: u64,
    /// Requests given up or cut: the server may have counted tokens that never reached us.
    pub broken_off: u64,
    /// Σ prompt tokens by usage.
    pub prompt_tokens: Option<u64>,
    /// Σ cached prompt tokens by usage.
    pub cached_tokens: Option<u64>,
    /// Σ generated tokens by usage.
    pub generation_tokens: Option<u64>,
    /// Requests that had to end by length (`ignore_eos`).
    pub length_stops: Option<u64>,
    /// Concurrent streams that were driven.
    pub concurrency: Option<u32>,
    /// Draft tokens per step that the recipe allows.
    pub draft_limit: Option<u32>,
    /// Prefix-cache hits in tokens that are allowed; absent: any.
    pub prefix_hits_allowed: Option<u64>,
    /// Mean time to first token by the client's clock, in seconds.
    pub ttft_mean_s: Option<f64>,
}

/// One statement about a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Invariant {
    /// Its name (`generation-tokens`).
    pub name: &'static str,
    /// What must be, in words.
    pub expected: String,
    /// What was seen, in words.
    pub seen: String,
    /// Whether it holds.
    pub holds: Holds,
}

/// Whether an invariant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It cannot be told; the text says why.
    Unknown(String),
}

/// Every invariant of a window that this dialect's metrics can speak to.
pub fn invariants(
    metrics: &Metrics,
    before: &Exposition,
    after: &Exposition,
    expected: &Expected,
    gauges: &[GaugeSample],
) -> Vec<Invariant> {
    let process = continuity(before, after, metrics.process_start);
    let window = Window {
        metrics,
        before,
        after,
        expected,
        process,
    };
    let mut all = vec![window.same_process(), window.requests()];
    all.extend(window.length_stops());
    all.push(window.prompt_tokens());
    all.extend(window.cached_tokens());
    all.push(window.generation_tokens());
    all.push(window.alone(gauges));
    all.extend(window.speculation());
    all.push(window.no_preemption());
    all.extend(window.prefix_hits());
    all.extend(window.concurrency(gauges));
    all.extend(window.ttft());
    all
}

struct Window<'a> {
    metrics: &'a Metrics,
    before: &'a Exposition,
    after: &'a Exposition,
    expected: &'a Expected,
    process: Continuity,
}

/// A difference, or why there is none.
type Delta = Result<f64, String>;

fn judged(
    name: &'static str,
    expected: String,
    seen: Delta,
    holds: impl FnOnce(f64) -> bool,
) -> Invariant {
    match seen {
        Ok(by) => {
            let holds = if holds(by) { Holds::Yes } else { Holds::No };
            Invariant {
                name,
                expected,
                seen: format!("{by}"),
                holds,
            }
        }
        Err(why) => unknown(name, expected, why),
    }
}

fn unknown(name: &'static str, expected: String, why: String) -> Invariant {
    Invariant {
        name,
        expected,
        seen: "not known".to_owned(),
        holds: Holds::Unknown(why),
    }
}

impl Window<'_> {
    fn movement(&self, names: Names) -> Option<(&'static str, Movement)> {
        let name = self
            .after
            .first_of(names)
            .or_else(|| self.before.first_of(names))?;
        let selector = Selector::name_only(name);
        Some((
            name,
            movement(self.before, self.after, &selector, &self.process),
        ))
    }

    fn delta(&self, names: Names, what: &str) -> Delta {
        let Some(first) = names.first() else {
            return Err(format!("this server has no counter of {what}"));
        };
        let Some((name, movement)) = self.movement(names) else {
            return Err(format!("`{first}` is not in the scrapes"));
        };
        movement.delta().ok_or_else(|| match movement {
            Movement::Reset { before, after } => {
                format!("`{name}` was reset ({before} before, {after} after)")
            }
            _ => format!(
                "`{name}` was absent at the opening, and nothing shows that it began at zero"
            ),
        })
    }

    fn same_process(&self) -> Invariant {
        let (seen, holds) = match &self.process {
            Continuity::Same => ("unchanged".to_owned(), Holds::Yes),
            Continuity::Broken { why } => (why.clone(), Holds::No),
            Continuity::Unknown => {
                let why = "the metrics tell no process start time; no counter fell".to_owned();
                ("not known".to_owned(), Holds::Unknown(why))
            }
        };
        Invariant {
            name: "same-process",
            expected: "one process, no counter falls".to_owned(),
            seen,
            holds,
        }
    }

    fn requests(&self) -> Invariant {
        let ours = self.expected.requests;
        let most = (ours + self.expected.broken_off) as f64;
        let delta = self.delta(self.metrics.finished_requests, "finished requests");
        judged("requests", self.at_most_more(ours), delta, |by| {
            by >= ours as f64 && by <= most
        })
    }

    /// `n`, or a range where broken-off requests may have counted.
    fn at_most_more(&self, ours: u64) -> String {
        match self.expected.broken_off {
            0 => format!("{ours}"),
            off => format!("{ours} to {}", ours + off),
        }
    }

    fn length_stops(&self) -> Option<Invariant> {
        let wanted = self.expected.length_stops?;
        let name = "length-stops";
        let expected = format!("{wanted} ended by length");
        let label = self.metrics.finished_reason_label;
        let series = self.after.first_of(self.metrics.finished_requests);
        let (Some(series), false) = (series, label.is_empty()) else {
            return Some(unknown(
                name,
                expected,
                "this server does not count requests by their end".to_owned(),
            ));
        };
        let by = movement_by(
            self.before,
            self.after,
            &Selector::name_only(series),
            label,
            &self.process,
        );
        let delta = match by.get("length").map(|m| m.delta()) {
            Some(Some(by)) => Ok(by),
            Some(None) => Err(format!("`{series}` was reset")),
            None => Err(format!("`{series}` has no `{label}=\"length\"`")),
        };
        Some(judged(name, expected, delta, |by| by == wanted as f64))
    }

    fn prompt_tokens(&self) -> Invariant {
        let name = "prompt-tokens";
        let Some(ours) = self.expected.prompt_tokens else {
            return unknown(
                name,
                "Σ usage.prompt_tokens".to_owned(),
                "the answers carried no usage".to_owned(),
            );
        };
        let (delta, wanted) = match self.metrics.prompt_counts {
            PromptCount::All => (
                self.delta(self.metrics.prompt_tokens, "prompt tokens"),
                ours as f64,
            ),
            PromptCount::ComputedOnly => self.computed_prompt(ours),
        };
        self.tokens(name, delta, wanted)
    }

    /// The prompt counter of a server that counts only what it computed, made whole with what it took from the cache.
    fn computed_prompt(&self, ours: u64) -> (Delta, f64) {
        let computed = self.delta(self.metrics.prompt_tokens, "prompt tokens");
        match (
            self.delta(self.metrics.cached_prompt_tokens, "cached prompt tokens"),
            self.expected.cached_tokens,
        ) {
            (Ok(cached), _) => (computed.map(|c| c + cached), ours as f64),
            (Err(_), Some(cached)) => (computed, ours.saturating_sub(cached) as f64),
            (Err(why), None) => (
                Err(format!(
                    "cached tokens are not counted ({why}), nor told by usage"
                )),
                ours as f64,
            ),
        }
    }

    fn cached_tokens(&self) -> Option<Invariant> {
        let ours = self.expected.cached_tokens?;
        let delta = self.delta(self.metrics.cached_prompt_tokens, "cached prompt tokens");
        Some(self.tokens("cached-tokens", delta, ours as f64))
    }

    fn generation_tokens(&self) -> Invariant {
        let name = "generation-tokens";
        let Some(ours) = self.expected.generation_tokens else {
            return unknown(
                name,
                "Σ usage.completion_tokens".to_owned(),
                "the answers carried no usage".to_owned(),
            );
        };
        let delta = self.delta(self.metrics.generation_tokens, "generated tokens");
        self.tokens(name, delta, ours as f64)
    }

    /// Token sums agree exactly; with broken-off requests the server may have counted more.
    fn tokens(&self, name: &'static str, delta: Delta, ours: f64) -> Invariant {
        if self.expected.broken_off == 0 {
            return judged(name, format!("{ours}"), delta, |by| by == ours);
        }
        let expected = format!(
            "at least {ours} ({} requests were broken off)",
            self.expected.broken_off
        );
        judged(name, expected, delta, |by| by >= ours)
    }

    /// Nobody else was on the seat: the server did not count more than we sent, at any moment.
    fn alone(&self, gauges: &[GaugeSample]) -> Invariant {
        let name = "alone";
        let expected = "nothing served but ours".to_owned();
        let broken_off = self.expected.broken_off as f64;
        let mut surplus = Vec::new();
        let mut known = 0;
        let mut compare = |what: &str, delta: Delta, ours: Option<u64>, slack: f64| {
            if let (Ok(by), Some(ours)) = (delta, ours) {
                known += 1;
                if by > ours as f64 + slack {
                    surplus.push(format!("{} more {what} than ours", by - ours as f64));
                }
            }
        };
        let metrics = self.metrics;
        compare(
            "requests",
            self.delta(metrics.finished_requests, ""),
            Some(self.expected.requests),
            broken_off,
        );
        if broken_off == 0.0 {
            compare(
                "generated tokens",
                self.delta(metrics.generation_tokens, ""),
                self.expected.generation_tokens,
                0.0,
            );
            compare(
                "prompt tokens",
                self.delta(metrics.prompt_tokens, ""),
                self.expected.prompt_tokens,
                0.0,
            );
        }
        let most = gauges
            .iter()
            .filter_map(|g| Some(g.running? + g.waiting.unwrap_or(0.0)))
            .fold(None, maximum);
        if let (Some(most), Some(ours)) = (most, self.expected.concurrency)
            && most > f64::from(ours)
        {
            surplus.push(format!("{most} requests at once where {ours} were ours"));
        }
        match (surplus.is_empty(), known) {
            (false, _) => Invariant {
                name,
                expected,
                seen: surplus.join("; "),
                holds: Holds::No,
            },
            (true, 0) => unknown(
                name,
                expected,
                "no counter of the server can be compared with ours".to_owned(),
            ),
            (true, _) => Invariant {
                name,
                expected,
                seen: "no more than ours".to_owned(),
                holds: Holds::Yes,
            },
        }
    }

    fn no_preemption(&self) -> Invariant {
        let delta = self.delta(self.metrics.preemptions, "preempted requests");
        judged(
            "no-preemption",
            "0 preempted requests".to_owned(),
            delta,
            |by| by == 0.0,
        )
    }

    fn prefix_hits(&self) -> Option<Invariant> {
        let allowed = self.expected.prefix_hits_allowed?;
        let delta = self.delta(self.metrics.prefix_hits, "prefix-cache hits");
        Some(judged(
            "prefix-hits",
            format!("at most {allowed} tokens"),
            delta,
            |by| by <= allowed as f64,
        ))
    }
}

fn maximum(most: Option<f64>, next: f64) -> Option<f64> {
    Some(most.map_or(next, |most| most.max(next)))
}

#[path = "invariants_load.rs"]
mod load;

#[path = "invariants_speculation.rs"]
mod speculation;

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
