//! The search for a prompt of exactly so many tokens, when only the server knows how to count.
//!
//! Token counts are not monotone in characters (BPE merges across what was added), so the search asks for the count of
//! whole texts: first it brackets the number of sentences, then it adds short filler words until nothing is missing.

use std::fmt;

use super::haystack::Language;

/// A text to be counted: so many sentences of the haystack, then this fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Sentences of the haystack.
    pub sentences: usize,
    /// What stands after them, before the question.
    pub fill: String,
}

/// What to do with the text that was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It has exactly the length.
    Exact,
    /// Count this one.
    Try(Attempt),
    /// No text was found.
    Impossible(LengthFault),
}

/// Why no text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthFault {
    /// Needle, decoys, question and template alone are longer.
    TooShort {
        /// Tokens without a haystack.
        least: u64,
        /// Tokens that were asked for.
        target: u64,
    },
    /// The nearest text below differs by some tokens, and no filler closes the gap.
    NoFill {
        /// Tokens of the nearest text.
        nearest: u64,
        /// Tokens that were asked for.
        target: u64,
        /// Texts that were counted.
        attempts: u32,
    },
}

impl fmt::Display for LengthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { least, target } => write!(
                f,
                "a prompt of {target} tokens is shorter than needle, decoys and question alone ({least} tokens); ask for more tokens"
            ),
            Self::NoFill {
                nearest,
                target,
                attempts,
            } => write!(
                f,
                "no text of exactly {target} tokens in {attempts} attempts, the nearest has {nearest}; ask for a few tokens more or less"
            ),
        }
    }
}

impl std::error::Error for LengthFault {}

/// Tokens of a sentence, assumed for the first attempt: what the haystacks have with common tokenizers.
const ASSUMED_SENTENCE: u64 = 32;
/// Missing tokens that filler may close: two sentences. More would be a list of words rather than text.
const MOST_FILL: u64 = 64;
/// Texts counted at most. A healthy tokenizer needs four to eight; each costs the server up to a second at 166k tokens.
const MOST_ATTEMPTS: u32 = 96;
/// Other numbers of sentences to start the fill from when no filler closes the first gap.
const MOST_RESTARTS: u32 = 8;

/// Common words, each one token behind a blank in every large vocabulary and all different, so that no fill repeats
/// itself.
const WORDS: &str = "time day way man year work part place case point home hand room side week month night water money \
story fact book eye job word business issue kind head house service friend father power hour game line end member law \
car city name team minute idea kid body back parent face level office door health person art war history party result \
change morning reason research girl guy moment air teacher force education foot boy age policy music market sense";
/// Characters that are one token each in Japanese vocabularies.
const CHARACTERS: &str = "山川木石日月火水土金空海花草雨雪風雲春夏秋冬朝夜道町村家門窓戸机本紙筆絵歌声色光影音心手足目耳口頭父母兄弟姉妹友人犬猫鳥魚牛馬虫米豆茶";

/// Ways to add one token, tried in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Single characters of Japanese.
    Characters,
    /// Words behind a blank.
    Words,
    /// Letters behind a blank.
    Letters,
    /// Marks.
    Marks,
    /// Letters in a row that no vocabulary joins: one token each for byte tokenizers and small vocabularies.
    Row,
}

const JAPANESE: &[Kind] = &[
    Kind::Characters,
    Kind::Words,
    Kind::Letters,
    Kind::Marks,
    Kind::Row,
];
const OTHERS: &[Kind] = &[Kind::Words, Kind::Letters, Kind::Marks, Kind::Row];

