//! What kinds that hold answers against each other share: what is compared, and how far two answers go together.

use crate::evidence::exchange::{Exchange, TEXT_LIMIT};
use crate::evidence::window::Window;
use crate::quality::agreement::{
    Agreement, End, divergence, hazard, in_characters, in_tokens, spread,
};

/// What answers are compared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Token ids, as the server returned them.
    Tokens,
    /// Characters of reasoning and content.
    Characters,
}

impl Measure {
    /// Tokens where every answer came with its ids, characters otherwise: half and half would compare two things.
    pub(super) fn of<'a>(answers: impl IntoIterator<Item = &'a Exchange>) -> Self {
        if answers
            .into_iter()
            .filter(|e| e.is_complete())
            .all(|e| e.token_ids.is_some())
        {
            Self::Tokens
        } else {
            Self::Characters
        }
    }

    /// How far two answers agree.
    pub(super) fn agreement(self, left: &Exchange, right: &Exchange) -> Agreement {
        if let (Self::Tokens, Some(left), Some(right)) = (self, &left.token_ids, &right.token_ids) {
            return in_tokens(left, right);
        }
        let found = in_characters(&words(left), &words(right));
        // Evidence keeps the beginning of a long answer and the digest of all of it.
        let differ_later = found.end == End::Equal && left.text_sha256 != right.text_sha256;
        if differ_later && left.text_bytes.max(right.text_bytes) > TEXT_LIMIT as u64 {
            return Agreement {
                end: End::Diverged,
                ..found
            };
        }
        found
    }

    /// How long an answer is.
    pub(super) fn length(self, answer: &Exchange) -> usize {
        match (self, &answer.token_ids) {
            (Self::Tokens, Some(ids)) => ids.len(),
            _ => words(answer).chars().count(),
        }
    }

    /// Common beginning over the longer answer, 0 to 1; absent when both are empty.
    pub(super) fn share(self, left: &Exchange, right: &Exchange) -> Option<f64> {
        let longest = self.length(left).max(self.length(right));
        (longest > 0).then(|| self.agreement(left, right).common as f64 / longest as f64)
    }

    /// The unit, for sentences.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Characters => "characters",
        }
    }

    /// The unit, for Japanese sentences.
    pub(super) fn word_ja(self) -> &'static str {
        match self {
            Self::Tokens => "トークン",
            Self::Characters => "文字",
        }
    }

    /// What was compared, for a note.
    pub(super) fn note(self) -> String {
        match self {
            Self::Tokens => "answers are compared by token id".into(),
            Self::Characters => {
                "answers are compared by character: not every answer came with token ids".into()
            }
        }
    }
}

/// Everything that an answer says, reasoning first.
pub(super) fn words(answer: &Exchange) -> String {
    format!("{}{}", answer.reasoning, answer.text)
}

/// Where two answers part, for a note; absent when their words are equal.
pub(super) fn parting(left: &Exchange, right: &Exchange) -> Option<String> {
    let found = divergence(&words(left), &words(right))?;
    Some(format!(
        "{} parts at character {}: …{:?} goes on with {:?} and with {:?}",
        left.prompt, found.at, found.before, found.left, found.right
    ))
}

/// The answers of one window beside those of another.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Id of the one window.
    pub(super) window: String,
    /// Share of each pair.
    pub(super) shares: Vec<f64>,
    /// Each pair that is not empty on both sides.
    pub(super) agreements: Vec<Agreement>,
    /// The first pair that parts, told.
    pub(super) parting: Option<String>,
}

impl Compared {
    /// Compares whole answers to the same prompts.
    pub(super) fn of(left: &Window, right: &Window, measure: Measure) -> Self {
        let mut compared = Self {
            window: left.id.clone(),
            ..Self::default()
        };
        for (ours, theirs) in pairs(left, right) {
            let Some(share) = measure.share(ours, theirs) else {
                continue;
            };
            let agreement = measure.agreement(ours, theirs);
            compared.shares.push(share);
            compared.agreements.push(agreement);
            if agreement.end != End::Equal && compared.parting.is_none() {
                compared.parting = parting(ours, theirs).map(|told| {
                    format!(
                        "{told} ({} / {}, {} {} in common)",
                        left.id,
                        right.id,
                        agreement.common,
                        measure.word()
                    )
                });
            }
        }
        compared
    }

    /// Mean share over the pairs; absent without pairs.
    pub(super) fn share(&self) -> Option<f64> {
        (!self.shares.is_empty())
            .then(|| self.shares.iter().sum::<f64>() / self.shares.len() as f64)
    }

    /// Rate of divergence over the pairs; absent without pairs.
    pub(super) fn hazard(&self) -> Option<f64> {
        hazard(&self.agreements)
    }

    /// Median common beginning; absent without pairs.
    pub(super) fn median(&self) -> Option<f64> {
        spread(&self.agreements).map(|s| s.median)
    }
}

/// Whole answers to the same prompts.
pub(super) fn pairs<'a>(
    left: &'a Window,
    right: &'a Window,
) -> impl Iterator<Item = (&'a Exchange, &'a Exchange)> {
    left.exchanges
        .iter()
        .filter(|e| e.is_complete())
        .filter_map(|ours| {
            let theirs = right
                .exchanges
                .iter()
                .find(|e| e.is_complete() && e.prompt == ours.prompt)?;
            Some((ours, theirs))
        })
}

#[cfg(test)]
mod tests {
    use super::super::handmade::answer;
    use super::*;

    #[test]
    fn ids_count_only_where_every_answer_has_them() {
        let with = answer("en/0", "ab", Some(&[1, 2]));
        let without = answer("en/0", "ab", None);
        assert_eq!(Measure::of([&with, &with]), Measure::Tokens);
        assert_eq!(Measure::of([&with, &without]), Measure::Characters);
    }

    #[test]
    fn the_share_is_of_the_longer_answer() {
        let long = answer("en/0", "abcd", Some(&[1, 2, 3, 4]));
        let short = answer("en/0", "a", Some(&[1]));
        assert_eq!(Measure::Tokens.share(&long, &short), Some(0.25));
        let empty = answer("en/0", "", Some(&[]));
        assert_eq!(Measure::Tokens.share(&empty, &empty), None);
    }

    #[test]
    fn answers_that_differ_behind_what_was_kept_are_not_equal() {
        let mut left = answer("en/0", "same", None);
        let mut right = left.clone();
        (left.text_bytes, right.text_bytes) = (100_000, 100_000);
        right.text_sha256 = "other".into();
        assert_eq!(
            Measure::Characters.agreement(&left, &right).end,
            End::Diverged
        );
    }
}
