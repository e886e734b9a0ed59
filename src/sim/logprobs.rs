//! Logprobs of tokens, in the two shapes that the API has for them.

use serde_json::{Map, Value, json};

use super::tokenizer;

/// A token with what is told of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) id: u32,
    /// Its natural-log probability; the first token of a prompt has none.
    pub(super) logprob: Option<f64>,
    /// The likeliest tokens, the likeliest first, if they were asked for.
    pub(super) top: Vec<(u32, f64)>,
}

/// The `count` likeliest tokens with their natural-log probabilities; of equals the lower id first.
pub(super) fn likeliest(all: &[f64], count: usize) -> Vec<(u32, f64)> {
    let mut ranked: Vec<(u32, f64)> = (0..).zip(all.iter().copied()).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(count);
    ranked
        .iter_mut()
        .for_each(|(_, p)| *p = p.max(f64::MIN_POSITIVE).ln());
    ranked
}

/// The shape of chats.
pub(super) fn chat(tokens: &[Told]) -> Value {
    let entry = |id: u32, logprob: Option<f64>| json!({"token": tokenizer::spell(id), "logprob": logprob, "bytes": tokenizer::bytes(&[id])});
    let content: Vec<Value> = tokens
        .iter()
        .map(|token| {
            let mut told = entry(token.id, token.logprob);
            told["top_logprobs"] = token
                .top
                .iter()
                .map(|(id, p)| entry(*id, Some(*p)))
                .collect();
            told
        })
        .collect();
    json!({ "content": content })
}

/// The older shape of completions; `place` is where the first token stands, in characters, and moves behind the last.
pub(super) fn legacy(tokens: &[Told], place: &mut usize) -> Value {
    let mut offsets = Vec::with_capacity(tokens.len());
    let mut tops = Vec::with_capacity(tokens.len());
    let spelt: Vec<String> = tokens.iter().map(|t| tokenizer::spell(t.id)).collect();
    for (token, text) in tokens.iter().zip(&spelt) {
        offsets.push(*place);
        *place += text.chars().count();
        tops.push(token.logprob.map_or(Value::Null, |own| {
            let mut map = Map::new();
            map.insert(text.clone(), json!(own));
            for (id, logprob) in &token.top {
                map.entry(tokenizer::spell(*id))
                    .or_insert_with(|| json!(logprob));
            }
            Value::Object(map)
        }));
    }
    let logprobs: Vec<Option<f64>> = tokens.iter().map(|t| t.logprob).collect();
    json!({"text_offset": offsets, "token_logprobs": logprobs, "tokens": spelt, "top_logprobs": tops})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_shape_counts_on_over_its_parts() {
        let told = |id, logprob| Told {
            id,
            logprob,
            top: vec![(98, -0.5)],
        };
        let mut place = 0;
        let first = legacy(&[told(97, None), told(98, Some(-0.5))], &mut place);
        assert_eq!(first["text_offset"], json!([0, 1]));
        assert_eq!(first["top_logprobs"], json!([null, {"b": -0.5}]));
        let second = legacy(&[told(99, Some(-2.0))], &mut place);
        assert_eq!(second["text_offset"], json!([2]));
        assert_eq!(second["top_logprobs"], json!([{"b": -0.5, "c": -2.0}]));
    }

    #[test]
    fn the_likeliest_come_first() {
        let ids: Vec<u32> = likeliest(&[0.1, 0.5, 0.1, 0.3], 3)
            .iter()
            .map(|t| t.0)
            .collect();
        assert_eq!(ids, [1, 3, 0]);
    }
}