impl Kind {
    /// The unit at a place of the fill.
    fn unit(self, place: usize) -> String {
        let cycle = |text: &str| {
            text.chars()
                .cycle()
                .nth(place % text.chars().count().max(1))
                .map(String::from)
        };
        match self {
            Self::Characters => cycle(CHARACTERS).unwrap_or_default(),
            Self::Words => {
                let number = WORDS.split_whitespace().count();
                WORDS
                    .split_whitespace()
                    .nth(place % number)
                    .map(|w| format!(" {w}"))
                    .unwrap_or_default()
            }
            Self::Letters => cycle("axkrmtbwdsn")
                .map(|c| format!(" {c}"))
                .unwrap_or_default(),
            Self::Marks => cycle(";!?:").unwrap_or_default(),
            Self::Row => cycle("xqzjvkwqjxzvq").unwrap_or_default(),
        }
    }
}

/// The search: hand it the count of each attempt until it says [`Step::Exact`] or [`Step::Impossible`].
#[derive(Debug, Clone)]
pub struct LengthSearch {
    target: u64,
    kinds: &'static [Kind],
    attempt: Attempt,
    attempts: u32,
    restarts: u32,
    /// The most sentences that were seen to fit, with their tokens.
    below: Option<Counted>,
    /// The fewest sentences that were seen to be too many, with their tokens.
    above: Option<Counted>,
    fill: Option<Fill>,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    sentences: usize,
    tokens: u64,
}

/// The state of the fill on a fixed number of sentences.
#[derive(Debug, Clone)]
struct Fill {
    /// Fill that is known to fit.
    text: String,
    /// Tokens with it.
    tokens: u64,
    /// Units that were taken so far.
    taken: usize,
    /// The way now tried.
    kind: usize,
    /// Units of it in the attempt.
    tried: u64,
}

impl LengthSearch {
    /// A search for a prompt of so many tokens.
    pub fn new(target: u64, language: Language) -> Self {
        let guess = usize::try_from(target / ASSUMED_SENTENCE).unwrap_or(usize::MAX / 2);
        Self {
            target,
            kinds: if language == Language::Ja {
                JAPANESE
            } else {
                OTHERS
            },
            attempt: Attempt {
                sentences: guess,
                fill: String::new(),
            },
            attempts: 0,
            restarts: 0,
            below: None,
            above: None,
            fill: None,
        }
    }

    /// The text that is to be counted now.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Texts that were counted so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Takes the count of the attempt and says what comes next.
    pub fn counted(&mut self, tokens: u64) -> Step {
        self.attempts += 1;
        if tokens == self.target {
            return Step::Exact;
        }
        if self.attempts >= MOST_ATTEMPTS {
            return self.no_fill();
        }
        if self.fill.is_some() {
            self.filled(tokens)
        } else {
            self.bracketed(tokens)
        }
    }

    fn bracketed(&mut self, tokens: u64) -> Step {
        let now = Counted {
            sentences: self.attempt.sentences,
            tokens,
        };
        if tokens < self.target {
            // Counts may fall where a sentence more moves a fact: the highest number of sentences wins.
            if self.below.is_none_or(|b| b.sentences < now.sentences) {
                self.below = Some(now);
            }
            if self.target - tokens <= MOST_FILL {
                return self.begin_fill(now);
            }
        } else {
            if now.sentences == 0 {
                return Step::Impossible(LengthFault::TooShort {
                    least: tokens,
                    target: self.target,
                });
            }
            if self.above.is_none_or(|a| a.sentences > now.sentences) {
                self.above = Some(now);
            }
        }
        // A sentence has a token at least: a count that does not grow is not a count.
        if self
            .below
            .is_some_and(|b| b.sentences as u64 >= self.target)
        {
            return self.no_fill();
        }
        match self.between() {
            Some(sentences) => self.try_next(sentences, String::new()),
            // Neighbours: one sentence is longer than the fill may be, so the fill must do it all the same.
            None => match self.below {
                Some(below) => self.begin_fill(below),
                None => self.try_next(0, String::new()),
            },
        }
    }

