//! The engine: one loop of steps that serves every running request, paced by deadlines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::counters::{Counters, Counts};
use super::fault::Fault;
use super::logfile::{self, LogFile};
use super::options::{Options, Path};
use super::prefix_cache::PrefixCache;
use super::sequence::{Ask, Event, Pace, Sequence};
use super::tokenizer;
use crate::workload::splitmix::SplitMix64;

/// A hand on the engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    inbox: Sender<Sequence>,
    cache: Arc<std::sync::Mutex<PrefixCache>>,
    options: Arc<Options>,
    counters: Arc<Counters>,
}

/// Prompt tokens that one step may read.
const PREFILL_CHUNK: usize = 4096;
/// How much longer a step takes for each further request: batches are nearly free.
const PER_SEQUENCE: f64 = 0.04;
/// Prompts longer than this are cut by the truncating faults.
const CUT_OVER: usize = 4096;
/// How often somebody else's request comes.
const FOREIGN: Duration = Duration::from_millis(60);
/// Seed of the noise; the noise is the same at every start.
const NOISE: u64 = 41;
/// How often the periodic lines are logged, as vLLM does by default.
const PERIOD: Duration = Duration::from_secs(10);

impl Engine {
    /// Starts the engine's thread; it ends when the last hand is dropped.
    pub(super) fn start(options: Arc<Options>, counters: Arc<Counters>, log: Arc<LogFile>) -> Self {
        let (inbox, asks) = channel();
        let engine = Self {
            inbox,
            cache: Arc::default(),
            options: options.clone(),
            counters: counters.clone(),
        };
        let stepper = Stepper {
            last: counters.read(),
            options,
            counters,
            log,
            asks,
            waiting: VecDeque::new(),
            running: Vec::new(),
            began: Instant::now(),
            foreign: Instant::now(),
            reported: Instant::now(),
            chance: SplitMix64::new(NOISE),
        };
        std::thread::spawn(move || stepper.run());
        engine
    }

    /// Hands a request in; its events come out of the channel.
    pub(super) fn submit(&self, mut ask: Ask) -> UnboundedReceiver<Event> {
        let (events, received) = unbounded_channel();
        let sent = ask.prompt.len();
        let cut = self.options.has(Fault::PromptTruncated)
            || self.options.has(Fault::PromptTruncatedHidden);
        if cut && sent > CUT_OVER {
            // What stands at the front is thrown away, the question at the end is kept.
            ask.prompt.drain(..sent - sent * 2 / 5);
        }
        let salt = ask.salt.clone();
        let mut cached = match self.cache.lock() {
            // A prompt whose logprobs are asked for has to be read whole.
            _ if ask.uncached => 0,
            Ok(mut cache) => cache.take(&ask.prompt, salt.as_deref()),
            Err(_) => 0,
        };
        if self.options.has(Fault::PrefixCache) {
            cached = ask.prompt.len().saturating_sub(1);
        }
        let billed = if self.options.has(Fault::PromptTruncatedHidden) {
            sent
        } else {
            ask.prompt.len()
        };
        self.counters.with(|c| {
            c.prompt += billed as u64;
            c.cached += cached as u64;
            c.queries += if ask.uncached { 0 } else { billed as u64 };
            c.waiting += 1;
        });
        let _ = events.send(Event::Read {
            prompt: billed as u64,
            cached: cached as u64,
        });
        let unread = ask.prompt.len() - cached;
        let _ = self.inbox.send(Sequence::new(ask, events, unread));
        received
    }
}

struct Stepper {
    options: Arc<Options>,
    counters: Arc<Counters>,
    log: Arc<LogFile>,
    asks: Receiver<Sequence>,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    began: Instant,
    foreign: Instant,
    reported: Instant,
    last: Counts,
    chance: SplitMix64,
}

impl Stepper {
    fn run(mut self) {
        let mut deadline = Instant::now();
        loop {
            if !self.receive() {
                return;
            }
            self.admit();
            if self.running.is_empty() {
                continue;
            }
            let now = Instant::now();
            if deadline < now {
                // After a rest the pace begins anew; a step that came late is not caught up.
                deadline = now;
            }
            let took = self.step();
            deadline += took;
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            self.report();
        }
    }

