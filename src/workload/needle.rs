//! Needles: a fact that nobody can guess, its decoys, its question, and where they stand in a haystack.

use super::haystack::Language;
use super::splitmix::SplitMix64;

/// Depths that cover a prompt, as parts of its length: the edges closer than the middle, where attention is even.
pub const DEPTHS: [f64; 7] = [0.02, 0.10, 0.25, 0.50, 0.75, 0.90, 0.98];

/// Crockford's base32: no letter that can be taken for a digit.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a value: 40 bits, so that a right guess is never seen.
const VALUE_LENGTH: usize = 8;
/// Decoys at least: one may be taken for the needle by accident, four in other places may not.
const FEWEST_DECOYS: usize = 4;
/// Decoys at most: more would not fit a control prompt of 1,024 byte tokens in Japanese.
const MOST_DECOYS: usize = 6;

// No word of a key stands in a haystack's grammar, so that a key is found where its sentence stands and nowhere else.
const FIRST_EN: &[&str] = &[
    "Opal", "Basalt", "Juniper", "Cobalt", "Saffron", "Quartz", "Indigo", "Amber", "Granite",
    "Cedar", "Onyx", "Topaz", "Willow", "Umber", "Marble", "Jasmine",
];
const SECOND_EN: &[&str] = &[
    "Heron", "Falcon", "Otter", "Badger", "Lynx", "Osprey", "Marten", "Plover", "Walrus", "Gecko",
    "Ibis", "Puffin", "Tapir", "Vole", "Condor", "Newt",
];
const FIRST_JA: &[&str] = &[
    "翡翠", "瑠璃", "珊瑚", "琥珀", "水晶", "紫苑", "桔梗", "牡丹", "藍", "茜", "若葉", "銀砂",
    "白檀", "山椒", "紅玉", "墨",
];
const SECOND_JA: &[&str] = &[
    "鷺", "鶴", "燕", "鴎", "狐", "狸", "兎", "鹿", "梟", "亀", "鯨", "蛍", "隼", "鯉", "蛙", "雉",
];

/// A key, its value, and the sentence that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Name that the question asks for.
    pub key: String,
    /// Value: 8 characters of Crockford's base32.
    pub value: String,
    /// The sentence.
    pub sentence: String,
}

/// A fact of the same form with another key.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoy {
    /// What it says.
    pub fact: Fact,
    /// Where it stands, as a part of the haystack's length.
    pub depth: f64,
}

/// A needle with its decoys and its question.
#[derive(Debug, Clone, PartialEq)]
pub struct Needle {
    /// Language of sentence and question.
    pub language: Language,
    /// Name that the question asks for.
    pub key: String,
    /// The right answer.
    pub value: String,
    /// The sentence that holds it.
    pub sentence: String,
    /// Facts of the same form with other keys.
    pub decoys: Vec<Decoy>,
    /// The question.
    pub question: String,
}

/// What a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Needle and decoys.
    Needle,
    /// Decoys alone: the control whose answer must not hold the value.
    Decoys,
}

impl Needle {
    /// The needle that belongs to a run's seed and a draw.
    pub fn draw(language: Language, seed: u64, draw: u32) -> Self {
        let mut chance = SplitMix64::named(seed ^ (u64::from(draw) << 32), "needle");
        let (first, second) = match language {
            Language::Ja => (FIRST_JA, SECOND_JA),
            Language::En | Language::Code => (FIRST_EN, SECOND_EN),
        };
        // Shuffled lists side by side: no two keys share a word.
        let (mut first, mut second) = (first.to_vec(), second.to_vec());
        chance.shuffle(&mut first);
        chance.shuffle(&mut second);
        let number = FEWEST_DECOYS + chance.below(MOST_DECOYS - FEWEST_DECOYS + 1);
        let mut facts = first
            .iter()
            .zip(&second)
            .map(|(first, second)| fact(language, first, second, value(&mut chance)))
            .take(number + 1)
            .collect::<Vec<_>>();
        let asked = facts.remove(0);
        let decoys = facts
            .into_iter()
            .enumerate()
            .map(|(place, fact)| Decoy {
                fact,
                depth: stratum(place, number, &mut chance),
            })
            .collect();
        Self {
            language,
            question: question(language, &asked.key),
            key: asked.key,
            value: asked.value,
            sentence: asked.sentence,
            decoys,
        }
    }

    /// The control that asks for a decoy's key in the same text: its decoy's value is right then.
    pub fn swapped(&self) -> Self {
        let mut swapped = self.clone();
        let Some(decoy) = swapped.decoys.first_mut() else {
            return swapped;
        };
        // The sentences stay where they are; only the question moves.
        swapped.question = question(self.language, &decoy.fact.key);
        swapped.key = decoy.fact.key.clone();
        swapped.value = decoy.fact.value.clone();
        swapped
    }

    /// Values that are wrong answers.
    pub fn wrong_values(&self) -> Vec<&str> {
        let asked = self.sentence.contains(&self.value);
        // After a swap the needle's own sentence is a decoy.
        let own = (!asked).then(|| self.sentence.split(|c: char| !c.is_ascii_alphanumeric()));
        let own = own.into_iter().flatten().filter(|w| is_value(w));
        let others = self
            .decoys
            .iter()
            .map(|d| d.fact.value.as_str())
            .filter(|v| *v != self.value);
        own.chain(others).collect()
    }

