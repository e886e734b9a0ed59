//! The model: a Bayesian mixture of three n-gram experts, a memory of its own context, and a retrieval head.
//!
//! The probability of a token is a pure function of the tokens before it, whether it is asked for a prompt's logprobs, by
//! plain decoding or to verify a draft.

use std::sync::LazyLock;

use super::ngram::{Ngram, Numbers};
use super::retrieval;
use super::tokenizer::{self, ASSISTANT, END, USER, VOCABULARY};
use crate::workload::haystack::{Haystack, Language};

/// Longest context of an expert.
const ORDER: usize = 6;
/// Longest context of the drafter: it knows less, so it is often wrong, and how often depends on the language.
const DRAFT_ORDER: usize = 3;
/// Longest context of the memory.
const MEMORY_ORDER: usize = 4;
/// Weight of the memory beside the experts.
const MEMORY: f64 = 0.15;
/// How much of an expert's weight leaks to the others at each token, so that a change of language is followed.
const LEAK: f64 = 0.002;
/// Probability that the retrieval head gives its answer's next token.
const SURE: f64 = 0.999;
/// Tokens of an answer that must not come again in the same order: greedy n-grams would go in a circle.
const NO_REPEAT: usize = 9;
/// What is left of the probability of a token that would repeat.
const REPEATED: f64 = 1e-4;
/// Bytes of text that each expert learns.
const LEARNT: usize = 48 * 1024;
/// Tokens of context that the model reads; older ones reach it over the retrieval head only.
pub(super) const CONTEXT: usize = 8192;

/// The experts.
#[derive(Debug)]
pub(super) struct Model {
    experts: Vec<Ngram>,
    drafter: Ngram,
}

/// The model that every seat of this process shares.
pub(super) static MODEL: LazyLock<Model> = LazyLock::new(Model::train);

/// Texts that are learnt beside the generated ones: our own tasks, and our own source as code.
const EN: &str = include_str!("../../fixtures/workloads/en/tasks.md");
const JA: &str = include_str!("../../fixtures/workloads/ja/tasks.md");
const CODE: &[&str] = &[
    include_str!("retrieval.rs"),
    include_str!("ngram.rs"),
    include_str!("tokenizer.rs"),
    include_str!("../plan/order.rs"),
    include_str!("../seat/launch.rs"),
];

impl Model {
    /// Learns the three languages.
    fn train() -> Self {
        let texts = [
            text(Language::Code, &CODE.join("\n")),
            text(Language::En, EN),
            text(Language::Ja, JA),
        ];
        let mut drafter = Ngram::new(DRAFT_ORDER);
        let experts = texts
            .iter()
            .map(|text| {
                let mut expert = Ngram::new(ORDER);
                for paragraph in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
                    // Each paragraph is an answer: it begins at the mark and ends with the end.
                    let mut ids = vec![ASSISTANT];
                    ids.extend(tokenizer::encode(paragraph));
                    ids.push(END);
                    expert.learn(&ids);
                    drafter.learn(&ids);
                }
                expert
            })
            .collect();
        Self { experts, drafter }
    }
}

/// A language's text: generated sentences in paragraphs, and our own words.
fn text(language: Language, own: &str) -> String {
    let mut text = String::with_capacity(LEARNT + own.len());
    for (place, sentence) in Haystack::new(language, 0x5E_C1).enumerate() {
        if text.len() >= LEARNT {
            break;
        }
        text.push_str(&sentence);
        if place % 8 == 7 {
            text.push_str("\n\n");
        }
    }
    text.push_str("\n\n");
    text.push_str(own);
    text
}

/// Where the model stands after some tokens.
#[derive(Debug, Clone)]
pub(super) struct State {
    context: Vec<u32>,
    weights: Vec<f64>,
    memory: Ngram,
    answered_from: Option<usize>,
    repeats: Numbers<u16>,
    recalled: Vec<u8>,
}

impl State {
    /// The state after a prompt; only its last [`CONTEXT`] tokens are read, and all of it by the retrieval head.
    pub(super) fn after(prompt: &[u32]) -> Self {
        let mut state = Self {
            context: Vec::new(),
            weights: vec![1.0 / 3.0; 3],
            memory: Ngram::new(MEMORY_ORDER),
            answered_from: None,
            repeats: Numbers::default(),
            recalled: Vec::new(),
        };
        let tail = prompt.len().saturating_sub(CONTEXT);
        for place in tail..prompt.len() {
            state.push_in(prompt[place], &prompt[..place]);
        }
        state
    }

    /// Takes the next token.
    pub(super) fn push(&mut self, id: u32) {
        self.push_in(id, &[]);
    }

    fn push_in(&mut self, id: u32, before: &[u32]) {
        // Marks say nothing of the language.
        if id < END {
            self.weigh(id);
        }
        if self.context.len() > 2 {
            let from = self.context.len().saturating_sub(MEMORY_ORDER);
            self.memory.learn_one(&self.context[from..], id);
        }
        self.context.push(id);
        match id {
            ASSISTANT => {
                self.answered_from = Some(self.context.len());
                self.repeats.clear();
                let whole = if before.is_empty() {
                    &self.context[..]
                } else {
                    before
                };
                let question = last_message(whole);
                self.recalled = retrieval::answer(&tokenizer::bytes(question)).unwrap_or_default();
            }
            USER => self.answered_from = None,
            _ => self.remember(),
        }
    }

