//! Prometheus text: what `/metrics` said at one moment.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>. Full names are matched, never prefixes:
//! `prometheus_client` puts a `_created` gauge with a Unix time beside each counter, and
//! `vllm:iteration_tokens_total` is a histogram whose series end in `_total_bucket`, `_total_sum`, `_total_count`.

/// One scrape, parsed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exposition {
    /// Every sample, in the order of the text.
    pub samples: Vec<Sample>,
}

/// One sample line.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Full series name.
    pub name: String,
    /// Labels in the order of the text.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
}

impl Exposition {
    /// stub until the parser lands
    pub fn parse(_text: &str) -> Self {
        Self::default()
    }
}
