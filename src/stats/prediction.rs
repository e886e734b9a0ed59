//! Tonight's figure against a baseline of earlier sessions.
//!
//! A baseline from one session is no yardstick: sessions differ by more than repeats do, and 31–34 % of alarms against
//! it are false where sessions differ by 1 %. The interval here is for one further session of the same seat.

use super::alpha::Alpha;
use super::distribution::t_quantile;
use super::error::{StatsError, at_least, positive};
use super::mean::{Moments, moments};
use serde::{Deserialize, Serialize};

/// Sessions from which a baseline is more than provisional: below, a loss of 3 % is found less often than half the time.
pub const ESTABLISHED_FROM: usize = 5;

/// Whether enough sessions stand behind a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Two to four sessions: alarms are labelled provisional.
    Provisional,
    /// Five sessions or more.
    Established,
}

/// Where one further session is expected to fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The baseline: geometric mean of the session figures, in their unit.
    pub centre: f64,
    /// The lower one-sided bound for one further session.
    pub lower: f64,
    /// The upper one-sided bound for one further session.
    pub upper: f64,
    /// Number of sessions.
    pub sessions: usize,
    /// Whether they are enough.
    pub standing: Standing,
}

/// Where a session falls against the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alarm {
    /// Below the lower bound.
    Below,
    /// Inside.
    Quiet,
    /// Above the upper bound.
    Above,
}

/// Predicts one further session from one figure (its median) of each earlier session.
///
/// # Errors
/// One session or none: there is no spread between sessions to judge by. Figures must be above zero.
pub fn prediction_interval(sessions: &[f64], alpha: Alpha) -> Result<Prediction, StatsError> {
    positive(sessions)?;
    let k = sessions.len();
    at_least("sessions", k, 2)?;
    let logs: Vec<f64> = sessions.iter().map(|s| s.ln()).collect();
    let Moments { mean, sd } = moments(&logs)?;
    let reach = t_quantile(alpha.confidence(), k - 1) * sd * (1.0 + 1.0 / k as f64).sqrt();
    Ok(Prediction {
        centre: mean.exp(),
        lower: (mean - reach).exp(),
        upper: (mean + reach).exp(),
        sessions: k,
        standing: if k >= ESTABLISHED_FROM {
            Standing::Established
        } else {
            Standing::Provisional
        },
    })
}

impl Prediction {
    /// Whether a session's figure raises an alarm.
    pub fn alarm(&self, session: f64) -> Alarm {
        // The centre came back from its logarithm off by an ulp; sessions without spread must not alarm on that.
        let slack = self.centre * 1e-12;
        if session < self.lower - slack {
            Alarm::Below
        } else if session > self.upper + slack {
            Alarm::Above
        } else {
            Alarm::Quiet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::noise::SplitMix64;
    use super::*;

    #[test]
    fn one_session_is_no_baseline() {
        assert!(matches!(
            prediction_interval(&[100.0], Alpha::FIVE_PERCENT),
            Err(StatsError::TooFew {
                have: 1,
                need: 2,
                ..
            })
        ));
    }

    #[test]
    fn four_sessions_are_provisional_and_five_established() {
        let four = prediction_interval(&[100.0, 101.0, 99.0, 100.5], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(four.standing, Standing::Provisional);
        let five = prediction_interval(&[100.0; 5], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(five.standing, Standing::Established);
        assert_eq!(five.alarm(100.0), Alarm::Quiet);
        assert_eq!(five.alarm(99.0), Alarm::Below);
    }

    #[test]
    fn false_alarms_calibrate_to_five_percent_over_sessions() {
        let mut random = SplitMix64::new(11);
        // One figure of a session: session deviation 1 %, within-session median of five repeats 0.34 %.
        let mut session =
            |shift: f64| (0.01 * random.normal() + 0.0034 * random.normal() + shift).exp();
        let mut share = |k: usize, shift: f64| {
            let rounds = 2500;
            let alarms = (0..rounds)
                .filter(|_| {
                    let baseline: Vec<f64> = (0..k).map(|_| session(0.0)).collect();
                    let predicted = prediction_interval(&baseline, Alpha::FIVE_PERCENT).unwrap();
                    predicted.alarm(session(shift)) == Alarm::Below
                })
                .count();
            100.0 * alarms as f64 / rounds as f64
        };
        for (k, at_three, at_five) in [(3, 50.0, 83.0), (5, 70.0, 97.0), (10, 82.0, 100.0)] {
            let (quiet, three, five) = (share(k, 0.0), share(k, -0.03), share(k, -0.05));
            println!(
                "stored baseline of {k} sessions: false alarm {quiet:.1} % · found at -3 % {three:.0} % · at -5 % {five:.0} %"
            );
            assert!((quiet - 5.0).abs() < 1.3, "{quiet}");
            assert!((three - at_three).abs() < 6.0 && (five - at_five).abs() < 6.0);
        }
    }
}
