//! The class of a needle's answer, strictly: the value and nothing else, ended by itself.
//!
//! `value in answer` would pass a runaway of 3,000 tokens that merely quotes the value, and an answer that lists every
//! code of the text; both were seen on real builds. So a value inside more text is a class of its own, [`Class::Verbose`],
//! and a value beside a decoy's value is [`Class::Decoy`].

use unicode_normalization::UnicodeNormalization as _;

use super::content::{Thought, content};

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Content.
    pub text: &'a str,
    /// The reasoning channel; empty where there is none.
    pub reasoning: &'a str,
    /// The server's `finish_reason`, where it sent one.
    pub finish_reason: Option<&'a str>,
}

/// Class of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The value and nothing else, ended by itself.
    Exact,
    /// The value of another key.
    Decoy,
    /// Something else.
    Wrong,
    /// The value with words around it.
    Verbose,
    /// Nothing.
    Empty,
    /// Thinking, and no answer.
    ThinkOnly,
    /// Cut at `max_tokens`, whatever it quotes.
    Runaway,
    /// Fewer prompt tokens were read than were sent; told by usage, not by the text.
    Truncated,
    /// The prompt came from a prefix cache; told by usage or counters, not by the text.
    Cached,
    /// There was no whole answer: refused, cut, stalled.
    Infra,
}

impl Class {
    /// Every class, the good one first.
    pub const ALL: [Self; 10] = [
        Self::Exact,
        Self::Decoy,
        Self::Wrong,
        Self::Verbose,
        Self::Empty,
        Self::ThinkOnly,
        Self::Runaway,
        Self::Truncated,
        Self::Cached,
        Self::Infra,
    ];

    /// The word that gates and reports use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Decoy => "decoy",
            Self::Wrong => "wrong",
            Self::Verbose => "verbose",
            Self::Empty => "empty",
            Self::ThinkOnly => "think_only",
            Self::Runaway => "runaway",
            Self::Truncated => "truncated",
            Self::Cached => "cached",
            Self::Infra => "infra",
        }
    }
}

/// What the window knows and the text does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The whole prompt was read anew and a whole answer came.
    Sound,
    /// The prompt was cut.
    Truncated,
    /// The prompt came from a cache.
    Cached,
    /// No whole answer came.
    Failed,
}

/// The class of a delivery and its answer: what happened to the prompt goes before what was said.
pub fn judge(delivery: Delivery, answer: &Answer<'_>, value: &str, decoys: &[&str]) -> Class {
    match delivery {
        Delivery::Failed => Class::Infra,
        Delivery::Truncated => Class::Truncated,
        Delivery::Cached => Class::Cached,
        Delivery::Sound => classify(answer, value, decoys),
    }
}

/// The class of an answer by what it says. Where the server sent no `finish_reason`, the text alone decides.
pub fn classify(answer: &Answer<'_>, value: &str, decoys: &[&str]) -> Class {
    let content = content(answer.text, answer.reasoning);
    if content.said.is_empty() {
        return if content.thought == Thought::None {
            Class::Empty
        } else {
            Class::ThinkOnly
        };
    }
    if answer.finish_reason.is_some_and(is_cut) {
        return Class::Runaway;
    }
    let normal: String = content.said.nfkc().collect();
    let bare = bare(&normal);
    if bare.is_empty() {
        return Class::Empty;
    }
    if bare == value {
        return Class::Exact;
    }
    let names = |value: &&str| words(&normal).any(|w| w == *value);
    match (decoys.iter().any(names), names(&value)) {
        (true, _) => Class::Decoy,
        (false, true) => Class::Verbose,
        (false, false) => Class::Wrong,
    }
}

/// Whether a `finish_reason` says that the answer was cut (`length`; `max_tokens` in some dialects).
pub fn is_cut(finish_reason: &str) -> bool {
    matches!(finish_reason, "length" | "max_tokens" | "limit")
}

