//! What must be true of the load: its concurrency, and the server's own clock against ours.

use super::{Invariant, Window, judged, maximum, unknown};
use crate::evidence::counters::movement;
use crate::evidence::selector::Selector;
use crate::evidence::window::GaugeSample;

/// Fewest gauge samples from which a maximum is believed: with fewer, one missed moment hides the truth.
const FEWEST_SAMPLES: usize = 3;

impl Window<'_> {
    /// As many requests ran at once as streams were driven.
    pub(super) fn concurrency(&self, gauges: &[GaugeSample]) -> Option<Invariant> {
        let wanted = self.expected.concurrency?;
        let name = "concurrency";
        let expected = format!("{wanted} requests running at once");
        let running: Vec<f64> = gauges.iter().filter_map(|g| g.running).collect();
        if running.len() < FEWEST_SAMPLES {
            let why = format!("only {} samples of the running requests", running.len());
            return Some(unknown(name, expected, why));
        }
        let most = running.iter().copied().fold(None, maximum).unwrap_or(0.0);
        let mut invariant = judged(name, expected, Ok(most), |most| most >= f64::from(wanted));
        invariant.seen = format!("at most {most} in {} samples", running.len());
        Some(invariant)
    }

    /// The server's mean TTFT cannot be longer than the client's; the client also waits for the wire.
    pub(super) fn ttft(&self) -> Option<Invariant> {
        let ours = self.expected.ttft_mean_s?;
        let base = self.metrics.ttft.first()?;
        let part = |suffix: &str| {
            let selector = Selector::name_only(&format!("{base}{suffix}"));
            movement(self.before, self.after, &selector, &self.process).delta()
        };
        let name = "ttft";
        let expected = format!("server's mean at most the client's {ours:.4} s");
        let (Some(sum), Some(count)) = (part("_sum"), part("_count")) else {
            return Some(unknown(
                name,
                expected,
                format!("`{base}_sum` cannot be differenced"),
            ));
        };
        if count == 0.0 {
            return Some(unknown(
                name,
                expected,
                format!("`{base}_count` stood still"),
            ));
        }
        // A millisecond for the two clocks and for the moment at which each of them begins to count.
        Some(judged(name, expected, Ok(sum / count), |mean| {
            mean <= ours + 0.001
        }))
    }
}
