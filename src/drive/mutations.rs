//! A chunk that is read by comparing it with the last one means what it means to the parser, whatever byte of it changes.

use std::fs;

use super::answer::Answer;
use super::recordings::{Draw, files};
use crate::evidence::exchange::Exchange;

/// What one payload does to an answer that has read `before`.
fn effect(before: &[&str], payload: &[u8]) -> Option<Exchange> {
    let mut answer = Answer::default();
    for earlier in before {
        answer.event(earlier.as_bytes(), 0.0).expect("recorded");
    }
    answer.event(payload, 1.0).ok()?;
    let mut exchange = Exchange::default();
    answer.write_into(&mut exchange);
    Some(exchange)
}

#[test]
fn a_chunk_means_the_same_whether_it_is_compared_or_parsed() {
    let mut draw = Draw::default();
    for file in files("stream_contusage_ids.sse") {
        let body = fs::read_to_string(&file).expect("readable");
        let lines = body.lines().filter_map(|l| l.strip_prefix("data: {"));
        let payloads: Vec<String> = lines.map(|l| format!("{{{l}")).collect();
        let Some([_, taught, next, ..]) = payloads.first_chunk::<4>() else {
            continue;
        };
        for _ in 0..800 {
            let mut changed = next.as_bytes().to_vec();
            let at = draw.below(changed.len());
            changed[at] = b"\"\\{}[],:0129anul \n\xff"[draw.below(19)];
            // An answer that has learned the shape of the chunk before, and one that never saw a chunk with text.
            let compared = effect(&[taught], &changed);
            let parsed = effect(&[], &changed);
            let text = |e: &Option<Exchange>| {
                e.as_ref()
                    .map(|e| (e.text.clone(), e.usage, e.token_ids.clone()))
            };
            let first = effect(&[], taught.as_bytes()).expect("recorded");
            let wanted = parsed.map(|mut e| {
                e.text.insert_str(0, &first.text);
                e.usage = e.usage.or(first.usage);
                let mut ids = first.token_ids.clone();
                if let Some(new) = e.token_ids.take() {
                    ids.get_or_insert_default().extend(new);
                }
                e.token_ids = ids;
                e
            });
            let shown = String::from_utf8_lossy(&changed).into_owned();
            assert_eq!(text(&compared), text(&wanted), "{file:?}: {shown}");
        }
    }
}
