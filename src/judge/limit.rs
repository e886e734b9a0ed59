//! A figure held to a limit.

use super::estimate::{self, Compared, Terms};
use super::figure::{Decision, Figure, LimitOutcome};
use super::sample::{Measured, Sample};
use crate::spec::expect::{Expectation, Limit};
use crate::stats::alpha::Alpha;
use crate::stats::bound::{self, Decision as Ruled};
use crate::stats::error::StatsError;
use crate::stats::estimate::Estimate;
use crate::stats::order::{self, QuantileCount};
use crate::stats::power::{self, Settling};
use crate::stats::prediction::{Alarm, Standing, prediction_interval};

/// What a limit compares with.
#[derive(Debug, Clone)]
pub(super) enum Opponent<'a> {
    /// Nothing: the limit is absolute.
    None,
    /// The same figure of a build of this run.
    Measured(&'a Measured),
    /// The same figure of a recorded run.
    Recorded(&'a Figure),
    /// The same figure of several recorded runs, one value a session.
    Sessions(Vec<f64>),
    /// There is nothing to compare with.
    Missing(String),
}

/// Holds a figure to a limit.
pub(super) fn hold(
    measured: &Measured,
    figure: &Figure,
    expectation: &Expectation,
    opponent: &Opponent<'_>,
    terms: Terms,
) -> LimitOutcome {
    let ruling = match opponent {
        Opponent::Missing(why) => Ruling::absent(why),
        _ => rule(measured, figure, &expectation.limit, opponent, terms),
    };
    LimitOutcome {
        text: expectation.text.clone(),
        line: expectation.line,
        decision: ruling.decision,
        because: ruling.because,
        margin: ruling.margin,
        smallest_effect: ruling.smallest_effect,
    }
}

struct Ruling {
    decision: Decision,
    because: String,
    margin: Option<f64>,
    smallest_effect: Option<f64>,
}

impl Ruling {
    fn absent(why: &str) -> Self {
        Self {
            decision: Decision::Absent,
            because: why.into(),
            margin: None,
            smallest_effect: None,
        }
    }
}

fn rule(
    measured: &Measured,
    figure: &Figure,
    limit: &Limit,
    opponent: &Opponent<'_>,
    terms: Terms,
) -> Ruling {
    let alpha = terms.alpha;
    let unit = figure.unit.as_str();
    if let Sample::Percentile { q, requests } = &measured.sample {
        return match limit {
            Limit::AtMost(x) => counted(*q, requests, *x, unit, alpha),
            _ => {
                Ruling::absent("a percentile is held by `<= X` alone: requests over X are counted")
            }
        };
    }
    match limit {
        Limit::Is(word) => is(&measured.sample, word),
        Limit::AtLeast(x) => allowed(measured, unit, Some(*x), None, alpha),
        Limit::AtMost(x) => allowed(measured, unit, None, Some(*x), alpha),
        Limit::Exactly(x) => exactly(&measured.sample, *x, unit),
        Limit::Between(low, high) => allowed(measured, unit, Some(*low), Some(*high), alpha),
        Limit::RatioAtLeast(x, _) => ratio(measured, opponent, Some(*x), None, terms),
        Limit::RatioAtMost(x, _) => ratio(measured, opponent, None, Some(*x), terms),
        Limit::WithinFraction(x, _) => {
            ratio(measured, opponent, Some(1.0 - x), Some(1.0 + x), terms)
        }
        Limit::WithinAmount(x, _) => difference(measured, opponent, unit, *x, terms),
        Limit::InBand(_) => banded(measured, opponent, unit, Side::In),
        Limit::AboveBand(_) => banded(measured, opponent, unit, Side::Above),
        Limit::BelowBand(_) => banded(measured, opponent, unit, Side::Below),
    }
}

fn is(sample: &Sample, word: &str) -> Ruling {
    let Sample::Words(words) = sample else {
        return Ruling::absent("this figure is a number, not a word");
    };
    let wrong: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|w| *w != word)
        .collect();
    let decision = match (words.is_empty(), wrong.is_empty()) {
        (true, _) => Decision::Absent,
        (_, true) => Decision::Clears,
        (_, false) => Decision::Misses,
    };
    let because = match wrong.first() {
        None => format!("{} of {} are `{word}`", words.len(), words.len()),
        Some(first) => format!(
            "{} of {} are not `{word}`, first `{first}`",
            wrong.len(),
            words.len()
        ),
    };
    Ruling {
        decision,
        because,
        margin: None,
        smallest_effect: None,
    }
}

