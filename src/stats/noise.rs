//! Noise shapes for the simulations of the tests, from an own seeded generator.

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine.
pub(super) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform, strictly between 0 and 1.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

/// How the logarithm of a repeat's figure scatters; the true median is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Normal, 0.8 %.
    Normal,
    /// Normal, and one repeat in ten loses an exponential 6 %.
    Stall,
    /// Student's t with 2 degrees of freedom, scale 0.8 %.
    HeavyTail,
    /// Normal, and 35 % of the repeats lie 3 % lower.
    TwoModes,
    /// Each repeat keeps 0.6 of its neighbour's deviation, 0.8 % over all.
    Correlated,
    /// Normal on top of a steady rise of 8 % over the session.
    Drift,
}

impl Shape {
    pub(super) const ALL: [Self; 6] = [
        Self::Normal,
        Self::Stall,
        Self::HeavyTail,
        Self::TwoModes,
        Self::Correlated,
        Self::Drift,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Stall => "stall",
            Self::HeavyTail => "t2",
            Self::TwoModes => "two modes",
            Self::Correlated => "AR(1) 0.6",
            Self::Drift => "drift",
        }
    }

    /// Whether repeats of this shape are independent of each other and of time.
    pub(super) const fn independent(self) -> bool {
        !matches!(self, Self::Correlated | Self::Drift)
    }

    /// The median of the shape before it is centred, by numerical integration of its distribution.
    const fn median(self) -> f64 {
        match self {
            Self::Stall => MEDIAN_STALL,
            Self::TwoModes => MEDIAN_TWO_MODES,
            _ => 0.0,
        }
    }

    /// `n` repeats in time order, as logarithms with true median `centre`.
    pub(super) fn draw(self, n: usize, centre: f64, random: &mut SplitMix64) -> Vec<f64> {
        const CORE: f64 = 0.008;
        let mut last = CORE * random.normal();
        (0..n)
            .map(|i| {
                let deviation = match self {
                    Self::Normal => CORE * random.normal(),
                    Self::Stall => {
                        let stalled = random.uniform() < 0.1;
                        let loss = if stalled {
                            0.06 * random.exponential()
                        } else {
                            0.0
                        };
                        CORE * random.normal() - loss
                    }
                    Self::HeavyTail => CORE * random.normal() / random.exponential().sqrt(),
                    Self::TwoModes => {
                        let loss = if random.uniform() < 0.35 { 0.03 } else { 0.0 };
                        CORE * random.normal() - loss
                    }
                    Self::Correlated => {
                        last = 0.6 * last + 0.8 * CORE * random.normal();
                        last
                    }
                    Self::Drift => {
                        let place = (i as f64 + 0.5) / n as f64 - 0.5;
                        CORE * random.normal() + 0.08 * place
                    }
                };
                centre + deviation - self.median()
            })
            .collect()
    }
}

const MEDIAN_STALL: f64 = -0.000_99;
const MEDIAN_TWO_MODES: f64 = -0.005_872;

#[test]
fn half_of_each_independent_shape_lies_below_its_centre() {
    let mut random = SplitMix64::new(1);
    for shape in Shape::ALL.into_iter().filter(|s| s.independent()) {
        let below = shape
            .draw(40_000, 0.0, &mut random)
            .iter()
            .filter(|v| **v < 0.0)
            .count();
        // Four standard errors of a half from 40,000 values.
        assert!(below.abs_diff(20_000) < 400, "{}: {below}", shape.name());
    }
}