/// The text without fences, quotes, emphasis and a closing stop: how it is set, not what it says.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    if let Some(inner) = text.strip_prefix("```").and_then(|t| t.strip_suffix("```")) {
        // A language's name may stand on the fence's own line.
        text = match inner.split_once('\n') {
            Some((name, rest)) if !name.contains(' ') => rest.trim(),
            _ => inner.trim(),
        };
    }
    text.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | '*'
                    | '“'
                    | '”'
                    | '‘'
                    | '’'
                    | '「'
                    | '」'
                    | '『'
                    | '』'
                    | '.'
                    | '。'
                    | '!'
            )
    })
}

/// Runs of ASCII letters and digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "7K3M9QXZ";
    const DECOYS: [&str; 2] = ["A1B2C3D4", "ZZZZ0000"];

    fn of(text: &str) -> Class {
        with(text, "", Some("stop"))
    }

    fn with(text: &str, reasoning: &str, finish_reason: Option<&str>) -> Class {
        classify(
            &Answer {
                text,
                reasoning,
                finish_reason,
            },
            VALUE,
            &DECOYS,
        )
    }

    #[test]
    fn the_value_alone_is_exact_however_it_is_set() {
        for text in [
            "7K3M9QXZ",
            " 7K3M9QXZ.\n",
            "`7K3M9QXZ`",
            "**7K3M9QXZ**",
            "\"7K3M9QXZ\"",
            "「7K3M9QXZ」。",
            "```\n7K3M9QXZ\n```",
            "```text\n7K3M9QXZ\n```",
            "７Ｋ３Ｍ９ＱＸＺ",
            "```7K3M9QXZ```",
            "<think>where?</think>7K3M9QXZ",
        ] {
            assert_eq!(of(text), Class::Exact, "{text}");
        }
        assert_eq!(with("7K3M9QXZ", "it said so", Some("stop")), Class::Exact);
        assert_eq!(with("7K3M9QXZ", "", None), Class::Exact);
        assert_eq!(with("7K3M9QXZ", "", Some("eos")), Class::Exact);
    }

    #[test]
    fn words_around_the_value_are_not_the_value() {
        assert_eq!(of("The special code is 7K3M9QXZ."), Class::Verbose);
        assert_eq!(of("合言葉は7K3M9QXZです。"), Class::Verbose);
    }

    #[test]
    fn near_misses_are_wrong() {
        for text in [
            "7K3M9QXY",
            "7K3M9QX",
            "7K3M9QXZZ",
            "7k3m9qxz",
            "7K3M-9QXZ",
            "I do not know.",
            "わかりません。",
        ] {
            assert_eq!(of(text), Class::Wrong, "{text}");
        }
    }

    #[test]
    fn a_decoy_is_told_apart_also_beside_the_value() {
        assert_eq!(of("A1B2C3D4"), Class::Decoy);
        assert_eq!(of("Either 7K3M9QXZ or ZZZZ0000"), Class::Decoy);
    }

    #[test]
    fn nothing_and_mere_thinking_are_told_apart() {
        assert_eq!(of(""), Class::Empty);
        assert_eq!(of(" \n"), Class::Empty);
        assert_eq!(of("**"), Class::Empty);
        assert_eq!(with("", "let me see", Some("length")), Class::ThinkOnly);
        assert_eq!(
            with("<think>7K3M9QXZ", "", Some("length")),
            Class::ThinkOnly
        );
    }

    #[test]
    fn a_runaway_that_quotes_the_value_is_a_runaway() {
        assert_eq!(
            with("The code is 7K3M9QXZ. Then", "", Some("length")),
            Class::Runaway
        );
        assert_eq!(with("7K3M9QXZ", "", Some("length")), Class::Runaway);
    }

    #[test]
    fn what_happened_to_the_prompt_goes_before_the_answer() {
        let right = Answer {
            text: VALUE,
            reasoning: "",
            finish_reason: Some("stop"),
        };
        let class = |delivery| judge(delivery, &right, VALUE, &DECOYS);
        assert_eq!(class(Delivery::Sound), Class::Exact);
        assert_eq!(class(Delivery::Truncated), Class::Truncated);
        assert_eq!(class(Delivery::Cached), Class::Cached);
        assert_eq!(class(Delivery::Failed), Class::Infra);
    }

    #[test]
    fn every_class_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Class::ALL.iter().map(|c| c.word()).collect();
        assert_eq!(words.len(), Class::ALL.len());
    }
}
