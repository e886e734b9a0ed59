//! The counters, under vLLM's names.

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::fault::Fault;
use super::histogram::{self, Histogram};
use super::metrics::Page;
use super::options::{Options, Path};

/// What is counted.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// Prompt tokens.
    pub(super) prompt: u64,
    /// Prompt tokens from the cache.
    pub(super) cached: u64,
    /// Prompt tokens looked up in the cache.
    pub(super) queries: u64,
    /// Generated tokens.
    pub(super) generated: u64,
    /// Finished requests by reason: stop, length, abort, error.
    pub(super) finished: [u64; 4],
    /// Steps with a draft.
    pub(super) drafts: u64,
    /// Draft tokens.
    pub(super) draft_tokens: u64,
    /// Accepted draft tokens by position.
    pub(super) accepted: Vec<u64>,
    /// Kernel calls of a rank: lna2, exllamav3, declined.
    pub(super) calls: Vec<[u64; 3]>,
    /// Requests running.
    pub(super) running: u64,
    /// Requests waiting.
    pub(super) waiting: u64,
    /// Tokens that the running requests hold in the KV window.
    pub(super) held: u64,
    /// Tokens of each engine step, read and written.
    pub(super) iteration: Histogram,
    /// Seconds to the first token.
    pub(super) ttft: Histogram,
    /// Seconds between tokens.
    pub(super) itl: Histogram,
    /// Seconds of whole requests.
    pub(super) e2e: Histogram,
    /// Prompt tokens of finished requests.
    pub(super) request_prompt: Histogram,
    /// Generated tokens of finished requests.
    pub(super) request_generated: Histogram,
}

impl Counts {
    /// All at zero.
    fn new(options: &Options) -> Self {
        Self {
            prompt: 0,
            cached: 0,
            queries: 0,
            generated: 0,
            finished: [0; 4],
            drafts: 0,
            draft_tokens: 0,
            accepted: vec![0; options.draft.unwrap_or(0) as usize],
            calls: vec![[0; 3]; options.ranks as usize],
            running: 0,
            waiting: 0,
            held: 0,
            iteration: Histogram::new(histogram::TOKENS),
            ttft: Histogram::new(histogram::SECONDS),
            itl: Histogram::new(histogram::GAPS),
            e2e: Histogram::new(histogram::SECONDS),
            request_prompt: Histogram::new(histogram::TOKENS),
            request_generated: Histogram::new(histogram::TOKENS),
        }
    }
}

/// The counters of a seat.
#[derive(Debug)]
pub(super) struct Counters {
    counts: Mutex<Counts>,
    started: f64,
    reset: Mutex<Instant>,
}

/// Names of the finish reasons, in the order of [`Counts::finished`].
pub(super) const REASONS: [&str; 4] = ["stop", "length", "abort", "error"];

impl Counters {
    /// Counters at zero.
    pub(super) fn new(options: &Options) -> Self {
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        Self {
            counts: Mutex::new(Counts::new(options)),
            started,
            reset: Mutex::new(Instant::now()),
        }
    }

    /// Changes them.
    pub(super) fn with(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What is counted by now.
    pub(super) fn read(&self) -> Counts {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One decode step's kernel calls on every rank.
    pub(super) fn calls(&self, options: &Options) {
        self.with(|counts| {
            let ranks = counts.calls.len();
            for (rank, calls) in counts.calls.iter_mut().enumerate() {
                let fallen = rank + 1 == ranks && options.has(Fault::FallbackOnOneRank);
                match options.taken() {
                    Path::Lna2 if !fallen => calls[0] += 1,
                    _ => calls[1] += 1,
                }
                if options.has(Fault::ActiveButDeclined) {
                    calls[2] += 1;
                }
            }
        });
    }

    /// The text of `/metrics`.
    pub(super) fn text(&self, options: &Options) -> String {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reset = self.reset.lock().unwrap_or_else(PoisonError::into_inner);
        if options.has(Fault::CounterReset) && reset.elapsed().as_secs() >= 1 {
            *reset = Instant::now();
            let fresh = Counts {
                running: counts.running,
                waiting: counts.waiting,
                ..Counts::new(options)
            };
            *counts = fresh;
        }
        Page::new(&options.model, self.started).write(&counts, options)
    }
}
