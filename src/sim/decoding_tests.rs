//! What decoding promises: speculation changes no token, drafts are accepted by language, answers end, needles are found.

use tokio::sync::mpsc::unbounded_channel;

use super::fault::Fault;
use super::options::Options;
use super::sequence::{Ask, Sequence};
use super::tokenizer::{self, END};
use crate::workload::haystack::{Haystack, Language};

/// An answer, and how many drafts were made and accepted on its way.
#[derive(Debug, Default, PartialEq)]
struct Answered {
    ids: Vec<u32>,
    logprobs: Vec<f64>,
    steps: usize,
    accepted: usize,
    finished: Option<&'static str>,
}

impl Answered {
    fn text(&self) -> String {
        String::from_utf8_lossy(&tokenizer::bytes(&self.ids)).into_owned()
    }
}

fn ask(question: &str, max_tokens: u64) -> Ask {
    Ask {
        prompt: tokenizer::render([question]),
        max_tokens,
        min_tokens: 0,
        temperature: 0.0,
        seed: 0,
        ignore_end: false,
        stop: Vec::new(),
        salt: None,
        uncached: false,
        top: 0,
    }
}

fn answer(ask: Ask, options: &Options) -> Answered {
    let (events, _kept) = unbounded_channel();
    let mut sequence = Sequence::new(ask, events, 0);
    sequence.begin(options);
    let mut answered = Answered::default();
    while answered.finished.is_none() {
        let step = sequence.step(options);
        answered.steps += 1;
        answered.accepted += step.accepted;
        answered.finished = step.finished.map(|f| f.reason);
        for told in step.tokens {
            answered.ids.push(told.id);
            answered.logprobs.push(told.logprob.unwrap());
        }
    }
    answered
}

fn plain() -> Options {
    Options {
        draft: None,
        ..Options::default()
    }
}

/// The first tasks of a workload.
fn tasks(workload: &str) -> Vec<String> {
    let workload = crate::workload::Workload::named(workload).unwrap();
    let prompts = workload.tasks().into_iter().take(6);
    prompts.map(|t| t.messages[0].content.clone()).collect()
}

#[test]
fn speculation_changes_no_token_and_no_logprob_of_a_greedy_answer() {
    for workload in ["code", "en", "ja"] {
        for task in tasks(workload).into_iter().take(2) {
            let fast = answer(ask(&task, 120), &Options::default());
            let slow = answer(ask(&task, 120), &plain());
            assert_eq!(fast.ids, slow.ids, "{workload}");
            assert_eq!(fast.logprobs, slow.logprobs, "{workload}");
            assert!(fast.steps < slow.steps, "{workload}: nothing was accepted");
        }
    }
}

#[test]
fn speculation_changes_no_token_of_a_sampled_answer() {
    let sampled = |seed| Ask {
        temperature: 0.8,
        seed,
        ..ask("Describe a harbour in winter.", 80)
    };
    let fast = answer(sampled(5), &Options::default());
    assert_eq!(fast.ids, answer(sampled(5), &plain()).ids);
    assert_ne!(fast.ids, answer(sampled(6), &plain()).ids);
}

#[test]
fn code_is_drafted_best_and_japanese_worst() {
    let length = |workload| {
        let (mut tokens, mut steps) = (0, 0);
        for task in tasks(workload) {
            let endless = Ask {
                ignore_end: true,
                ..ask(&task, 128)
            };
            let answered = answer(endless, &Options::default());
            tokens += answered.ids.len();
            steps += answered.steps;
        }
        tokens as f64 / steps as f64
    };
    let (code, en, ja) = (length("code"), length("en"), length("ja"));
    println!("accept length: code {code:.2}, en {en:.2}, ja {ja:.2}");
    assert!(
        code > en + 0.2 && en > ja + 0.2,
        "code {code:.2}, en {en:.2}, ja {ja:.2}"
    );
    assert!(ja > 1.3 && code < 3.8, "code {code:.2}, ja {ja:.2}");
}

#[test]
fn a_broken_drafter_is_hardly_ever_accepted_and_changes_no_token() {
    let options = Options {
        faults: vec![Fault::AcceptCollapse],
        ..Options::default()
    };
    let task = &tasks("code")[0];
    let broken = answer(ask(task, 300), &options);
    let length = broken.ids.len() as f64 / broken.steps as f64;
    assert!((1.0..1.2).contains(&length), "{length}");
    assert_eq!(broken.ids, answer(ask(task, 300), &plain()).ids);
}