    /// Takes in what has come; waits when there is nothing to do. False when nobody can ask any more.
    fn receive(&mut self) -> bool {
        if self.options.has(Fault::ForeignTraffic) && self.foreign.elapsed() > FOREIGN {
            self.foreign = Instant::now();
            self.stranger();
        }
        loop {
            let idle = self.running.is_empty() && self.waiting.is_empty();
            let wait = if idle {
                Duration::from_millis(20)
            } else {
                Duration::ZERO
            };
            match self.asks.recv_timeout(wait) {
                Ok(sequence) => self.waiting.push_back(sequence),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// A request of somebody else, answered at once as far as the counters tell.
    fn stranger(&mut self) {
        let prompt = tokenizer::render(["Tell me something about the weather."]);
        self.counters.with(|c| {
            c.prompt += prompt.len() as u64;
            c.queries += prompt.len() as u64;
            c.generated += 12;
            c.finished[1] += 1;
        });
    }

    fn admit(&mut self) {
        while self.running.len() < self.options.max_num_seqs {
            let Some(sequence) = self.waiting.pop_front() else {
                break;
            };
            self.running.push(sequence);
        }
        let (running, waiting) = (self.running.len() as u64, self.waiting.len() as u64);
        let held: usize = self
            .running
            .iter()
            .map(|s| s.ask.prompt.len() + s.written())
            .sum();
        self.counters.with(|c| {
            c.running = running;
            c.waiting = waiting;
            c.held = held as u64;
        });
    }

    /// One step of the engine: a chunk of one prompt, and one decode step of every request whose prompt is read.
    fn step(&mut self) -> Duration {
        let mut prefill = 0;
        let mut decoding = 0;
        let options = self.options.clone();
        for sequence in &mut self.running {
            if sequence.unread > 0 {
                let chunk = sequence.unread.min(PREFILL_CHUNK - prefill);
                sequence.unread -= chunk;
                prefill += chunk;
                if sequence.unread == 0 {
                    sequence.begin(&options);
                }
            }
        }
        let mut ended = Vec::new();
        let mut written = 0;
        let mut told = Vec::new();
        for (place, sequence) in self.running.iter_mut().enumerate() {
            if sequence.unread > 0 {
                continue;
            }
            if sequence.abandoned() {
                ended.push(place);
                self.counters.with(|c| c.finished[2] += 1);
                continue;
            }
            decoding += 1;
            let served = serve(sequence, &options, &self.counters);
            written += served.tokens;
            if served.ended {
                ended.push(place);
            }
            told.push((sequence.events.clone(), served.event));
        }
        for place in ended.into_iter().rev() {
            self.running.remove(place);
        }
        if decoding > 0 {
            self.counters.calls(&options);
        }
        self.counters
            .with(|c| c.iteration.add((prefill + written) as f64));
        // Whoever reads an answer's end and then the counters must find the whole step counted.
        for (events, event) in told {
            let _ = events.send(event);
        }
        self.declined(prefill, decoding);
        self.admit();
        self.duration(prefill, decoding)
    }

    /// The lines of a kernel that declines: prefill of 512 rows may, decode must not.
    fn declined(&self, prefill: usize, decoding: usize) {
        if self.options.path != Path::Lna2 || self.options.has(Fault::SilentFallback) {
            return;
        }
        if prefill >= 512 {
            self.log.line(
                "Worker_TP0",
                "DEBUG",
                "exl3.py:260",
                "F3 LNA2 declined: x=(512, 4096)",
            );
        }
        if decoding > 0 && self.options.has(Fault::ActiveButDeclined) {
            let rows = 4 * decoding;
            self.log.line(
                "Worker_TP0",
                "DEBUG",
                "exl3.py:260",
                &format!("F3 LNA2 declined: shared pool is busy x=({rows}, 4096)"),
            );
        }
    }

    fn duration(&mut self, prefill: usize, decoding: usize) -> Duration {
        let own = self.options.taken().step_ms();
        let base = self.options.step_ms.unwrap_or(own);
        let mut ms = prefill as f64 / self.options.prefill_per_ms;
        if decoding > 0 {
            ms += base * (1.0 + PER_SEQUENCE * (decoding - 1) as f64);
        }
        if self.options.has(Fault::Slow) {
            ms *= 1.05;
        }
        if self.options.has(Fault::SlowRank) {
            ms *= 1.3;
        }
        if self.options.has(Fault::Drift) {
            ms *= 1.0 + self.began.elapsed().as_secs_f64() / 100.0;
        }
        if self.options.has(Fault::Noisy) {
            ms *= 2.0 / 3.0 + self.chance.below(1000) as f64 / 1500.0;
            if self.chance.below(64) == 0 {
                ms += 40.0;
            }
        }
        Duration::from_secs_f64(ms / 1000.0)
    }

    /// The periodic lines: what passed since the last ones.
    fn report(&mut self) {
        let seconds = self.reported.elapsed();
        if seconds < PERIOD {
            return;
        }
        self.reported = Instant::now();
        let now = self.counters.read();
        let line = logfile::throughput(&self.last, &now, seconds, self.options.kv_window());
        self.log.line("APIServer", "INFO", "loggers.py:335", &line);
        if let Some(line) = logfile::speculation(&self.last, &now, seconds) {
            self.log.line("APIServer", "INFO", "metrics.py:120", &line);
        }
        self.last = now;
    }
}

/// One decode step of one request; what it counts as.
fn serve(sequence: &mut Sequence, options: &Options, counters: &Counters) -> Served {
    let step = sequence.step(options);
    let (tokens, ended) = (step.tokens.len(), step.finished.is_some());
    let pace = sequence.pace(tokens);
    counters.with(|c| {
        c.generated += tokens as u64;
        match pace {
            Pace::First(seconds) => c.ttft.add(seconds),
            Pace::Later(seconds) => c.itl.add(seconds),
        }
        if step.drafted > 0 {
            c.drafts += 1;
            c.draft_tokens += step.drafted as u64;
            for n in c.accepted.iter_mut().take(step.accepted) {
                *n += 1;
            }
        }
        if let Some(finish) = &step.finished {
            c.finished[usize::from(finish.reason != "stop")] += 1;
            c.e2e.add(sequence.arrived.elapsed().as_secs_f64());
            c.request_prompt.add(sequence.ask.prompt.len() as f64);
            c.request_generated.add(sequence.written() as f64);
        }
    });
    Served {
        tokens,
        ended,
        event: Event::Written {
            tokens: step.tokens,
            finish: step.finished,
        },
    }
}

/// What one decode step of one request came to.
struct Served {
    tokens: usize,
    ended: bool,
    /// To be told to the client when the step is counted.
    event: Event,
}
