//! Everything that may go wrong between us and a seat: each ends in time, in its own fault, in words that help.

use std::time::Duration;

use serde_json::{Value, json};

use super::cancel::{Cancel, CancelSource};
use super::client::{Client, ClientOptions, Secret};
use super::fault::{Fault, FaultKind};
use super::fetch::{Deadlines, Line, fetch};
use super::load::{Assignment, drive};
use super::metrics::{MetricsAbsence, scrape};
use super::recognise::{Expected, RecogniseFault, recognise, wait_ready};
use super::request::{Message, Prompt, Request};
use super::tiny_server::{Step, TinyServer, answer, chunk, end, stream_head};
use super::tokenize::{SpecialTokens, TokenizeFault, tokenize_messages, tokenize_text};
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

#[tokio::test]
async fn a_stream_that_breaks_is_malformed_refused_or_cut() {
    let event = |bytes: &[u8]| vec![stream_head(), token("a"), chunk(bytes), end()];
    let html = vec![stream_head(), chunk(b"<html>hello</html>\n"), end()];
    for (steps, wanted, words) in [
        (
            event(b"data: {\"choices\":[{]}\n\n"),
            "malformed",
            "not a chunk",
        ),
        (
            event(b"data: Internal Server Error\n\n"),
            "malformed",
            "Internal Server Error",
        ),
        (
            event(b"data: {\"choices\":[{\"text\":\"\xff\"}]}\n\n"),
            "malformed",
            "not UTF-8",
        ),
        (
            event(b"data: {\"hello\":1}\n\n"),
            "malformed",
            "no `choices`",
        ),
        (
            event(b"data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n"),
            "refused",
            "out of memory",
        ),
        (event(b"data: [DONE]\n\n"), "cut", "without a finish reason"),
        (
            event(b": nothing\n\n"),
            "cut",
            "without a finish reason or `[DONE]`",
        ),
        (
            event(b"data: {\"choices\":[{\"te"),
            "cut",
            "in the middle of an event",
        ),
        (html, "malformed", "<html>hello</html>"),
        (vec![stream_head(), end()], "cut", "before its first event"),
        (
            vec![
                stream_head(),
                token("a"),
                Step::Pause(Duration::from_millis(50)),
                Step::Reset,
            ],
            "cut",
            "broke",
        ),
    ] {
        let exchange = one(steps).await;
        let kind = serde_json::to_value(&exchange.outcome).expect("JSON")["kind"].clone();
        assert_eq!(kind, wanted, "{:?}", exchange.outcome);
        assert!(
            cause(&exchange.outcome).contains(words),
            "{:?}",
            exchange.outcome
        );
    }
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
async fn nobody_there_another_protocol_and_tls_have_their_own_faults() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", free.local_addr().expect("bound"));
    drop(free);
    let client = Client::new(ClientOptions::new(&url)).expect("a good URL");
    let fault = client
        .get_json("/v1/models", LONG)
        .await
        .expect_err("nobody there");
    assert_eq!(fault.kind, FaultKind::Refused);
    let exchange = fetch(&line(client), &request(), 0, 0, &Cancel::never()).await;
    assert!(
        cause(&exchange.outcome).contains("connection refused"),
        "{:?}",
        exchange.outcome
    );

    let ssh = TinyServer::start(|_, _| {
        vec![Step::Write(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), Step::Hang]
    })
    .await;
    let fault = ssh
        .client()
        .get_json("/v1/models", LONG)
        .await
        .expect_err("not HTTP");
    assert!(matches!(fault.kind, FaultKind::NotHttp(_)), "{fault:?}");

    let plain = TinyServer::start(|_, _| answer("200 OK", "application/json", b"{}")).await;
    let mut options = ClientOptions::new(&plain.url.replace("http://", "https://"));
    options.connect_timeout = LONG;
    match Client::new(options) {
        Ok(client) => {
            let fault = client
                .get_json("/v1/models", LONG)
                .await
                .expect_err("no TLS there");
            assert!(matches!(fault.kind, FaultKind::Tls(_)), "{fault:?}");
        }
        // A machine without root certificates cannot speak TLS at all, and says so.
        Err(fault) => assert!(matches!(fault.kind, FaultKind::Setup(_)), "{fault:?}"),
    }
    let nowhere =
        Client::new(ClientOptions::new("http://no-such-host.invalid:8000")).expect("a good URL");
    let fault = nowhere
        .get_json("/v1/models", LONG)
        .await
        .expect_err("no such host");
    assert!(matches!(fault.kind, FaultKind::Dns(_)), "{fault:?}");
}

