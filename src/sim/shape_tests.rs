//! The HTTP surface against what vLLM was recorded to answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::options::Options;
use super::test_seat::{Reply, chat, completion, seat, with};

/// The paths of all keys; elements of lists and maps keyed by tokens count once.
fn keys(value: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, at: &str, into: &mut BTreeSet<String>) {
        match value {
            // Cached tokens are told when vLLM is started with `--enable-prompt-tokens-details`; the recordings are not.
            Value::Object(_) if at.ends_with("prompt_tokens_details") => {}
            Value::Object(map) => {
                for (key, value) in map {
                    let by_token =
                        at.ends_with("top_logprobs[]") || at.ends_with("prompt_logprobs[]");
                    let path = if by_token {
                        format!("{at}.*")
                    } else {
                        format!("{at}.{key}")
                    };
                    into.insert(path.clone());
                    walk(value, &path, into);
                }
            }
            Value::Array(list) => list.iter().for_each(|v| walk(v, &format!("{at}[]"), into)),
            _ => {}
        }
    }
    let mut paths = BTreeSet::new();
    walk(value, "", &mut paths);
    paths.remove(".usage.prompt_tokens_details");
    paths
}

fn recorded(name: &str) -> String {
    let path = format!(
        "{}/fixtures/servers/vllm/vllm_ngram_{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn recorded_events(name: &str) -> Vec<Value> {
    Reply {
        status: 200,
        body: recorded(name).trim_end().to_owned(),
    }
    .events()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_the_keys_of_vllms_streams() {
    let seat = seat(Options::default()).await;
    let all = json!({"stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}});
    let usage = json!({"stream": true, "stream_options": {"include_usage": true}});
    let ids = with(all.clone(), json!({"return_token_ids": true}));
    let cases = [
        (
            "/v1/chat/completions",
            "chat_stream_contusage.sse",
            chat("Describe a harbour.", all),
        ),
        (
            "/v1/chat/completions",
            "chat_stream_usage.sse",
            chat("Describe a harbour.", usage.clone()),
        ),
        (
            "/v1/chat/completions",
            "chat_stream_nousage.sse",
            chat("Describe a harbour.", json!({"stream": true})),
        ),
        (
            "/v1/completions",
            "cmpl_stream_usage.sse",
            completion("The harbour", usage),
        ),
        (
            "/v1/completions",
            "cmpl_stream_contusage_ids.sse",
            completion("The harbour", ids),
        ),
    ];
    for (path, name, body) in cases {
        let (ours, theirs) = (seat.post(path, &body).await.events(), recorded_events(name));
        // The first, the second, the last with words, and what follows it.
        for place in [0, 1, theirs.len() - 2, theirs.len() - 1] {
            let from_end = theirs.len() - place;
            let our_place = if place < 2 {
                place
            } else {
                ours.len() - from_end
            };
            assert_eq!(
                keys(&ours[our_place]),
                keys(&theirs[place]),
                "{name}, event {place}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_answers_have_the_keys_of_vllms() {
    let seat = seat(Options::default()).await;
    let cases = [
        (
            "/v1/chat/completions",
            "chat_nonstream.json",
            chat("Describe a harbour.", json!({})),
        ),
        (
            "/v1/chat/completions",
            "chat_logprobs.json",
            chat(
                "Describe a harbour.",
                json!({"logprobs": true, "top_logprobs": 2}),
            ),
        ),
        (
            "/v1/completions",
            "cmpl_seed.json",
            completion("The harbour", json!({"seed": 3})),
        ),
        (
            "/v1/completions",
            "cmpl_logprobs3.json",
            completion("The harbour", json!({"logprobs": 3})),
        ),
        (
            "/v1/completions",
            "cmpl_prompt_logprobs1_mt1.json",
            completion(
                "The harbour",
                json!({"prompt_logprobs": 1, "max_tokens": 1}),
            ),
        ),
        (
            "/v1/completions",
            "cmpl_echo_logprobs0_mt0.json",
            completion(
                "The harbour",
                json!({"echo": true, "logprobs": 0, "max_tokens": 0}),
            ),
        ),
        (
            "/v1/completions",
            "cmpl_return_token_ids.json",
            completion("The harbour", json!({"return_token_ids": true})),
        ),
        (
            "/v1/completions",
            "cmpl_bad_model.json",
            completion("The harbour", json!({"model": "no-such-model"})),
        ),
        (
            "/tokenize",
            "tokenize_model.json",
            completion("The harbour", json!({})),
        ),
    ];
    for (path, name, body) in cases {
        let theirs: Value = serde_json::from_str(&recorded(name)).unwrap();
        assert_eq!(
            keys(&seat.post(path, &body).await.json()),
            keys(&theirs),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_family_of_the_metrics_is_one_of_vllms_or_of_the_plugin() {
    let seat = seat(Options::default()).await;
    let known = recorded("metrics_after.txt");
    let known: BTreeSet<&str> = known.lines().filter(|l| l.starts_with("# TYPE")).collect();
    let ours = seat.ask("GET", "/metrics", "").await.body;
    for kind in ours
        .lines()
        .filter(|l| l.starts_with("# TYPE") && !l.contains(" exl3_moe_"))
    {
        assert!(known.contains(kind), "{kind}");
    }
    let plain = super::test_seat::seat(Options {
        draft: None,
        ..Options::default()
    })
    .await;
    assert_eq!(
        plain.metric("vllm:spec_decode_num_drafts_total").await,
        None
    );
    assert_eq!(
        seat.metric("vllm:spec_decode_num_drafts_total").await,
        Some(0.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vllm_refuses_is_refused() {
    let seat = seat(Options {
        max_model_len: 100,
        ..Options::default()
    })
    .await;
    for (status, more) in [
        (400, json!({"stream_options": {"include_usage": true}})),
        (400, json!({"stream": true, "prompt_logprobs": 0})),
        (400, json!({"logprobs": 21})),
        (400, json!({"prompt_logprobs": -1})),
        (400, json!({"max_tokens": 0})),
        (400, json!({"min_tokens": 30})),
        (400, json!({"max_tokens": 99})),
        (400, json!({"prompt": [99_999]})),
        (400, json!({"prompt": 7})),
        (404, json!({"model": "x"})),
        (200, json!({"no_such_parameter": 1})),
    ] {
        let reply = seat
            .post("/v1/completions", &completion("The harbour", more.clone()))
            .await;
        assert_eq!(reply.status, status, "{more}: {}", reply.body);
        assert_eq!(
            reply.json()["error"]["message"].is_string(),
            status != 200,
            "{more}"
        );
    }
    assert_eq!(seat.ask("POST", "/v1/completions", "{").await.status, 400);
    assert_eq!(seat.ask("GET", "/no-such-path", "").await.status, 404);
}
