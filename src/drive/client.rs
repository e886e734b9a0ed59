//! The HTTP client: no proxies, no redirects, no compression, one TLS provider.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::fault::{Fault, FaultKind, QUOTE_LIMIT, quote};

/// A value that is never printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Keeps the value.
    pub fn new(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How to reach a seat.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Root of the seat; a trailing `/` or `/v1` is taken off.
    pub base_url: String,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Longest wait for a TCP and TLS connection.
    pub connect_timeout: Duration,
}

impl ClientOptions {
    /// Options for this URL: no key, and 10 s to connect (a healthy host answers in milliseconds; three SYN retries take 7 s).
    pub fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            api_key: None,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// A client of one seat; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// A short answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The `server` header, where sent.
    pub server: Option<String>,
    /// The body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

/// Longest short answer in bytes: a tokenizer's list of 166k ids with its token strings is about 4 MB.
pub const BODY_LIMIT: usize = 64 << 20;

impl Client {
    /// A client for these options; fails on a URL that is none, a key that is no header, or missing root certificates.
    pub fn new(options: ClientOptions) -> Result<Self, Fault> {
        let fault = |kind| Fault {
            url: quote(&options.base_url, QUOTE_LIMIT),
            kind,
        };
        let url = reqwest::Url::parse(&options.base_url)
            .map_err(|e| fault(FaultKind::BadUrl(e.to_string())))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            let cause = format!("scheme `{}`", quote(url.scheme(), 40));
            return Err(fault(FaultKind::BadUrl(cause)));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let cause = "it holds a user name or password, which would be written down".to_owned();
            return Err(Fault {
                url: format!("{}://…", url.scheme()),
                kind: FaultKind::BadUrl(cause),
            });
        }
        let provider = rustls::crypto::ring::default_provider();
        // A second client finds the provider installed; that is no fault.
        let _ = rustls::crypto::CryptoProvider::install_default(provider);
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            // Python servers (uvicorn) close a connection after 5 s of rest; one that is about to be closed must not be
            // taken for the next request.
            // A connection of its own for each request: servers close kept ones after a number of requests (llama.cpp after
            // 100), and a request that meets the closing is lost.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("sekimon/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // Plain HTTP needs no root certificates; reading the host's store costs more than the rest of the start.
            builder = builder.tls_backend_preconfigured(without_roots());
        }
        if let Some(Secret(key)) = &options.api_key {
            let mut value = reqwest::header::HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| {
                    fault(FaultKind::Setup(
                        "the API key holds characters that no header may hold".to_owned(),
                    ))
                })?;
            value.set_sensitive(true);
            let mut headers = reqwest::header::HeaderMap::new();
            headers.insert(reqwest::header::AUTHORIZATION, value);
            builder = builder.default_headers(headers);
        }
        let http = builder
            .build()
            .map_err(|e| fault(FaultKind::Setup(quote(&e.to_string(), 300))))?;
        Ok(Self {
            http,
            base: root(url.as_str()),
        })
    }

    /// Root of the seat, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base
    }

    /// The whole URL of a path of the seat.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Gets a path, whatever its status; fails if no whole HTTP answer came in time or its body passes `limit` bytes.
    pub async fn get(&self, path: &str, deadline: Duration, limit: usize) -> Result<Reply, Fault> {
        let url = self.url(path);
        let request = self.http.get(&url);
        short(&url, request, deadline, limit).await
    }

    /// Gets the text of a path; a status that is no success is a fault.
    pub async fn get_text(
        &self,
        path: &str,
        deadline: Duration,
        limit: usize,
    ) -> Result<String, Fault> {
        let reply = self.get(path, deadline, limit).await?;
        success(&self.url(path), reply)
    }

    /// Gets the JSON of a path; a status that is no success is a fault.
    pub async fn get_json(&self, path: &str, deadline: Duration) -> Result<Value, Fault> {
        let text = self.get_text(path, deadline, BODY_LIMIT).await?;
        json(&self.url(path), &text)
    }

    /// Posts a JSON body and reads a JSON answer; a status that is no success is a fault.
    pub async fn post_json(
        &self,
        path: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Value, Fault> {
        let url = self.url(path);
        let reply = short(&url, self.post(&url, body), deadline, BODY_LIMIT).await?;
        let text = success(&url, reply)?;
        json(&url, &text)
    }

    /// Posts a JSON body and returns as soon as the headers are there.
    pub(super) async fn open(&self, path: &str, body: Bytes) -> Result<reqwest::Response, Fault> {
        let url = self.url(path);
        self.post(&url, body)
            .send()
            .await
            .map_err(|e| Fault::from_reqwest(&url, &e))
    }

    fn post(&self, url: &str, body: Bytes) -> reqwest::RequestBuilder {
        self.http
            .post(url)
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .body(body)
    }
}

fn without_roots() -> rustls::ClientConfig {
    rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

fn root(url: &str) -> String {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/v1").unwrap_or(url).to_owned()
}

async fn short(
    url: &str,
    request: reqwest::RequestBuilder,
    deadline: Duration,
    limit: usize,
) -> Result<Reply, Fault> {
    let whole = async {
        let response = request
            .send()
            .await
            .map_err(|e| Fault::from_reqwest(url, &e))?;
        let status = response.status().as_u16();
        let server = response
            .headers()
            .get(reqwest::header::SERVER)
            .and_then(|v| v.to_str().ok())
            .map(|v| quote(v, 200));
        let body = body(url, response, limit).await?;
        Ok(Reply {
            status,
            server,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    };
    match tokio::time::timeout(deadline, whole).await {
        Ok(reply) => reply,
        Err(_) => Err(Fault {
            url: url.to_owned(),
            kind: FaultKind::TimedOut(deadline.as_secs_f64()),
        }),
    }
}

/// The whole body, at most `limit` bytes.
async fn body(url: &str, mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|e| Fault::from_reqwest(url, &e))?
    {
        if body.len() + piece.len() > limit {
            return Err(Fault {
                url: url.to_owned(),
                kind: FaultKind::TooLarge(limit),
            });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The start of an error's body, at most [`QUOTE_LIMIT`] bytes of it; what cannot be read is left out.
pub(super) async fn start_of(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    while body.len() < QUOTE_LIMIT {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(QUOTE_LIMIT);
    quote(&String::from_utf8_lossy(&body), QUOTE_LIMIT)
}

fn success(url: &str, reply: Reply) -> Result<String, Fault> {
    if (200..300).contains(&reply.status) {
        Ok(reply.body)
    } else {
        Err(Fault::from_status(url, reply.status, &reply.body))
    }
}

fn json(url: &str, text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|e| Fault {
        url: url.to_owned(),
        kind: FaultKind::NotJson {
            cause: e.to_string(),
            excerpt: quote(text, 200),
        },
    })
}
