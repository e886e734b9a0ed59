//! The HTTP surface: the OpenAI API and what vLLM has beside it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;

use super::answer::{Answer, Billed, Part, Wanted};
use super::counters::Counters;
use super::engine::Engine;
use super::fault::Fault;
use super::logfile::LogFile;
use super::options::Options;
use super::request::{Body, Refusal, Route};
use super::scoring::{self, Scored};
use super::sequence::Event;
use super::streaming::{Streaming, Trouble};
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
    started: i64,
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
        started: jiff::Timestamp::now().as_second(),
    });
    let router = Router::new()
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/ping", get(|| async { StatusCode::OK }))
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
        "id": seat.options.model, "object": "model", "created": seat.started, "owned_by": "sekimon-sim",
        "root": seat.options.model, "parent": null, "max_model_len": seat.options.max_model_len,
        "permission": [],
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
    let told = Body::read(&body).and_then(|body| {
        let ids = body.ids(Route::Completion).or_else(|_| body.ids(Route::Chat))?;
        let strings: Option<Vec<String>> =
            body.return_token_strs.unwrap_or(false).then(|| ids.iter().map(|id| tokenizer::spell(*id)).collect());
        Ok(json!({
            "count": ids.len(), "max_model_len": seat.options.max_model_len, "tokens": ids, "token_strs": strings,
        }))
    });
    told.map_or_else(refuse, |told| Json(told).into_response())
}

#[derive(Debug, Deserialize)]
struct Detokenize {
    tokens: Vec<u32>,
}

async fn detokenize(body: Bytes) -> Response {
    match serde_json::from_slice::<Detokenize>(&body) {
        Ok(asked) => {
            Json(json!({"prompt": String::from_utf8_lossy(&tokenizer::bytes(&asked.tokens))}))
                .into_response()
        }
        Err(cause) => refuse(Refusal {
            status: 400,
            kind: "BadRequestError",
            message: format!("the body does not read: {cause}"),
            param: None,
        }),
    }
}

fn refuse(refusal: Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let body = json!({"error": {
        "message": refusal.message, "type": refusal.kind, "param": refusal.param, "code": refusal.status,
    }});
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
            message: "EngineCore encountered an issue. See stack trace (above) for the root cause."
                .into(),
            param: None,
        });
    }
    let streams = body.stream.unwrap_or(false);
    let wanted = Wanted {
        shape: body.stream_options.filter(|_| streams).unwrap_or_default(),
        prompt: body
            .return_token_ids
            .unwrap_or(false)
            .then(|| ask.prompt.clone()),
        logprobs: body.wants_logprobs(),
    };
    let answer = Answer::new(route, number, &seat.options, wanted);
    let scores = scores(&seat, &body, &ask.prompt).await;
    let echo = if body.echoes() {
        echo(&ask.prompt, scores.as_deref())
    } else {
        Part::default()
    };
    if streams {
        let stops = ask.stop.clone();
        return Streaming::new(
            answer,
            seat.engine.submit(ask),
            stops,
            echo,
            Trouble::of(&seat.options, number),
        )
        .response(&seat.options);
    }
    let (mut part, billed) = collect(seat.engine.submit(ask)).await;
    if body.only_echo() {
        part = Part {
            finish: part.finish,
            ..Part::default()
        };
    }
    let whole = Part {
        text: echo.text + &part.text,
        tokens: [echo.tokens, part.tokens].concat(),
        finish: part.finish,
    };
    let scores = scores.map_or(Value::Null, |s| scoring::prompt_logprobs(&s));
    Json(answer.whole(&whole, billed, scores)).into_response()
}

/// The prompt as the beginning of the answer.
fn echo(prompt: &[u32], scores: Option<&[Scored]>) -> Part {
    Part {
        text: String::from_utf8_lossy(&tokenizer::bytes(prompt)).into_owned(),
        tokens: scores
            .into_iter()
            .flatten()
            .map(|s| s.told.clone())
            .collect(),
        finish: None,
    }
}

/// The logprobs of the prompt, if they were asked for.
async fn scores(seat: &Arc<Seat>, body: &Body, prompt: &[u32]) -> Option<Vec<Scored>> {
    let top = body.scored()?;
    let asked = seat.scored.fetch_add(1, Ordering::Relaxed);
    let (ids, options) = (prompt.to_vec(), seat.options.clone());
    // A long prompt takes a while; the event loop goes on meanwhile.
    tokio::task::spawn_blocking(move || scoring::score(&ids, &options, asked, top))
        .await
        .ok()
}

/// A whole answer.
async fn collect(mut events: UnboundedReceiver<Event>) -> (Part, Billed) {
    let mut billed = Billed::default();
    let mut pieces = TextPieces::default();
    let mut part = Part::default();
    while let Some(event) = events.recv().await {
        match event {
            Event::Read { prompt, cached } => (billed.prompt, billed.cached) = (prompt, cached),
            Event::Written { tokens, finish } => {
                billed.completion += tokens.len() as u64;
                let ids: Vec<u32> = tokens.iter().map(|t| t.id).collect();
                part.text.push_str(&pieces.push(&ids));
                part.tokens.extend(tokens);
                if finish.is_some() {
                    part.finish = finish;
                    break;
                }
            }
        }
    }
    part.text.push_str(&pieces.rest());
    if let Some(stop) = part.finish.as_ref().and_then(|f| f.stop.as_ref()) {
        part.text
            .truncate(part.text.len().saturating_sub(stop.len()));
    }
    (part, billed)
}
