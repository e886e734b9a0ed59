//! The topic: which learnt answers are nearest to a question. The model leans on them while it answers.

use std::collections::HashSet;

use super::ngram::{Ngram, Numbers};

/// Tokens of a run by which question and answer are compared: about a word's stem.
const RUN: usize = 5;
/// Answers that the model leans on.
const NEAREST: usize = 2;

/// The learnt answers, and where each run of tokens occurs.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    answers: Vec<Leaf>,
    places: Numbers<Vec<usize>>,
}

#[derive(Debug)]
struct Leaf {
    ids: Vec<u32>,
    language: usize,
    runs: usize,
}

impl Shelf {
    /// Puts an answer of a language on the shelf.
    pub(super) fn put(&mut self, language: usize, ids: Vec<u32>) {
        let runs = runs(&ids);
        for run in &runs {
            self.places
                .entry(*run)
                .or_default()
                .push(self.answers.len());
        }
        let runs = runs.len();
        self.answers.push(Leaf {
            ids,
            language,
            runs,
        });
    }

    /// A model of the answers nearest to a question; `wanted` weighs the languages.
    pub(super) fn near(&self, question: &[u32], wanted: &[f64], order: usize) -> Ngram {
        let mut scores = vec![0.0; self.answers.len()];
        let all = self.answers.len() as f64;
        for run in runs(question) {
            let Some(places) = self.places.get(&run) else {
                continue;
            };
            // A run that stands in few answers says more.
            let rare = (all / places.len() as f64).ln();
            for place in places {
                scores[*place] += rare;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores
            .into_iter()
            .zip(&self.answers)
            .map(|(score, leaf)| {
                // Long answers hold more runs by chance.
                (score + 1.0) / (leaf.runs as f64 + 1.0).powf(0.35) * wanted[leaf.language]
            })
            .enumerate()
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut topic = Ngram::new(order);
        for (place, _) in ranked.into_iter().take(NEAREST) {
            topic.learn(&self.answers[place].ids);
        }
        topic
    }
}

/// The runs of tokens that stand in a text, in order of their first place.
fn runs(ids: &[u32]) -> Vec<u64> {
    let mut seen = HashSet::new();
    ids.windows(RUN)
        .map(|run| {
            run.iter().fold(RUN as u64, |h, id| {
                h.wrapping_mul(0x0100_0000_01B3) ^ u64::from(*id)
            })
        })
        .filter(|run| seen.insert(*run))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tokenizer::encode;
    use super::*;

    #[test]
    fn the_answer_that_shares_words_with_the_question_is_nearest() {
        let mut shelf = Shelf::default();
        for text in [
            "bread and butter",
            "a lighthouse on the cliff",
            "rails and sleepers",
            "a cache of entries",
        ] {
            shelf.put(0, encode(text));
        }
        let topic = shelf.near(&encode("who keeps the lighthouse?"), &[1.0], 6);
        assert!(topic.probability(&encode("lighth"), u32::from(b'o')) > 0.4);
    }

    #[test]
    fn an_unwanted_language_is_not_leant_on() {
        let mut shelf = Shelf::default();
        for _ in 0..3 {
            shelf.put(0, encode("nothing in common"));
        }
        shelf.put(1, encode("a lighthouse on the cliff"));
        let topic = shelf.near(&encode("who keeps the lighthouse?"), &[1.0, 1e-6], 6);
        assert!(topic.probability(&encode("lighth"), u32::from(b'o')) < 0.1);
    }
}
