//! Logprobs of fixed token windows, one request after another.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Map;

use super::boot::Stage;
use super::window::Yield;
use crate::archive::rundir::{ArchiveError, RunDir, sha256_hex};
use crate::dialect::PromptLogprobs;
use crate::drive::cancel::Cancel;
use crate::drive::prompt_logprobs::{ScoreFault, Scores, Scoring, discover, score};
use crate::drive::request::{Cache, fresh_salt};
use crate::drive::tokenize::{SpecialTokens, tokenize_text};
use crate::evidence::body::{ScoreFault as Fault, ScoredWindow};
use crate::plan::task::{Control, ScoreTask};
use crate::workload::corpus::{Corpus, shuffled, windows};

/// Windows that are ready to be scored.
#[derive(Debug)]
pub struct Prepared {
    pub(super) texts: Vec<Text>,
    pub(super) route: Result<PromptLogprobs, ScoreFault>,
    pub(super) best: Best,
    pub(super) conditions: Vec<(String, String)>,
    pub(super) incidents: Vec<String>,
}

/// Tokens to be scored.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) name: String,
    pub(super) ids: Vec<u32>,
    pub(super) bytes: Option<u64>,
    /// Tokens of the prompt before the answer, where there is one.
    pub(super) answer_from: Option<u64>,
    /// Why they cannot be scored.
    pub(super) fault: Option<String>,
}

/// Whether the likeliest token of each place is asked for too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Best {
    /// It is: an answer is twice as long.
    Wanted,
    /// It is not.
    Unwanted,
}

/// How long one scored prompt may take: 166k tokens at the slow prefill of a full seat take three minutes.
const DEADLINE: Duration = Duration::from_secs(600);
/// How long the body may fall silent.
const STALL: Duration = Duration::from_secs(60);
/// How often a request that the machine failed (reset, out of memory) is tried again.
const TRIES: u32 = 2;
/// Seed of the shuffled control; any will do, but a run must be repeatable.
const SHUFFLE_SEED: u64 = 7;

/// Probes the route and cuts the windows.
pub async fn prepare(stage: &Stage, task: &ScoreTask, gate_dir: &Path) -> Prepared {
    let route = probe(stage).await;
    let mut incidents = Vec::new();
    let corpus = corpus(task, gate_dir, &mut incidents);
    let texts = match (&route, &corpus) {
        (Ok(_), Some(corpus)) => cut(stage, task, corpus, &mut incidents).await,
        _ => Vec::new(),
    };
    Prepared {
        texts,
        conditions: conditions(task, corpus.as_ref(), &route),
        route,
        best: Best::Unwanted,
        incidents,
    }
}

/// The route that gives this seat's prompt logprobs, tried.
pub(super) async fn probe(stage: &Stage) -> Result<PromptLogprobs, ScoreFault> {
    discover(
        &scoring(
            stage,
            stage.dialect.requests.prompt_logprobs,
            Best::Unwanted,
        ),
        &Cancel::never(),
    )
    .await
}

fn scoring(stage: &Stage, route: PromptLogprobs, best: Best) -> Scoring {
    Scoring {
        client: stage.client.clone(),
        model: stage.boot.identity.model.clone(),
        dialect: stage.dialect,
        route,
        top: u32::from(best == Best::Wanted),
        deadline: DEADLINE,
        stall: STALL,
    }
}

fn corpus(task: &ScoreTask, gate_dir: &Path, incidents: &mut Vec<String>) -> Option<Corpus> {
    let Some(path) = task.corpus.strip_prefix("file:") else {
        return Corpus::named(&task.corpus);
    };
    match std::fs::read_to_string(gate_dir.join(path)) {
        Ok(text)
            if task
                .sha256
                .as_ref()
                .is_none_or(|want| *want == sha256_hex(text.as_bytes())) =>
        {
            Some(Corpus::of_text(path, &text))
        }
        Ok(_) => {
            incidents.push(format!(
                "corpus `{path}` is not the one that the gate names: its SHA-256 differs"
            ));
            None
        }
        Err(cause) => {
            incidents.push(format!("corpus `{path}` cannot be read: {cause}"));
            None
        }
    }
}

async fn cut(
    stage: &Stage,
    task: &ScoreTask,
    corpus: &Corpus,
    incidents: &mut Vec<String>,
) -> Vec<Text> {
    let tokenized = tokenize_text(
        &stage.client,
        stage.dialect,
        &stage.boot.identity.model,
        &corpus.text,
        SpecialTokens::Leave,
    )
    .await;
    let ids = match tokenized {
        Ok(ids) => ids,
        Err(fault) => {
            incidents.push(format!("the corpus could not be tokenized: {fault}"));
            return Vec::new();
        }
    };
    let length = task.window as usize;
    let ranges = windows(ids.len(), length, length);
    // Bytes are known for the whole text only: the share of its tokens that are scored stands for the share of its bytes.
    let bytes_a_token = corpus.text.len() as f64 / ids.len().max(1) as f64;
    let mut texts: Vec<Text> = ranges
        .into_iter()
        .take(task.windows as usize)
        .enumerate()
        .map(|(place, range)| {
            let ids = ids[range].to_vec();
            let bytes = Some((bytes_a_token * ids.len().saturating_sub(1) as f64).round() as u64);
            Text {
                name: format!("{}/{place}", corpus.name),
                ids,
                bytes,
                ..Text::default()
            }
        })
        .collect();
    match task.control {
        Control::Text => {}
        Control::Reversed => texts.reverse(),
        Control::Shuffled => {
            for text in &mut texts {
                text.ids = shuffled(&text.ids, SHUFFLE_SEED);
            }
        }
        Control::Seams => texts = seams(&ids, length, &corpus.name),
    }
    texts
}

