//! Logprobs of a prompt.

use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::logprobs::{Told, likeliest};
use super::model::State;
use super::options::Options;
use super::tokenizer;

/// A token of a prompt, scored.
#[derive(Debug, Clone)]
pub(super) struct Scored {
    pub(super) told: Told,
    /// 1 for the likeliest token of its place; none for the first token.
    rank: Option<usize>,
}

/// Scores a prompt with the `top` likeliest tokens of each place; `asked` counts the prompts that were scored before.
pub(super) fn score(ids: &[u32], options: &Options, asked: u64, top: usize) -> Vec<Scored> {
    let mut scores = Vec::with_capacity(ids.len());
    let Some((first, rest)) = ids.split_first() else {
        return scores;
    };
    scores.push(Scored {
        told: Told {
            id: *first,
            logprob: None,
            top: Vec::new(),
        },
        rank: None,
    });
    let mut state = State::after(&[*first]);
    let shifted = options.has(Fault::ShiftedLogprobs);
    let mut before = state.distribution();
    for id in rest {
        let own = state.distribution();
        // Shifted by one: the token is looked up in the row of the place before its own.
        let all = if shifted {
            std::mem::replace(&mut before, own)
        } else {
            own
        };
        scores.push(Scored {
            told: Told {
                id: *id,
                logprob: Some(faulty(&all, *id, options, asked, scores.len())),
                top: tops(&all, options, top),
            },
            rank: Some(1 + all.iter().filter(|p| **p > all[*id as usize]).count()),
        });
        state.push(*id);
    }
    scores
}

/// The logprob of a token, as wrong as the faults make it.
fn faulty(all: &[f64], id: u32, options: &Options, asked: u64, place: usize) -> f64 {
    let mut logprob = all[id as usize].ln();
    if options.has(Fault::OrderDependentLogprobs) && place.is_multiple_of(3) {
        logprob -= 0.3 * (asked % 5) as f64;
    }
    if options.has(Fault::ZeroLogprobs) {
        0.0
    } else {
        logprob
    }
}

fn tops(all: &[f64], options: &Options, count: usize) -> Vec<(u32, f64)> {
    let mut top = if count == 0 {
        Vec::new()
    } else {
        likeliest(all, count)
    };
    if options.has(Fault::ZeroLogprobs) {
        top.iter_mut().for_each(|(_, p)| *p = 0.0);
    }
    top
}

/// vLLM's `prompt_logprobs`: the first absent, then a map from id to its logprob, rank and spelling.
pub(super) fn prompt_logprobs(scores: &[Scored]) -> Value {
    let entry = |id: u32, logprob: f64, rank: usize| json!({"logprob": logprob, "rank": rank, "decoded_token": tokenizer::spell(id)});
    scores
        .iter()
        .map(|scored| {
            let (Some(logprob), Some(rank)) = (scored.told.logprob, scored.rank) else {
                return Value::Null;
            };
            let mut map = Map::new();
            for (place, (id, p)) in scored.told.top.iter().enumerate() {
                map.insert(id.to_string(), entry(*id, *p, place + 1));
            }
            map.insert(
                scored.told.id.to_string(),
                entry(scored.told.id, logprob, rank),
            );
            Value::Object(map)
        })
        .collect()
}
