//! Histograms as Prometheus has them.

use std::fmt::Write as _;

/// Upper bounds of times to the first token and of whole requests, vLLM's own, in seconds.
pub(super) const SECONDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0,
];
/// Upper bounds of times between tokens, in seconds.
pub(super) const GAPS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// Upper bounds of numbers of tokens.
pub(super) const TOKENS: &[f64] = &[
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
    65536.0, 262_144.0,
];

/// Values counted by their size.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// Values up to each bound and above the one before.
    counts: Vec<u64>,
    sum: f64,
    number: u64,
}

impl Histogram {
    /// Nothing counted yet.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len()],
            sum: 0.0,
            number: 0,
        }
    }

    /// Counts a value.
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.number += 1;
        if let Some(place) = self.bounds.iter().position(|bound| value <= *bound) {
            self.counts[place] += 1;
        }
    }

    /// Writes the series; `labels` are those of the metric without braces.
    pub(super) fn write(&self, name: &str, labels: &str, text: &mut String) {
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound:?}\"}} {below}.0");
        }
        let (n, sum) = (self.number, self.sum);
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {n}.0");
        let _ = writeln!(
            text,
            "{name}_count{{{labels}}} {n}.0\n{name}_sum{{{labels}}} {sum:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_all_that_is_smaller() {
        let mut histogram = Histogram::new(&[1.0, 8.0]);
        for value in [1.0, 2.0, 9.0] {
            histogram.add(value);
        }
        let mut text = String::new();
        histogram.write("x", "a=\"b\"", &mut text);
        let wanted = "x_bucket{a=\"b\",le=\"1.0\"} 1.0\nx_bucket{a=\"b\",le=\"8.0\"} 2.0\nx_bucket{a=\"b\",le=\"+Inf\"} 3.0\nx_count{a=\"b\"} 3.0\nx_sum{a=\"b\"} 12.0\n";
        assert_eq!(text, wanted);
    }
}
