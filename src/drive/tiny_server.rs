//! A server for tests: it answers each connection with the bytes and pauses of a script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::{Client, ClientOptions};

/// One step of a script.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Write these bytes.
    Write(Vec<u8>),
    /// Wait.
    Pause(Duration),
    /// Reset the connection.
    Reset,
    /// Keep the connection open for ever.
    Hang,
}

/// What to answer to a request's head and body.
type Script = dyn Fn(&str, &[u8]) -> Vec<Step> + Send + Sync;

/// A running server on a loopback port; it ends with the test's runtime.
pub(super) struct TinyServer {
    pub(super) url: String,
    /// Bodies that were received, in order.
    pub(super) bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl TinyServer {
    /// Starts a server with this script.
    pub(super) async fn start<F>(script: F) -> Self
    where
        F: Fn(&str, &[u8]) -> Vec<Step> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let script: Arc<Script> = Arc::new(script);
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = bodies.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, script.clone(), kept.clone()));
            }
        });
        Self { url, bodies }
    }

    pub(super) fn client(&self) -> Client {
        Client::new(ClientOptions::new(&self.url)).expect("a good URL")
    }
}

async fn serve(mut socket: TcpStream, script: Arc<Script>, bodies: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 65536];
    let (head, body) = loop {
        if let Some(end) = memchr::memmem::find(&request, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).into_owned();
            let wanted = head
                .lines()
                .find_map(|l| {
                    l.to_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                })
                .map_or(0, |n| n.parse::<usize>().expect("a number"));
            if request.len() >= end + 4 + wanted {
                break (head, request[end + 4..].to_vec());
            }
        }
        // A TLS hello has no end of head: what speaks HTTP answers at once that it does not understand.
        if request.first().is_some_and(|b| !b.is_ascii_uppercase()) {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
        match socket.read(&mut buffer).await {
            Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    };
    bodies.lock().expect("no panic").push(body.clone());
    for step in script(&head, &body) {
        match step {
            Step::Write(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Pause(pause) => tokio::time::sleep(pause).await,
            Step::Reset => {
                let _ = socket.set_zero_linger();
                return;
            }
            Step::Hang => std::future::pending().await,
        }
    }
}

/// A whole answer with its length.
pub(super) fn answer(status: &str, kind: &str, body: &[u8]) -> Vec<Step> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    vec![Step::Write(head.into_bytes()), Step::Write(body.to_vec())]
}

/// The head of a chunked event stream.
pub(super) fn stream_head() -> Step {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Step::Write(head.as_bytes().to_vec())
}

/// One HTTP chunk.
pub(super) fn chunk(bytes: &[u8]) -> Step {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Step::Write(chunk)
}

/// The end of a chunked body.
pub(super) fn end() -> Step {
    Step::Write(b"0\r\n\r\n".to_vec())
}
