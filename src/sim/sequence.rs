//! One request in the engine: its prompt, its state, and one decode step of it.

use tokio::sync::mpsc::UnboundedSender;

use super::fault::Fault;
use super::logprobs::{self, Told};
use super::model::{State, likeliest};
use super::options::Options;
use super::tokenizer::END;
use crate::drive::request::fresh_salt;
use crate::workload::splitmix::SplitMix64;

/// What a request asks of the engine.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// Prompt as it was sent.
    pub(super) prompt: Vec<u32>,
    /// Tokens of the answer at most.
    pub(super) max_tokens: u64,
    /// Tokens of the answer at least.
    pub(super) min_tokens: u64,
    /// Sampling temperature; 0 is greedy.
    pub(super) temperature: f64,
    /// Sampling seed.
    pub(super) seed: u64,
    /// Whether the end token is passed over.
    pub(super) ignore_end: bool,
    /// Texts that end the answer.
    pub(super) stop: Vec<String>,
    /// Salt of the prefix cache.
    pub(super) salt: Option<String>,
    /// Whether the prefix cache is passed by.
    pub(super) uncached: bool,
    /// Likeliest tokens that are told at each place.
    pub(super) top: usize,
}

/// What comes back while a request runs.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The prompt was read: its tokens as billed, and how many came from the cache.
    Read {
        /// Prompt tokens.
        prompt: u64,
        /// Of these, from the cache.
        cached: u64,
    },
    /// What one step wrote, and why it was the last step.
    Written {
        /// The tokens.
        tokens: Vec<Told>,
        /// Why the answer ended, if it did.
        finish: Option<Finish>,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    /// `stop` or `length`.
    pub(super) reason: &'static str,
    /// The text that ended it, which is no part of the answer.
    pub(super) stop: Option<String>,
}

impl Finish {
    fn of(reason: &'static str) -> Self {
        Self { reason, stop: None }
    }
}

/// A request in the engine.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) ask: Ask,
    pub(super) events: UnboundedSender<Event>,
    /// Prompt tokens still to be read.
    pub(super) unread: usize,
    pub(super) arrived: std::time::Instant,
    state: Option<State>,
    chance: SplitMix64,
    /// Chance that is another one in each request.
    slips: SplitMix64,
    /// Tokens at the last draft that was let pass wrongly.
    passed: usize,
    written: Vec<u32>,
    wrote: Option<std::time::Instant>,
}

/// Tokens at least between two wrong drafts of a lossy verification.
const LOSSY_EVERY: usize = 8;
/// One token in so many slips where answers are unstable.
const SLIP_EVERY: usize = 8;

/// The likeliest byte but for this token.
fn second(all: &[f64], best: u32) -> u32 {
    let mut rest = all[..END as usize].to_vec();
    if let Some(p) = rest.get_mut(best as usize) {
        *p = 0.0;
    }
    likeliest(&rest)
}

/// What one step did.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Tokens written.
    pub(super) tokens: Vec<Told>,
    /// Draft tokens proposed.
    pub(super) drafted: usize,
    /// Draft tokens accepted.
    pub(super) accepted: usize,
    /// Why the answer ended, if it did.
    pub(super) finished: Option<Finish>,
}

/// How long tokens took to come, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// From the request's arrival to its first token.
    First(f64),
    /// For each token of a later step.
    Later(f64),
}

impl Sequence {
    /// A request whose prompt has `unread` tokens to be computed.
    pub(super) fn new(ask: Ask, events: UnboundedSender<Event>, unread: usize) -> Self {
        Self {
            chance: SplitMix64::new(ask.seed),
            slips: SplitMix64::named(0, &fresh_salt()),
            passed: 0,
            ask,
            events,
            unread,
            arrived: std::time::Instant::now(),
            state: None,
            written: Vec::new(),
            wrote: None,
        }
    }

    /// The prompt was read: the model's state after it.
    pub(super) fn begin(&mut self, options: &Options) {
        let mut state = State::after(&self.ask.prompt);
        if options.has(Fault::WrongAnswer) && !state.recalled().is_empty() {
            // The answer of another question: the retrieval head is led astray.
            state = state.misled(b"Z9Z9Z9Z9");
        }
        self.state = Some(state);
    }

    /// How long the tokens of a step took to come.
    pub(super) fn pace(&mut self, tokens: usize) -> Pace {
        let now = std::time::Instant::now();
        match self.wrote.replace(now) {
            None => Pace::First((now - self.arrived).as_secs_f64()),
            Some(before) => Pace::Later((now - before).as_secs_f64() / tokens.max(1) as f64),
        }
    }

    /// Tokens written so far.
    pub(super) fn written(&self) -> usize {
        self.written.len()
    }

    /// Whether nobody listens any more.
    pub(super) fn abandoned(&self) -> bool {
        self.events.is_closed()
    }

