//! Seats that are absent, closed, loading, broken or something else: each its own fault, in words that help.

use std::time::Duration;

use serde_json::{Value, json};

use super::cancel::{Cancel, CancelSource};
use super::client::{Client, ClientOptions, Secret};
use super::fault::{Fault, FaultKind};
use super::metrics::{MetricsAbsence, scrape};
use super::recognise::{Expected, RecogniseFault, recognise, wait_ready};
use super::request::Message;
use super::tiny_server::{Step, TinyServer, answer};
use super::tokenize::{SpecialTokens, TokenizeFault, tokenize_messages, tokenize_text};
use crate::dialect::named;

const LONG: Duration = Duration::from_secs(60);

/// A short deadline: the tests that use it wait for it in full, so that a busy machine only makes them longer.
const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn nobody_there_another_protocol_and_tls_have_their_own_faults() {
    // Port 1 is reserved for a service that nobody runs.
    let client = Client::new(ClientOptions::new("http://127.0.0.1:1")).expect("a good URL");
    let fault = client
        .get_json("/v1/models", LONG)
        .await
        .expect_err("nobody there");
    assert_eq!(fault.kind, FaultKind::Refused);

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
    // A machine whose name server never answers runs into the deadline for connecting.
    let unresolved = matches!(fault.kind, FaultKind::Dns(_) | FaultKind::Connect(_));
    assert!(unresolved, "{fault:?}");
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
}

#[tokio::test]
async fn what_waiting_cannot_mend_ends_it_at_once() {
    let expected = Expected::default();
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
