//! Gaps between the chunks of one answer, and digests of what it carried.

use hdrhistogram::Histogram;
use sha2::{Digest, Sha256};

use crate::evidence::exchange::{Gaps, IdDigest};

/// Gaps in microseconds to three significant figures; grows with the largest gap, about 50 kB for gaps of a second.
#[derive(Debug, Default)]
pub(super) struct GapRecorder {
    histogram: Option<Histogram<u32>>,
    largest_s: f64,
}

impl GapRecorder {
    /// Takes one gap in seconds.
    pub(super) fn record(&mut self, gap_s: f64) {
        self.largest_s = self.largest_s.max(gap_s);
        if self.histogram.is_none() {
            self.histogram = Histogram::new(3).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            // A gap under a microsecond counts as one: the histogram has no smaller unit. It grows as needed, so that
            // recording has no way to fail.
            let _ = histogram.record((gap_s * 1e6).max(1.0) as u64);
        }
    }

    /// Median, 99th percentile and largest; absent without a gap.
    pub(super) fn gaps(&self) -> Option<Gaps> {
        let histogram = self.histogram.as_ref()?;
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Some(Gaps {
            median_s: at(0.5),
            p99_s: at(0.99),
            max_s: self.largest_s,
        })
    }
}

/// Length and digest of a list of token ids.
pub fn digest_ids(ids: &[u32]) -> IdDigest {
    let mut sha = Sha256::new();
    let mut text = String::new();
    for (i, id) in ids.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&id.to_string());
        if text.len() > 4096 {
            sha.update(text.as_bytes());
            text.clear();
        }
    }
    sha.update(text.as_bytes());
    IdDigest {
        count: ids.len() as u64,
        sha256: hex(&sha.finalize()),
    }
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_ids_is_that_of_their_decimal_list() {
        let digest = digest_ids(&[504, 2365, 6]);
        assert_eq!(digest.count, 3);
        assert_eq!(digest.sha256, hex(&Sha256::digest(b"504,2365,6")));
        let long: Vec<u32> = (0..10_000).collect();
        let list: Vec<String> = long.iter().map(u32::to_string).collect();
        assert_eq!(
            digest_ids(&long).sha256,
            hex(&Sha256::digest(list.join(",").as_bytes()))
        );
    }

    #[test]
    fn gaps_are_absent_without_any_and_right_to_a_thousandth() {
        let mut recorder = GapRecorder::default();
        assert_eq!(recorder.gaps(), None);
        for gap in 1..=100 {
            recorder.record(f64::from(gap) / 1000.0);
        }
        let gaps = recorder.gaps().expect("100 gaps");
        assert!((gaps.median_s - 0.050).abs() < 0.0001);
        assert!((gaps.p99_s - 0.099).abs() < 0.0002);
        assert_eq!(gaps.max_s, 0.1);
    }
}
