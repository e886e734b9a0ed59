//! What the seat promises over HTTP: its counters add up to its bills, and its faults show.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::fault::Fault;
use super::options::Options;
use super::test_seat::{PATIENCE, Reply, chat, completion, seat, with};
use super::tokenizer;

#[tokio::test(flavor = "multi_thread")]
async fn counters_add_up_to_the_bills_exactly() {
    let seat = seat(Options {
        ranks: 3,
        ..Options::default()
    })
    .await;
    let (mut prompt, mut written, mut stopped) = (0, 0, 0);
    for (place, question) in [
        "Describe a harbour.",
        "港について書いてください。",
        "Write a queue in Rust.",
    ]
    .iter()
    .enumerate()
    {
        let body = chat(
            question,
            json!({"max_tokens": 40 * (place + 1), "stream": true, "stream_options": {"include_usage": true}}),
        );
        let events = seat.post("/v1/chat/completions", &body).await.events();
        let usage = &events.last().unwrap()["usage"];
        prompt += usage["prompt_tokens"].as_u64().unwrap();
        written += usage["completion_tokens"].as_u64().unwrap();
        stopped += u64::from(events[events.len() - 2]["choices"][0]["finish_reason"] == "stop");
    }
    let read = async |name: &str| seat.metric(name).await.unwrap() as u64;
    assert_eq!(read("vllm:prompt_tokens_total").await, prompt);
    assert_eq!(read("vllm:generation_tokens_total").await, written);
    assert_eq!(read("vllm:request_generation_tokens_sum").await, written);
    assert_eq!(
        read("vllm:iteration_tokens_total_sum").await,
        prompt + written
    );
    assert_eq!(read("vllm:request_success_total").await, 3);
    assert_eq!(read("vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"sekimon-ngram\"}").await, stopped);
    let accepted = read("vllm:spec_decode_num_accepted_tokens_total").await;
    assert_eq!(
        read("vllm:spec_decode_num_accepted_tokens_per_pos_total").await,
        accepted
    );
    // Every step of one stream writes one token beside the accepted ones, and every rank is called once.
    let steps = written - accepted;
    assert_eq!(
        read("exl3_moe_calls_total{kernel=\"lna2\",rank=\"2\"}").await,
        steps
    );
    assert_eq!(
        read("exl3_moe_calls_total{kernel=\"exllamav3\",rank=\"0\"}").await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_stream_is_the_text_of_the_whole_answer() {
    let seat = seat(Options::default()).await;
    for question in ["Describe a harbour.", "港について書いてください。"] {
        let whole = seat
            .post(
                "/v1/chat/completions",
                &chat(question, json!({"max_tokens": 90})),
            )
            .await
            .json();
        let events = seat
            .post(
                "/v1/chat/completions",
                &chat(question, json!({"max_tokens": 90, "stream": true})),
            )
            .await
            .events();
        let text: String = events
            .iter()
            .filter_map(|e| e["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(whole["choices"][0]["message"]["content"], text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_ends_the_answer_and_is_no_part_of_it() {
    let seat = seat(Options::default()).await;
    let whole = seat
        .post(
            "/v1/chat/completions",
            &chat("Describe a harbour.", json!({"max_tokens": 60})),
        )
        .await
        .json();
    let text = whole["choices"][0]["message"]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    let stop = &text[20..24];
    let wanted = &text[..text.find(stop).unwrap()];
    let stopped = chat(
        "Describe a harbour.",
        json!({"max_tokens": 60, "stop": [stop]}),
    );
    let answer = seat.post("/v1/chat/completions", &stopped).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], wanted);
    assert_eq!(answer["choices"][0]["stop_reason"], stop);
    let events = seat
        .post(
            "/v1/chat/completions",
            &with(stopped, json!({"stream": true})),
        )
        .await
        .events();
    let text: String = events
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_logprobs_by_both_routes_are_the_same_and_natural() {
    let seat = seat(Options::default()).await;
    let text = "The boats come round the breakwater. 船が戻る。";
    let scored = seat
        .post(
            "/v1/completions",
            &completion(text, json!({"prompt_logprobs": 0, "max_tokens": 1})),
        )
        .await
        .json();
    let ids = tokenizer::encode(text);
    let by_id: Vec<Option<f64>> = scored["choices"][0]["prompt_logprobs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&ids)
        .map(|(map, id)| map[id.to_string()]["logprob"].as_f64())
        .collect();
    let echoed = seat
        .post(
            "/v1/completions",
            &completion(text, json!({"echo": true, "logprobs": 1, "max_tokens": 0})),
        )
        .await
        .json();
    let legacy: Vec<Option<f64>> = echoed["choices"][0]["logprobs"]["token_logprobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::as_f64)
        .collect();
    assert_eq!(by_id, legacy);
    assert_eq!(by_id.len(), ids.len());
    assert!(by_id[0].is_none() && by_id[1..].iter().all(|p| p.is_some_and(|p| p < 0.0)));
    assert_eq!(echoed["choices"][0]["text"], text);
    assert_eq!(echoed["usage"]["completion_tokens"], 1);
    // Such prompts pass the prefix cache by, as in vLLM.
    assert_eq!(
        seat.metric("vllm:prefix_cache_queries_total").await,
        Some(0.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_was_read_before_is_cached_unless_salted() {
    let seat = seat(Options::default()).await;
    let question = "Describe a harbour. ".repeat(40);
    let cached = async |more: Value| {
        let answer = seat
            .post("/v1/chat/completions", &chat(&question, more))
            .await
            .json();
        answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(cached(json!({})).await, 0);
    assert!(cached(json!({})).await >= 784);
    assert_eq!(cached(json!({"cache_salt": "a"})).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_its_request() {
    let seat = seat(Options::default()).await;
    let body = chat(
        "Describe a harbour.",
        json!({"max_tokens": 300_000, "ignore_eos": true, "stream": true}),
    )
    .to_string();
    let mut stream = seat.open("POST", "/v1/chat/completions", &body).await;
    let mut some = [0; 512];
    assert!(stream.read(&mut some).await.unwrap() > 0);
    drop(stream);
    let began = Instant::now();
    let aborted = "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"sekimon-ngram\"}";
    while seat.metric(aborted).await != Some(1.0) {
        assert!(began.elapsed() < PATIENCE, "the request goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seat.metric("vllm:num_requests_running").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_places_wait_and_are_all_answered_alike() {
    let seat = seat(Options {
        max_num_seqs: 2,
        ..Options::default()
    })
    .await;
    let body = chat(
        "Describe a harbour.",
        json!({"max_tokens": 50, "ignore_eos": true}),
    );
    let (a, b, c, d) = tokio::join!(
        seat.post("/v1/chat/completions", &body),
        seat.post("/v1/chat/completions", &body),
        seat.post("/v1/chat/completions", &body),
        seat.post("/v1/chat/completions", &body)
    );
    let text = |reply: &Reply| reply.json()["choices"][0]["message"]["content"].clone();
    for reply in [&b, &c, &d] {
        assert_eq!(text(reply), text(&a));
    }
    assert_eq!(
        seat.metric("vllm:generation_tokens_total").await,
        Some(200.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_on_one_rank_moves_the_other_counter_of_that_rank_alone() {
    let seat = seat(Options {
        ranks: 2,
        faults: vec![Fault::FallbackOnOneRank],
        ..Options::default()
    })
    .await;
    seat.post(
        "/v1/chat/completions",
        &chat("Describe a harbour.", json!({})),
    )
    .await;
    let calls = async |kernel: &str, rank: u32| {
        seat.metric(&format!(
            "exl3_moe_calls_total{{kernel=\"{kernel}\",rank=\"{rank}\"}}"
        ))
        .await
        .unwrap()
    };
    assert!(calls("lna2", 0).await > 0.0 && calls("exllamav3", 1).await > 0.0);
    assert_eq!(
        (calls("lna2", 1).await, calls("exllamav3", 0).await),
        (0.0, 0.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_show_in_the_answers() {
    let ask = async |fault: Fault, body: Value| {
        let seat = seat(Options {
            faults: vec![fault],
            ..Options::default()
        })
        .await;
        seat.post("/v1/completions", &body).await
    };
    let long = |more| {
        completion(
            "The harbour",
            with(json!({"max_tokens": 64, "ignore_eos": true}), more),
        )
    };
    let stream = json!({"stream": true, "stream_options": {"include_usage": true}});
    assert_eq!(
        ask(Fault::UsageMissing, long(stream.clone()))
            .await
            .events()
            .iter()
            .filter(|e| e.get("usage").is_some())
            .count(),
        0
    );
    assert!(ask(Fault::BundledChunks, long(stream)).await.events().len() <= 7);
    let early = ask(Fault::EarlyStop, long(json!({}))).await.json();
    assert!(
        early["usage"]["completion_tokens"].as_u64().unwrap() <= 19,
        "{early}"
    );
    let zero = ask(Fault::ZeroLogprobs, long(json!({"prompt_logprobs": 0})))
        .await
        .json();
    let all = zero["choices"][0]["prompt_logprobs"].as_array().unwrap();
    assert!(all[1..].iter().all(|map| {
        map.as_object()
            .unwrap()
            .values()
            .all(|v| v["logprob"] == 0.0)
    }));
    let looped = ask(Fault::RepetitionLoop, long(json!({}))).await.json();
    assert_eq!(looped["choices"][0]["text"], "a".repeat(64));
}
