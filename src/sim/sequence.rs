//! One request in the engine: its prompt, its state, and one decode step of it.

use tokio::sync::mpsc::UnboundedSender;

use super::fault::Fault;
use super::model::{State, likeliest};
use super::options::Options;
use super::tokenizer::END;
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
    /// Tokens of one step, with the natural-log probability of each.
    Tokens(Vec<(u32, f64)>),
    /// The answer ended for this reason (`stop`, `length`).
    Done(&'static str),
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
    written: Vec<u32>,
    told_first: bool,
}

/// What one step did.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Tokens written, with their log probabilities.
    pub(super) tokens: Vec<(u32, f64)>,
    /// Draft tokens proposed.
    pub(super) drafted: usize,
    /// Draft tokens accepted.
    pub(super) accepted: usize,
    /// Why the answer ended, if it did.
    pub(super) finished: Option<&'static str>,
}

impl Sequence {
    /// A request whose prompt has `unread` tokens to be computed.
    pub(super) fn new(ask: Ask, events: UnboundedSender<Event>, unread: usize) -> Self {
        Self {
            chance: SplitMix64::new(ask.seed),
            ask,
            events,
            unread,
            arrived: std::time::Instant::now(),
            state: None,
            written: Vec::new(),
            told_first: false,
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

    /// Seconds from the request's arrival to its first token, told once, by the step that wrote it.
    pub(super) fn ttft(&mut self) -> Option<f64> {
        let first = !self.told_first;
        self.told_first = true;
        first.then(|| self.arrived.elapsed().as_secs_f64())
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
            let (token, logprob) = self.choose(options);
            step.tokens.push((token, logprob));
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

    /// The target's token at this place.
    fn choose(&mut self, options: &Options) -> (u32, f64) {
        if options.has(Fault::RepetitionLoop) {
            return (u32::from(b'a'), 0.0);
        }
        let Some(state) = &self.state else {
            return (END, 0.0);
        };
        let mut all = state.distribution();
        let keep_on = self.ask.ignore_end || (self.written.len() as u64) < self.ask.min_tokens;
        let end = all[END as usize];
        if keep_on {
            all[END as usize] = 0.0;
        }
        let token = if self.ask.temperature <= 0.0 {
            likeliest(&all)
        } else {
            self.sample(&all)
        };
        all[END as usize] = end;
        (token, all[token as usize].max(f64::MIN_POSITIVE).ln())
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

    fn ended(&self, token: u32, options: &Options) -> Option<&'static str> {
        let written = self.written.len() as u64;
        if options.has(Fault::EarlyStop) && written >= self.ask.max_tokens.div_ceil(4) {
            return Some("stop");
        }
        if token == END && !self.ask.ignore_end && written > self.ask.min_tokens {
            return Some("stop");
        }
        if !self.ask.stop.is_empty() {
            let tail = &self.written[self.written.len().saturating_sub(64)..];
            let text = String::from_utf8_lossy(&super::tokenizer::bytes(tail)).into_owned();
            if self.ask.stop.iter().any(|s| text.contains(s.as_str())) {
                return Some("stop");
            }
        }
        (written >= self.ask.max_tokens).then_some("length")
    }
}
