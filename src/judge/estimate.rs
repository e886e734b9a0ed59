//! From observations to a figure: its estimate, its interval, and its comparison with a reference.

use super::figure::{Against, Figure, Origin};
use super::sample::{Cluster, Measured, Sample, percentile};
use crate::spec::gate::Check;
use crate::spec::kind::FigureKind;
use crate::stats::alpha::Alpha;
use crate::stats::error::StatsError;
use crate::stats::estimate::Estimate;
use crate::stats::pairs::Pair;
use crate::stats::{clustered, order, rank_sum, ratio_of_sums, signed_rank};

/// The terms of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// Error rate of each one-sided bound.
    pub(super) alpha: f64,
    /// How the repeats of two builds stand to each other.
    pub(super) design: Design,
}

/// How the repeats of two builds stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// Window by window, A B B A: the nth repeats are a pair.
    Pairs,
    /// Boot by boot, A … B … A: two samples, no pairs.
    Blocks,
}

/// The figure of one sample, without comparisons and limits.
pub(super) fn figure(check: &Check, measured: &Measured, alpha: f64) -> Figure {
    let kind = declared(check, measured.figure);
    let numbers = measured.sample.numbers();
    let estimate = level(&measured.sample, alpha);
    let word = match &measured.sample {
        Sample::Words(words) => common(words),
        _ => None,
    };
    let value = match (&estimate, &measured.sample) {
        (Some(Ok(estimate)), _) => Some(estimate.value),
        (_, Sample::Words(_)) => None,
        _ => point(&measured.sample),
    };
    Figure {
        name: measured.figure.into(),
        unit: kind.map_or("", |k| k.unit).into(),
        value,
        interval: estimate
            .as_ref()
            .and_then(|e| e.as_ref().ok())
            .map(|e| [e.lower, e.upper]),
        n: measured.sample.len() as u64,
        of: measured.sample.of().into(),
        half_range: half_range(&numbers),
        repeats: if matches!(
            measured.sample,
            Sample::Tokens(_) | Sample::Percentile { .. }
        ) {
            Vec::new()
        } else {
            numbers
        },
        word,
        against: Vec::new(),
        limits: Vec::new(),
        origin: Origin::Measured,
        method: method(&measured.sample, estimate.as_ref()),
        windows: measured.windows.clone(),
    }
}

/// The declaration of a figure by its kind.
pub(super) fn declared<'a>(check: &Check, figure: &str) -> Option<&'a FigureKind> {
    check.kind.figures().iter().find(|f| f.name == figure)
}

fn common(words: &[String]) -> Option<String> {
    let first = words.first()?;
    if words.iter().all(|w| w == first) {
        Some(first.clone())
    } else {
        Some(words.join(", "))
    }
}

fn method(sample: &Sample, estimate: Option<&Result<Estimate, StatsError>>) -> String {
    match (sample, estimate) {
        (Sample::Each(v), _) => format!("each of {}", v.len()),
        (Sample::Words(v), _) => format!("each of {}", v.len()),
        (_, Some(Ok(estimate))) => estimate.method.name().into(),
        (_, Some(Err(cause))) => format!("no interval: {cause}"),
        (_, None) => "no interval".into(),
    }
}

/// Half the range of the observations, as people write it: `108.6 (±0.9)`.
fn half_range(numbers: &[f64]) -> Option<f64> {
    let band = band(numbers)?;
    (numbers.len() > 1).then_some((band[1] - band[0]) / 2.0)
}

/// Lowest and highest observation.
pub(super) fn band(numbers: &[f64]) -> Option<[f64; 2]> {
    let low = numbers.iter().copied().reduce(f64::min)?;
    let high = numbers.iter().copied().reduce(f64::max)?;
    Some([low, high])
}

/// The level of a sample with its bounds; none for samples that are held one by one.
pub(super) fn level(sample: &Sample, alpha: f64) -> Option<Result<Estimate, StatsError>> {
    let alpha = Alpha::new(alpha);
    let bound =
        |of: &dyn Fn(Alpha) -> Result<Estimate, StatsError>| Some(alpha.clone().and_then(of));
    match sample {
        Sample::Each(_) | Sample::Words(_) => None,
        Sample::Repeats(v) if v.iter().all(|x| *x > 0.0) => bound(&|a| signed_rank::level(v, a)),
        Sample::Repeats(v) => bound(&|a| signed_rank::location(v, a)),
        Sample::Ratio { base, pairs } => bound(&|a| ratio(*base, pairs, a)),
        Sample::Percentile { q, requests } => {
            bound(&|a| order::quantile(&requests.concat(), *q, a))
        }
        Sample::Tokens(clusters) => bound(&|a| Ok(exp(clustered_mean(clusters, a)?))),
    }
}