    /// Bayes: experts that foresaw the token gain weight.
    fn weigh(&mut self, id: u32) {
        let likely: Vec<f64> = MODEL
            .experts
            .iter()
            .map(|e| e.probability(self.tail(ORDER), id))
            .collect();
        let total: f64 = self.weights.iter().zip(&likely).map(|(w, p)| w * p).sum();
        for (weight, p) in self.weights.iter_mut().zip(&likely) {
            *weight = (1.0 - LEAK) * (*weight * p / total) + LEAK / 3.0;
        }
    }

    fn tail(&self, length: usize) -> &[u32] {
        &self.context[self.context.len().saturating_sub(length)..]
    }

    /// Remembers which token came after the last ones of the answer.
    fn remember(&mut self) {
        let Some(from) = self.answered_from else {
            return;
        };
        if self.context.len() - from >= NO_REPEAT {
            let last = self.context.len() - 1;
            let run = run(&self.context[last + 1 - NO_REPEAT..last]);
            *self.repeats.entry(run).or_default() =
                u16::try_from(self.context[last]).unwrap_or(u16::MAX);
        }
    }

    /// Probability of every token that may come next; sums to one.
    pub(super) fn distribution(&self) -> [f64; VOCABULARY] {
        let mut all = [0.0; VOCABULARY];
        let mut one = [0.0; VOCABULARY];
        for (expert, weight) in MODEL.experts.iter().zip(&self.weights) {
            expert.distribution(self.tail(ORDER), &mut one);
            for (p, q) in all.iter_mut().zip(&one) {
                *p += (1.0 - MEMORY) * weight * q;
            }
        }
        self.memory.distribution(self.tail(MEMORY_ORDER), &mut one);
        for (p, q) in all.iter_mut().zip(&one) {
            *p += MEMORY * q;
        }
        self.forbid(&mut all);
        self.recall(&mut all);
        all
    }

    fn forbid(&self, all: &mut [f64; VOCABULARY]) {
        let Some(from) = self.answered_from else {
            return;
        };
        // A mark inside an answer is no text.
        all[USER as usize] *= REPEATED;
        all[ASSISTANT as usize] *= REPEATED;
        if self.context.len() - from >= NO_REPEAT - 1 {
            let tail = self.tail(NO_REPEAT - 1);
            if let Some(token) = self.repeats.get(&run(tail)) {
                all[usize::from(*token)] *= REPEATED;
            }
        }
        let total: f64 = all.iter().sum();
        for p in all.iter_mut() {
            *p /= total;
        }
    }

    fn recall(&self, all: &mut [f64; VOCABULARY]) {
        let Some(from) = self.answered_from.filter(|_| !self.recalled.is_empty()) else {
            return;
        };
        let said = &self.context[from..];
        let matches = said.len() <= self.recalled.len()
            && said
                .iter()
                .zip(&self.recalled)
                .all(|(id, byte)| *id == u32::from(*byte));
        if !matches {
            return;
        }
        let next = self
            .recalled
            .get(said.len())
            .map_or(END, |byte| u32::from(*byte));
        for p in all.iter_mut() {
            *p *= 1.0 - SURE;
        }
        all[next as usize] += SURE;
    }

    /// What the drafter takes for the next token.
    pub(super) fn draft(&self, ahead: &[u32]) -> u32 {
        let mut context: Vec<u32> = self.tail(DRAFT_ORDER).to_vec();
        context.extend(ahead);
        let tail = &context[context.len().saturating_sub(DRAFT_ORDER)..];
        let mut all = [0.0; VOCABULARY];
        MODEL.drafter.distribution(tail, &mut all);
        likeliest(&all)
    }

    /// The same state with another value in the retrieval head.
    pub(super) fn misled(mut self, value: &[u8]) -> Self {
        self.recalled = value.to_vec();
        self
    }

    /// The value that the retrieval head would give, if it found one.
    pub(super) fn recalled(&self) -> &[u8] {
        &self.recalled
    }
}

/// The tokens of the last message, its mark not among them.
fn last_message(ids: &[u32]) -> &[u32] {
    let from = ids.iter().rposition(|id| *id == USER).map_or(0, |n| n + 1);
    &ids[from..]
}

fn run(ids: &[u32]) -> u64 {
    ids.iter().fold(0xCBF2_9CE4_8422_2325, |h, id| {
        (h ^ u64::from(*id)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The likeliest token; of equals the first.
pub(super) fn likeliest(all: &[f64; VOCABULARY]) -> u32 {
    let mut best = 0;
    for (id, p) in all.iter().enumerate() {
        if *p > all[best] {
            best = id;
        }
    }
    u32::try_from(best).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_sums_to_one_everywhere() {
        let mut state = State::after(&tokenizer::render(["Write about rivers. What is it?"]));
        for _ in 0..40 {
            let all = state.distribution();
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            state.push(likeliest(&all));
        }
    }

    #[test]
    fn the_state_depends_on_the_tokens_alone() {
        let ids = tokenizer::render(["Explain a lock in Rust."]);
        let mut grown = State::after(&ids[..5]);
        for id in &ids[5..] {
            grown.push(*id);
        }
        assert_eq!(grown.distribution(), State::after(&ids).distribution());
    }
}