/// Prefixes of one text whose lengths straddle the powers of two at which engines change their ways: block and chunk
/// sizes, captured graphs.
fn seams(ids: &[u32], window: usize, name: &str) -> Vec<Text> {
    let mut lengths: Vec<usize> = [128_usize, 256, 512, 1024, 2048, 4096]
        .into_iter()
        .flat_map(|n| [n - 1, n, n + 1])
        .filter(|n| *n <= ids.len() && *n <= window.max(513))
        .collect();
    lengths.dedup();
    lengths
        .into_iter()
        .map(|n| Text {
            name: format!("{name}/prefix-{n}"),
            ids: ids[..n].to_vec(),
            ..Text::default()
        })
        .collect()
}

fn conditions(
    task: &ScoreTask,
    corpus: Option<&Corpus>,
    route: &Result<PromptLogprobs, ScoreFault>,
) -> Vec<(String, String)> {
    let mut conditions = vec![
        (
            "BOS".to_owned(),
            "none added; the first token of each window is not scored".to_owned(),
        ),
        ("concurrency".to_owned(), "1".to_owned()),
        ("corpus".to_owned(), task.corpus.clone()),
        (
            "prefix cache".to_owned(),
            "a fresh salt for each request".to_owned(),
        ),
        ("stride".to_owned(), task.window.to_string()),
        ("window".to_owned(), task.window.to_string()),
    ];
    if let Some(corpus) = corpus {
        conditions.push(("corpus sha256".to_owned(), corpus.sha256.clone()));
    }
    if let Ok(route) = route {
        conditions.push(("route".to_owned(), format!("{route:?}")));
    }
    conditions.sort();
    conditions
}

/// Scores them, each written down before the next is asked for.
///
/// # Errors
/// When the evidence cannot be written.
pub async fn perform(
    stage: &Stage,
    prepared: Prepared,
    dir: &RunDir,
    window: &str,
    cancel: &Cancel,
) -> Result<Yield, ArchiveError> {
    let mut results = Map::new();
    let Prepared {
        texts,
        route,
        best,
        mut conditions,
        incidents,
    } = prepared;
    match route {
        Ok(route) => {
            let file = format!("scores/{window}.jsonl");
            let mut lines = String::new();
            let mut digest = String::new();
            let scoring = scoring(stage, route, best);
            for text in texts {
                if cancel.is_cancelled() {
                    break;
                }
                let _ = write!(digest, "{:?}", text.ids);
                let scored = one(&scoring, text, cancel).await;
                lines.push_str(&serde_json::to_string(&scored).unwrap_or_default());
                lines.push('\n');
                let path = dir.evidence(&file);
                std::fs::write(&path, &lines).map_err(|e| ArchiveError::at(&path, "write", e))?;
            }
            if !lines.is_empty() {
                results.insert("scores".into(), file.into());
                conditions.push(("token ids sha256".to_owned(), sha256_hex(digest.as_bytes())));
            }
        }
        Err(fault @ (ScoreFault::Unsupported(_) | ScoreFault::MissingField(_))) => {
            results.insert("unsupported".into(), fault.to_string().into());
        }
        Err(fault) => {
            results.insert("probe_fault".into(), fault.to_string().into());
            results.insert("probe_infra".into(), fault.is_infra().into());
        }
    }
    Ok(Yield {
        conditions,
        results,
        incidents,
        exchanges: Vec::new(),
    })
}

async fn one(scoring: &Scoring, text: Text, cancel: &Cancel) -> ScoredWindow {
    let mut scored = ScoredWindow {
        name: text.name,
        logprobs: Vec::new(),
        ranks: Vec::new(),
        best: Vec::new(),
        prompt_tokens: None,
        bytes: text.bytes,
        answer_from: text.answer_from,
        fault: text.fault.map(|text| Fault { infra: false, text }),
        ids: text.ids,
    };
    if scored.fault.is_some() {
        return scored;
    }
    for attempt in 1..=TRIES {
        match score(scoring, &scored.ids, &Cache::Cold(fresh_salt()), cancel).await {
            Ok(scores) => {
                fill(&mut scored, &scores, scoring);
                return scored;
            }
            Err(fault) => {
                let infra = fault.is_infra();
                scored.fault = Some(Fault {
                    infra,
                    text: fault.to_string(),
                });
                if !infra || attempt == TRIES {
                    return scored;
                }
            }
        }
    }
    scored
}

fn fill(scored: &mut ScoredWindow, scores: &Scores, scoring: &Scoring) {
    scored.fault = None;
    scored.prompt_tokens = scores.usage.map(|u| u.prompt);
    scored.logprobs = std::iter::once(None)
        .chain(scores.tokens.iter().map(|t| Some(t.logprob)))
        .collect();
    scored.ranks = std::iter::once(None)
        .chain(scores.tokens.iter().map(|t| t.rank))
        .collect();
    if scoring.top > 0 {
        scored.best = std::iter::once(None)
            .chain(scores.tokens.iter().map(|t| t.best))
            .collect();
    }
}