    /// The whole prompt: haystack with its facts at their depths, fill, and the question at the end.
    ///
    /// `sentences` come with what stands after them, as [`super::haystack::Haystack`] gives them; depth 0 is the front,
    /// 1 the end. Nothing stands before the haystack, so that two prompts part at their first word and no prefix cache
    /// serves the second. The fill moves nothing that stands before it.
    pub fn prompt(&self, sentences: &[String], fill: &str, depth: f64, holds: Holds) -> String {
        let mut facts: Vec<(f64, &str)> = self
            .decoys
            .iter()
            .map(|d| (d.depth, d.fact.sentence.as_str()))
            .collect();
        if holds == Holds::Needle {
            facts.push((depth, &self.sentence));
        }
        let mut text = assemble(sentences, &facts, separator(self.language));
        let end = text.trim_end().len();
        text.truncate(end);
        text.push_str(fill);
        text.push_str("\n\n");
        text.push_str(&self.question);
        text
    }
}

/// Puts facts between sentences at parts of their length in bytes: 0 before the first, 1 after the last.
pub fn assemble(sentences: &[String], facts: &[(f64, &str)], separator: &str) -> String {
    let total: usize = sentences.iter().map(String::len).sum();
    let more: usize = facts.iter().map(|(_, f)| f.len() + separator.len()).sum();
    let mut left: Vec<&(f64, &str)> = facts.iter().collect();
    left.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = left.into_iter().peekable();
    let mut text = String::with_capacity(total + more + 256);
    let mut at = 0_usize;
    for sentence in sentences {
        // A fact goes to the boundary that is nearest to its depth.
        let middle = at as f64 + sentence.len() as f64 / 2.0;
        while let Some((_, fact)) = left.next_if(|(depth, _)| depth * total as f64 <= middle) {
            text.push_str(fact);
            text.push_str(separator);
        }
        text.push_str(sentence);
        at += sentence.len();
    }
    for (_, fact) in left {
        text.push_str(fact);
        text.push_str(separator);
    }
    text
}

/// Depths just before and just after each multiple of an engine's period (chunk of prefill, sliding window, KV block) in
/// a prompt of so many tokens; at most `most` of them, evenly picked.
pub fn seams(tokens: u64, period: u64, most: usize) -> Vec<f64> {
    if period == 0 || tokens <= period || most == 0 {
        return Vec::new();
    }
    let last = (tokens - 1) / period;
    let picked = last.min(most as u64);
    (1..=picked)
        .map(|n| (n * last / picked * period) as f64 / tokens as f64)
        .collect()
}

fn separator(language: Language) -> &'static str {
    match language {
        Language::En => " ",
        Language::Ja => "",
        Language::Code => "\n",
    }
}

fn fact(language: Language, first: &str, second: &str, value: String) -> Fact {
    let key = match language {
        Language::Ja => format!("{first}の{second}"),
        Language::En | Language::Code => format!("{first} {second}"),
    };
    let sentence = match language {
        Language::En => format!("The special code for {key} is {value}."),
        Language::Ja => format!("「{key}」の合言葉は{value}です。"),
        Language::Code => format!("// The special code for {key} is {value}."),
    };
    Fact {
        key,
        value,
        sentence,
    }
}

fn question(language: Language, key: &str) -> String {
    match language {
        Language::Ja => format!("「{key}」の合言葉は何ですか。合言葉だけを答えてください。"),
        Language::En | Language::Code => {
            format!("What is the special code for {key}? Answer with the code only.")
        }
    }
}

fn value(chance: &mut SplitMix64) -> String {
    (0..VALUE_LENGTH)
        .map(|_| char::from(ALPHABET[chance.below(ALPHABET.len())]))
        .collect()
}

fn is_value(word: &str) -> bool {
    word.len() == VALUE_LENGTH && word.bytes().all(|b| ALPHABET.contains(&b))
}

