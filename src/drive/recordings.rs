//! Every recorded answer goes through the reader and the fold, whole and cut in pieces.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::answer::{Answer, BodyEnd};
use super::fetch::{Deadlines, Line, fetch};
use super::request::{Message, Prompt, Request};
use super::stream::{EventReader, StreamFault};
use super::tiny_server::{TinyServer, answer, chunk, end, stream_head};
use super::{cancel::Cancel, recognise};
use crate::dialect::named;
use crate::evidence::exchange::{Exchange, Outcome};

pub(super) fn files(ending: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/servers");
    let mut found = Vec::new();
    for family in fs::read_dir(root).expect("fixtures") {
        let family = family.expect("readable").path();
        if family.is_dir() {
            let inside = fs::read_dir(family).expect("readable");
            found.extend(inside.map(|f| f.expect("readable").path()));
        }
    }
    found.retain(|f| f.to_string_lossy().ends_with(ending));
    found.sort();
    found
}

/// A small generator whose numbers are the same in every run.
pub(super) struct Draw(u64);

impl Default for Draw {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Draw {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// Reads a body cut at these places, each piece a thousandth of a second after the last.
fn fold(body: &[u8], cuts: &[usize]) -> (Exchange, Outcome) {
    let mut folded = Answer::default();
    let mut reader = EventReader::default();
    let mut result = Ok(());
    let mut from = 0;
    for (i, to) in cuts.iter().copied().chain([body.len()]).enumerate() {
        let mut each = |payload: &[u8]| folded.event(payload, i as f64 / 1000.0);
        result = result.and_then(|()| reader.feed(&body[from..to], &mut each));
        from = to;
    }
    let mut each = |payload: &[u8]| folded.event(payload, 1e6);
    result = result.and_then(|()| reader.finish(&mut each));
    let outcome = match result {
        Ok(()) => folded.outcome(&BodyEnd::Clean, reader.stray()),
        Err(outcome) => outcome,
    };
    let mut exchange = Exchange::default();
    folded.write_into(&mut exchange);
    (exchange, outcome)
}

/// The same without times, which depend on the cuts.
fn timeless(mut exchange: Exchange) -> Exchange {
    exchange.gaps = None;
    exchange.first_token_s = None;
    exchange.last_token_s = None;
    exchange
}

/// What a plain reading by serde's tree finds in the same body.
struct Plain {
    text: String,
    token_chunks: u32,
    completion: Option<u64>,
    finish: Option<String>,
    ids: Vec<u32>,
}

fn plainly(body: &str) -> Plain {
    let mut plain = Plain {
        text: String::new(),
        token_chunks: 0,
        completion: None,
        finish: None,
        ids: Vec::new(),
    };
    for payload in body.lines().filter_map(|l| l.strip_prefix("data: ")) {
        let Ok(json) = serde_json::from_str::<Value>(payload) else {
            continue;
        };
        let choice = &json["choices"][0];
        let text = choice["text"]
            .as_str()
            .or(choice["delta"]["content"].as_str())
            .unwrap_or("");
        let ids = choice["token_ids"].as_array().cloned().unwrap_or_default();
        plain.text.push_str(text);
        plain.token_chunks += u32::from(!text.is_empty() || !ids.is_empty());
        plain
            .ids
            .extend(ids.iter().filter_map(Value::as_u64).map(|id| id as u32));
        plain.completion = json["usage"]["completion_tokens"]
            .as_u64()
            .or(plain.completion);
        plain.finish = choice["finish_reason"]
            .as_str()
            .map(str::to_owned)
            .or(plain.finish);
    }
    plain
}

#[test]
fn every_recorded_stream_folds_to_what_a_plain_reading_finds() {
    let streams = files(".sse");
    assert!(streams.len() >= 44, "{} streams", streams.len());
    for file in streams {
        let name = file
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let body = fs::read(&file).expect("readable");
        let (exchange, outcome) = fold(&body, &[]);
        let plain = plainly(std::str::from_utf8(&body).expect("UTF-8"));
        if !body.starts_with(b"data") {
            // transformers serve refuses unknown fields with a JSON body.
            assert!(
                matches!(outcome, Outcome::Malformed { .. }),
                "{name}: {outcome:?}"
            );
            continue;
        }
        assert_eq!(outcome, Outcome::Complete, "{name}");
        assert_eq!(exchange.text, plain.text, "{name}");
        assert_eq!(exchange.text_bytes, plain.text.len() as u64, "{name}");
        assert_eq!(exchange.token_chunks, plain.token_chunks, "{name}");
        assert_eq!(
            exchange.usage.map(|u| u.completion),
            plain.completion,
            "{name}"
        );
        assert_eq!(exchange.finish_reason, plain.finish, "{name}");
        assert_eq!(
            exchange.token_ids.clone().unwrap_or_default(),
            plain.ids,
            "{name}"
        );
        if let (Some(ids), Some(usage)) = (&exchange.token_ids, exchange.usage) {
            assert_eq!(ids.len() as u64, usage.completion, "{name}");
        }
    }
}

#[test]
fn a_recorded_stream_reads_the_same_however_it_is_cut() {
    let mut draw = Draw::default();
    for file in files(".sse") {
        let body = fs::read(&file).expect("readable");
        let whole = fold(&body, &[]);
        for _ in 0..20 {
            let mut cuts: Vec<usize> = (0..draw.below(12))
                .map(|_| draw.below(body.len() + 1))
                .collect();
            cuts.sort_unstable();
            let cut = fold(&body, &cuts);
            assert_eq!(
                timeless(cut.0),
                timeless(whole.0.clone()),
                "{file:?} {cuts:?}"
            );
            assert_eq!(cut.1, whole.1, "{file:?} {cuts:?}");
        }
    }
    for name in [
        "vllm/vllm_draft_si8_cmpl_stream_contusage_ids.sse",
        "llamacpp/llamacpp_specdraft_chat_stream_usage.sse",
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/servers");
        let body = fs::read(root.join(name)).expect("readable");
        let whole = timeless(fold(&body, &[]).0);
        for at in 0..=body.len() {
            assert_eq!(timeless(fold(&body, &[at]).0), whole, "{name} at {at}");
        }
        let single: Vec<usize> = (1..body.len()).collect();
        assert_eq!(timeless(fold(&body, &single).0), whole);
    }
}

#[test]
fn a_recorded_stream_that_is_cut_short_is_never_complete() {
    for file in files(".sse") {
        let body = fs::read(&file).expect("readable");
        let Some(finish) = memchr::memmem::find(&body, b"\"finish_reason\":\"") else {
            continue;
        };
        // The event with the finish reason is gone, or half of it.
        for end in [finish / 2, finish, finish + 10] {
            let (_, outcome) = fold(&body[..end], &[]);
            assert_ne!(outcome, Outcome::Complete, "{file:?} at {end}");
        }
    }
}

fn recorded(name: &str) -> Exchange {
    let file = files(name).into_iter().next().expect("recorded");
    let (exchange, outcome) = fold(&fs::read(file).expect("readable"), &[]);
    assert_eq!(outcome, Outcome::Complete);
    exchange
}

#[test]
fn each_server_s_peculiarities_end_in_the_right_fields() {
    let vllm = recorded("vllm_ngram_cmpl_stream_contusage_ids.sse");
    assert_eq!(vllm.first_chunk_tokens, Some(1));
    assert_eq!(vllm.token_chunks, 17);
    assert_eq!(vllm.prompt_ids.as_ref().map(|d| d.count), Some(44));
    assert_eq!(
        vllm.system_fingerprint.as_deref(),
        Some("vllm-0.32.0-95452d43")
    );
    assert_eq!(vllm.model.as_deref(), Some("smollm2-135m"));

    let chat = recorded("vllm_nospec_chat_stream_contusage.sse");
    assert_eq!(chat.token_chunks, 18, "neither the role nor the stop chunk");
    let usage = chat.usage.expect("told");
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached),
        (56, 19, Some(0))
    );
    assert_eq!(chat.first_chunk_tokens, Some(1));

