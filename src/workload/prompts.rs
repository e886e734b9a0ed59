//! Workloads: the prompts of each kind of work, and which of them a repeat takes.

use std::fmt;

use super::sha256;
use super::splitmix::SplitMix64;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Role, `system`, `user` or `assistant`.
    pub role: String,
    /// Text.
    pub content: String,
}

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Workload and place in it, counted from 0 (`code/3`).
    pub id: String,
    /// The conversation to be answered.
    pub messages: Vec<Message>,
}

/// The prompts of one kind of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    name: String,
    tasks: Vec<Task>,
    digest: String,
}

/// A built-in workload: a row is all that another one takes.
struct BuiltIn {
    name: &'static str,
    text: &'static str,
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../fixtures/workloads/", $name, "/tasks.md"))
    };
}

static BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "code",
        text: text!("code"),
    },
    BuiltIn {
        name: "en",
        text: text!("en"),
    },
    BuiltIn {
        name: "ja",
        text: text!("ja"),
    },
    BuiltIn {
        name: "essays",
        text: text!("essays"),
    },
];

/// A line that separates tasks which hold blank lines themselves.
const SEPARATOR: &str = "===";

/// Distance between the first prompts of two repeats: a cell has four streams by default, so that neighbouring repeats
/// share no prompt.
const STRIDE: usize = 4;

/// Names of the built-in workloads.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|b| b.name).collect()
}

impl Workload {
    /// The built-in workload of this name.
    pub fn named(name: &str) -> Option<Self> {
        let built_in = BUILT_IN.iter().find(|b| b.name == name)?;
        Self::of_text(name, built_in.text).ok()
    }

    /// A workload from a text: JSON lines (`{"messages": […]}` or `{"prompt": "…"}`), or prompts in plain text that are
    /// separated by lines `===`, or by blank lines where there is no such line.
    ///
    /// # Errors
    /// When a line is not such an object, names an unknown key, or the text holds no prompt.
    pub fn of_text(name: &str, text: &str) -> Result<Self, WorkloadError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let conversations = if text.trim_start().starts_with('{') {
            json_lines(text)?
        } else {
            plain(text)
        };
        if conversations.is_empty() {
            return Err(WorkloadError::Empty);
        }
        let stem = name
            .rsplit('/')
            .next()
            .and_then(|f| f.split('.').next())
            .unwrap_or(name);
        let tasks = conversations
            .into_iter()
            .enumerate()
            .map(|(place, messages)| Task {
                id: format!("{stem}/{place}"),
                messages,
            })
            .collect();
        Ok(Self {
            name: name.to_owned(),
            tasks,
            digest: sha256(text),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every task, in the order of the text.
    pub fn tasks(&self) -> Vec<Task> {
        self.tasks.clone()
    }

    /// SHA-256 of its text in hex.
    pub fn digest(&self) -> String {
        self.digest.clone()
    }

    /// The task at a place of a repeat.
    ///
    /// It depends on the seed, the repeat and the place alone, so that both builds of a pair get the same. No task comes
    /// twice in a repeat before all have come, and the first tasks of as many repeats as there are tasks all differ.
    pub fn draw(&self, seed: u64, repeat: u32, place: usize) -> Task {
        let number = self.tasks.len();
        let mut order: Vec<usize> = (0..number).collect();
        SplitMix64::named(seed, &self.digest).shuffle(&mut order);
        let start = start_of(repeat as usize % number, number);
        self.tasks[order[(start + place % number) % number]].clone()
    }
}

/// Where a repeat begins: 0, 4, 8, … and then 1, 5, 9, …: each place once.
fn start_of(repeat: usize, number: usize) -> usize {
    let mut left = repeat;
    for phase in 0..STRIDE.min(number) {
        let in_phase = (number - phase).div_ceil(STRIDE);
        if left < in_phase {
            return phase + left * STRIDE;
        }
        left -= in_phase;
    }
    0
}

fn user(content: &str) -> Vec<Message> {
    vec![Message {
        role: "user".into(),
        content: content.to_owned(),
    }]
}

fn plain(text: &str) -> Vec<Vec<Message>> {
    let separated = text.lines().any(|l| l.trim_end() == SEPARATOR);
    let ends = |line: &str| {
        if separated {
            line.trim_end() == SEPARATOR
        } else {
            line.trim().is_empty()
        }
    };
    let mut prompts = Vec::new();
    let mut open = String::new();
    for line in text.lines().chain([if separated { SEPARATOR } else { "" }]) {
        if !ends(line) {
            open.push_str(line);
            open.push('\n');
            continue;
        }
        if !open.trim().is_empty() {
            prompts.push(user(open.trim()));
        }
        open.clear();
    }
    prompts
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    messages: Option<Vec<LineMessage>>,
    prompt: Option<String>,
    #[serde(rename = "id")]
    _id: Option<serde_json::Value>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LineMessage {
    role: String,
    content: String,
}

fn json_lines(text: &str) -> Result<Vec<Vec<Message>>, WorkloadError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            conversation(line).map_err(|cause| WorkloadError::Line {
                line: at + 1,
                cause,
            })
        })
        .collect()
}

fn conversation(line: &str) -> Result<Vec<Message>, String> {
    let read: Line = serde_json::from_str(line).map_err(|cause| cause.to_string())?;
    let messages = match (read.messages, read.prompt) {
        (Some(messages), None) => messages
            .into_iter()
            .map(|m| Message {
                role: m.role,
                content: m.content,
            })
            .collect(),
        (None, Some(prompt)) => user(&prompt),
        (Some(_), Some(_)) => return Err("both `messages` and `prompt`: give one".into()),
        (None, None) => return Err("neither `messages` nor `prompt`".into()),
    };
    match messages.last() {
        None => Err("`messages` is empty".into()),
        Some(last) if last.content.trim().is_empty() => Err("the last message is empty".into()),
        Some(_) => Ok(messages),
    }
}

