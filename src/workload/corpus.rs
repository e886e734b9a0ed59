//! Texts whose perplexity is taken: held-out prose and code of our own, cut into windows of token ids.

use std::ops::Range;

use super::sha256;
use super::splitmix::SplitMix64;

/// A text whose perplexity is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// Name.
    pub name: String,
    /// Text.
    pub text: String,
    /// SHA-256 of the text in hex.
    pub sha256: String,
}

/// A built-in text: a row is all that another one takes.
struct BuiltIn {
    name: &'static str,
    text: &'static str,
}

static BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "code",
        text: include_str!("../../fixtures/workloads/ppl/code.txt"),
    },
    BuiltIn {
        name: "en",
        text: include_str!("../../fixtures/workloads/ppl/en.txt"),
    },
    BuiltIn {
        name: "ja",
        text: include_str!("../../fixtures/workloads/ppl/ja.txt"),
    },
];

/// Names of the built-in texts.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|b| b.name).collect()
}

impl Corpus {
    /// The built-in text of this name.
    pub fn named(name: &str) -> Option<Self> {
        BUILT_IN
            .iter()
            .find(|b| b.name == name)
            .map(|b| Self::of_text(b.name, b.text))
    }

    /// A text of the caller's.
    pub fn of_text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            sha256: sha256(text),
        }
    }
}

/// Windows of `length` tokens, each `stride` tokens after the one before; a rest shorter than `length` is left out, so
/// that all windows weigh the same. A text shorter than one window is one window. No window has fewer than two tokens,
/// because the first of a window has no logprob.
pub fn windows(tokens: usize, length: usize, stride: usize) -> Vec<Range<usize>> {
    let length = length.max(2);
    if tokens < 2 {
        return Vec::new();
    }
    if tokens < length {
        return vec![Range {
            start: 0,
            end: tokens,
        }];
    }
    (0..=tokens - length)
        .step_by(stride.max(1))
        .map(|start| start..start + length)
        .collect()
}

/// The same ids in an order drawn from the seed, the first kept in its place: it is the explicit prefix and is not scored.
/// A scorer that reads these tokens in this order must find them far less likely.
pub fn shuffled(ids: &[u32], seed: u64) -> Vec<u32> {
    let mut ids = ids.to_vec();
    if let Some(rest) = ids.get_mut(1..) {
        SplitMix64::named(seed, "shuffled").shuffle(rest);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_text_is_long_enough_and_has_its_hash() {
        for name in names() {
            let corpus = Corpus::named(name).expect("a built-in text");
            assert!(
                corpus.text.len() >= 8_000,
                "{name}: {} bytes",
                corpus.text.len()
            );
            assert_eq!(corpus.sha256.len(), 64);
        }
        assert_eq!(Corpus::named("fr"), None);
        assert_eq!(
            Corpus::of_text("x", "").sha256,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn no_built_in_text_repeats_itself() {
        for name in names() {
            let corpus = Corpus::named(name).expect("a built-in text");
            let units: Vec<String> = match name {
                "ja" => corpus
                    .text
                    .chars()
                    .filter(|c| !c.is_whitespace())
                    .map(String::from)
                    .collect(),
                _ => corpus.text.split_whitespace().map(str::to_owned).collect(),
            };
            let length = if name == "ja" { 24 } else { 12 };
            let mut seen = std::collections::HashSet::new();
            let repeated = units.windows(length).find(|w| !seen.insert(*w));
            assert_eq!(repeated, None, "{name}");
        }
    }

    #[test]
    fn windows_are_equally_long_and_cover_from_the_front() {
        assert_eq!(windows(10, 4, 4), [0..4, 4..8]);
        assert_eq!(windows(10, 4, 3), [0..4, 3..7, 6..10]);
        assert_eq!(windows(4, 4, 4).len(), 1);
        assert_eq!(windows(3, 4, 4).len(), 1);
        assert!(windows(1, 4, 4).is_empty() && windows(0, 4, 4).is_empty());
        assert_eq!(windows(5, 0, 0).first(), Some(&(0..2)));
    }

    #[test]
    fn shuffling_keeps_the_prefix_and_every_token() {
        let ids: Vec<u32> = (0..100).collect();
        let other = shuffled(&ids, 1);
        assert_eq!(other[0], 0);
        assert_ne!(other, ids);
        assert_eq!(other, shuffled(&ids, 1));
        assert_ne!(other, shuffled(&ids, 2));
        let mut sorted = other;
        sorted.sort_unstable();
        assert_eq!(sorted, ids);
        assert!(shuffled(&[], 1).is_empty());
        assert_eq!(shuffled(&[5], 1), [5]);
    }
}