    let speculation = recorded("vllm_draft_si8_cmpl_stream_usage.sse");
    let account = speculation.server.expect("told");
    assert_eq!(
        (account.drafted, account.accepted, account.steps),
        (Some(48), Some(48), Some(16))
    );
    assert_eq!(
        speculation.first_chunk_tokens, None,
        "no continuous usage, no ids"
    );

    let llama = recorded("llamacpp_specdraft_chat_stream_usage.sse");
    let account = llama.server.expect("told");
    assert_eq!((account.drafted, account.accepted), (Some(16), Some(14)));
    assert_eq!(
        (account.prompt_computed, account.prompt_cached),
        (Some(1), Some(55))
    );
    assert_eq!(account.decode_s, Some(0.251369));
    assert_eq!(llama.usage.and_then(|u| u.cached), Some(55));

    let asked_nothing = recorded("llamacpp_nospec_chat_stream_nousage.sse");
    assert_eq!(asked_nothing.usage, None, "absent is not zero");
    assert_eq!(asked_nothing.server.and_then(|s| s.generated), Some(19));

    let mistral = recorded("mistralrs_cmpl_stream_usage.sse");
    assert_eq!(mistral.usage, None);
    let transformers = recorded("tfserve_chat_stream_usage.sse");
    assert_eq!(transformers.usage.map(|u| u.completion), Some(19));
}

