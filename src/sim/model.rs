//! The model: a Bayesian mixture of three n-gram experts, a memory of its own context, and a retrieval head.
//!
//! The probability of a token is a pure function of the tokens before it, whether it is asked for a prompt's logprobs, by
//! plain decoding or to verify a draft.

use std::sync::LazyLock;

use super::ngram::{Ngram, Numbers};
use super::retrieval;
use super::texts::{self, Lesson};
use super::tokenizer::{self, ASSISTANT, CHARACTERS_FROM, END, USER, VOCABULARY};
use super::topic::Shelf;

/// Longest context of an expert.
const ORDER: usize = 7;
/// Longest context of the drafter.
const DRAFT_ORDER: usize = 6;
/// Of so many answers the drafter has seen some, how many depends on the language.
const DRAFT_OF: usize = 8;
/// Longest context of the memory.
const MEMORY_ORDER: usize = 4;
/// Weight of the memory beside the experts.
const MEMORY: f64 = 0.15;
/// Weight of the answers nearest to the question.
const TOPIC: f64 = 0.6;
/// How much of an expert's weight leaks to the others at each token, so that a change of language is followed.
const LEAK: f64 = 1e-5;
/// Probability that the retrieval head gives its answer's next token.
const SURE: f64 = 0.999;
/// Tokens of an answer that are looked at to see whether it has been here before: greedy n-grams would go in a circle.
const TURNING: usize = 8;
/// What is left, each time anew, of the probability of going the way that was gone before.
const FADED: f64 = 0.2;
/// What is left of the probability of a mark inside an answer.
const MISPLACED: f64 = 1e-4;
/// Longest context by which tasks are told apart.
const TASK_ORDER: usize = 4;
/// Tokens at the end of a question that tell what is asked for; what stands before may be a haystack.
const QUESTION: usize = 600;
/// Least weight of an expert at the beginning of an answer: it can still be won back by what is written.
const LEAST: f64 = 1e-5;
/// Tokens of context that the model reads; older ones reach it over the retrieval head only.
pub(super) const CONTEXT: usize = 8192;

/// What is known of one language.
#[derive(Debug)]
struct Expert {
    answers: Ngram,
    tasks: Ngram,
}

/// The experts.
#[derive(Debug)]
pub(super) struct Model {
    experts: Vec<Expert>,
    shelf: Shelf,
    drafter: Ngram,
}

/// The model that every seat of this process shares.
pub(super) static MODEL: LazyLock<Model> = LazyLock::new(Model::train);

impl Model {
    /// Learns the three languages.
    fn train() -> Self {
        let mut model = Self {
            experts: Vec::new(),
            shelf: Shelf::default(),
            drafter: Ngram::new(DRAFT_ORDER),
        };
        for (language, lesson) in texts::lessons().iter().enumerate() {
            model.learn(language, lesson);
        }
        model
    }

    fn learn(&mut self, language: usize, lesson: &Lesson) {
        let mut answers = Ngram::new(ORDER);
        for (place, answer) in lesson.answers.iter().enumerate() {
            // An answer begins at the mark and ends with the end.
            let mut ids = vec![ASSISTANT];
            ids.extend(tokenizer::encode(answer));
            ids.push(END);
            answers.learn(&ids);
            if place % DRAFT_OF < lesson.drafted {
                self.drafter.learn(&ids);
            }
            self.shelf.put(language, ids);
        }
        let mut tasks = Ngram::new(TASK_ORDER);
        tasks.learn(&tokenizer::encode(lesson.tasks));
        self.experts.push(Expert { answers, tasks });
    }

