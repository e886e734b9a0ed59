//! The HTTP surface: the OpenAI API and what vLLM has beside it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;

use super::answer::{Answer, Billed};
use super::counters::Counters;
use super::engine::Engine;
use super::fault::Fault;
use super::logfile::LogFile;
use super::options::Options;
use super::request::{Body, Refusal, Route};
use super::scoring;
use super::sequence::Event;
use super::tokenizer::{self, TextPieces};

/// A seat that has its port and is not yet served.
#[derive(Debug)]
pub struct Bound {
    /// Where it will answer.
    pub url: String,
    listener: TcpListener,
    router: Router,
}

/// The embedded seat could not be set up.
#[derive(Debug)]
pub struct SimError(String);

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimError {}

#[derive(Debug)]
struct Seat {
    options: Arc<Options>,
    counters: Arc<Counters>,
    engine: Engine,
    asked: AtomicU64,
    scored: AtomicU64,
}

/// Trains the model, opens the log and takes the port.
///
/// # Errors
/// When the log cannot be written or the port is taken.
pub async fn bind(options: Options) -> Result<Bound, SimError> {
    let log = LogFile::open(&options)
        .map_err(|e| SimError(format!("cannot write the log: {e}; give another `--log`")))?;
    let listener = TcpListener::bind(("127.0.0.1", options.port))
        .await
        .map_err(|e| {
            SimError(format!(
                "cannot take port {}: {e}; give another `--port`, or 0 for a free one",
                options.port
            ))
        })?;
    let address = listener.local_addr().map_err(|e| SimError(e.to_string()))?;
    std::sync::LazyLock::force(&super::model::MODEL);
    log.start(&options);
    let options = Arc::new(options);
    let counters = Arc::new(Counters::new(&options));
    let engine = Engine::start(options.clone(), counters.clone(), Arc::new(log));
    let seat = Arc::new(Seat {
        options,
        counters,
        engine,
        asked: AtomicU64::new(0),
        scored: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/health", get(|| async { StatusCode::OK }))
        .route(
            "/version",
            get(|| async { Json(json!({"version": "0.32.0+sekimon"})) }),
        )
        .route("/v1/models", get(models))
        .route("/metrics", get(metrics))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .layer(axum::extract::DefaultBodyLimit::max(256 << 20))
        .with_state(seat);
    Ok(Bound {
        url: format!("http://{address}"),
        listener,
        router,
    })
}

impl Bound {
    /// Serves until `stop` is done.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), SimError> {
        let served = axum::serve(self.listener, self.router).into_future();
        tokio::select! {
            done = served => done.map_err(|e| SimError(e.to_string())),
            () = stop => Ok(()),
        }
    }
}

async fn models(State(seat): State<Arc<Seat>>) -> Json<Value> {
    Json(json!({"object": "list", "data": [{
        "id": seat.options.model, "object": "model", "created": 0, "owned_by": "sekimon-sim",
        "root": seat.options.model, "parent": null, "max_model_len": seat.options.max_model_len,
    }]}))
}

async fn metrics(State(seat): State<Arc<Seat>>) -> Response {
    if seat.options.has(Fault::NoMetrics) {
        return (StatusCode::NOT_FOUND, Json(json!({"detail": "Not Found"}))).into_response();
    }
    let text = seat.counters.text(&seat.options);
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=1.0.0; charset=utf-8",
        )],
        text,
    )
        .into_response()
}

async fn tokenize(State(seat): State<Arc<Seat>>, body: Bytes) -> Response {
    let body = match Body::read(&body) {
        Ok(body) => body,
        Err(refusal) => return refuse(refusal),
    };
    let ids = body
        .ids(Route::Completion)
        .or_else(|_| body.ids(Route::Chat));
    match ids {
        Ok(ids) => Json(json!({
            "count": ids.len(), "max_model_len": seat.options.max_model_len, "tokens": ids, "token_strs": null,
        }))
        .into_response(),
        Err(refusal) => refuse(refusal),
    }
}

