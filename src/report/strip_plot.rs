//! A strip of the observations of one figure: each repeat, the interval, the limits and the reference's band, on one scale.

use super::limit_line::LimitLine;
use super::number;
use crate::judge::figure::Figure;

/// What one strip shows, every number finite and in the figure's own unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Each observation, in the order of the run.
    pub repeats: Vec<f64>,
    /// The estimate.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// Where the limits lie.
    pub limits: Vec<f64>,
    /// The band of the reference.
    pub band: Option<[f64; 2]>,
    /// Both ends of the scale.
    pub scale: [f64; 2],
    /// The same in words, for who does not see it.
    pub words: String,
}

/// Share of the scale left free at both ends, so that no dot sits on the edge.
const AIR: f64 = 0.06;

impl Plot {
    /// The strip of a figure; none for fewer than two observations, which show nothing that the number does not.
    pub(super) fn of(figure: &Figure) -> Option<Self> {
        let finite = |pair: &[f64; 2]| pair.iter().all(|x| x.is_finite());
        let repeats: Vec<f64> = figure.repeats.iter().copied().filter(|x| x.is_finite()).collect();
        if repeats.len() < 2 {
            return None;
        }
        let value = figure.value.filter(|x| x.is_finite());
        let interval = figure.interval.filter(finite);
        let limits: Vec<f64> =
            figure.limits.iter().flat_map(|l| LimitLine::of(&l.text).positions(figure)).collect();
        let band = figure.against.first().map(|a| a.band).filter(finite);
        let all = repeats.iter().chain(&limits).chain(interval.iter().flatten()).chain(band.iter().flatten());
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        // Equal observations still want a scale to stand on.
        let width = if high > low { high - low } else { low.abs().max(1.0) };
        let words = repeats.iter().map(|r| number::plain(*r)).collect::<Vec<_>>().join(", ");
        let scale = [low - width * AIR, high + width * AIR];
        Some(Self { repeats, value, interval, limits, band, scale, words })
    }

    /// Place of a number on the scale, 0 to 1.
    pub fn place(&self, x: f64) -> f64 {
        let [low, high] = self.scale;
        ((x - low) / (high - low)).clamp(0.0, 1.0)
    }
}