fn exactly(sample: &Sample, x: f64, unit: &str) -> Ruling {
    let numbers = sample.numbers();
    let wrong: Vec<f64> = numbers.iter().copied().filter(|v| *v != x).collect();
    let decision = match (numbers.is_empty(), wrong.is_empty()) {
        (true, _) => Decision::Absent,
        (_, true) => Decision::Clears,
        (_, false) => Decision::Misses,
    };
    let because = match wrong.first() {
        None => format!("each of {} is {x} {unit}", numbers.len()),
        Some(first) => format!(
            "{} of {} differ, first {first} {unit}",
            wrong.len(),
            numbers.len()
        ),
    };
    Ruling {
        decision,
        because,
        margin: None,
        smallest_effect: None,
    }
}

/// Held to absolute ends: each observation by itself, or the bound of their level.
fn allowed(
    measured: &Measured,
    unit: &str,
    low: Option<f64>,
    high: Option<f64>,
    alpha: f64,
) -> Ruling {
    match estimate::level(&measured.sample, alpha) {
        None => each(&measured.sample.numbers(), low, high, unit),
        Some(estimate) => bounded(estimate, low, high, unit, measured.sample.of()),
    }
}

/// A percentile by the requests over its limit, exactly (the early-stopping rule of MLPerf LoadGen).
fn counted(q: f64, repeats: &[Vec<f64>], most: f64, unit: &str, alpha: f64) -> Ruling {
    let counts: Vec<QuantileCount> = repeats
        .iter()
        .map(|window| QuantileCount {
            requests: window.len() as u64,
            violations: window.iter().filter(|v| **v > most).count() as u64,
        })
        .collect();
    let all: u64 = counts.iter().map(|c| c.requests).sum();
    let over: u64 = counts.iter().map(|c| c.violations).sum();
    if all == 0 {
        return Ruling::absent("there is no request to count");
    }
    let ruled = Alpha::new(alpha).and_then(|a| order::judge_quantile_of_repeats(&counts, q, a));
    let seen = format!(
        "{over} of {all} requests over {} {unit} (p{} allows {} of 100)",
        plain(most),
        plain(q * 100.0),
        plain((1.0 - q) * 100.0)
    );
    let (decision, because) = match ruled {
        Err(cause) => (Decision::Open, cause.to_string()),
        Ok(ruling) => match (ruling.decision, ruling.need) {
            (Ruled::Clears, _) => (Decision::Clears, seen),
            (Ruled::Misses, _) => (Decision::Misses, seen),
            (Ruled::Straddles, Some(need)) => (
                Decision::Open,
                format!("{seen}: {need} requests in all are the least that could decide"),
            ),
            (Ruled::Straddles, None) => (
                Decision::Open,
                format!(
                    "{seen}: one repeat has more than its share, or the share lies at the limit"
                ),
            ),
        },
    };
    Ruling {
        decision,
        because,
        margin: None,
        smallest_effect: None,
    }
}