#[test]
fn every_recorded_body_is_read_as_what_it_is_and_none_as_a_stream() {
    let bodies = files(".json");
    assert!(bodies.len() > 150);
    for file in bodies {
        let body = fs::read(&file).expect("readable");
        let (_, outcome) = fold(&body, &[]);
        assert_ne!(outcome, Outcome::Complete, "{file:?}");
        let mut reader = EventReader::default();
        let mut each = |_: &[u8]| Err(StreamFault::Giant(0));
        assert_eq!(
            reader.feed(&body, &mut each),
            Ok(()),
            "{file:?} holds no event"
        );
    }
}

#[tokio::test]
async fn every_recorded_stream_comes_over_the_wire_as_it_folds() {
    for file in files(".sse") {
        let body = fs::read(&file).expect("readable");
        let (folded, outcome) = fold(&body, &[]);
        let sent = body.clone();
        let server = TinyServer::start(move |_, _| {
            if !sent.starts_with(b"data") {
                return answer("422 Unprocessable Entity", "application/json", &sent);
            }
            let mut steps = vec![stream_head()];
            steps.extend(sent.chunks(97).map(chunk));
            steps.push(end());
            steps
        })
        .await;
        let dialect = named("openai").expect("known");
        let deadlines = Deadlines::of(dialect, std::time::Duration::from_secs(60));
        let line = Line::new(server.client(), "smollm2-135m", dialect, deadlines);
        let message = Message {
            role: "user".to_owned(),
            content: "Hi".to_owned(),
        };
        let request = Request::new("r", Prompt::Chat(vec![message]), 64);
        let exchange = fetch(&line, &request, 0, 0, &Cancel::never()).await;
        if body.starts_with(b"data") {
            assert_eq!(exchange.outcome, outcome, "{file:?}");
            assert_eq!(exchange.text_sha256, folded.text_sha256, "{file:?}");
            assert_eq!(exchange.usage, folded.usage, "{file:?}");
            assert_eq!(exchange.token_chunks, folded.token_chunks, "{file:?}");
            assert!(exchange.first_token_s >= exchange.headers_s, "{file:?}");
        } else {
            assert!(
                matches!(exchange.outcome, Outcome::Refused { .. }),
                "{file:?}"
            );
            assert_eq!(exchange.status, Some(422), "{file:?}");
        }
    }
}

/// Serves the recorded `GET` answers of one run; what was not recorded is 404.
async fn replay(prefix: &'static str) -> TinyServer {
    TinyServer::start(move |head, _| {
        let path = head.split(' ').nth(1).unwrap_or("").trim_start_matches('/');
        let name = path.replace('/', "_");
        let (file, kind) = match name.as_str() {
            "metrics" => (format!("/{prefix}_get_metrics.txt"), "text/plain"),
            _ => (format!("/{prefix}_get_{name}.json"), "application/json"),
        };
        match files(&file).first() {
            Some(file) => answer("200 OK", kind, &fs::read(file).expect("readable")),
            None => answer(
                "404 Not Found",
                "application/json",
                b"{\"detail\":\"Not Found\"}",
            ),
        }
    })
    .await
}

#[tokio::test]
async fn recorded_seats_are_recognised_with_version_model_and_context() {
    for (prefix, dialect, version, context) in [
        ("vllm_ngram", "vllm", Some("0.32.0"), Some(8192)),
        (
            "llamacpp_nospec",
            "llamacpp",
            Some("b0-unknown"),
            Some(8192),
        ),
        (
            "xllamacpp_ngram",
            "llamacpp",
            Some("b0-unknown"),
            Some(8192),
        ),
    ] {
        let server = replay(prefix).await;
        let seat = recognise::recognise(&server.client(), &recognise::Expected::default())
            .await
            .expect("recognised");
        assert_eq!(seat.dialect.id, dialect);
        assert_eq!(seat.identity.version.as_deref(), version);
        assert_eq!(seat.identity.model, "smollm2-135m");
        assert_eq!(seat.identity.max_model_len, context);
    }
    let mistral = replay("mistralrs").await;
    let expected = recognise::Expected {
        model: Some("defualt".to_owned()),
        ..Default::default()
    };
    let fault = recognise::recognise(&mistral.client(), &expected)
        .await
        .expect_err("no such model");
    let said = fault.to_string();
    assert!(said.contains("did you mean `default`?"), "{said}");
}
