//! A seat in this process, asked over HTTP, for tests.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::options::Options;

/// Longest wait for something that takes milliseconds: a machine may be busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A seat that answers.
pub(super) struct Seat {
    address: String,
}

/// A seat of its own, fast enough for tests.
pub(super) async fn seat(options: Options) -> Seat {
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

/// An answer over HTTP.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The events of a stream, the closing `[DONE]` not among them.
    pub(super) fn events(&self) -> Vec<Value> {
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
    pub(super) async fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }

    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
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

    pub(super) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &body.to_string()).await
    }

    pub(super) async fn metric(&self, series: &str) -> Option<f64> {
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

pub(super) fn chat(question: &str, more: Value) -> Value {
    with(
        json!({"model": "sekimon-ngram", "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 24}),
        more,
    )
}

pub(super) fn completion(prompt: &str, more: Value) -> Value {
    with(
        json!({"model": "sekimon-ngram", "prompt": prompt, "temperature": 0, "max_tokens": 24}),
        more,
    )
}

pub(super) fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}