/// Every observation by itself.
fn each(numbers: &[f64], low: Option<f64>, high: Option<f64>, unit: &str) -> Ruling {
    let bad: Vec<f64> = numbers
        .iter()
        .copied()
        .filter(|v| low.is_some_and(|x| *v < x) || high.is_some_and(|x| *v > x))
        .collect();
    let margin = numbers
        .iter()
        .map(|v| {
            low.map_or(f64::INFINITY, |x| v - x)
                .min(high.map_or(f64::INFINITY, |x| x - v))
        })
        .reduce(f64::min);
    let decision = match (numbers.is_empty(), bad.is_empty()) {
        (true, _) => Decision::Absent,
        (_, true) => Decision::Clears,
        (_, false) => Decision::Misses,
    };
    let because = match bad.first() {
        None => format!("each of {} holds", numbers.len()),
        Some(first) => format!(
            "{} of {} do not hold, first {} {unit}",
            bad.len(),
            numbers.len(),
            plain(*first)
        ),
    };
    Ruling {
        decision,
        because,
        margin,
        smallest_effect: None,
    }
}

/// The bound of an estimate against the ends.
fn bounded(
    estimate: Result<Estimate, StatsError>,
    low: Option<f64>,
    high: Option<f64>,
    unit: &str,
    of: &str,
) -> Ruling {
    let estimate = match estimate {
        Ok(estimate) => estimate,
        Err(cause) => {
            return Ruling {
                decision: Decision::Open,
                because: cause.to_string(),
                margin: None,
                smallest_effect: None,
            };
        }
    };
    let limit = match (low, high) {
        (Some(low), None) => bound::Limit::Floor(low),
        (None, Some(high)) => bound::Limit::Ceiling(high),
        (low, high) => bound::Limit::Within {
            low: low.unwrap_or(f64::NEG_INFINITY),
            high: high.unwrap_or(f64::INFINITY),
        },
    };
    let margin = low
        .map_or(f64::INFINITY, |x| estimate.lower - x)
        .min(high.map_or(f64::INFINITY, |x| x - estimate.upper));
    let seen = format!(
        "{} [{}, {}]{}{unit}, n = {}",
        plain(estimate.value),
        plain(estimate.lower),
        plain(estimate.upper),
        if unit.is_empty() { "" } else { " " },
        estimate.n
    );
    let (decision, because) = match limit.decide(&estimate) {
        Ruled::Clears => (Decision::Clears, format!("{seen}: the bound clears it")),
        Ruled::Misses => (
            Decision::Misses,
            format!("{seen}: the opposite bound misses it"),
        ),
        Ruled::Straddles => (
            Decision::Open,
            format!(
                "{seen}: the interval straddles it; {}",
                settle(&estimate, &limit, of)
            ),
        ),
    };
    Ruling {
        decision,
        because,
        margin: margin.is_finite().then_some(margin),
        smallest_effect: smallest_effect(&estimate),
    }
}

/// The smallest distance from a limit that an interval of this width finds with the usual power.
fn smallest_effect(estimate: &Estimate) -> Option<f64> {
    let alpha = Alpha::new(1.0 - estimate.confidence).ok()?;
    // The half-width that is nearer to a standard error's: bounds of logarithms are a little wider above.
    let reach = (estimate.upper - estimate.lower) / 2.0;
    let error = reach / power::quantile_of(alpha);
    power::smallest_effect_of_error(error, alpha, power::USUAL_POWER)
        .ok()
        .filter(|e| e.is_finite())
}

/// What would settle an open limit.
fn settle(estimate: &Estimate, limit: &bound::Limit, of: &str) -> String {
    match power::settling(estimate, limit) {
        Settling::About { more } => format!("about {more} more {of} would settle it"),
        Settling::Settled | Settling::OutOfReach => {
            "the estimate lies too near the limit: more repeats will not settle it, only another build or another limit".into()
        }
    }
}

