//! The texts that the model learns from: our own, and sentences drawn from the grammars of the haystacks.

use crate::workload::haystack::{Haystack, Language};

macro_rules! own {
    ($name:literal) => {
        include_str!(concat!("../../fixtures/texts/", $name, ".txt"))
    };
}

/// English prose; a blank line ends an answer.
pub(super) const EN: &[&str] = &[
    own!("en/harbour"),
    own!("en/measuring"),
    own!("en/garden"),
    own!("en/workshop"),
];
/// Japanese prose; a blank line ends an answer.
pub(super) const JA: &[&str] = &[own!("ja/machi"), own!("ja/hakaru"), own!("ja/shigoto")];
/// Code; a line `===` ends an answer.
pub(super) const CODE: &[&str] = &[own!("code/cache"), own!("code/service"), own!("code/queue")];

/// Tasks, so that the model knows which language is asked for.
const CODE_TASKS: &str = include_str!("../../fixtures/workloads/code/tasks.md");
const EN_TASKS: &str = include_str!("../../fixtures/workloads/en/tasks.md");
const JA_TASKS: &str = include_str!("../../fixtures/workloads/ja/tasks.md");

/// Texts whose characters become tokens.
pub(super) const WITH_CHARACTERS: &[&str] = &[
    JA[0],
    JA[1],
    JA[2],
    JA_TASKS,
    include_str!("../../fixtures/workloads/haystack/ja.txt"),
];

/// Bytes of drawn sentences in each language.
const DRAWN: usize = 48 * 1024;
/// Seed of the drawn sentences; any will do, but the model must be the same at every start.
const SEED: u64 = 0x5E_C1;
/// Sentences of a drawn answer.
const SENTENCES: usize = 8;

/// One language as it is learnt.
#[derive(Debug)]
pub(super) struct Lesson {
    /// What is asked.
    pub(super) tasks: &'static str,
    /// What is answered, each to its end.
    pub(super) answers: Vec<String>,
    /// Of eight answers, how many the drafter has seen: like the drafters of large models, it read much code, less
    /// English and little Japanese, so its drafts are accepted in that order.
    pub(super) drafted: usize,
}

/// The three languages.
pub(super) fn lessons() -> [Lesson; 3] {
    [
        lesson(Language::Code, CODE_TASKS, CODE, "\n===\n", 6),
        lesson(Language::En, EN_TASKS, EN, "\n\n", 2),
        lesson(Language::Ja, JA_TASKS, JA, "\n\n", 3),
    ]
}

fn lesson(
    language: Language,
    tasks: &'static str,
    own: &[&str],
    between: &str,
    drafted: usize,
) -> Lesson {
    let mut answers: Vec<String> = own
        .iter()
        .flat_map(|text| text.split(between))
        .map(|answer| answer.trim_end().to_owned())
        .filter(|answer| !answer.is_empty())
        .collect();
    let mut drawn = String::new();
    let mut length = 0;
    for (place, sentence) in Haystack::new(language, SEED).enumerate() {
        length += sentence.len();
        drawn.push_str(&sentence);
        if place % SENTENCES == SENTENCES - 1 {
            answers.push(std::mem::take(&mut drawn).trim_end().to_owned());
        }
        if length >= DRAWN {
            break;
        }
    }
    Lesson {
        tasks,
        answers,
        drafted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_tasks_and_answers() {
        for lesson in lessons() {
            assert!(lesson.tasks.len() > 1000);
            assert!(lesson.answers.len() > 20);
            assert!(lesson.answers.iter().all(|a| !a.trim().is_empty()));
        }
    }

    #[test]
    fn nothing_is_learnt_that_perplexity_is_taken_of() {
        let held_out = [
            include_str!("../../fixtures/workloads/ppl/code.txt"),
            include_str!("../../fixtures/workloads/ppl/en.txt"),
            include_str!("../../fixtures/workloads/ppl/ja.txt"),
        ];
        let learnt: String = lessons().iter().flat_map(|l| l.answers.clone()).collect();
        for text in held_out {
            let characters: Vec<char> = text.chars().collect();
            for run in characters.chunks_exact(120) {
                let run: String = run.iter().collect();
                assert!(
                    run.trim().len() < 60 || !learnt.contains(&run),
                    "learnt: {run}"
                );
            }
        }
    }
}
