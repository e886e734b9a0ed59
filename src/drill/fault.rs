//! The table of faults.

use super::{answers, counters, log, residents, scores};
use crate::evidence::body::Evidence;
use crate::evidence::window::Window;
use crate::spec::gate::{Check, Gate, PathSpec};
use crate::spec::kind::ProofNeed;

/// A fault that can be put into recorded evidence.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Name.
    pub name: &'static str,
    /// What happened to the seat, in one sentence.
    pub about: &'static str,
    /// Checks that must fall to it.
    pub concerns: fn(&Check) -> bool,
    /// Puts it into the evidence of one build.
    pub inject: fn(&mut Evidence, &Target<'_>) -> Injection,
}

/// One build that a fault is put into.
#[derive(Debug, Clone, PartialEq)]
pub struct Target<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// The build.
    pub build: &'a str,
    /// The path that its cases claim.
    pub path: Option<&'a str>,
    /// Cases that must fall.
    pub cases: Vec<String>,
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl<'a> Target<'a> {
    /// The claimed path's claims.
    pub(super) fn spec(&self) -> Option<&'a PathSpec> {
        self.path.and_then(|p| self.gate.path(p))
    }
}

/// Whether a fault could be put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Injection {
    /// It is in.
    Done,
    /// It cannot be simulated on this evidence; the text says why.
    Impossible(String),
}

/// `Done` if anything was changed.
pub(super) fn done_if(changed: bool, why_not: &str) -> Injection {
    if changed {
        Injection::Done
    } else {
        Injection::Impossible(why_not.into())
    }
}

/// The windows of the target's cases on its build.
pub(super) fn windows<'e>(
    evidence: &'e mut Evidence,
    target: &'e Target<'_>,
) -> impl Iterator<Item = &'e mut Window> + 'e {
    evidence
        .windows
        .iter_mut()
        .filter(|w| w.build == target.build && target.cases.contains(&w.case))
}

fn needs_path(check: &Check) -> bool {
    check.kind.proof() == ProofNeed::Required
}

fn is(check: &Check, kinds: &[&str]) -> bool {
    kinds.contains(&check.kind.name())
}

fn traffic(check: &Check) -> bool {
    is(check, &["throughput", "accept_length", "needle"])
}

/// Checks of what was answered, by traffic of ours.
fn answered(check: &Check) -> bool {
    traffic(check)
        || is(
            check,
            &["agreement", "repeat", "greedy_audit", "essays", "length"],
        )
}

fn audit(check: &Check) -> bool {
    is(check, &["greedy_audit"])
}

fn speed(check: &Check) -> bool {
    is(check, &["throughput"])
}

fn needle(check: &Check) -> bool {
    is(check, &["needle"])
}

fn acceptance(check: &Check) -> bool {
    is(check, &["accept_length"])
}

fn perplexity(check: &Check) -> bool {
    is(check, &["perplexity"])
}