/// A text that is no workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadError {
    /// It holds no prompt.
    Empty,
    /// A line cannot be read.
    Line {
        /// Line, counted from 1.
        line: usize,
        /// Why not.
        cause: String,
    },
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the text holds no prompt; write prompts separated by blank lines, or JSON lines",
            ),
            Self::Line { line, cause } => {
                write!(
                    f,
                    "line {line}: {cause}; each line is `{{\"messages\": [{{\"role\": …, \"content\": …}}]}}` or `{{\"prompt\": …}}`"
                )
            }
        }
    }
}

impl std::error::Error for WorkloadError {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ids(workload: &Workload, seed: u64, repeat: u32, number: usize) -> Vec<String> {
        (0..number)
            .map(|place| workload.draw(seed, repeat, place).id)
            .collect()
    }

    #[test]
    fn every_built_in_workload_has_enough_distinct_tasks() {
        for name in names() {
            let workload = Workload::named(name).expect("a built-in workload");
            let texts: BTreeSet<String> = workload
                .tasks()
                .iter()
                .map(|t| t.messages[0].content.clone())
                .collect();
            let wanted = if name == "essays" { 7 } else { 16 };
            assert_eq!(texts.len(), wanted, "{name}");
            assert!(
                texts.iter().all(|t| t.len() > 80 && !t.contains("===")),
                "{name}"
            );
            assert_eq!(workload.digest().len(), 64);
        }
        assert_eq!(Workload::named("klingon"), None);
    }

    #[test]
    fn both_builds_of_a_pair_get_the_same_prompts() {
        let workload = Workload::named("code").expect("code");
        assert_eq!(ids(&workload, 9, 2, 4), ids(&workload, 9, 2, 4));
        assert_ne!(ids(&workload, 9, 2, 4), ids(&workload, 10, 2, 4));
    }

    #[test]
    fn no_task_comes_twice_in_a_repeat_nor_in_neighbouring_repeats() {
        let workload = Workload::named("ja").expect("ja");
        let all: BTreeSet<String> = ids(&workload, 1, 3, 16).into_iter().collect();
        assert_eq!(all.len(), 16);
        let four: BTreeSet<String> = (0..4).flat_map(|r| ids(&workload, 1, r, 4)).collect();
        assert_eq!(
            four.len(),
            16,
            "four repeats of four streams share no prompt"
        );
        let first: BTreeSet<String> = (0..16).map(|r| workload.draw(1, r, 0).id).collect();
        assert_eq!(
            first.len(),
            16,
            "sixteen repeats of one stream share no prompt"
        );
    }

    #[test]
    fn starts_are_a_permutation_for_every_number_of_tasks() {
        for number in 1..40 {
            let starts: BTreeSet<usize> = (0..number).map(|r| start_of(r, number)).collect();
            assert_eq!(starts, (0..number).collect(), "{number}");
        }
    }

    #[test]
    fn the_last_repeat_that_can_be_named_draws_a_task() {
        let workload = Workload::of_text("x", "one").expect("one prompt");
        assert_eq!(workload.draw(0, u32::MAX, usize::MAX).id, "x/0");
    }

    #[test]
    fn plain_text_is_cut_at_blank_lines_or_at_separators() {
        let blank = Workload::of_text("a/b.txt", "one\nmore\n\n\ntwo\r\n\r\nthree").expect("three");
        assert_eq!(blank.tasks().len(), 3);
        assert_eq!(blank.tasks()[0].messages[0].content, "one\nmore");
        assert_eq!(blank.tasks()[2].id, "b/2");
        let separated = Workload::of_text("b", "one\n\nmore\n===\ntwo").expect("two");
        assert_eq!(separated.tasks()[0].messages[0].content, "one\n\nmore");
    }

    #[test]
    fn json_lines_carry_whole_conversations() {
        let text = "{\"messages\":[{\"role\":\"system\",\"content\":\"brief\"},{\"role\":\"user\",\"content\":\"hi\"}]}\n\n{\"id\":7,\"prompt\":\"there\"}\n";
        let workload = Workload::of_text("f.jsonl", text).expect("two lines");
        assert_eq!(workload.tasks()[0].messages[0].role, "system");
        assert_eq!(workload.tasks()[1].messages, user("there"));
    }

    #[test]
    fn a_bad_line_is_named_with_its_number_and_cure() {
        let cases = [
            (
                "{\"prompt\":\"a\"}\n{\"promt\":\"b\"}",
                "line 2: unknown field `promt`",
            ),
            ("{\"prompt\":\"a\",\"messages\":[]}", "line 1: both"),
            ("{}", "line 1: neither"),
            ("{\"messages\":[]}", "line 1: `messages` is empty"),
            ("{\"prompt\":\" \"}", "line 1: the last message is empty"),
            ("{\"prompt\":\"a\"", "line 1: EOF"),
        ];
        for (text, start) in cases {
            let cause = Workload::of_text("f", text).expect_err(text).to_string();
            assert!(cause.starts_with(start), "{cause}");
            assert!(cause.contains("each line is"), "{cause}");
        }
        assert_eq!(Workload::of_text("f", " \n\n"), Err(WorkloadError::Empty));
    }
}
