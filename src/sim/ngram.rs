//! An n-gram model over bytes with Witten–Bell back-off.
//!
//! Source: I. H. Witten, T. C. Bell, "The zero-frequency problem", IEEE Transactions on Information Theory 37 (1991).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::tokenizer::VOCABULARY;

/// A context as a number: a digest of its tokens and how many they are. Two contexts with one digest would share their
/// counts; with some hundred thousand of them among 2^64 that does not happen.
type Key = u64;

/// A multiplicative hash: keys are numbers already, and no attacker chooses them.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
}

/// A set or map keyed by numbers.
pub(super) type Numbers<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

/// Longest context.
const LONGEST: usize = 8;

/// Counts after one context.
#[derive(Debug, Clone, Default)]
struct After {
    total: u32,
    next: Vec<(u16, u32)>,
}

/// The model.
#[derive(Debug, Clone)]
pub(super) struct Ngram {
    order: usize,
    contexts: Numbers<After>,
}

/// The last `length` tokens of a context as a key.
fn key(context: &[u32], length: usize) -> Key {
    let tail = &context[context.len() - length..];
    // Multiplier and shift of splitmix64: every bit of a token reaches every bit of the key.
    tail.iter().fold(length as u64 + 1, |key, id| {
        let mixed = (key ^ u64::from(*id)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 31)
    })
}

impl Ngram {
    /// A model that has seen nothing; contexts of at most `order` tokens, [`LONGEST`] at most.
    pub(super) fn new(order: usize) -> Self {
        Self {
            order: order.min(LONGEST),
            contexts: Numbers::default(),
        }
    }

    /// Learns a text.
    pub(super) fn learn(&mut self, ids: &[u32]) {
        for end in 0..ids.len() {
            self.learn_one(&ids[..end], ids[end]);
        }
    }

    /// Learns that this token came after this context.
    pub(super) fn learn_one(&mut self, context: &[u32], id: u32) {
        let token = u16::try_from(id).unwrap_or(u16::MAX);
        for length in 0..=self.order.min(context.len()) {
            let after = self.contexts.entry(key(context, length)).or_default();
            after.total += 1;
            match after.next.iter_mut().find(|(t, _)| *t == token) {
                Some((_, count)) => *count += 1,
                None => after.next.push((token, 1)),
            }
        }
    }

    /// Adds `weight` times the probability of every token after a context; returns the part of the weight that is
    /// spread evenly over the vocabulary, and not yet added.
    ///
    /// Only tokens that were seen are touched: from the longest context on, each gives its share and leaves the rest.
    pub(super) fn add(&self, context: &[u32], weight: f64, into: &mut [f64]) -> f64 {
        let mut known = [None; LONGEST + 1];
        let lengths = 0..=self.order.min(context.len());
        for (length, place) in lengths.zip(&mut known) {
            let Some(after) = self.contexts.get(&key(context, length)) else {
                break;
            };
            *place = Some(after);
        }
        let mut left = weight;
        for after in known.into_iter().rev().flatten() {
            let types = after.next.len() as f64;
            let whole = f64::from(after.total) + types;
            for (token, count) in &after.next {
                into[usize::from(*token)] += left * f64::from(*count) / whole;
            }
            left *= types / whole;
        }
        left
    }

    /// Probability of every token after a context; sums to one.
    pub(super) fn distribution(&self, context: &[u32]) -> Vec<f64> {
        let mut all = vec![0.0; VOCABULARY];
        let even = self.add(context, 1.0, &mut all) / VOCABULARY as f64;
        all.iter_mut().for_each(|p| *p += even);
        all
    }

    /// Natural-log probability of a text.
    pub(super) fn logprob(&self, ids: &[u32]) -> f64 {
        (0..ids.len())
            .map(|end| self.probability(&ids[..end], ids[end]).ln())
            .sum()
    }

    /// Probability of one token after a context.
    pub(super) fn probability(&self, context: &[u32], id: u32) -> f64 {
        let mut p = 1.0 / VOCABULARY as f64;
        for length in 0..=self.order.min(context.len()) {
            let Some(after) = self.contexts.get(&key(context, length)) else {
                break;
            };
            let types = after.next.len() as f64;
            let seen = after
                .next
                .iter()
                .find(|(t, _)| u32::from(*t) == id)
                .map_or(0, |(_, c)| *c);
            p = (f64::from(seen) + types * p) / (f64::from(after.total) + types);
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokenizer::encode;
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_agree_with_the_single_ones() {
        let mut model = Ngram::new(4);
        model.learn(&encode("the cat sat on the mat, the cat ran"));
        for context in ["", "the ", "xyz", "cat "] {
            let context = encode(context);
            let all = model.distribution(&context);
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for id in [97, 116, 255, 256] {
                assert!((all[id as usize] - model.probability(&context, id)).abs() < 1e-12);
            }
        }
    }
}