#[test]
fn answers_end_by_themselves_and_do_not_turn_in_a_circle() {
    let mut ended = 0;
    for workload in ["en", "ja"] {
        for task in tasks(workload) {
            let answered = answer(ask(&task, 900), &Options::default());
            ended += usize::from(answered.finished == Some("stop"));
            let tail = &answered.ids[answered.ids.len().saturating_sub(120)..];
            let kinds: std::collections::HashSet<&[u32]> = tail.windows(12).collect();
            assert!(
                kinds.len() * 2 > tail.len().saturating_sub(11),
                "{}",
                answered.text()
            );
        }
    }
    assert!(ended >= 6, "only {ended} of 12 ended");
}

#[test]
fn an_ignored_end_lets_the_answer_go_on_to_its_length() {
    let endless = Ask {
        ignore_end: true,
        ..ask("Write about a garden.", 700)
    };
    let answered = answer(endless, &Options::default());
    assert_eq!(
        (answered.ids.len(), answered.finished),
        (700, Some("length"))
    );
    assert!(!answered.ids.contains(&END));
}

/// A prompt of at least so many tokens with a needle near its beginning.
fn haystack(language: Language, tokens: usize, needle: &str, question: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    let mut told = false;
    for sentence in Haystack::new(language, 11) {
        length += tokenizer::encode(&sentence).len();
        text.push_str(&sentence);
        if !told && length > tokens / 10 {
            text.push_str(needle);
            told = true;
        }
        if length >= tokens {
            break;
        }
    }
    text + "\n\n" + question
}

#[test]
fn a_needle_in_166k_tokens_is_answered_and_nothing_else() {
    let needle =
        "The special code for Onyx Lynx is AAAA1111. The special code for Opal Heron is 7K3M9QXZ. ";
    let question = "What is the special code for Opal Heron? Answer with the code only.";
    let text = haystack(Language::En, 166_000, needle, question);
    assert!(tokenizer::encode(&text).len() >= 166_000);
    let answered = answer(ask(&text, 32), &Options::default());
    assert_eq!(
        (answered.text().as_str(), answered.finished),
        ("7K3M9QXZ", Some("stop"))
    );
    // The end counts as a token, as in vLLM.
    assert_eq!(answered.ids.len(), 9);
}

#[test]
fn a_japanese_needle_is_answered() {
    let needle = "墨鶴の合言葉はAAAA1111です。翡翠鷺の合言葉は7K3M9QXZです。";
    let text = haystack(
        Language::Ja,
        20_000,
        needle,
        "翡翠鷺の合言葉は何ですか。合言葉だけを答えてください。",
    );
    assert_eq!(
        answer(ask(&text, 32), &Options::default()).text(),
        "7K3M9QXZ"
    );
}

#[test]
fn a_needle_that_was_cut_away_is_not_known() {
    let needle = "The special code for Opal Heron is 7K3M9QXZ. ";
    let text = haystack(
        Language::En,
        9_000,
        needle,
        "What is the special code for Opal Heron? Answer with the code only.",
    );
    let mut cut = ask(&text, 64);
    cut.prompt.drain(..4_000);
    let answered = answer(cut, &Options::default());
    assert!(!answered.text().contains("7K3M9QXZ"), "{}", answered.text());
}

#[test]
fn a_lossy_verification_writes_tokens_that_are_not_the_targets() {
    let lossy = Options {
        faults: vec![Fault::LossySpec],
        ..Options::default()
    };
    let told = answer(ask("Write about rivers.", 64), &lossy);
    assert_eq!(told, answer(ask("Write about rivers.", 64), &lossy));
    let sound = answer(ask("Write about rivers.", 64), &Options::default());
    assert_ne!(told.ids, sound.ids);
    // Without a drafter there is nothing to let pass.
    let plain = Options {
        draft: None,
        ..lossy
    };
    assert_eq!(
        answer(ask("Write about rivers.", 64), &plain).ids,
        sound.ids
    );
}

#[test]
fn an_unstable_seat_gives_another_answer_each_time() {
    let unstable = Options {
        faults: vec![Fault::Unstable],
        ..Options::default()
    };
    let answers: std::collections::HashSet<Vec<u32>> = (0..8)
        .map(|_| answer(ask("Write about rivers.", 64), &unstable).ids)
        .collect();
    assert!(answers.len() > 1);
}
