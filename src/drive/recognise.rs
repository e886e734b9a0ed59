//! Who answers at a URL: the dialect by its signs, and what the seat says of itself.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::cancel::Cancel;
use super::client::{BODY_LIMIT, Client, Reply};
use super::fault::{Fault, FaultKind, quote};
use crate::dialect::{DIALECTS, Dialect, Sign};
use crate::evidence::window::Identity;

pub use super::recognise_fault::RecogniseFault;

/// A seat that was recognised.
#[derive(Debug, Clone)]
pub struct Recognised {
    /// How it speaks.
    pub dialect: &'static Dialect,
    /// What it says of itself.
    pub identity: Identity,
}

/// What the gate says about the seat beforehand; what it leaves out is found out.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The dialect, whatever the signs say.
    pub dialect: Option<&'static Dialect>,
    /// The model to ask for; without it the seat must offer exactly one.
    pub model: Option<String>,
}

/// Longest wait for one question: a healthy seat answers in milliseconds, one that prefills 166k tokens in seconds.
const QUESTION: Duration = Duration::from_secs(10);

/// Pause between two looks at a seat that is not ready.
const PAUSE: Duration = Duration::from_millis(200);

/// Where versions stand: path, JSON pointer.
const VERSIONS: &[(&str, &str)] = &[
    ("/version", "/version"),
    ("/props", "/build_info"),
    ("/get_server_info", "/version"),
    ("/info", "/version"),
];

/// Other facts worth keeping: path, JSON pointer, name.
const FACTS: &[(&str, &str, &str)] = &[
    ("/v1/models", "/data/0/owned_by", "owned_by"),
    ("/v1/models", concat!("/data/0/", "root"), "root"),
    ("/v1/models", "/data/0/meta/ftype", "ftype"),
    ("/v1/models", "/data/0/meta/n_params", "n_params"),
    ("/props", "/total_slots", "slots"),
    ("/props", "/build_info", "build_info"),
    (
        "/props",
        "/default_generation_settings/params/speculative.types",
        "speculative_types",
    ),
];

/// Looks once at the seat: its dialect and identity, or why not.
pub async fn recognise(client: &Client, expected: &Expected) -> Result<Recognised, RecogniseFault> {
    let mut seat = Answers {
        client,
        asked: Vec::new(),
    };
    let models = seat.get("/v1/models").await.map_err(RecogniseFault::Http)?;
    let url = client.url("/v1/models");
    if matches!(models.status, 401 | 403 | 503) {
        let fault = Fault::from_status(&url, models.status, &models.body);
        return Err(RecogniseFault::Http(fault));
    }
    let listed = serde_json::from_str::<Value>(&models.body)
        .ok()
        .filter(|v| models.status == 200 && v.get("data").is_some_and(Value::is_array));
    let dialect = match expected.dialect {
        Some(dialect) => dialect,
        None => by_signs(&mut seat).await,
    };
    let Some(listed) = listed else {
        return unlisted(&mut seat, dialect, expected, &models, url).await;
    };
    let offered = offered(&listed);
    let model = chosen(expected, &listed, &offered, &url)?;
    let mut identity = seat.identity(dialect, model).await;
    identity.max_model_len = context(&listed, &identity.model);
    identity.models = offered;
    Ok(Recognised { dialect, identity })
}

/// A seat without a list of models is accepted when the gate names one and something else shows what it is: some servers
/// (transformers serve without a network) fail at the list and serve well.
async fn unlisted(
    seat: &mut Answers<'_>,
    dialect: &'static Dialect,
    expected: &Expected,
    models: &Reply,
    url: String,
) -> Result<Recognised, RecogniseFault> {
    let healthy = match seat.get("/health").await {
        Ok(health) => health.status == 200,
        Err(_) => false,
    };
    let known = expected.dialect.is_some() || !dialect.signs.is_empty();
    match &expected.model {
        Some(model) if known || (healthy && models.status >= 500) => {
            let mut identity = seat.identity(dialect, model.clone()).await;
            let told = format!("HTTP {}", models.status);
            identity.facts.push(("models_route".to_owned(), told));
            identity.facts.sort();
            Ok(Recognised { dialect, identity })
        }
        _ if models.status >= 500 => Err(RecogniseFault::Http(Fault::from_status(
            &url,
            models.status,
            &models.body,
        ))),
        _ => Err(RecogniseFault::NotOpenAi {
            url,
            status: models.status,
            body: quote(&models.body, 200),
        }),
    }
}

