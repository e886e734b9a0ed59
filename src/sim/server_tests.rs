//! The HTTP surface against what vLLM was recorded to answer, and its counters against its own bills.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fault::Fault;
use super::options::Options;
use super::tokenizer;

/// Longest wait for something that takes milliseconds: a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

struct Seat {
    address: String,
}

/// A seat of its own, fast enough for tests.
async fn seat(options: Options) -> Seat {
    let options = Options {
        step_ms: Some(0.2),
        log: Some(
            std::env::temp_dir().join(format!("sekimon-sim-test-{}.log", std::process::id())),
        ),
        ..options
    };
    let bound = super::bind(options).await.unwrap();
    let address = bound.url.trim_start_matches("http://").to_owned();
    tokio::spawn(bound.serve(std::future::pending()));
    Seat { address }
}

struct Reply {
    status: u16,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The events of a stream, the closing `[DONE]` not among them.
    fn events(&self) -> Vec<Value> {
        let mut events: Vec<&str> = self
            .body
            .split("\n\n")
            .filter_map(|e| e.strip_prefix("data: "))
            .collect();
        assert_eq!(events.pop(), Some("[DONE]"), "{}", self.body);
        events
            .into_iter()
            .map(|e| serde_json::from_str(e).unwrap())
            .collect()
    }
}

impl Seat {
    async fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let mut stream = self.open(method, path, body).await;
        let mut text = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text))
            .await
            .expect("an answer")
            .unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: body.to_owned(),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &body.to_string()).await
    }

    async fn metric(&self, series: &str) -> Option<f64> {
        let text = self.ask("GET", "/metrics", "").await.body;
        let mut found = text
            .lines()
            .filter(|l| l.starts_with(series) && l[series.len()..].starts_with(['{', ' ']))
            .peekable();
        found.peek()?;
        Some(
            found
                .map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
                .sum(),
        )
    }
}

fn chat(question: &str, more: Value) -> Value {
    with(
        json!({"model": "sekimon-ngram", "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 24}),
        more,
    )
}

fn completion(prompt: &str, more: Value) -> Value {
    with(
        json!({"model": "sekimon-ngram", "prompt": prompt, "temperature": 0, "max_tokens": 24}),
        more,
    )
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

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
    let plain = self::seat(Options {
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
