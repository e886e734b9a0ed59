//! The exact-length search against tokenizers of several kinds.

use super::super::haystack::Haystack;
use super::super::needle::{Holds, Needle};
use super::*;

/// A BPE-like tokenizer: pairs merge by a fixed preference, also across what was appended, so that counts are not
/// monotone in characters.
fn bpe(text: &str) -> u64 {
    let mut tokens = 0;
    for word in text.split_inclusive(' ') {
        let bytes = word.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            // Common endings merge into what stands before them; long words fall into pieces of five or four.
            let piece = match bytes.get(at..at + 3) {
                Some(b"the" | b"ing" | b"and") => 3,
                _ if at == 0 => 7,
                _ if bytes[at] % 3 == 0 => 5,
                _ => 4,
            };
            tokens += 1;
            at += piece.min(bytes.len() - at).max(1);
        }
    }
    // A mark after a word joins it half of the time.
    tokens - (text.matches("e;").count() + text.matches("e!").count()) as u64
}

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

/// One token a word and mark, three for each character that is not ASCII: a small vocabulary that reads Japanese by bytes.
fn words_else_bytes(text: &str) -> u64 {
    let plain = text
        .split(|c: char| c.is_whitespace() || !c.is_ascii())
        .filter(|w| !w.is_empty())
        .count();
    (plain + 3 * text.chars().filter(|c| !c.is_ascii()).count()) as u64
}

/// Two tokens a character, whatever it is: no odd number can ever be reached.
fn doubled(text: &str) -> u64 {
    2 * text.chars().count() as u64
}

struct Found {
    prompt: String,
    step: Step,
    attempts: u32,
}

fn search(language: Language, target: u64, count: fn(&str) -> u64) -> Found {
    let needle = Needle::draw(language, 4, 0);
    let mut haystack = Haystack::new(language, 9);
    let mut sentences: Vec<String> = Vec::new();
    let mut search = LengthSearch::new(target, language);
    loop {
        let attempt = search.attempt().clone();
        while sentences.len() < attempt.sentences {
            sentences.extend(haystack.next());
        }
        let prompt = needle.prompt(
            &sentences[..attempt.sentences],
            &attempt.fill,
            0.5,
            Holds::Needle,
        );
        let step = search.counted(count(&prompt));
        if !matches!(step, Step::Try(_)) {
            return Found {
                prompt,
                step,
                attempts: search.attempts(),
            };
        }
    }
}

#[test]
fn the_mock_is_not_monotone() {
    assert!(
        bpe("more the;") <= bpe("more the"),
        "a mark more, and no token more"
    );
}

#[test]
fn every_length_is_met_exactly_with_each_tokenizer() {
    let tokenizers: [fn(&str) -> u64; 3] = [bpe, bytes, words_else_bytes];
    for language in [Language::En, Language::Ja, Language::Code] {
        for (at, count) in tokenizers.into_iter().enumerate() {
            for target in (1_500..1_600).chain([4_096, 16_385]) {
                let found = search(language, target, count);
                assert_eq!(found.step, Step::Exact, "{language:?} {at} {target}");
                assert_eq!(count(&found.prompt), target);
            }
        }
    }
}

#[test]
fn a_long_prompt_takes_few_attempts() {
    let found = search(Language::En, 166_000, bpe);
    assert_eq!(found.step, Step::Exact);
    assert!(found.attempts <= 12, "{} attempts", found.attempts);
}

#[test]
fn the_needle_stays_whole_at_its_depth() {
    let needle = Needle::draw(Language::Ja, 4, 0);
    let found = search(Language::Ja, 20_000, words_else_bytes);
    let at =
        found.prompt.find(&needle.sentence).expect("the needle") as f64 / found.prompt.len() as f64;
    assert!((at - 0.5).abs() < 0.03, "{at}");
}

#[test]
fn a_length_below_the_facts_alone_is_refused_with_the_least() {
    let found = search(Language::En, 20, bpe);
    let Step::Impossible(fault @ LengthFault::TooShort { least, target: 20 }) = found.step else {
        panic!("{:?}", found.step);
    };
    assert!(least > 20);
    assert!(fault.to_string().contains("ask for more tokens"));
}

#[test]
fn a_length_that_no_text_has_ends_with_a_reason() {
    let found = search(Language::En, 3_001, doubled);
    let Step::Impossible(
        fault @ LengthFault::NoFill {
            nearest: 3_000,
            target: 3_001,
            ..
        },
    ) = found.step
    else {
        panic!("{:?}", found.step);
    };
    assert!(
        fault
            .to_string()
            .starts_with("no text of exactly 3001 tokens")
    );
    assert!(found.attempts <= MOST_ATTEMPTS);
}

#[test]
fn a_tokenizer_that_counts_nothing_ends_too() {
    for constant in [|_: &str| 0, |_: &str| u64::MAX] {
        let mut search = LengthSearch::new(1_000, Language::En);
        let mut steps = 0;
        while let Step::Try(attempt) = search.counted(constant("")) {
            assert!(attempt.sentences < 1_000_000_000, "{}", attempt.sentences);
            steps += 1;
            assert!(steps < 200);
        }
    }
}

#[test]
fn no_fill_repeats_twelve_words() {
    let mut seen = std::collections::HashSet::new();
    let words: Vec<String> = (0..64).map(|place| Kind::Words.unit(place)).collect();
    assert!(words.windows(2).all(|w| seen.insert(w.to_vec())));
}