    /// How much each expert is to say in the answer to a question: Bayes over the tasks that each has seen.
    fn asked_for(&self, question: &[u32]) -> Vec<f64> {
        let question = question_end(question);
        let nats: Vec<f64> = self
            .experts
            .iter()
            .map(|e| e.tasks.logprob(question))
            .collect();
        let best = nats.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = nats.iter().map(|n| (n - best).exp().max(LEAST)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        weights
    }
}

/// Where the model stands after some tokens.
#[derive(Debug, Clone)]
pub(super) struct State {
    context: Vec<u32>,
    weights: Vec<f64>,
    memory: Ngram,
    topic: Ngram,
    answered_from: Option<usize>,
    turns: Numbers<Vec<(u32, i32)>>,
    recalled: Vec<u8>,
}

impl State {
    /// The state after a prompt; only its last [`CONTEXT`] tokens are read, and all of it by the retrieval head.
    pub(super) fn after(prompt: &[u32]) -> Self {
        let mut state = Self {
            context: Vec::new(),
            weights: vec![1.0 / 3.0; 3],
            memory: Ngram::new(MEMORY_ORDER),
            topic: Ngram::new(ORDER),
            answered_from: None,
            turns: Numbers::default(),
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
        // Marks say nothing of the language, and what the model says itself is no evidence.
        if self.answered_from.is_none() && !(END..CHARACTERS_FROM).contains(&id) {
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
                self.turns.clear();
                let whole = if before.is_empty() {
                    &self.context[..]
                } else {
                    before
                };
                let question = last_message(whole);
                self.weights = MODEL.asked_for(question);
                self.topic = MODEL
                    .shelf
                    .near(question_end(question), &self.weights, ORDER);
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
            .map(|e| e.answers.probability(self.tail(ORDER), id))
            .collect();
        let total: f64 = self.weights.iter().zip(&likely).map(|(w, p)| w * p).sum();
        for (weight, p) in self.weights.iter_mut().zip(&likely) {
            *weight = (1.0 - LEAK) * (*weight * p / total) + LEAK / 3.0;
        }
    }

    fn tail(&self, length: usize) -> &[u32] {
        &self.context[self.context.len().saturating_sub(length)..]
    }

    /// Remembers which way the answer went from here.
    fn remember(&mut self) {
        let Some(from) = self.answered_from else {
            return;
        };
        let last = self.context.len() - 1;
        if last - from < TURNING {
            return;
        }
        let ways = self
            .turns
            .entry(run(&self.context[last - TURNING..last]))
            .or_default();
        let token = self.context[last];
        match ways.iter_mut().find(|(t, _)| *t == token) {
            Some((_, times)) => *times += 1,
            None => ways.push((token, 1)),
        }
    }

    /// Probability of every token that may come next; sums to one.
    pub(super) fn distribution(&self) -> Vec<f64> {
        let mut all = vec![0.0; VOCABULARY];
        let mut even = self.memory.add(self.tail(MEMORY_ORDER), MEMORY, &mut all);
        let mut rest = 1.0 - MEMORY;
        if self.answered_from.is_some() {
            rest -= TOPIC;
            even += self.topic.add(self.tail(ORDER), TOPIC, &mut all);
        }
        for (expert, weight) in MODEL.experts.iter().zip(&self.weights) {
            even += expert
                .answers
                .add(self.tail(ORDER), rest * weight, &mut all);
        }
        even /= VOCABULARY as f64;
        all.iter_mut().for_each(|p| *p += even);
        self.forbid(&mut all);
        self.recall(&mut all);
        all
    }

    fn forbid(&self, all: &mut [f64]) {
        let Some(from) = self.answered_from else {
            return;
        };
        // A mark inside an answer is no text.
        all[USER as usize] *= MISPLACED;
        all[ASSISTANT as usize] *= MISPLACED;
        if self.context.len() - from >= TURNING {
            let ways = self.turns.get(&run(self.tail(TURNING)));
            for (token, times) in ways.into_iter().flatten() {
                all[*token as usize] *= FADED.powi(*times);
            }
        }
        let total: f64 = all.iter().sum();
        for p in all.iter_mut() {
            *p /= total;
        }
    }

    fn recall(&self, all: &mut [f64]) {
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
        likeliest(&MODEL.drafter.distribution(tail))
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

/// The end of a question, where it says what it wants.
fn question_end(question: &[u32]) -> &[u32] {
    &question[question.len().saturating_sub(QUESTION)..]
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
pub(super) fn likeliest(all: &[f64]) -> u32 {
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