fn ratio(
    measured: &Measured,
    opponent: &Opponent<'_>,
    low: Option<f64>,
    high: Option<f64>,
    terms: Terms,
) -> Ruling {
    match opponent {
        Opponent::Measured(theirs) => {
            match estimate::compare(&measured.sample, &theirs.sample, terms) {
                Some(Compared::Ratio(estimate)) => {
                    bounded(estimate, low, high, "×", measured.sample.of())
                }
                Some(Compared::Difference(estimate)) => {
                    let base = estimate::figure_value(&theirs.sample);
                    let relative = estimate.map(|e| scaled(e, base));
                    bounded(relative, low, high, "×", measured.sample.of())
                }
                None => one_by_one(&measured.sample, &theirs.sample.numbers(), low, high),
            }
        }
        Opponent::Recorded(theirs) => {
            let Some(value) = theirs.value else {
                return Ruling::absent("the recorded figure has no value");
            };
            match estimate::level(&measured.sample, terms.alpha) {
                Some(estimate) => bounded(
                    estimate.map(|e| shrunk(e, value)),
                    low,
                    high,
                    "×",
                    measured.sample.of(),
                ),
                None => one_by_one(&measured.sample, &[value], low, high),
            }
        }
        Opponent::Sessions(values) => predicted(measured, values, low, high, terms),
        Opponent::None | Opponent::Missing(_) => Ruling::absent("there is nothing to compare with"),
    }
}

/// Held to a baseline of several sessions: our bound against their level, and our level inside what they predict.
///
/// One session's level says nothing of how sessions differ (31–34 % false alarms at 1 % between sessions); the prediction
/// interval holds both.
fn predicted(
    measured: &Measured,
    sessions: &[f64],
    low: Option<f64>,
    high: Option<f64>,
    terms: Terms,
) -> Ruling {
    let prediction = Alpha::new(terms.alpha).and_then(|a| prediction_interval(sessions, a));
    let prediction = match prediction {
        Ok(prediction) => prediction,
        Err(cause) => return Ruling::absent(&cause.to_string()),
    };
    let level = estimate::level(&measured.sample, terms.alpha);
    let ours = match &level {
        Some(Ok(estimate)) => estimate.value,
        _ => estimate::figure_value(&measured.sample),
    };
    let held = match level {
        Some(estimate) => bounded(
            estimate.map(|e| shrunk(e, prediction.centre)),
            low,
            high,
            "×",
            measured.sample.of(),
        ),
        None => one_by_one(&measured.sample, &[prediction.centre], low, high),
    };
    let seen = format!(
        "{} sessions predict {} to {}, this one is {}",
        prediction.sessions,
        plain(prediction.lower),
        plain(prediction.upper),
        plain(ours)
    );
    let out = match prediction.alarm(ours) {
        Alarm::Quiet => false,
        Alarm::Below => low.is_some(),
        Alarm::Above => high.is_some(),
    };
    let few = match prediction.standing {
        Standing::Established => "",
        Standing::Provisional => " (provisional: five sessions make a baseline)",
    };
    let decision = match held.decision {
        // The bound clears the margin, and yet no session was ever like this: somebody should look.
        Decision::Clears if out => Decision::Open,
        other => other,
    };
    Ruling {
        decision,
        because: format!("{}; {seen}{few}", held.because),
        ..held
    }
}

/// A difference as a ratio to its base.
fn scaled(e: Estimate, base: f64) -> Estimate {
    Estimate {
        value: 1.0 + e.value / base,
        lower: 1.0 + e.lower / base,
        upper: 1.0 + e.upper / base,
        ..e
    }
}

/// A level as a ratio to a recorded one.
fn shrunk(e: Estimate, by: f64) -> Estimate {
    Estimate {
        value: e.value / by,
        lower: e.lower / by,
        upper: e.upper / by,
        ..e
    }
}

/// Each observation over the middle of theirs: for figures that are held one by one (a KV window).
fn one_by_one(ours: &Sample, theirs: &[f64], low: Option<f64>, high: Option<f64>) -> Ruling {
    let Some(base) = estimate::middle(theirs).filter(|b| *b != 0.0) else {
        return Ruling::absent("the reference has no value");
    };
    let ratios: Vec<f64> = ours.numbers().iter().map(|v| v / base).collect();
    each(&ratios, low, high, "×")
}

