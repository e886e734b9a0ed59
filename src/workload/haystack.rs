//! Haystacks: filler text without end that nobody has memorised and that never repeats itself.
//!
//! Repeats would make sparse attention and n-gram drafters easy, so no 12 words in a row come twice (for Japanese, which
//! has no blanks, no 24 characters: about twelve morphemes). A sentence that would repeat some is drawn again.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

use super::grammar::Grammar;
use super::splitmix::SplitMix64;

/// Language of a haystack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English prose.
    En,
    /// Japanese prose.
    Ja,
    /// Source code of several languages.
    Code,
}

/// A language: a row is all that another one takes.
struct Row {
    language: Language,
    name: &'static str,
    grammar: &'static str,
    /// Sentences of a paragraph on average; 0: the grammar ends its own lines.
    paragraph: usize,
    /// What stands between two sentences.
    between: &'static str,
    /// Units in a row that never come twice: words, or characters where there are no blanks.
    unrepeated: usize,
}

static ROWS: &[Row] = &[
    Row {
        language: Language::En,
        name: "en",
        grammar: include_str!("../../fixtures/workloads/haystack/en.txt"),
        paragraph: 6,
        between: " ",
        unrepeated: 12,
    },
    Row {
        language: Language::Ja,
        name: "ja",
        grammar: include_str!("../../fixtures/workloads/haystack/ja.txt"),
        paragraph: 6,
        between: "",
        unrepeated: 24,
    },
    Row {
        language: Language::Code,
        name: "code",
        grammar: include_str!("../../fixtures/workloads/haystack/code.txt"),
        paragraph: 0,
        between: "",
        unrepeated: 12,
    },
];

/// Draws of one sentence at most: a repeat is rarer than one sentence in ten, so that 64 in a row are never seen.
const DRAWS: u32 = 64;

/// Multiplier of the rolling digest: odd and well mixed (the golden ratio in 64 bits).
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Language {
    /// Its name, as gates write it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    fn row(self) -> &'static Row {
        // The table names every variant; a test holds it.
        ROWS.iter().find(|r| r.language == self).unwrap_or(&ROWS[0])
    }
}

/// A name that is no language of haystacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = ROWS.iter().map(|r| format!("`{}`", r.name)).collect();
        write!(
            f,
            "unknown language `{}`; one of {}",
            self.0,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownLanguage {}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        let row = ROWS.iter().find(|r| r.name == name);
        row.map(|r| r.language)
            .ok_or_else(|| UnknownLanguage(name.to_owned()))
    }
}

/// Sentences without end, each with what stands after it, so that they can be put in a row as they are.
///
/// It remembers a digest of every run of 12 words: about 16 bytes a word, 3 MB for a prompt of 166k tokens.
#[derive(Debug)]
pub struct Haystack {
    row: &'static Row,
    grammar: Grammar,
    chance: SplitMix64,
    seen: HashSet<u64, BuildHasherDefault<Digest>>,
    runs: Runs,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Haystack {
    /// The haystack of a language that belongs to this seed.
    pub fn new(language: Language, seed: u64) -> Self {
        let row = language.row();
        Self {
            row,
            grammar: Grammar::read(row.grammar),
            chance: SplitMix64::named(seed, row.name),
            seen: HashSet::default(),
            runs: Runs::new(row.unrepeated),
        }
    }

    /// Takes the sentence in if none of its runs has come before.
    fn admit(&mut self, sentence: &str) -> bool {
        let mut runs = self.runs.clone();
        let fresh: Vec<u64> = units(self.row.language, sentence)
            .filter_map(|unit| runs.push(unit))
            .collect();
        if fresh.iter().any(|digest| self.seen.contains(digest)) {
            return false;
        }
        let before = self.seen.len();
        self.seen.extend(&fresh);
        if self.seen.len() - before < fresh.len() {
            // The sentence repeats itself; its digests stay, which only makes the rest stricter.
            return false;
        }
        self.runs = runs;
        true
    }

    fn draw(&mut self) -> String {
        let mut sentence = String::new();
        self.grammar.sentence(&mut self.chance, &mut sentence);
        // A name with its trade ends in a comma; at the end of a clause the stop swallows it.
        for (double, single) in [
            (",.", "."),
            (",,", ","),
            (",;", ";"),
            (",:", ":"),
            (",\"", "\""),
        ] {
            if sentence.contains(double) {
                sentence = sentence.replace(double, single);
            }
        }
        match self.row.paragraph {
            0 => {}
            mean if self.chance.below(mean) == 0 => sentence.push_str("\n\n"),
            _ => sentence.push_str(self.row.between),
        }
        sentence
    }
}

impl Iterator for Haystack {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut sentence = self.draw();
        for _ in 0..DRAWS {
            if self.admit(&sentence) {
                break;
            }
            sentence = self.draw();
        }
        Some(sentence)
    }
}

