//! Answers that break, stall or are given up: each ends in time, with its own outcome, and keeps what had come.

use std::time::Duration;

use serde_json::json;

use super::cancel::{Cancel, CancelSource};
use super::client::{Client, ClientOptions};
use super::fetch::{Deadlines, Line, fetch};
use super::load::{Assignment, drive};
use super::request::{Prompt, Request};
use super::tiny_server::{Step, TinyServer, answer, chunk, end, stream_head};
use crate::dialect::named;
use crate::evidence::exchange::{Exchange, Outcome};

const LONG: Duration = Duration::from_secs(60);

/// A short deadline: the tests that use it wait for it in full, so that a busy machine only makes them longer.
const SHORT: Duration = Duration::from_millis(300);

fn line(client: Client) -> Line {
    let deadlines = Deadlines {
        first_token: LONG,
        stall: LONG,
        total: LONG,
    };
    Line::new(client, "m", named("vllm").expect("known"), deadlines)
}

fn request() -> Request {
    Request::new("p/1", Prompt::Text("Hello".into()), 8)
}

fn token(text: &str) -> Step {
    let payload = json!({"choices": [{"index": 0, "text": text}]});
    chunk(format!("data: {payload}\n\n").as_bytes())
}

fn finish() -> Step {
    chunk(b"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

async fn one(steps: Vec<Step>) -> Exchange {
    let server = TinyServer::start(move |_, _| steps.clone()).await;
    fetch(&line(server.client()), &request(), 0, 0, &Cancel::never()).await
}

fn cause(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Malformed { cause } | Outcome::Cut { cause } | Outcome::Unreachable { cause } => {
            cause
        }
        Outcome::Refused { body } => body,
        _ => "",
    }
}

#[tokio::test]
async fn a_healthy_answer_without_usage_is_complete_and_has_none() {
    let exchange = one(vec![stream_head(), token("a"), token("b"), finish(), end()]).await;
    assert_eq!(exchange.outcome, Outcome::Complete);
    assert_eq!(exchange.usage, None);
    assert_eq!((exchange.token_chunks, exchange.text.as_str()), (2, "ab"));
    assert_eq!(exchange.status, Some(200));
    assert!(exchange.gaps.is_some() && exchange.ended_s >= exchange.sent_s);
    assert_eq!(
        exchange.text_sha256,
        "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603"
    );
}

/// A token, then these bytes, then the end of the body.
fn after_a_token(bytes: &[u8]) -> Vec<Step> {
    vec![stream_head(), token("a"), chunk(bytes), end()]
}

async fn ends(steps: Vec<Step>, kind: &str, words: &str) {
    let outcome = one(steps).await.outcome;
    let found = serde_json::to_value(&outcome).expect("JSON")["kind"].clone();
    assert_eq!(found, kind, "{outcome:?}");
    assert!(cause(&outcome).contains(words), "{outcome:?}");
}

#[tokio::test]
async fn an_event_that_is_wrong_is_malformed_or_refused() {
    for (bytes, kind, words) in [
        (
            &b"data: {\"choices\":[{]}\n\n"[..],
            "malformed",
            "not a chunk",
        ),
        (
            b"data: Internal Server Error\n\n",
            "malformed",
            "Internal Server Error",
        ),
        (
            b"data: {\"choices\":[{\"text\":\"\xff\"}]}\n\n",
            "malformed",
            "not UTF-8",
        ),
        (b"data: {\"hello\":1}\n\n", "malformed", "no `choices`"),
        (
            b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n",
            "refused",
            "out of memory",
        ),
    ] {
        ends(after_a_token(bytes), kind, words).await;
    }
    let html = vec![stream_head(), chunk(b"<html>hello</html>\n"), end()];
    ends(html, "malformed", "<html>hello</html>").await;
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_cut() {
    for (bytes, words) in [
        (&b"data: [DONE]\n\n"[..], "without a finish reason"),
        (b": nothing\n\n", "without a finish reason or `[DONE]`"),
        (b"data: {\"choices\":[{\"te", "in the middle of an event"),
        (
            b"data: {\"choices\":[{\"finish_reason\":\"abort\"}]}\n\n",
            "gave up",
        ),
    ] {
        ends(after_a_token(bytes), "cut", words).await;
    }
    ends(vec![stream_head(), end()], "cut", "before its first event").await;
    let pause = Step::Pause(Duration::from_millis(50));
    let reset = vec![stream_head(), token("a"), pause, Step::Reset];
    ends(reset, "cut", "broke").await;
}

#[tokio::test]
async fn a_giant_line_ends_the_exchange() {
    let mut steps = vec![stream_head(), token("a"), chunk(b"data: ")];
    steps.extend(vec![chunk(&[b'x'; 4096]); 20]);
    steps.push(end());
    let server = TinyServer::start(move |_, _| steps.clone()).await;
    let mut line = line(server.client());
    line.event_limit = 10_000;
    let exchange = fetch(&line, &request(), 0, 0, &Cancel::never()).await;
    assert!(
        cause(&exchange.outcome).contains("giant line"),
        "{:?}",
        exchange.outcome
    );
    assert_eq!(exchange.text, "a", "what came before is kept");
}

#[tokio::test]
async fn silence_ends_at_its_deadline_before_and_after_the_first_token() {
    let comment = chunk(b": still here\n\n");
    for (steps, tokens) in [
        (vec![Step::Hang], 0),
        (vec![stream_head(), comment, Step::Hang], 0),
        (vec![stream_head(), token("a"), Step::Hang], 1),
    ] {
        let server = TinyServer::start(move |_, _| steps.clone()).await;
        let mut line = line(server.client());
        if tokens == 0 {
            line.deadlines.first_token = SHORT;
        } else {
            line.deadlines.stall = SHORT;
        }
        let exchange = fetch(&line, &request(), 0, 0, &Cancel::never()).await;
        assert_eq!(exchange.outcome, Outcome::Stalled { deadline_s: 1 });
        assert_eq!(exchange.token_chunks, tokens);
    }
    let server = TinyServer::start(|_, _| vec![stream_head(), token("a"), Step::Hang]).await;
    let mut line = line(server.client());
    line.deadlines.total = SHORT;
    let exchange = fetch(&line, &request(), 0, 0, &Cancel::never()).await;
    assert!(
        cause(&exchange.outcome).contains("given up"),
        "{:?}",
        exchange.outcome
    );
}

#[tokio::test]
async fn a_status_that_is_no_success_is_refused_with_its_body() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "500 Internal Server Error",
    ] {
        let long = format!("{{\"error\":\"no\x1b[31m {}\"}}", "x".repeat(5000));
        let exchange = one(answer(status, "application/json", long.as_bytes())).await;
        let Outcome::Refused { body } = &exchange.outcome else {
            panic!("{:?}", exchange.outcome);
        };
        assert!(body.starts_with("{\"error\":\"no[31m xxx") && body.len() <= 1100);
        assert_eq!(exchange.status, status[..3].parse().ok());
    }
    let page = one(answer("200 OK", "text/html", b"<html>login</html>")).await;
    assert!(
        cause(&page.outcome).contains("text/html"),
        "{:?}",
        page.outcome
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unreachable() {
    // Port 1 is reserved for a service that nobody runs.
    let client = Client::new(ClientOptions::new("http://127.0.0.1:1")).expect("a good URL");
    let exchange = fetch(&line(client), &request(), 0, 0, &Cancel::never()).await;
    assert!(
        cause(&exchange.outcome).contains("connection refused"),
        "{:?}",
        exchange.outcome
    );
}

#[tokio::test]
async fn a_load_starts_its_streams_together_and_sends_every_request_once() {
    let server =
        TinyServer::start(|_, _| vec![stream_head(), token("a"), token("b"), finish(), end()])
            .await;
    let mut requests = vec![request(); 10];
    for (i, request) in requests.iter_mut().enumerate() {
        request.name = format!("p/{i}");
    }
    let mut order = Vec::new();
    let shared = Assignment::Shared {
        streams: 4,
        requests: requests.clone(),
    };
    let line = line(server.client());
    let exchanges = drive(&line, shared, 5, &Cancel::never(), |e| order.push(e.id)).await;
    let ids: Vec<u32> = exchanges.iter().map(|e| e.id).collect();
    assert_eq!(ids, (5..15).collect::<Vec<u32>>());
    order.sort_unstable();
    assert_eq!(order, ids, "each was handed on as it ended");
    assert!(
        exchanges
            .iter()
            .all(|e| e.is_complete() && e.prompt == format!("p/{}", e.id - 5))
    );
    assert!(exchanges.iter().all(|e| e.stream < 4));
    let lists = vec![requests[..1].to_vec(), requests[1..3].to_vec()];
    let fixed = drive(
        &line,
        Assignment::PerStream(lists),
        0,
        &Cancel::never(),
        |_| {},
    )
    .await;
    let streams: Vec<u32> = fixed.iter().map(|e| e.stream).collect();
    assert_eq!(streams, [0, 1, 1]);
}

#[tokio::test]
async fn a_stop_ends_a_load_and_keeps_what_had_come() {
    let server = TinyServer::start(|_, _| vec![stream_head(), token("a"), Step::Hang]).await;
    let source = CancelSource::default();
    let cancel = source.watcher();
    let shared = Assignment::Shared {
        streams: 2,
        requests: vec![request(); 6],
    };
    let line = line(server.client());
    tokio::spawn(async move {
        tokio::time::sleep(SHORT).await;
        source.cancel();
    });
    let exchanges = drive(&line, shared, 0, &cancel, |_| {}).await;
    assert_eq!(exchanges.len(), 2, "what was never sent has no exchange");
    assert!(exchanges.iter().all(|e| e.outcome == Outcome::Interrupted));
}