fn ratio(base: f64, pairs: &[super::sample::Pair], alpha: Alpha) -> Result<Estimate, StatsError> {
    let parts: Vec<ratio_of_sums::Part> = pairs
        .iter()
        .map(|p| ratio_of_sums::Part {
            numerator: p.over,
            denominator: p.under,
        })
        .collect();
    let estimate = ratio_of_sums::ratio_of_sums(&parts)?.estimate(alpha);
    Ok(Estimate {
        value: base + estimate.value,
        lower: base + estimate.lower,
        upper: base + estimate.upper,
        ..estimate
    })
}

/// Mean over all tokens with its clustered error; one text window alone has a mean and no error.
fn clustered_mean(clusters: &[Cluster], alpha: Alpha) -> Result<Estimate, StatsError> {
    let windows: Vec<&[f64]> = clusters.iter().map(|c| c.nll.as_slice()).collect();
    Ok(clustered::mean_difference(&windows)?.estimate(alpha))
}

fn exp(estimate: Estimate) -> Estimate {
    Estimate {
        value: estimate.value.exp(),
        lower: estimate.lower.exp(),
        upper: estimate.upper.exp(),
        ..estimate
    }
}

/// The reference's own value, NaN without one.
pub(super) fn figure_value(sample: &Sample) -> f64 {
    point(sample).unwrap_or(f64::NAN)
}

/// The plain estimate where there are too few observations for bounds.
fn point(sample: &Sample) -> Option<f64> {
    match sample {
        Sample::Words(_) => None,
        Sample::Repeats(v) | Sample::Each(v) => middle(v),
        Sample::Ratio { base, pairs } => {
            let (over, under) = pairs
                .iter()
                .fold((0.0, 0.0), |(o, u), p| (o + p.over, u + p.under));
            (under > 0.0).then(|| base + over / under)
        }
        Sample::Percentile { q, requests } => percentile(&requests.concat(), *q),
        Sample::Tokens(clusters) => {
            let n: usize = clusters.iter().map(|c| c.nll.len()).sum();
            let sum: f64 = clusters.iter().flat_map(|c| &c.nll).sum();
            (n > 0).then(|| (sum / n as f64).exp())
        }
    }
}

/// Median of plain numbers.
pub(super) fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// A comparison with a build of this run.
pub(super) fn against_build(
    build: &str,
    ours: &Measured,
    theirs: &Measured,
    terms: Terms,
) -> Option<Against> {
    let numbers = theirs.sample.numbers();
    let band = band(&numbers)?;
    let value = level(&theirs.sample, terms.alpha)
        .and_then(Result::ok)
        .map(|e| e.value)
        .or_else(|| point(&theirs.sample))?;
    let compared = compare(&ours.sample, &theirs.sample, terms);
    let (ratio, difference) = match &compared {
        Some(Compared::Ratio(Ok(e))) => (Some(e), None),
        Some(Compared::Difference(Ok(e))) => (None, Some(e)),
        _ => (None, None),
    };
    let plain = || Some(point(&ours.sample)? / value).filter(|r| r.is_finite());
    Some(Against {
        build: build.into(),
        value,
        band,
        n: theirs.sample.len() as u64,
        ratio: ratio
            .map(|e| e.value)
            .or_else(|| difference.is_none().then(plain).flatten()),
        interval: ratio.map(|e| [e.lower, e.upper]),
        difference: difference.map(|e| e.value),
        difference_interval: difference.map(|e| [e.lower, e.upper]),
        separation: separation(&ours.sample.numbers(), band).into(),
        aa_floor: aa_floor(&numbers),
        method: match &compared {
            Some(Compared::Ratio(Ok(e)) | Compared::Difference(Ok(e))) => e.method.name().into(),
            Some(Compared::Ratio(Err(cause)) | Compared::Difference(Err(cause))) => {
                format!("no interval: {cause}")
            }
            None => "one by one".into(),
        },
    })
}