    /// The number of sentences to try between what fits and what does not; none when they are neighbours.
    fn between(&self) -> Option<usize> {
        let aim = self.target.saturating_sub(MOST_FILL / 2) as f64;
        match (self.below, self.above) {
            (Some(b), Some(a)) if a.sentences <= b.sentences + 1 => None,
            (Some(b), Some(a)) => {
                let slope =
                    (a.tokens as f64 - b.tokens as f64) / (a.sentences - b.sentences) as f64;
                let step = if slope > 0.0 {
                    ((aim - b.tokens as f64) / slope).max(0.0)
                } else {
                    1.0
                };
                Some((b.sentences + step as usize).clamp(b.sentences + 1, a.sentences - 1))
            }
            // From one point, the line through the origin; at least one sentence further, at most four times as far.
            (Some(b), None) => {
                let guess = b.sentences as f64 * aim / b.tokens.max(1) as f64;
                Some((guess as usize).clamp(b.sentences + 1, b.sentences * 4 + 64))
            }
            (None, Some(a)) => {
                let guess = a.sentences as f64 * aim / a.tokens.max(1) as f64;
                Some((guess as usize).min(a.sentences - 1))
            }
            (None, None) => Some(0),
        }
    }

    fn begin_fill(&mut self, from: Counted) -> Step {
        self.attempt.sentences = from.sentences;
        self.fill = Some(Fill {
            text: String::new(),
            tokens: from.tokens,
            taken: 0,
            kind: 0,
            tried: 0,
        });
        self.try_fill(self.target - from.tokens)
    }

    /// Tries so many more units of the present kind.
    fn try_fill(&mut self, units: u64) -> Step {
        let sentences = self.attempt.sentences;
        let Some(fill) = &mut self.fill else {
            return self.no_fill();
        };
        fill.tried = units;
        let kind = self.kinds[fill.kind];
        let mut text = fill.text.clone();
        for place in 0..units {
            text.push_str(&kind.unit(fill.taken + usize::try_from(place).unwrap_or(0)));
        }
        self.try_next(sentences, text)
    }

    fn filled(&mut self, tokens: u64) -> Step {
        let target = self.target;
        let attempt = self.attempt.fill.clone();
        let Some(fill) = &mut self.fill else {
            return self.no_fill();
        };
        if tokens > fill.tokens && tokens < target {
            // Part of the gap is closed.
            fill.text = attempt;
            fill.taken += usize::try_from(fill.tried).unwrap_or(0);
            fill.tokens = tokens;
            return self.try_fill(target - tokens);
        }
        if tokens > target && fill.tried > 1 {
            // A unit costs more than one token: as many as fit at that price, and fewer than before.
            let (gap, cost) = (target - fill.tokens, tokens - fill.tokens);
            let fewer = (fill.tried * gap / cost).clamp(1, fill.tried - 1);
            return self.try_fill(fewer);
        }
        // One unit is already too much, or adds nothing: another way.
        fill.kind += 1;
        if fill.kind < self.kinds.len() {
            let gap = target - fill.tokens;
            return self.try_fill(gap);
        }
        self.restart()
    }

    /// Starts the fill anew from one sentence less.
    fn restart(&mut self) -> Step {
        self.restarts += 1;
        if self.attempt.sentences == 0 || self.restarts > MOST_RESTARTS {
            return self.no_fill();
        }
        let sentences = self.attempt.sentences - 1;
        self.fill = None;
        self.below = None;
        self.above = Some(Counted {
            sentences: sentences + 1,
            tokens: self.target + 1,
        });
        self.try_next(sentences, String::new())
    }

    fn try_next(&mut self, sentences: usize, fill: String) -> Step {
        self.attempt = Attempt { sentences, fill };
        Step::Try(self.attempt.clone())
    }

    fn no_fill(&self) -> Step {
        let nearest = self
            .fill
            .as_ref()
            .map(|f| f.tokens)
            .or(self.below.map(|b| b.tokens))
            .unwrap_or(0);
        Step::Impossible(LengthFault::NoFill {
            nearest,
            target: self.target,
            attempts: self.attempts,
        })
    }
}

#[cfg(test)]
#[path = "length_tests.rs"]
mod tests;