/// Digests of the units of a text.
fn units(language: Language, text: &str) -> Box<dyn Iterator<Item = u64> + '_> {
    match language {
        Language::Ja => Box::new(
            text.chars()
                .filter(|c| !c.is_whitespace())
                .map(|c| mix(u64::from(c))),
        ),
        Language::En | Language::Code => Box::new(text.split_whitespace().map(|word| {
            word.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
                (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
            })
        })),
    }
}

/// Digests of the last so many units, moved along by one unit at a time (Rabin–Karp).
#[derive(Debug, Clone)]
struct Runs {
    length: usize,
    /// Weight of the unit that leaves.
    oldest: u64,
    tail: VecDeque<u64>,
    digest: u64,
}

impl Runs {
    fn new(length: usize) -> Self {
        let oldest = (1..length).fold(1_u64, |power, _| power.wrapping_mul(BASE));
        Self {
            length,
            oldest,
            tail: VecDeque::with_capacity(length + 1),
            digest: 0,
        }
    }

    /// Takes a unit in; the digest of the run that it ends, once there is a whole one.
    fn push(&mut self, unit: u64) -> Option<u64> {
        if self.tail.len() == self.length {
            let left = self.tail.pop_front().unwrap_or(0);
            self.digest = self.digest.wrapping_sub(left.wrapping_mul(self.oldest));
        }
        self.tail.push_back(unit);
        self.digest = self.digest.wrapping_mul(BASE).wrapping_add(unit);
        (self.tail.len() == self.length).then(|| mix(self.digest))
    }
}

/// Takes a digest as it is: it is mixed already.
#[derive(Debug, Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0.rotate_left(8) ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }
}

fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 3] = [Language::En, Language::Ja, Language::Code];

    fn text(language: Language, seed: u64, bytes: usize) -> String {
        let mut text = String::new();
        for sentence in Haystack::new(language, seed) {
            text.push_str(&sentence);
            if text.len() >= bytes {
                break;
            }
        }
        text
    }

    /// The honest way: the runs themselves, not digests.
    fn repeated<'a>(units: &[&'a str], length: usize) -> Option<Vec<&'a str>> {
        let mut seen = HashSet::new();
        units
            .windows(length)
            .find(|w| !seen.insert(*w))
            .map(<[&str]>::to_vec)
    }

    fn characters(text: &str) -> Vec<&str> {
        let places: Vec<(usize, char)> = text
            .char_indices()
            .filter(|(_, c)| !c.is_whitespace())
            .collect();
        places
            .iter()
            .map(|(at, c)| &text[*at..*at + c.len_utf8()])
            .collect()
    }

    #[test]
    fn every_language_has_a_row_and_a_whole_grammar() {
        for language in ALL {
            assert_eq!(language.name().parse(), Ok(language));
            assert_eq!(
                Grammar::read(language.row().grammar).missing(),
                [""; 0],
                "{language:?}"
            );
        }
        let cause = "de"
            .parse::<Language>()
            .expect_err("no such haystack")
            .to_string();
        assert_eq!(cause, "unknown language `de`; one of `en`, `ja`, `code`");
    }

    #[test]
    fn a_megabyte_of_english_and_code_repeats_no_twelve_words() {
        for language in [Language::En, Language::Code] {
            let text = text(language, 42, 1_000_000);
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.len() > 80_000, "{language:?}: {} words", words.len());
            assert_eq!(repeated(&words, 12), None, "{language:?}");
            assert!(repeated(&words, 2).is_some(), "the finder finds");
        }
    }

    #[test]
    fn a_megabyte_of_japanese_repeats_no_twenty_four_characters() {
        let text = text(Language::Ja, 42, 1_000_000);
        let characters = characters(&text);
        assert!(
            characters.len() > 300_000,
            "{} characters",
            characters.len()
        );
        assert_eq!(repeated(&characters, 24), None);
        assert!(repeated(&characters, 5).is_some(), "the finder finds");
    }

    #[test]
    fn the_seed_alone_decides_the_text() {
        for language in ALL {
            assert_eq!(text(language, 5, 5_000), text(language, 5, 5_000));
            assert_ne!(text(language, 5, 5_000), text(language, 6, 5_000));
        }
    }

    #[test]
    fn prose_has_no_doubled_marks_and_no_unfilled_slot() {
        for language in ALL {
            let text = text(language, 11, 200_000);
            for wrong in ["‹", "›", ",,", ",.", "、、", "。。", "  the", "\\n"] {
                assert!(!text.contains(wrong), "{language:?} holds `{wrong}`");
            }
        }
    }

    #[test]
    fn sentences_almost_never_have_to_be_drawn_again() {
        for language in ALL {
            let mut haystack = Haystack::new(language, 3);
            let mut again = 0;
            for _ in 0..5_000 {
                let sentence = haystack.draw();
                again += u32::from(!haystack.admit(&sentence));
            }
            assert!(again < 500, "{language:?}: {again} of 5,000");
        }
    }
}
