//! Logprobs of a prompt.

use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::model::State;
use super::options::Options;
use super::tokenizer::{self, VOCABULARY};

/// Natural-log probability and rank of each token of a prompt but the first.
pub(super) struct Scored {
    pub(super) logprob: f64,
    pub(super) rank: usize,
    pub(super) best: u32,
    pub(super) best_logprob: f64,
}

/// Scores a prompt; `asked` counts the prompts that were scored before.
pub(super) fn score(ids: &[u32], options: &Options, asked: u64) -> Vec<Scored> {
    let Some(first) = ids.first() else {
        return Vec::new();
    };
    let mut state = State::after(&[*first]);
    let mut scores = Vec::with_capacity(ids.len());
    for (place, id) in ids.iter().enumerate().skip(1) {
        let all = state.distribution();
        scores.push(one(&all, *id, options, asked, place));
        state.push(*id);
    }
    scores
}

fn one(all: &[f64; VOCABULARY], id: u32, options: &Options, asked: u64, place: usize) -> Scored {
    let best = super::model::likeliest(all);
    let mut logprob = all[id as usize].ln();
    if options.has(Fault::ShiftedLogprobs) {
        // The row of a token that has nothing to do with the one that is asked for.
        logprob = all[(id as usize * 7 + 13) % VOCABULARY].ln();
    }
    if options.has(Fault::OrderDependentLogprobs) {
        logprob -= 0.3 * ((asked % 5) as f64) * f64::from(u8::from(place.is_multiple_of(3)));
    }
    if options.has(Fault::ZeroLogprobs) {
        logprob = 0.0;
    }
    let own = all[id as usize];
    Scored {
        logprob,
        rank: 1 + all.iter().filter(|p| **p > own).count(),
        best,
        best_logprob: if options.has(Fault::ZeroLogprobs) {
            0.0
        } else {
            all[best as usize].ln()
        },
    }
}

/// vLLM's `prompt_logprobs`: the first absent, then a map from id to its logprob, rank and spelling.
pub(super) fn prompt_logprobs(ids: &[u32], scores: &[Scored], top: i64) -> Value {
    let entry = |id: u32, logprob: f64, rank: usize| json!({"logprob": logprob, "rank": rank, "decoded_token": tokenizer::spell(id)});
    let rest = ids.iter().skip(1).zip(scores).map(|(id, s)| {
        let mut map = Map::new();
        map.insert(id.to_string(), entry(*id, s.logprob, s.rank));
        if top > 0 && s.best != *id {
            map.insert(s.best.to_string(), entry(s.best, s.best_logprob, 1));
        }
        Value::Object(map)
    });
    std::iter::once(Value::Null).chain(rest).collect()
}

/// The legacy `logprobs` of an echoed prompt.
pub(super) fn echoed(ids: &[u32], scores: &[Scored]) -> Value {
    let tokens: Vec<String> = ids.iter().map(|id| format!("token_id:{id}")).collect();
    let logprobs: Vec<Option<f64>> = std::iter::once(None)
        .chain(scores.iter().map(|s| Some(s.logprob)))
        .collect();
    json!({"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": null, "text_offset": []})
}