fn difference(
    measured: &Measured,
    opponent: &Opponent<'_>,
    unit: &str,
    most: f64,
    terms: Terms,
) -> Ruling {
    let alpha = terms.alpha;
    match opponent {
        Opponent::Measured(theirs) => {
            match estimate::compare(&measured.sample, &theirs.sample, terms) {
                Some(Compared::Difference(estimate)) => bounded(
                    estimate,
                    Some(-most),
                    Some(most),
                    unit,
                    measured.sample.of(),
                ),
                _ => {
                    let Some(base) = estimate::middle(&theirs.sample.numbers()) else {
                        return Ruling::absent("the reference has no value");
                    };
                    by_difference(measured, base, unit, most, alpha)
                }
            }
        }
        Opponent::Recorded(theirs) => match theirs.value {
            Some(base) => by_difference(measured, base, unit, most, alpha),
            None => Ruling::absent("the recorded figure has no value"),
        },
        Opponent::Sessions(values) => {
            match Alpha::new(alpha).and_then(|a| prediction_interval(values, a)) {
                Ok(prediction) => by_difference(measured, prediction.centre, unit, most, alpha),
                Err(cause) => Ruling::absent(&cause.to_string()),
            }
        }
        Opponent::None | Opponent::Missing(_) => Ruling::absent("there is nothing to compare with"),
    }
}

fn by_difference(measured: &Measured, base: f64, unit: &str, most: f64, alpha: f64) -> Ruling {
    match estimate::level(&measured.sample, alpha) {
        Some(estimate) => {
            let moved = estimate.map(|e| Estimate {
                value: e.value - base,
                lower: e.lower - base,
                upper: e.upper - base,
                ..e
            });
            bounded(moved, Some(-most), Some(most), unit, measured.sample.of())
        }
        None => {
            let moved: Vec<f64> = measured.sample.numbers().iter().map(|v| v - base).collect();
            each(&moved, Some(-most), Some(most), unit)
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    In,
    Above,
    Below,
}

/// Beside the reference's band, observation by observation, as people judge today.
fn banded(measured: &Measured, opponent: &Opponent<'_>, unit: &str, side: Side) -> Ruling {
    let theirs = match opponent {
        Opponent::Measured(theirs) => theirs.sample.numbers(),
        Opponent::Recorded(theirs) => theirs.repeats.clone(),
        Opponent::Sessions(values) => values.clone(),
        Opponent::None | Opponent::Missing(_) => Vec::new(),
    };
    let (Some([low, high]), ours) = (estimate::band(&theirs), measured.sample.numbers()) else {
        return Ruling::absent("the reference has no band");
    };
    let Some([least, most]) = estimate::band(&ours) else {
        return Ruling::absent("nothing was measured");
    };
    let seen = format!(
        "observations {} to {} {unit}, reference band {} to {} (n = {})",
        plain(least),
        plain(most),
        plain(low),
        plain(high),
        theirs.len()
    );
    let (good, bad) = match side {
        Side::In => (least >= low && most <= high, most < low || least > high),
        Side::Above => (least > high, most < high),
        Side::Below => (most < low, least > low),
    };
    let decision = match (good, bad) {
        (true, _) => Decision::Clears,
        (false, true) => Decision::Misses,
        (false, false) => Decision::Open,
    };
    let because = match decision {
        Decision::Open => {
            format!("{seen}: they overlap; more repeats, or a quieter machine, would settle it")
        }
        _ => seen,
    };
    Ruling {
        decision,
        because,
        margin: None,
        smallest_effect: None,
    }
}

/// A number for a sentence: four significant digits.
fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let digits = usize::try_from(digits.clamp(0, 12)).unwrap_or(0);
    format!("{value:.digits$}")
}
