//! One look at a seat's metrics, as text.

use std::fmt::{self, Write as _};
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

/// Where the metrics of one seat are: its own URL, and those of further API servers.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// The seat's own.
    pub own: Client,
    /// Of further API servers that count for themselves.
    pub further: Vec<Client>,
}

impl Endpoints {
    /// The text of all of them as one: samples of the nth further endpoint carry `sekimon_endpoint="n"`, so that a counter
    /// is the sum over its samples and no two of them are the same series.
    ///
    /// # Errors
    /// Why one of them has no text, with its URL: a sum with a hole would be a wrong number.
    pub async fn scrape(
        &self,
        dialect: &Dialect,
        deadline: Duration,
    ) -> Result<String, MetricsAbsence> {
        let mut text = scrape(&self.own, dialect, deadline).await?;
        for (at, client) in self.further.iter().enumerate() {
            let more = scrape(client, dialect, deadline).await?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            more.lines()
                .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
                .for_each(|line| labelled(&mut text, line, at + 1));
        }
        Ok(text)
    }
}

/// Appends one sample with the number of its endpoint as a label.
fn labelled(text: &mut String, line: &str, endpoint: usize) {
    let end_of_name = line
        .find(|c: char| c == '{' || c.is_whitespace())
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end_of_name);
    let _ = match rest.strip_prefix('{') {
        Some(labels) if labels.starts_with('}') => {
            writeln!(text, "{name}{{sekimon_endpoint=\"{endpoint}\"{labels}")
        }
        Some(labels) => writeln!(text, "{name}{{sekimon_endpoint=\"{endpoint}\",{labels}"),
        None => writeln!(text, "{name}{{sekimon_endpoint=\"{endpoint}\"}}{rest}"),
    };
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::exposition::Exposition;
    use crate::judge::movement::total;

    #[test]
    fn samples_of_a_further_endpoint_are_summed_and_stay_apart() {
        let mut text = "calls_total{rank=\"0\"} 3\nup 1\n".to_owned();
        for line in ["calls_total{rank=\"0\"} 4", "up 1", "empty{} 2"] {
            labelled(&mut text, line, 1);
        }
        assert_eq!(
            text.lines().skip(2).collect::<Vec<_>>(),
            [
                "calls_total{sekimon_endpoint=\"1\",rank=\"0\"} 4",
                "up{sekimon_endpoint=\"1\"} 1",
                "empty{sekimon_endpoint=\"1\"} 2",
            ]
        );
        let exposition = Exposition::parse(&text);
        assert_eq!(total(&exposition, "calls_total"), Some(7.0));
        assert_eq!(total(&exposition, "up"), Some(2.0));
    }
}