/// A place within the stratum of this decoy, in thousandths.
fn stratum(place: usize, number: usize, chance: &mut SplitMix64) -> f64 {
    (place as f64 + chance.below(1000) as f64 / 1000.0) / number as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::haystack::Haystack;
    use super::*;

    fn sentences(language: Language, number: usize) -> Vec<String> {
        Haystack::new(language, 1).take(number).collect()
    }

    #[test]
    fn values_keys_and_words_of_keys_all_differ() {
        for language in [Language::En, Language::Ja, Language::Code] {
            for draw in 0..200 {
                let needle = Needle::draw(language, 77, draw);
                let mut keys: BTreeSet<&str> =
                    needle.decoys.iter().map(|d| d.fact.key.as_str()).collect();
                keys.insert(&needle.key);
                let mut values: BTreeSet<&str> = needle.wrong_values().into_iter().collect();
                values.insert(&needle.value);
                assert!((5..=7).contains(&keys.len()), "{keys:?}");
                assert_eq!(keys.len(), values.len());
                assert_eq!(keys.len(), needle.decoys.len() + 1);
                assert!(values.iter().all(|v| is_value(v)), "{values:?}");
            }
        }
    }

    #[test]
    fn seed_and_draw_decide_the_value() {
        let draw = |seed, draw| Needle::draw(Language::En, seed, draw).value;
        assert_eq!(draw(1, 0), draw(1, 0));
        let all: BTreeSet<String> = (0..30)
            .flat_map(|s| (0..30).map(move |d| draw(s, d)))
            .collect();
        assert_eq!(all.len(), 900);
    }

    #[test]
    fn the_sentence_is_the_known_form_in_each_language() {
        let en = Needle::draw(Language::En, 1, 0);
        assert_eq!(
            en.sentence,
            format!("The special code for {} is {}.", en.key, en.value)
        );
        assert_eq!(
            en.question,
            format!(
                "What is the special code for {}? Answer with the code only.",
                en.key
            )
        );
        let ja = Needle::draw(Language::Ja, 1, 0);
        assert_eq!(
            ja.sentence,
            format!("「{}」の合言葉は{}です。", ja.key, ja.value)
        );
        assert!(ja.question.ends_with("合言葉だけを答えてください。"));
        assert!(
            Needle::draw(Language::Code, 1, 0)
                .sentence
                .starts_with("// The special code")
        );
    }

    #[test]
    fn the_needle_stands_at_its_depth() {
        let sentences = sentences(Language::En, 400);
        let needle = Needle::draw(Language::En, 5, 0);
        for depth in DEPTHS {
            let text = needle.prompt(&sentences, "", depth, Holds::Needle);
            let at = text.find(&needle.sentence).expect("the needle") as f64 / text.len() as f64;
            assert!((at - depth).abs() < 0.02, "{at} for {depth}");
            assert_eq!(text.matches(&needle.value).count(), 1);
            assert!(
                needle
                    .decoys
                    .iter()
                    .all(|d| text.matches(&d.fact.sentence).count() == 1)
            );
            assert!(text.ends_with(&needle.question));
        }
    }

    #[test]
    fn edges_and_an_empty_haystack_hold_every_fact() {
        let needle = Needle::draw(Language::Ja, 5, 0);
        for (number, depth) in [(0, 0.5), (1, 0.0), (1, 1.0), (50, 0.0), (50, 1.0)] {
            let text = needle.prompt(&sentences(Language::Ja, number), "", depth, Holds::Needle);
            assert_eq!(
                text.matches("合言葉は").count(),
                needle.decoys.len() + 2,
                "{number} {depth}"
            );
        }
    }

    #[test]
    fn the_control_without_a_needle_never_names_the_value() {
        let needle = Needle::draw(Language::En, 8, 3);
        let text = needle.prompt(&sentences(Language::En, 50), "", 0.5, Holds::Decoys);
        assert!(!text.contains(&needle.value));
        assert!(text.contains(&needle.decoys[0].fact.value));
        // Its key is in the question only.
        assert_eq!(text.matches(&needle.key).count(), 1);
    }

    #[test]
    fn the_swapped_control_asks_for_a_decoy_in_the_same_text() {
        let needle = Needle::draw(Language::En, 8, 3);
        let swapped = needle.swapped();
        let hay = sentences(Language::En, 50);
        let (a, b) = (
            needle.prompt(&hay, "", 0.5, Holds::Needle),
            swapped.prompt(&hay, "", 0.5, Holds::Needle),
        );
        assert_eq!(
            a.strip_suffix(&needle.question),
            b.strip_suffix(&swapped.question)
        );
        assert_eq!(swapped.value, needle.decoys[0].fact.value);
        assert!(swapped.wrong_values().contains(&needle.value.as_str()));
        assert!(!swapped.wrong_values().contains(&swapped.value.as_str()));
        assert_eq!(swapped.wrong_values().len(), needle.wrong_values().len());
    }

    #[test]
    fn no_haystack_speaks_of_a_key() {
        for language in [Language::En, Language::Ja, Language::Code] {
            let text: String = Haystack::new(language, 2).take(3_000).collect();
            for draw in 0..50 {
                assert!(!text.contains(&Needle::draw(language, 3, draw).key));
            }
        }
    }

    #[test]
    fn fill_moves_nothing_before_it() {
        let needle = Needle::draw(Language::En, 8, 3);
        let hay = sentences(Language::En, 50);
        let (bare, filled) = (
            needle.prompt(&hay, "", 0.5, Holds::Needle),
            needle.prompt(&hay, " so on", 0.5, Holds::Needle),
        );
        assert_eq!(filled.replace(" so on\n\nWhat", "\n\nWhat"), bare);
    }

    #[test]
    fn seams_are_multiples_of_the_period() {
        assert_eq!(seams(10_000, 2_048, 8), [0.2048, 0.4096, 0.6144, 0.8192]);
        assert_eq!(seams(166_000, 512, 3).len(), 3);
        assert!(seams(166_000, 512, 3).iter().all(|d| *d > 0.0 && *d < 1.0));
        assert!(seams(100, 512, 3).is_empty() && seams(100, 0, 3).is_empty());
    }
}