/// Looks again and again until the seat is ready, `deadline` has passed, the run is cancelled, or `alive` says why the
/// seat cannot come any more. Faults that waiting cannot mend end it at once.
pub async fn wait_ready(
    client: &Client,
    expected: &Expected,
    deadline: Duration,
    cancel: &Cancel,
    mut alive: impl FnMut() -> Result<(), String>,
) -> Result<Recognised, RecogniseFault> {
    let began = Instant::now();
    loop {
        let interrupted = RecogniseFault::Http(Fault {
            url: client.base_url().to_owned(),
            kind: FaultKind::Interrupted,
        });
        let left = deadline.saturating_sub(began.elapsed());
        let look = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(interrupted),
            look = tokio::time::timeout(left.max(PAUSE), recognise(client, expected)) => look,
        };
        let last = match look {
            Ok(Ok(seat)) => return Ok(seat),
            Ok(Err(fault)) if !fault.may_become_ready() => return Err(fault),
            Ok(Err(fault)) => fault,
            Err(_) => RecogniseFault::Http(Fault {
                url: client.base_url().to_owned(),
                kind: FaultKind::TimedOut(left.max(PAUSE).as_secs_f64()),
            }),
        };
        alive().map_err(RecogniseFault::Gone)?;
        let waited = began.elapsed();
        if waited >= deadline {
            return Err(RecogniseFault::NotReady {
                waited_s: waited.as_secs_f64(),
                last: Box::new(last),
            });
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(interrupted),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// The seat's answers, each path asked once.
struct Answers<'a> {
    client: &'a Client,
    asked: Vec<(&'static str, Result<Reply, Fault>)>,
}

impl Answers<'_> {
    async fn get(&mut self, path: &'static str) -> Result<Reply, Fault> {
        if let Some((_, reply)) = self.asked.iter().find(|(p, _)| *p == path) {
            return reply.clone();
        }
        let reply = self.client.get(path, QUESTION, BODY_LIMIT).await;
        self.asked.push((path, reply.clone()));
        reply
    }

    async fn json(&mut self, path: &'static str) -> Option<Value> {
        let reply = self.get(path).await.ok()?;
        let json = serde_json::from_str(&reply.body).ok()?;
        (reply.status == 200).then_some(json)
    }

    async fn shows(&mut self, sign: &Sign) -> bool {
        match *sign {
            Sign::JsonKey { path, key } => {
                self.json(path).await.is_some_and(|v| v.get(key).is_some())
            }
            Sign::Body { path, text } => match self.get(path).await {
                Ok(reply) => reply.status == 200 && reply.body.contains(text),
                Err(_) => false,
            },
            Sign::OwnedBy(owner) => self.json("/v1/models").await.is_some_and(|v| {
                let data = v.get("data").and_then(Value::as_array);
                data.into_iter()
                    .flatten()
                    .any(|m| m.get("owned_by").and_then(Value::as_str) == Some(owner))
            }),
            Sign::ServerHeader(text) => match self.get("/v1/models").await {
                Ok(reply) => reply.server.is_some_and(|s| s.contains(text)),
                Err(_) => false,
            },
        }
    }

    async fn identity(&mut self, dialect: &Dialect, model: String) -> Identity {
        let mut version = None;
        for (path, pointer) in VERSIONS {
            let told = self.json(path).await;
            version = told
                .as_ref()
                .and_then(|v| v.pointer(pointer))
                .and_then(word);
            if version.is_some() {
                break;
            }
        }
        let mut facts = Vec::new();
        for (path, pointer, name) in FACTS {
            let told = self.json(path).await;
            if let Some(fact) = told
                .as_ref()
                .and_then(|v| v.pointer(pointer))
                .and_then(word)
            {
                facts.push(((*name).to_owned(), fact));
            }
        }
        facts.sort();
        Identity {
            dialect: dialect.id.to_owned(),
            version,
            model,
            facts,
            ..Identity::default()
        }
    }
}

/// The first dialect with a sign that the seat shows; the last one, which has no signs, otherwise.
async fn by_signs(seat: &mut Answers<'_>) -> &'static Dialect {
    let mut last = DIALECTS[0];
    for dialect in DIALECTS.iter().copied() {
        for sign in dialect.signs {
            if seat.shows(sign).await {
                return dialect;
            }
        }
        last = dialect;
    }
    last
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(quote(text, 200)).filter(|t| !t.is_empty()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn entries(listed: &Value) -> impl Iterator<Item = &Value> {
    let data = listed.get("data").and_then(Value::as_array);
    data.into_iter().flatten()
}

fn offered(listed: &Value) -> Vec<String> {
    entries(listed)
        .filter_map(|m| m.get("id").and_then(word))
        .collect()
}

fn chosen(
    expected: &Expected,
    listed: &Value,
    offered: &[String],
    url: &str,
) -> Result<String, RecogniseFault> {
    let Some(model) = &expected.model else {
        return match offered {
            [only] => Ok(only.clone()),
            _ => Err(RecogniseFault::ModelUnclear {
                url: url.to_owned(),
                offered: offered.to_vec(),
            }),
        };
    };
    let aliases = entries(listed)
        .filter_map(|m| m.get("aliases").and_then(Value::as_array))
        .flatten()
        .filter_map(Value::as_str);
    if offered.iter().any(|m| m == model) || aliases.into_iter().any(|alias| alias == model) {
        return Ok(model.clone());
    }
    Err(RecogniseFault::ModelNotOffered {
        url: url.to_owned(),
        model: model.clone(),
        offered: offered.to_vec(),
    })
}

/// Longest prompt plus answer of a model: vLLM's and SGLang's `max_model_len`, llama.cpp's `meta.n_ctx`.
fn context(listed: &Value, model: &str) -> Option<u64> {
    let named = |m: &&Value| m.get("id").and_then(Value::as_str) == Some(model);
    let entry = entries(listed).find(named).or(entries(listed).next())?;
    ["/max_model_len", "/meta/n_ctx"]
        .iter()
        .find_map(|pointer| entry.pointer(pointer).and_then(Value::as_u64))
}