/// How far a build lies from itself: later half of its repeats over the earlier half, as a distance from 1.
fn aa_floor(numbers: &[f64]) -> Option<f64> {
    // With one repeat a side the distance is the noise of a single repeat, not of a level.
    const LEAST: usize = 4;
    if numbers.len() < LEAST {
        return None;
    }
    let (early, late) = numbers.split_at(numbers.len() / 2);
    let ratio = middle(late)? / middle(early)?;
    Some((ratio - 1.0).abs()).filter(|d| d.is_finite())
}

/// A comparison with a recorded run: its level as it was recorded; the sessions' own variation is not in the interval.
pub(super) fn against_recorded(
    name: &str,
    ours: &Measured,
    theirs: &Figure,
    alpha: f64,
) -> Against {
    let value = theirs.value.unwrap_or(f64::NAN);
    let band = band(&theirs.repeats)
        .or(theirs.interval)
        .unwrap_or([value, value]);
    let estimate = level(&ours.sample, alpha).and_then(Result::ok);
    let plain = point(&ours.sample);
    Against {
        build: format!("run:{name}"),
        value,
        band,
        n: theirs.n,
        ratio: estimate.map(|e| e.value).or(plain).map(|v| v / value),
        interval: estimate.map(|e| [e.lower / value, e.upper / value]),
        difference: None,
        difference_interval: None,
        separation: separation(&ours.sample.numbers(), band).into(),
        aa_floor: aa_floor(&theirs.repeats),
        method: "our interval over the recorded level; the variation between sessions is not in it"
            .into(),
    }
}

/// A comparison of two samples.
#[derive(Debug)]
pub(super) enum Compared {
    /// Ours over theirs.
    Ratio(Result<Estimate, StatsError>),
    /// Ours minus theirs.
    Difference(Result<Estimate, StatsError>),
}

/// How two samples compare: by ratio of pairs where both are repeats, by paired difference where both are tokens of the
/// same text.
pub(super) fn compare(ours: &Sample, theirs: &Sample, terms: Terms) -> Option<Compared> {
    let alpha = match Alpha::new(terms.alpha) {
        Ok(alpha) => alpha,
        Err(cause) => return Some(Compared::Ratio(Err(cause))),
    };
    match (ours, theirs) {
        (Sample::Repeats(a), Sample::Repeats(b))
            if a.len() == b.len() && terms.design == Design::Pairs =>
        {
            let pairs: Vec<Pair> = a
                .iter()
                .zip(b)
                .map(|(a, b)| Pair {
                    incumbent: *b,
                    candidate: *a,
                })
                .collect();
            Some(Compared::Ratio(signed_rank::ratio(&pairs, alpha)))
        }
        (Sample::Repeats(a), Sample::Repeats(b)) => {
            Some(Compared::Ratio(rank_sum::ratio(b, a, alpha)))
        }
        (Sample::Ratio { .. }, Sample::Ratio { .. }) => {
            let (a, b) = (ours.numbers(), theirs.numbers());
            Some(Compared::Ratio(rank_sum::ratio(&b, &a, alpha)))
        }
        (Sample::Tokens(a), Sample::Tokens(b)) => {
            Some(Compared::Difference(token_difference(a, b, alpha)))
        }
        _ => None,
    }
}

/// Difference of two perplexities on the same text windows, from the paired differences of their tokens.
fn token_difference(
    ours: &[Cluster],
    theirs: &[Cluster],
    alpha: Alpha,
) -> Result<Estimate, StatsError> {
    let paired: Vec<Cluster> = ours
        .iter()
        .filter_map(|a| {
            let b = theirs
                .iter()
                .find(|b| b.name == a.name && b.nll.len() == a.nll.len())?;
            let nll = a.nll.iter().zip(&b.nll).map(|(a, b)| a - b).collect();
            Some(Cluster {
                name: a.name.clone(),
                nll,
            })
        })
        .collect();
    let nats = clustered_mean(&paired, alpha)?;
    let base = point(&Sample::Tokens(theirs.to_vec())).unwrap_or(f64::NAN);
    let grown = |x: f64| base * x.exp_m1();
    Ok(Estimate {
        value: grown(nats.value),
        lower: grown(nats.lower),
        upper: grown(nats.upper),
        ..nats
    })
}

/// Where the observations lie beside a band, as people judge by eye.
fn separation(ours: &[f64], theirs: [f64; 2]) -> &'static str {
    match band(ours) {
        Some([low, _]) if low > theirs[1] => "above",
        Some([_, high]) if high < theirs[0] => "below",
        _ => "overlaps",
    }
}