async fn detokenize(body: Bytes) -> Response {
    let tokens: Option<Vec<u32>> = serde_json::from_slice::<Value>(&body)
        .ok()
        .and_then(|v| serde_json::from_value(v.get("tokens")?.clone()).ok());
    match tokens {
        Some(ids) => Json(json!({"prompt": String::from_utf8_lossy(&tokenizer::bytes(&ids))}))
            .into_response(),
        None => refuse(Refusal {
            status: 400,
            kind: "BadRequestError",
            message: "`tokens` is missing".into(),
        }),
    }
}

fn refuse(refusal: Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let body = json!({"error": {"message": refusal.message, "type": refusal.kind, "param": null, "code": refusal.status}});
    (status, Json(body)).into_response()
}

async fn chat(State(seat): State<Arc<Seat>>, body: Bytes) -> Response {
    generate(seat, Route::Chat, &body).await
}

async fn completion(State(seat): State<Arc<Seat>>, body: Bytes) -> Response {
    generate(seat, Route::Completion, &body).await
}

async fn generate(seat: Arc<Seat>, route: Route, body: &[u8]) -> Response {
    let asked =
        Body::read(body).and_then(|body| body.ask(route, &seat.options).map(|ask| (body, ask)));
    let (body, ask) = match asked {
        Ok(asked) => asked,
        Err(refusal) => return refuse(refusal),
    };
    let number = seat.asked.fetch_add(1, Ordering::Relaxed);
    if seat.options.has(Fault::Http500Mid) && number % 3 == 2 {
        return refuse(Refusal {
            status: 500,
            kind: "InternalServerError",
            message: "EngineCore encountered an issue".into(),
        });
    }
    let streams = body.stream.unwrap_or(false);
    let shape = body.stream_options.filter(|_| streams).unwrap_or_default();
    let answer = Answer::new(
        route,
        number,
        &seat.options,
        shape,
        body.return_token_ids.unwrap_or(false),
    );
    if streams {
        let events = seat.engine.submit(ask);
        return streamed(&seat, answer, events, number);
    }
    let more = scores(&seat, &body, &ask.prompt).await;
    let (text, reason, billed) = collect(seat.engine.submit(ask)).await;
    Json(answer.whole(&text, reason, billed, more)).into_response()
}

/// The logprobs of the prompt, if they were asked for.
async fn scores(seat: &Arc<Seat>, body: &Body, prompt: &[u32]) -> Value {
    let echo = body.echo.unwrap_or(false) && body.logprobs.is_some();
    let Some(top) = body.prompt_logprobs.or(echo.then_some(0)) else {
        return json!({});
    };
    let asked = seat.scored.fetch_add(1, Ordering::Relaxed);
    let (ids, options) = (prompt.to_vec(), seat.options.clone());
    // A long prompt takes a while; the event loop goes on meanwhile.
    let scored = tokio::task::spawn_blocking(move || {
        let scores = scoring::score(&ids, &options, asked);
        if echo {
            json!({"logprobs": scoring::echoed(&ids, &scores), "prompt_token_ids": ids})
        } else {
            json!({"prompt_logprobs": scoring::prompt_logprobs(&ids, &scores, top), "prompt_token_ids": ids})
        }
    });
    scored.await.unwrap_or_else(|_| json!({}))
}

async fn collect(mut events: UnboundedReceiver<Event>) -> (String, &'static str, Billed) {
    let mut billed = Billed::default();
    let mut pieces = TextPieces::default();
    let mut text = String::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Read { prompt, cached } => (billed.prompt, billed.cached) = (prompt, cached),
            Event::Tokens(tokens) => {
                billed.completion += tokens.len() as u64;
                let ids: Vec<u32> = tokens.iter().map(|t| t.0).collect();
                text.push_str(&pieces.push(&ids));
            }
            Event::Done(reason) => {
                text.push_str(&pieces.rest());
                return (text, reason, billed);
            }
        }
    }
    (text, "abort", billed)
}