/// Every fault.
pub static FAULTS: &[Fault] = &[
    Fault {
        name: "log-removed",
        about: "the log cannot be read at all",
        concerns: needs_path,
        inject: log::remove,
    },
    Fault {
        name: "counters-removed",
        about: "`/metrics` answers nothing",
        concerns: needs_path,
        inject: counters::remove,
    },
    Fault {
        name: "never-announced",
        about: "the path's lines are in no log: silent fallback",
        concerns: needs_path,
        inject: log::silence,
    },
    Fault {
        name: "one-rank-silent",
        about: "one rank never announced the path",
        concerns: needs_path,
        inject: log::silence_one_rank,
    },
    Fault {
        name: "counter-still",
        about: "the path's counters stand still while tokens flow: declined in decode",
        concerns: needs_path,
        inject: counters::halt,
    },
    Fault {
        name: "counter-absent",
        about: "the path's counters are not there",
        concerns: needs_path,
        inject: counters::drop_moved,
    },
    Fault {
        name: "one-rank-still",
        about: "the path's counter stands still on one rank",
        concerns: needs_path,
        inject: counters::halt_one_rank,
    },
    Fault {
        name: "other-path-moved",
        about: "the counters of the other path move",
        concerns: needs_path,
        inject: counters::move_still,
    },
    Fault {
        name: "refuting-line",
        about: "a refuting line in the measured window",
        concerns: needs_path,
        inject: log::refute,
    },
    Fault {
        name: "log-rotated",
        about: "the log was rotated in every window",
        concerns: needs_path,
        inject: log::rotate,
    },
    Fault {
        name: "worker-environment",
        about: "a variable that the path wants is not in one worker's live environment",
        concerns: needs_path,
        inject: residents::change_environment,
    },
    Fault {
        name: "worker-library",
        about: "a library that the path wants is another file in one worker",
        concerns: needs_path,
        inject: residents::change_library,
    },
    Fault {
        name: "foreign-traffic",
        about: "somebody else used the seat in every window",
        concerns: answered,
        inject: counters::add_foreign,
    },
    Fault {
        name: "counter-reset",
        about: "the counters were reset in every window",
        concerns: answered,
        inject: counters::reset,
    },
    Fault {
        name: "usage-missing",
        about: "no answer carries usage",
        concerns: |c| traffic(c) || is(c, &["essays", "length"]),
        inject: answers::drop_usage,
    },
    Fault {
        name: "http-500",
        about: "one request in each window answers HTTP 500",
        concerns: answered,
        inject: answers::refuse,
    },
    Fault {
        name: "stream-cut",
        about: "one stream in each window is cut",
        concerns: answered,
        inject: answers::cut,
    },
    Fault {
        name: "early-stop",
        about: "answers end after a quarter of their tokens",
        concerns: |c| speed(c) || is(c, &["length"]),
        inject: answers::shorten,
    },
    Fault {
        name: "bundled-chunks",
        about: "sixteen tokens arrive in each chunk",
        concerns: speed,
        inject: answers::bundle,
    },
    Fault {
        name: "repetition",
        about: "the answers are one word over and over",
        concerns: speed,
        inject: answers::repeat,
    },
    Fault {
        name: "half-speed",
        about: "the build is half as fast",
        concerns: speed,
        inject: answers::slow,
    },
    Fault {
        name: "prompt-truncated",
        about: "half of the prompt was read",
        concerns: needle,
        inject: answers::truncate,
    },
    Fault {
        name: "prompt-cached",
        about: "the prompt came from the cache",
        concerns: needle,
        inject: answers::cache,
    },
    Fault {
        name: "wrong-answer",
        about: "the answer is another value",
        concerns: needle,
        inject: answers::mistake,
    },
    Fault {
        name: "empty-answer",
        about: "the answer is empty",
        concerns: needle,
        inject: answers::empty,
    },
    Fault {
        name: "slow-prefill",
        about: "the first token takes a hundred times as long",
        concerns: needle,
        inject: answers::slow_prefill,
    },
    Fault {
        name: "speculation-off",
        about: "no token is drafted",
        concerns: acceptance,
        inject: counters::stop_drafting,
    },
    Fault {
        name: "acceptance-collapse",
        about: "nine of a hundred steps accept a token (accept length 1.09)",
        concerns: acceptance,
        inject: counters::collapse_acceptance,
    },
    Fault {
        name: "speculation-on",
        about: "tokens are drafted while logprobs are read",
        concerns: perplexity,
        inject: counters::draft_in_scoring,
    },
    Fault {
        name: "zero-logprobs",
        about: "every logprob is zero",
        concerns: perplexity,
        inject: scores::zero,
    },
    Fault {
        name: "shifted-logprobs",
        about: "logprobs are shifted by one token",
        concerns: perplexity,
        inject: scores::shift,
    },
    Fault {
        name: "order-dependence",
        about: "logprobs depend on the order of requests",
        concerns: perplexity,
        inject: scores::depend_on_order,
    },
    Fault {
        name: "worse-model",
        about: "every token is half a nat less likely",
        concerns: perplexity,
        inject: scores::worsen,
    },
    Fault {
        name: "logprobs-removed",
        about: "no logprobs were recorded",
        concerns: perplexity,
        inject: scores::remove,
    },
    Fault {
        name: "one-answer-differs",
        about: "the last answer of each window ends with another token",
        concerns: |c| is(c, &["repeat"]),
        inject: answers::differ,
    },
    Fault {
        name: "answers-part",
        about: "every answer begins with another token",
        concerns: |c| is(c, &["agreement"]),
        inject: answers::part,
    },
    Fault {
        name: "answers-emptied",
        about: "every answer is empty",
        concerns: |c| is(c, &["agreement", "repeat"]),
        inject: answers::void,
    },
    Fault {
        name: "lossy-token",
        about: "one audited token has rank 7, two nats behind the likeliest",
        concerns: audit,
        inject: scores::demote,
    },
    Fault {
        name: "audit-zeroed",
        about: "every logprob of the auditor is zero",
        concerns: audit,
        inject: scores::zero_audit,
    },
    Fault {
        name: "audit-removed",
        about: "the auditor's scores are not there",
        concerns: audit,
        inject: scores::remove_audit,
    },
    Fault {
        name: "ids-removed",
        about: "the answers came without token ids",
        concerns: audit,
        inject: answers::drop_ids,
    },
    Fault {
        name: "kv-shrunk",
        about: "the KV window is a fifth smaller",
        concerns: |c| is(c, &["kv_window"]),
        inject: log::shrink_kv,
    },
    Fault {
        name: "kv-untold",
        about: "neither log nor metrics tell the KV window",
        concerns: |c| is(c, &["kv_window"]),
        inject: log::hide_kv,
    },
    Fault {
        name: "essay-cut",
        about: "one essay in each window is cut at its limit",
        concerns: |c| is(c, &["essays"]),
        inject: answers::cut_at_limit,
    },
    Fault {
        name: "essay-looped",
        about: "one essay in each window ends in a loop",
        concerns: |c| is(c, &["essays"]),
        inject: answers::loop_one,
    },
    Fault {
        name: "canary-moved",
        about: "the machine lost more than half of its speed under the measurement",
        concerns: |c| is(c, &["canary"]),
        inject: answers::slow_down,
    },
    Fault {
        name: "tool-unread",
        about: "the result of another tool cannot be read",
        concerns: |c| is(c, &["external"]),
        inject: answers::forget_results,
    },
    Fault {
        name: "unwell",
        about: "the health route answers HTTP 500",
        concerns: |c| is(c, &["health"]),
        inject: answers::sicken,
    },
    Fault {
        name: "traceback",
        about: "the log holds a traceback",
        concerns: |c| is(c, &["health"]),
        inject: log::crash,
    },
    Fault {
        name: "not-run",
        about: "the case was never measured",
        concerns: |_| true,
        inject: answers::skip,
    },
];