#[test]
fn a_url_that_is_none_and_a_key_that_is_no_header_are_refused_at_once() {
    for url in [
        "",
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://user:pw@host",
    ] {
        let fault = Client::new(ClientOptions::new(url)).expect_err(url);
        assert!(matches!(fault.kind, FaultKind::BadUrl(_)), "{fault:?}");
        assert!(!fault.to_string().contains("pw@"), "{fault}");
    }
    let mut options = ClientOptions::new("http://127.0.0.1:8000/v1/");
    let client = Client::new(options.clone()).expect("a good URL");
    assert_eq!(client.url("/v1/models"), "http://127.0.0.1:8000/v1/models");
    options.api_key = Some(Secret::new("sk-very\nsecret".to_owned()));
    assert!(!format!("{options:?}").contains("secret\""), "{options:?}");
    let fault = Client::new(options).expect_err("no header");
    assert!(!fault.to_string().contains("very"), "{fault}");
}

#[tokio::test]
async fn the_key_is_sent_and_a_redirect_is_not_followed() {
    let server = TinyServer::start(|head, _| {
        if head.to_lowercase().contains("authorization: bearer sk-1") {
            answer("302 Found", "text/plain", b"elsewhere")
        } else {
            answer("401 Unauthorized", "text/plain", b"who are you")
        }
    })
    .await;
    let fault = server
        .client()
        .get_json("/v1/models", LONG)
        .await
        .expect_err("no key");
    assert!(
        matches!(fault.kind, FaultKind::Unauthorised { status: 401, .. }),
        "{fault:?}"
    );
    let mut options = ClientOptions::new(&server.url);
    options.api_key = Some(Secret::new("sk-1".to_owned()));
    let client = Client::new(options).expect("a good key");
    let fault = client
        .get_json("/v1/models", LONG)
        .await
        .expect_err("a redirect");
    assert!(
        matches!(fault.kind, FaultKind::Status { status: 302, .. }),
        "{fault:?}"
    );
}

#[tokio::test]
async fn a_body_that_is_no_json_too_long_or_late_is_a_fault() {
    let server = TinyServer::start(|head, _| match head.split(' ').nth(1) {
        Some("/late") => vec![Step::Hang],
        _ => answer("200 OK", "text/html", &[b'<'; 3000]),
    })
    .await;
    let client = server.client();
    let fault = client.get_json("/", LONG).await.expect_err("no JSON");
    assert!(matches!(fault.kind, FaultKind::NotJson { .. }), "{fault:?}");
    let fault = client
        .get_text("/", LONG, 1000)
        .await
        .expect_err("too long");
    assert_eq!(fault.kind, FaultKind::TooLarge(1000));
    let fault = client
        .get_text("/late", SHORT, 1000)
        .await
        .expect_err("late");
    assert_eq!(fault.kind, FaultKind::TimedOut(0.3));
}

#[tokio::test]
async fn metrics_that_are_off_elsewhere_or_no_metrics_are_told_apart() {
    let llama = named("llamacpp").expect("known");
    for (status, body, words) in [
        ("501 Not Implemented", "{}", "--metrics"),
        ("404 Not Found", "{}", "--metrics"),
        ("200 OK", "<html>", "no metrics text"),
        ("500 Internal Server Error", "oops", "HTTP 500"),
    ] {
        let server =
            TinyServer::start(move |_, _| answer(status, "text/plain", body.as_bytes())).await;
        let absence = scrape(&server.client(), llama, LONG)
            .await
            .expect_err(status);
        assert!(absence.to_string().contains(words), "{absence}");
    }
    let server = TinyServer::start(|_, _| answer("200 OK", "text/plain", b"# HELP x\nx 1\n")).await;
    assert!(scrape(&server.client(), llama, LONG).await.is_ok());
    let generic = named("openai").expect("known");
    let absence = scrape(&server.client(), generic, LONG).await;
    assert_eq!(absence, Err(MetricsAbsence::NoneInDialect("openai")));
}