/// How a faulty stream goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Cut,
    Stall,
    Malformed,
}

struct Streaming {
    answer: Answer,
    events: UnboundedReceiver<Event>,
    billed: Billed,
    pieces: TextPieces,
    held: Vec<u32>,
    bundle: usize,
    chunks: u32,
    trouble: Trouble,
    ended: bool,
}

/// Tokens of one chunk of a bundling server.
const BUNDLE: usize = 16;
/// Chunks after which a faulty stream goes wrong.
const TROUBLE_AFTER: u32 = 4;

fn streamed(
    seat: &Seat,
    answer: Answer,
    events: UnboundedReceiver<Event>,
    number: u64,
) -> Response {
    let turn = number % 3 == 2;
    let trouble = match &seat.options {
        o if turn && o.has(Fault::StreamCut) => Trouble::Cut,
        o if turn && o.has(Fault::Stall) => Trouble::Stall,
        o if turn && o.has(Fault::MalformedSse) => Trouble::Malformed,
        _ => Trouble::None,
    };
    let streaming = Streaming {
        answer,
        events,
        billed: Billed::default(),
        pieces: TextPieces::default(),
        held: Vec::new(),
        bundle: if seat.options.has(Fault::BundledChunks) {
            BUNDLE
        } else {
            1
        },
        chunks: 0,
        trouble,
        ended: false,
    };
    let parts = stream::unfold(streaming, |mut streaming| async move {
        let part = streaming.next().await?;
        Some((part, streaming))
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")],
        HttpBody::from_stream(parts),
    )
        .into_response()
}

/// The connection is broken off.
#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken off")
    }
}

impl std::error::Error for Broken {}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Streaming {
    /// The next part of the body; none at its end.
    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        if self.ended {
            return None;
        }
        loop {
            if self.chunks >= TROUBLE_AFTER {
                match self.trouble {
                    Trouble::None => {}
                    Trouble::Cut => {
                        self.ended = true;
                        return Some(Err(Broken));
                    }
                    Trouble::Stall => std::future::pending::<()>().await,
                    Trouble::Malformed => {
                        self.trouble = Trouble::None;
                        return Some(Ok(Bytes::from_static(
                            b"data: {\"choices\":[{\"delta\":{\"content\":\n\n",
                        )));
                    }
                }
            }
            match self.events.recv().await? {
                Event::Read { prompt, cached } => {
                    (self.billed.prompt, self.billed.cached) = (prompt, cached);
                    if let Some(role) = self.answer.role(self.billed) {
                        return Some(Ok(role.into()));
                    }
                }
                Event::Tokens(tokens) => {
                    self.held.extend(tokens.iter().map(|t| t.0));
                    // The first chunk goes out at once, also where later ones are held back.
                    if self.held.len() >= self.bundle || self.chunks == 0 {
                        return Some(Ok(self.flush().into()));
                    }
                }
                Event::Done(reason) => return Some(Ok(self.finish(reason).into())),
            }
        }
    }

    fn flush(&mut self) -> String {
        let ids = std::mem::take(&mut self.held);
        self.billed.completion += ids.len() as u64;
        self.chunks += 1;
        let text = self.pieces.push(&ids);
        self.answer.words(&text, &ids, self.billed)
    }

    fn finish(&mut self, reason: &str) -> String {
        self.ended = true;
        let mut body = if self.held.is_empty() {
            String::new()
        } else {
            self.flush()
        };
        let rest = self.pieces.rest();
        if !rest.is_empty() {
            body.push_str(&self.answer.words(&rest, &[], self.billed));
        }
        body.push_str(&self.answer.finish(reason, self.billed));
        body.push_str(&self.answer.usage(self.billed).unwrap_or_default());
        body.push_str("data: [DONE]\n\n");
        body
    }
}