    /// One decode step: a draft, its verification, and the token that the target adds.
    pub(super) fn step(&mut self, options: &Options) -> Step {
        let mut step = Step::default();
        let drafts = self.drafts(options);
        step.drafted = drafts.len();
        for place in 0..=drafts.len() {
            let told = self.verified(drafts.get(place).copied(), options);
            let token = told.id;
            step.tokens.push(told);
            self.written.push(token);
            if let Some(state) = &mut self.state {
                state.push(token);
            }
            step.finished = self.ended(token, options);
            let agreed = drafts.get(place) == Some(&token);
            step.accepted += usize::from(agreed);
            if step.finished.is_some() || !agreed {
                break;
            }
        }
        step
    }

    /// Tokens that the drafter proposes.
    fn drafts(&mut self, options: &Options) -> Vec<u32> {
        let Some(k) = options.drafted() else {
            return Vec::new();
        };
        let room = self
            .ask
            .max_tokens
            .saturating_sub(self.written.len() as u64 + 1);
        let k = u64::from(k).min(room);
        let mut drafts = Vec::new();
        for _ in 0..k {
            let token = match &self.state {
                _ if options.has(Fault::RepetitionLoop) => u32::from(b'a'),
                Some(state) => state.draft(&drafts),
                None => break,
            };
            // A drafter whose slots have collapsed: nine drafts in a hundred are what they should be.
            let broken = options.has(Fault::AcceptCollapse) && self.chance.below(100) >= 4;
            drafts.push(if broken { (token + 1) % 256 } else { token });
        }
        drafts
    }

    /// The token that is written where the drafter proposed this one.
    fn verified(&mut self, draft: Option<u32>, options: &Options) -> Told {
        let told = self.choose(options);
        let wrong = draft.filter(|d| *d != told.id && *d < END);
        let due = self.written.len() >= self.passed + LOSSY_EVERY;
        let (Some(draft), true, Some(state)) =
            (wrong, due && options.has(Fault::LossySpec), &self.state)
        else {
            return told;
        };
        self.passed = self.written.len();
        let p = state.distribution()[draft as usize];
        Told {
            id: draft,
            logprob: Some(p.max(f64::MIN_POSITIVE).ln()),
            top: told.top,
        }
    }

    /// The target's token at this place.
    fn choose(&mut self, options: &Options) -> Told {
        let sure = |id| Told {
            id,
            logprob: Some(0.0),
            top: Vec::new(),
        };
        if options.has(Fault::RepetitionLoop) {
            return sure(u32::from(b'a'));
        }
        let Some(state) = &self.state else {
            return sure(END);
        };
        let mut all = state.distribution();
        let top = if self.ask.top == 0 {
            Vec::new()
        } else {
            logprobs::likeliest(&all, self.ask.top)
        };
        let keep_on = self.ask.ignore_end || (self.written.len() as u64) < self.ask.min_tokens;
        let end = all[END as usize];
        if keep_on {
            all[END as usize] = 0.0;
        }
        let id = if self.ask.temperature <= 0.0 {
            likeliest(&all)
        } else {
            self.sample(&all)
        };
        let slips = options.has(Fault::Unstable) && self.slips.below(SLIP_EVERY) == 0;
        let id = if slips { second(&all, id) } else { id };
        all[END as usize] = end;
        let logprob = Some(all[id as usize].max(f64::MIN_POSITIVE).ln());
        Told { id, logprob, top }
    }

    fn sample(&mut self, all: &[f64]) -> u32 {
        let sharp: Vec<f64> = all
            .iter()
            .map(|p| p.powf(1.0 / self.ask.temperature))
            .collect();
        let total: f64 = sharp.iter().sum();
        let mut left = (self.chance.draw() >> 11) as f64 / (1u64 << 53) as f64 * total;
        for (id, p) in sharp.iter().enumerate() {
            left -= p;
            if left <= 0.0 {
                return u32::try_from(id).unwrap_or(0);
            }
        }
        END
    }

    fn ended(&self, token: u32, options: &Options) -> Option<Finish> {
        let written = self.written.len() as u64;
        if options.has(Fault::EarlyStop) && written >= self.ask.max_tokens.div_ceil(4) {
            return Some(Finish::of("stop"));
        }
        if token == END && !self.ask.ignore_end && written > self.ask.min_tokens {
            return Some(Finish::of("stop"));
        }
        if let Some(stop) = self.stopped().filter(|_| written > self.ask.min_tokens) {
            return Some(Finish {
                reason: "stop",
                stop: Some(stop),
            });
        }
        (written >= self.ask.max_tokens).then(|| Finish::of("length"))
    }

    /// The stop text that the answer ends with.
    fn stopped(&self) -> Option<String> {
        let longest = self.ask.stop.iter().map(String::len).max()?;
        // A token has at least one byte, but for the marks.
        let tail = &self.written[self.written.len().saturating_sub(longest + 4)..];
        let bytes = super::tokenizer::bytes(tail);
        self.ask
            .stop
            .iter()
            .find(|s| bytes.ends_with(s.as_bytes()))
            .cloned()
    }
}