#[tokio::test]
async fn a_tokenizer_that_did_not_know_the_field_is_found_out() {
    let server = TinyServer::start(|_, body| {
        let asked: Value = serde_json::from_slice(body).expect("JSON");
        let reply = match asked.get("content") {
            Some(_) => json!({"tokens": [1, 2, 3]}),
            None => json!({"tokens": []}),
        };
        answer("200 OK", "application/json", reply.to_string().as_bytes())
    })
    .await;
    let client = server.client();
    let vllm = named("vllm").expect("known");
    let llama = named("llamacpp").expect("known");
    let ids = tokenize_text(&client, llama, "m", "Hello", SpecialTokens::Leave).await;
    assert_eq!(ids, Ok(vec![1, 2, 3]));
    let fault = tokenize_text(&client, vllm, "m", "Hello", SpecialTokens::Leave).await;
    assert!(
        matches!(
            fault,
            Err(TokenizeFault::Empty {
                field: "prompt",
                ..
            })
        ),
        "{fault:?}"
    );
    let messages = [Message {
        role: "user".to_owned(),
        content: "Hi".to_owned(),
    }];
    let fault = tokenize_messages(&client, llama, "m", &messages).await;
    assert_eq!(fault, Err(TokenizeFault::NoMessages("llamacpp")));
    let bodies = server.bodies.lock().expect("no panic").clone();
    let sent: Value = serde_json::from_slice(&bodies[1]).expect("JSON");
    assert_eq!(sent["add_special_tokens"], false);
}

#[tokio::test]
async fn a_seat_that_loads_is_waited_for_and_one_that_cannot_come_is_not() {
    let loading = std::sync::atomic::AtomicU32::new(0);
    let server = TinyServer::start(move |_, _| {
        let body = json!({"object": "list", "data": [{"id": "m", "owned_by": "llamacpp"}]});
        match loading.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 | 1 => answer(
                "503 Service Unavailable",
                "application/json",
                b"{\"error\":{\"message\":\"Loading model\"}}",
            ),
            _ => answer("200 OK", "application/json", body.to_string().as_bytes()),
        }
    })
    .await;
    let expected = Expected::default();
    let fault = recognise(&server.client(), &expected)
        .await
        .expect_err("loading");
    assert!(fault.may_become_ready(), "{fault}");
    let seat = wait_ready(&server.client(), &expected, LONG, &Cancel::never(), || {
        Ok(())
    })
    .await;
    assert_eq!(seat.expect("ready").dialect.id, "llamacpp");

    let never =
        TinyServer::start(|_, _| answer("503 Service Unavailable", "text/plain", b"")).await;
    let fault = wait_ready(&never.client(), &expected, SHORT, &Cancel::never(), || {
        Ok(())
    })
    .await;
    assert!(
        matches!(fault, Err(RecogniseFault::NotReady { .. })),
        "{fault:?}"
    );
    let dead = || Err("exit status 1".to_owned());
    let fault = wait_ready(&never.client(), &expected, LONG, &Cancel::never(), dead).await;
    assert!(matches!(fault, Err(RecogniseFault::Gone(_))), "{fault:?}");
    let source = CancelSource::default();
    source.cancel();
    let fault = wait_ready(&never.client(), &expected, LONG, &source.watcher(), || {
        Ok(())
    })
    .await;
    let interrupted = matches!(
        &fault,
        Err(RecogniseFault::Http(Fault {
            kind: FaultKind::Interrupted,
            ..
        }))
    );
    assert!(interrupted, "{fault:?}");

    let keyed = TinyServer::start(|_, _| answer("401 Unauthorized", "text/plain", b"")).await;
    let fault = wait_ready(
        &keyed.client(),
        &expected,
        LONG,
        &Cancel::never(),
        || Ok(()),
    )
    .await;
    let unauthorised = matches!(
        &fault,
        Err(RecogniseFault::Http(Fault {
            kind: FaultKind::Unauthorised { .. },
            ..
        }))
    );
    assert!(unauthorised, "{fault:?}");
    let other =
        TinyServer::start(|_, _| answer("404 Not Found", "text/html", b"<html>nginx")).await;
    let fault = wait_ready(
        &other.client(),
        &expected,
        LONG,
        &Cancel::never(),
        || Ok(()),
    )
    .await;
    assert!(
        matches!(fault, Err(RecogniseFault::NotOpenAi { status: 404, .. })),
        "{fault:?}"
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
