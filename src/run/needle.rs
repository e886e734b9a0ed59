//! A needle prompt of exact length by the server's own tokenizer, and its answer.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::boot::Stage;
use super::conduct::Sink;
use super::window::Yield;
use crate::drive::cancel::Cancel;
use crate::drive::fetch::{Deadlines, Line, fetch};
use crate::drive::request::{Cache, Message, Prompt, Request, fresh_salt};
use crate::drive::tokenize::{SpecialTokens, tokenize_messages, tokenize_text};
use crate::plan::task::{NeedleContent, NeedleTask, Route};
use crate::workload::haystack::{Haystack, Language};
use crate::workload::length::{LengthSearch, Step};
use crate::workload::needle::{Holds, Needle};

/// A needle request that is ready to be sent.
#[derive(Debug)]
pub struct Prepared {
    request: Option<Request>,
    results: Map<String, Value>,
    conditions: Vec<(String, String)>,
    deadline: Duration,
}

/// Makes the prompt.
///
/// The haystack is drawn anew for each window, the needle from the run's seed, so that nothing of it was ever asked before.
/// Where no exact length can be had, the fault is among the results and nothing is sent.
pub async fn prepare(stage: &Stage, task: &NeedleTask, seed: u64, window: &str) -> Prepared {
    let language = task.language.parse().unwrap_or(Language::En);
    let needle = drawn(task, language, seed);
    let built = exact(stage, task, &needle, language, seed, window).await;
    let mut results = Map::new();
    let asked = if task.content == NeedleContent::Missing {
        String::new()
    } else {
        needle.value.clone()
    };
    results.insert("value".into(), needle.value.clone().into());
    results.insert("asked".into(), asked.into());
    results.insert("key".into(), needle.key.clone().into());
    let wrong: Vec<Value> = needle.wrong_values().into_iter().map(Value::from).collect();
    results.insert("decoys".into(), wrong.into());
    let request = match built {
        Ok(prompt) => {
            results.insert("tokens".into(), task.tokens.into());
            results.insert("attempts".into(), prompt.attempts.into());
            Some(request(task, prompt.text, window))
        }
        Err(fault) => {
            results.insert("fault".into(), fault.into());
            None
        }
    };
    Prepared {
        request,
        results,
        conditions: conditions(stage, task),
        deadline: Duration::from_secs_f64(task.deadline_s),
    }
}

fn drawn(task: &NeedleTask, language: Language, seed: u64) -> Needle {
    let mut needle = Needle::draw(language, seed, task.draw);
    needle.decoys.truncate(task.decoys as usize);
    match task.content {
        NeedleContent::Swapped => needle.swapped(),
        NeedleContent::Needle | NeedleContent::Missing => needle,
    }
}

struct Exact {
    text: String,
    attempts: u32,
}

/// Searches the text whose count is exactly what is asked.
async fn exact(
    stage: &Stage,
    task: &NeedleTask,
    needle: &Needle,
    language: Language,
    seed: u64,
    window: &str,
) -> Result<Exact, String> {
    let salt = window
        .bytes()
        .fold(seed, |h, b| h.rotate_left(5) ^ u64::from(b));
    let mut haystack = Haystack::new(language, salt);
    let mut sentences: Vec<String> = Vec::new();
    let mut search = LengthSearch::new(task.tokens, language);
    let overhead = template(stage, task).await?;
    let holds = if task.content == NeedleContent::Missing {
        Holds::Decoys
    } else {
        Holds::Needle
    };
    loop {
        let attempt = search.attempt().clone();
        while sentences.len() < attempt.sentences {
            sentences.extend(haystack.by_ref().take(attempt.sentences - sentences.len()));
        }
        let text = needle.prompt(
            &sentences[..attempt.sentences],
            &attempt.fill,
            task.depth,
            holds,
        );
        let tokens = count(stage, task, &opened(task, needle, &text)).await? + overhead;
        match search.counted(tokens) {
            Step::Exact => {
                return Ok(Exact {
                    text: opened(task, needle, &text),
                    attempts: search.attempts(),
                });
            }
            Step::Try(_) => {}
            Step::Impossible(fault) => return Err(fault.to_string()),
        }
    }
}

