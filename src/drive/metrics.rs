//! One look at a seat's metrics, as text.

use std::fmt;
use std::time::Duration;

use super::client::Client;
use super::fault::{Fault, FaultKind, quote};
use crate::dialect::Dialect;

/// Longest text in bytes: vLLM's is 64 kB for one model, so 16 MiB is hundreds of engines.
pub const METRICS_LIMIT: usize = 16 << 20;

/// Why there is no text.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricsAbsence {
    /// The dialect has no metrics.
    NoneInDialect(&'static str),
    /// The server says that it has none here; the text says how to switch them on.
    SwitchedOff {
        /// URL.
        url: String,
        /// Status.
        status: u16,
        /// How to switch it on.
        switch: &'static str,
    },
    /// What came is no metrics text.
    NotMetrics {
        /// URL.
        url: String,
        /// Start of the text.
        excerpt: String,
    },
    /// The conversation failed.
    Http(Fault),
}

impl fmt::Display for MetricsAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneInDialect(dialect) => write!(
                f,
                "dialect `{dialect}` has no metrics; name the seat's own dialect if it has some"
            ),
            Self::SwitchedOff {
                url,
                status,
                switch,
            } => write!(f, "`{url}`: HTTP {status}: no metrics there; {switch}"),
            Self::NotMetrics { url, excerpt } => write!(
                f,
                "`{url}`: no metrics text: `{excerpt}`; check that the URL is the seat's own"
            ),
            Self::Http(fault) => write!(f, "metrics: {fault}"),
        }
    }
}

impl std::error::Error for MetricsAbsence {}

/// The text of the seat's metrics at this moment.
pub async fn scrape(
    client: &Client,
    dialect: &Dialect,
    deadline: Duration,
) -> Result<String, MetricsAbsence> {
    let Some(metrics) = &dialect.metrics else {
        return Err(MetricsAbsence::NoneInDialect(dialect.id));
    };
    let url = client.url(metrics.path);
    let reply = client.get(metrics.path, deadline, METRICS_LIMIT).await;
    let reply = reply.map_err(MetricsAbsence::Http)?;
    match reply.status {
        200 if is_exposition(&reply.body) => Ok(reply.body),
        200 => Err(MetricsAbsence::NotMetrics {
            url,
            excerpt: quote(&reply.body, 200),
        }),
        // llama-server answers 501 without `--metrics`.
        404 | 405 | 501 => Err(MetricsAbsence::SwitchedOff {
            url,
            status: reply.status,
            switch: metrics.switch,
        }),
        status => Err(MetricsAbsence::Http(Fault::from_status(
            &url,
            status,
            &reply.body,
        ))),
    }
}

/// Whether a text is an exposition at first sight: an empty one, or one whose first line is a comment or a sample.
fn is_exposition(text: &str) -> bool {
    match text.lines().find(|line| !line.trim().is_empty()) {
        None => true,
        Some(line) => {
            line.starts_with('#')
                || line
                    .bytes()
                    .next()
                    .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        }
    }
}

impl MetricsAbsence {
    /// Whether another try may succeed.
    pub fn is_infra(&self) -> bool {
        match self {
            Self::Http(fault) => fault.is_infra() || matches!(fault.kind, FaultKind::TooLarge(_)),
            _ => false,
        }
    }
}
