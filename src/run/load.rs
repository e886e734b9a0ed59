//! A workload driven by closed-loop streams.

use std::path::Path;
use std::time::Duration;

use serde_json::Map;
use tokio::time::Instant;

use super::boot::Stage;
use super::conduct::Sink;
use super::window::Yield;
use crate::archive::rundir::sha256_hex;
use crate::drive::cancel::Cancel;
use crate::drive::fetch::{Deadlines, Line};
use crate::drive::load::{Assignment, drive};
use crate::drive::request::{Cache, EndToken, Message, Prompt, Request, ReturnIds, fresh_salt};
use crate::plan::task::{Ending, Ids, Load, Prompts, Route};
use crate::workload::{Task as Ask, Workload};

/// Requests that are ready to be sent.
#[derive(Debug)]
pub struct Prepared {
    lists: Vec<Vec<Request>>,
    conditions: Vec<(String, String)>,
    incidents: Vec<String>,
}

/// How long the first token of an ordinary prompt may take: a queue of four behind a cold graph capture was seen to take 40 s.
const FIRST_TOKEN: Duration = Duration::from_secs(180);

/// Makes the requests of a load.
///
/// The prompts depend on the run's seed and the repeat alone, so that both builds of a pair get the same.
pub fn prepare(stage: &Stage, load: &Load, gate_dir: &Path, seed: u64) -> Prepared {
    let mut incidents = Vec::new();
    let workload = workload(load, gate_dir, &mut incidents);
    Prepared {
        conditions: conditions(stage, load, workload.as_ref()),
        lists: lists(load, workload.as_ref(), seed),
        incidents,
    }
}

/// The requests of a load by their number in its window, made again; why there are none goes to the incidents.
pub(super) fn requests(
    load: &Load,
    gate_dir: &Path,
    seed: u64,
    incidents: &mut Vec<String>,
) -> Vec<Request> {
    let workload = workload(load, gate_dir, incidents);
    lists(load, workload.as_ref(), seed).concat()
}

/// The requests of each stream.
fn lists(load: &Load, workload: Option<&Workload>, seed: u64) -> Vec<Vec<Request>> {
    let number = load.streams as usize * load.requests as usize;
    let asks: Vec<Ask> = match (workload, load.prompts) {
        (None, _) => Vec::new(),
        (Some(workload), Prompts::Each) => workload.tasks().into_iter().take(number).collect(),
        (Some(workload), Prompts::Same) => {
            std::iter::repeat_n(workload.draw(seed, 0, 0), number).collect()
        }
        (Some(workload), Prompts::OfRepeat(repeat)) => (0..number)
            .map(|place| workload.draw(seed, repeat, place))
            .collect(),
    };
    let mut lists = vec![Vec::new(); load.streams as usize];
    for (place, ask) in asks.iter().enumerate() {
        lists[place % load.streams as usize].push(request(ask, load));
    }
    lists
}

fn workload(load: &Load, gate_dir: &Path, incidents: &mut Vec<String>) -> Option<Workload> {
    let Some(path) = load.workload.strip_prefix("file:") else {
        return Workload::named(&load.workload);
    };
    match std::fs::read_to_string(gate_dir.join(path)) {
        Ok(text)
            if load
                .sha256
                .as_ref()
                .is_none_or(|want| *want == sha256_hex(text.as_bytes())) =>
        {
            Workload::of_text(path, &text)
                .map_err(|cause| incidents.push(format!("workload `{path}`: {cause}")))
                .ok()
        }
        Ok(_) => {
            incidents.push(format!(
                "workload `{path}` is not the one that the gate names: its SHA-256 differs"
            ));
            None
        }
        Err(cause) => {
            incidents.push(format!("workload `{path}` cannot be read: {cause}"));
            None
        }
    }
}

fn request(ask: &Ask, load: &Load) -> Request {
    let messages = ask
        .messages
        .iter()
        .map(|m| Message {
            role: m.role.clone(),
            content: m.content.clone(),
        })
        .collect();
    let prompt = match load.route {
        Route::Chat => Prompt::Chat(messages),
        Route::Completion => Prompt::Text(bare(&messages).into()),
    };
    let mut request = Request::new(&ask.id, prompt, load.max_tokens);
    request.cache = Cache::Cold(fresh_salt());
    request.end_token = match load.ending {
        Ending::Ignored => EndToken::Ignore,
        Ending::Free => EndToken::Obey,
    };
    request.return_ids = match load.ids {
        Ids::Wanted => ReturnIds::Ask,
        Ids::Unwanted => ReturnIds::Leave,
    };
    request
}

/// Messages without a template, for the plain route.
fn bare(messages: &[Message]) -> String {
    let texts: Vec<&str> = messages.iter().map(|m| m.content.as_str()).collect();
    texts.join("\n\n")
}

fn conditions(stage: &Stage, load: &Load, workload: Option<&Workload>) -> Vec<(String, String)> {
    let ending = match (load.ending, stage.dialect.requests.ignore_eos) {
        (Ending::Free, _) => "free",
        (Ending::Ignored, Some(_)) => "end token ignored",
        (Ending::Ignored, None) => "free (this server cannot ignore the end token)",
    };
    let mut conditions = vec![
        ("end".to_owned(), ending.to_owned()),
        ("max_tokens".to_owned(), load.max_tokens.to_string()),
        (
            "prefix cache".to_owned(),
            format!("{:?}", stage.dialect.requests.cold),
        ),
        ("requests a stream".to_owned(), load.requests.to_string()),
        (
            "route".to_owned(),
            match load.route {
                Route::Chat => "/v1/chat/completions, streamed".to_owned(),
                Route::Completion => "/v1/completions, streamed".to_owned(),
            },
        ),
        ("streams".to_owned(), load.streams.to_string()),
        ("temperature".to_owned(), "0".to_owned()),
        ("workload".to_owned(), load.workload.clone()),
    ];
    if let Some(workload) = workload {
        conditions.push(("workload sha256".to_owned(), workload.digest()));
    }
    conditions
}

/// Sends them.
pub async fn perform(
    stage: &Stage,
    prepared: Prepared,
    opened: Instant,
    cancel: &Cancel,
    sink: &mut Sink<'_>,
) -> Yield {
    let deadlines = Deadlines::of(stage.dialect, FIRST_TOKEN);
    let mut line = Line::new(
        stage.client.clone(),
        &stage.boot.identity.model,
        stage.dialect,
        deadlines,
    );
    line.opened = opened;
    let exchanges = drive(
        &line,
        Assignment::PerStream(prepared.lists),
        0,
        cancel,
        |e| sink.keep(e),
    )
    .await;
    Yield {
        conditions: prepared.conditions,
        results: Map::new(),
        incidents: prepared.incidents,
        exchanges,
    }
}