/// Tokens that the server's chat template adds to a text, where its tokenizer route cannot render it: learnt by one short
/// request whose usage tells its length.
async fn template(stage: &Stage, task: &NeedleTask) -> Result<u64, String> {
    const SHORT: &str = "Say the word yes.";
    let renders = stage.dialect.requests.tokenize.is_some_and(|t| t.messages);
    if task.route == Route::Completion || renders {
        return Ok(0);
    }
    let alone = count(stage, task, SHORT).await?;
    let deadlines = Deadlines::of(stage.dialect, Duration::from_secs_f64(task.deadline_s));
    let line = Line::new(
        stage.client.clone(),
        &stage.boot.identity.model,
        stage.dialect,
        deadlines,
    );
    let mut request = Request::new("template", Prompt::Chat(messages(SHORT)), 1);
    request.cache = Cache::Cold(fresh_salt());
    let answer = fetch(&line, &request, 0, 0, &Cancel::never()).await;
    let whole = answer
        .usage
        .ok_or("the template's length cannot be learnt: the answer carries no usage")?
        .prompt;
    whole.checked_sub(alone).ok_or_else(|| {
        format!("the template's length cannot be learnt: {whole} tokens with it, {alone} without")
    })
}

async fn count(stage: &Stage, task: &NeedleTask, text: &str) -> Result<u64, String> {
    let model = &stage.boot.identity.model;
    let renders = stage.dialect.requests.tokenize.is_some_and(|t| t.messages);
    let ids = match task.route {
        Route::Chat if renders => {
            tokenize_messages(&stage.client, stage.dialect, model, &messages(text)).await
        }
        Route::Chat => {
            tokenize_text(
                &stage.client,
                stage.dialect,
                model,
                text,
                SpecialTokens::Leave,
            )
            .await
        }
        Route::Completion => {
            tokenize_text(
                &stage.client,
                stage.dialect,
                model,
                text,
                SpecialTokens::Add,
            )
            .await
        }
    };
    ids.map(|ids| ids.len() as u64)
        .map_err(|fault| fault.to_string())
}

fn messages(text: &str) -> Vec<Message> {
    vec![Message {
        role: "user".into(),
        content: text.into(),
    }]
}

/// The text as it is sent: on the completion route a base model is led to where only the value is missing.
fn opened(task: &NeedleTask, needle: &Needle, text: &str) -> String {
    if task.route == Route::Chat {
        return text.to_owned();
    }
    let facts = needle
        .decoys
        .iter()
        .map(|d| &d.fact)
        .filter(|f| f.key == needle.key);
    let sentence = facts
        .map(|f| f.sentence.as_str())
        .next()
        .unwrap_or(&needle.sentence);
    let opening = sentence
        .split(needle.value.as_str())
        .next()
        .unwrap_or_default()
        .trim_end();
    format!("{text}\n{opening}")
}

fn request(task: &NeedleTask, text: String, window: &str) -> Request {
    let prompt = match task.route {
        Route::Chat => Prompt::Chat(messages(&text)),
        Route::Completion => Prompt::Text(text.into()),
    };
    let mut request = Request::new(&format!("needle/{window}"), prompt, task.max_tokens);
    request.cache = Cache::Cold(fresh_salt());
    if task.route == Route::Completion {
        // A base model goes on writing; its first line is the answer.
        request.stop = vec!["\n".into()];
    }
    request
}

fn conditions(stage: &Stage, task: &NeedleTask) -> Vec<(String, String)> {
    vec![
        ("depth".to_owned(), format!("{:.0} %", task.depth * 100.0)),
        (
            "haystack".to_owned(),
            format!("generated, {}, no repeated run of 12 words", task.language),
        ),
        ("max_tokens".to_owned(), task.max_tokens.to_string()),
        (
            "prefix cache".to_owned(),
            format!("{:?}", stage.dialect.requests.cold),
        ),
        (
            "prompt tokens".to_owned(),
            format!("{} exactly, by the server's tokenizer", task.tokens),
        ),
        ("temperature".to_owned(), "0".to_owned()),
    ]
}

/// Sends it.
pub async fn perform(
    stage: &Stage,
    prepared: Prepared,
    opened: Instant,
    cancel: &Cancel,
    sink: &mut Sink<'_>,
) -> Yield {
    let mut exchanges = Vec::new();
    if let Some(request) = prepared.request {
        let deadlines = Deadlines::of(stage.dialect, prepared.deadline);
        let mut line = Line::new(
            stage.client.clone(),
            &stage.boot.identity.model,
            stage.dialect,
            deadlines,
        );
        line.opened = opened;
        let exchange = fetch(&line, &request, 0, 0, cancel).await;
        sink.keep(&exchange);
        exchanges.push(exchange);
    }
    Yield {
        conditions: prepared.conditions,
        results: prepared.results,
        incidents: Vec::new(),
        exchanges,
    }
}
