//! Figures that cannot be: a prefill faster than its own shorter twin, a peak below its mean.

/// A time to the first token at a prompt length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ttft {
    /// Tokens of the prompt.
    pub tokens: u64,
    /// Seconds to the first token.
    pub seconds: f64,
}

/// What a long prompt's TTFT says beside a shorter one's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plausible {
    /// It can be.
    Yes,
    /// It is less than half of what linear growth asks for: part of the prompt was not computed.
    TooFast {
        /// The least seconds that can be believed.
        least: f64,
    },
    /// The base is no base: shorter than [`SHORTEST_BASE`] tokens, as long as the prompt itself, or without a time.
    NoBase,
}

/// Shortest base in tokens: from there on prefill is about linear at least; below, fixed costs weigh too much.
pub const SHORTEST_BASE: u64 = 32_000;
/// Share of linear growth below which a TTFT is not believed: batching and larger chunks gain some, never half.
pub const LEAST_SHARE: f64 = 0.5;

/// Holds a long prompt's TTFT against a shorter one's.
pub fn ttft(long: Ttft, base: Ttft) -> Plausible {
    let usable = base.tokens >= SHORTEST_BASE
        && long.tokens > base.tokens
        && base.seconds > 0.0
        && base.seconds.is_finite();
    if !usable {
        return Plausible::NoBase;
    }
    let least = LEAST_SHARE * (long.tokens as f64 / base.tokens as f64) * base.seconds;
    // Written so that a TTFT that is no number is not believed.
    if long.seconds >= least {
        Plausible::Yes
    } else {
        Plausible::TooFast { least }
    }
}

/// Whether a peak can be the peak of this mean: a maximum below its mean was counted otherwise (chunks for tokens).
pub fn peak_covers_mean(peak: f64, mean: f64) -> bool {
    // One part in a million for sums in another order.
    peak >= mean * (1.0 - 1e-6)
}

/// The most tokens a second that steps and drafts allow: each step yields the drafted tokens and one more.
pub fn speed_limit(steps_per_s: f64, draft_tokens: u32) -> f64 {
    steps_per_s * (f64::from(draft_tokens) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Ttft = Ttft {
        tokens: 32_000,
        seconds: 20.0,
    };

    #[test]
    fn the_certified_seat_is_plausible() {
        assert_eq!(
            ttft(
                Ttft {
                    tokens: 166_000,
                    seconds: 119.6
                },
                BASE
            ),
            Plausible::Yes
        );
    }

    #[test]
    fn a_cached_prompt_is_too_fast() {
        let long = ttft(
            Ttft {
                tokens: 166_000,
                seconds: 3.0,
            },
            BASE,
        );
        assert_eq!(long, Plausible::TooFast { least: 51.875 });
        assert!(matches!(
            ttft(
                Ttft {
                    tokens: 166_000,
                    seconds: f64::NAN
                },
                BASE
            ),
            Plausible::TooFast { .. }
        ));
    }

    #[test]
    fn a_short_base_says_nothing() {
        let long = Ttft {
            tokens: 166_000,
            seconds: 3.0,
        };
        assert_eq!(
            ttft(
                long,
                Ttft {
                    tokens: 1_000,
                    seconds: 0.5
                }
            ),
            Plausible::NoBase
        );
        assert_eq!(
            ttft(
                long,
                Ttft {
                    tokens: 166_000,
                    seconds: 100.0
                }
            ),
            Plausible::NoBase
        );
        assert_eq!(
            ttft(
                long,
                Ttft {
                    tokens: 32_000,
                    seconds: 0.0
                }
            ),
            Plausible::NoBase
        );
    }

    #[test]
    fn a_peak_is_never_below_its_mean() {
        assert!(peak_covers_mean(415.0, 415.0) && peak_covers_mean(500.0, 415.0));
        assert!(!peak_covers_mean(111.0, 415.0));
    }

    #[test]
    fn steps_bound_the_speed() {
        assert_eq!(speed_limit(30.0, 3), 120.0);
        assert_eq!(speed_limit(30.0, 0), 30.0);
    }
}
