//! The answers of one build, made ready to be scored by another.
//!
//! Prompt and answer are one sequence of token ids. The answer's ids came with the answer; the prompt's are made by the
//! auditor's own tokenizer and held against what the writer said that it read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::boot::Stage;
use super::load;
use super::score::{Best, Prepared, Text, probe};
use crate::drive::answer::digest_ids;
use crate::drive::prompt_logprobs::ScoreFault;
use crate::drive::request::{Prompt, Request};
use crate::drive::tokenize::{SpecialTokens, TokenizeFault, tokenize_messages, tokenize_text};
use crate::evidence::exchange::{Exchange, IdDigest};
use crate::plan::task::{AuditTask, Task};
use crate::plan::{Plan, PlannedWindow, WARM_UP};

/// Answers that a later window of the plan will audit.
#[derive(Debug)]
pub struct Answers {
    wanted: BTreeSet<Place>,
    written: BTreeMap<Place, Vec<Written>>,
}

/// One repeat of one case on one build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    case: usize,
    build: String,
    repeat: u32,
}

/// What is kept of one answer.
#[derive(Debug, Clone)]
struct Written {
    /// Number of the request in its window.
    number: u32,
    ids: Vec<u32>,
    prompt_ids: Option<IdDigest>,
    prompt_tokens: Option<u64>,
}

impl Answers {
    /// Nothing yet; what is worth keeping is known from the plan.
    pub fn of(plan: &Plan) -> Self {
        let wanted = plan.windows().filter_map(|window| match &window.task {
            Task::Audit(audit) => Some(Place {
                case: window.case,
                build: audit.written_by.clone(),
                repeat: window.repeat,
            }),
            _ => None,
        });
        Self {
            wanted: wanted.collect(),
            written: BTreeMap::new(),
        }
    }

    /// Keeps the whole answers of a window that came with token ids, if they will be audited.
    pub fn keep(&mut self, window: &PlannedWindow, exchanges: &[Exchange]) {
        let place = Place {
            case: window.case,
            build: window.build.clone(),
            repeat: window.repeat,
        };
        let writes = matches!(window.task, Task::Load(_)) && window.part != WARM_UP;
        if !writes || !self.wanted.contains(&place) {
            return;
        }
        let whole = exchanges.iter().filter(|e| e.is_complete());
        let written = whole.filter_map(|e| {
            Some(Written {
                number: e.id,
                ids: e.token_ids.clone().filter(|ids| !ids.is_empty())?,
                prompt_ids: e.prompt_ids.clone(),
                prompt_tokens: e.usage.map(|u| u.prompt),
            })
        });
        self.written.insert(place, written.collect());
    }

    fn of_window(&self, window: &PlannedWindow, written_by: &str) -> &[Written] {
        let place = Place {
            case: window.case,
            build: written_by.to_owned(),
            repeat: window.repeat,
        };
        self.written.get(&place).map_or(&[], Vec::as_slice)
    }
}

/// Probes the route and puts prompts and answers together.
pub async fn prepare(
    stage: &Stage,
    task: &AuditTask,
    window: &PlannedWindow,
    answers: &Answers,
    gate_dir: &Path,
    seed: u64,
) -> Prepared {
    let route = probe(stage).await;
    let mut incidents = Vec::new();
    let mut texts = Vec::new();
    if route.is_ok() {
        let requests = load::requests(&task.load, gate_dir, seed, &mut incidents);
        for written in answers.of_window(window, &task.written_by) {
            match requests.get(written.number as usize) {
                Some(request) => texts.push(sequence(stage, request, written).await),
                None => incidents.push(format!(
                    "the prompt of request {} cannot be made again",
                    written.number
                )),
            }
        }
        if texts.is_empty() {
            incidents.push(format!(
                "`{}` left no answer with token ids for this repeat",
                task.written_by
            ));
        }
    }
    Prepared {
        conditions: conditions(task, &route),
        texts,
        route,
        best: Best::Wanted,
        incidents,
    }
}

async fn sequence(stage: &Stage, request: &Request, written: &Written) -> Text {
    let mut text = Text {
        name: request.name.clone(),
        ..Text::default()
    };
    let prompt = match prompt_ids(stage, &request.prompt).await {
        Ok(ids) => ids,
        Err(cause) => {
            text.fault = Some(format!(
                "the prompt's token ids cannot be had: {cause}; on a server whose tokenizer renders no chat, write `route = \"completion\"`"
            ));
            return text;
        }
    };
    text.fault = another_prompt(&prompt, written);
    text.answer_from = Some(prompt.len() as u64);
    text.ids = [prompt, written.ids.clone()].concat();
    text
}

async fn prompt_ids(stage: &Stage, prompt: &Prompt) -> Result<Vec<u32>, TokenizeFault> {
    let (client, dialect, model) = (&stage.client, stage.dialect, &stage.boot.identity.model);
    match prompt {
        Prompt::Chat(messages) => tokenize_messages(client, dialect, model, messages).await,
        Prompt::Text(text) => tokenize_text(client, dialect, model, text, SpecialTokens::Add).await,
        Prompt::Ids(ids) => Ok(ids.to_vec()),
    }
}

/// Why these are not the tokens that the writer read, or why nobody can tell.
fn another_prompt(prompt: &[u32], written: &Written) -> Option<String> {
    let ours = prompt.len() as u64;
    let other = |theirs: u64| {
        Some(format!(
            "the writer read a prompt of {theirs} tokens, the auditor's tokenizer makes another one of {ours}: chat template or tokenizer differ"
        ))
    };
    match (&written.prompt_ids, written.prompt_tokens) {
        (Some(digest), _) if *digest == digest_ids(prompt) => None,
        (Some(digest), _) => other(digest.count),
        (None, Some(tokens)) if tokens == ours => None,
        (None, Some(tokens)) => other(tokens),
        (None, None) => Some("nothing tells which prompt tokens the writer read: its answer carries neither their ids nor `usage`".into()),
    }
}

fn conditions(
    task: &AuditTask,
    route: &Result<crate::dialect::PromptLogprobs, ScoreFault>,
) -> Vec<(String, String)> {
    let mut conditions = vec![
        ("concurrency".to_owned(), "1".to_owned()),
        (
            "prefix cache".to_owned(),
            "a fresh salt for each request".to_owned(),
        ),
        ("workload".to_owned(), task.load.workload.clone()),
        ("written by".to_owned(), task.written_by.clone()),
    ];
    if let Ok(route) = route {
        conditions.push(("route".to_owned(), format!("{route:?}")));
    }
    conditions.sort();
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(prompt_ids: Option<&[u32]>, prompt_tokens: Option<u64>) -> Written {
        Written {
            number: 0,
            ids: vec![9],
            prompt_ids: prompt_ids.map(digest_ids),
            prompt_tokens,
        }
    }

    #[test]
    fn a_prompt_is_the_writers_by_its_ids_or_at_least_its_count() {
        assert_eq!(another_prompt(&[1, 2], &written(Some(&[1, 2]), None)), None);
        assert_eq!(another_prompt(&[1, 2], &written(None, Some(2))), None);
        // As many tokens, but others.
        assert!(another_prompt(&[1, 2], &written(Some(&[1, 3]), Some(2))).is_some());
        assert!(another_prompt(&[1, 2], &written(None, Some(3))).is_some());
        assert!(another_prompt(&[1, 2], &written(None, None)).is_some());
    }
}
