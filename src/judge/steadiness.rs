//! Whether repeats are steady enough to be judged at all: swing, independence, drift, two modes.
//!
//! A bound counts its repeats as independent looks at one level. Where they are not, the bound is too narrow (false PASS
//! of 12–24 % under lag-one correlation 0.6, whatever the method), so the case is INCONCLUSIVE and not a verdict.

use super::estimate::Design;
use super::finding::Reason;
use super::sample::Sample;
use super::verdict::Verdict;
use crate::spec::expect::Expectation;
use crate::stats::alpha::Alpha;
use crate::stats::drift::{self, Movement};
use crate::stats::independence::{self, Dependence};
use crate::stats::modes;
use crate::stats::swing::Swing;

/// What the order and the spread of a figure's repeats show.
#[derive(Debug, Default)]
pub(super) struct Steadiness {
    /// What speaks against judging them.
    pub(super) reasons: Vec<Reason>,
    /// What is worth reading.
    pub(super) notes: Vec<String>,
}

/// The repeats of one figure, with what they are held to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repeated<'a> {
    /// Figure.
    pub(super) figure: &'a str,
    /// The judged build's repeats in the order of the run.
    pub(super) ours: &'a Sample,
    /// The reference's repeats; absent without one.
    pub(super) theirs: Option<&'a Sample>,
    /// Limits on this figure.
    pub(super) limits: &'a [&'a Expectation],
    /// How the repeats of both stand to each other.
    pub(super) design: Design,
    /// Largest range over median; absent: none is asked for.
    pub(super) max_swing: Option<f64>,
    /// Chance of a false alarm of each test: a gate of steady builds is disturbed in 5 % of runs at most, all figures taken
    /// together.
    pub(super) share: f64,
}

/// Looks at the repeats of a figure that some limit holds.
pub(super) fn look(repeated: Repeated<'_>) -> Steadiness {
    let mut found = Steadiness::default();
    if !matches!(repeated.ours, Sample::Repeats(_) | Sample::Ratio { .. }) {
        return found;
    }
    let values = repeated.ours.numbers();
    found.reasons.extend(swing(&repeated, &values));
    found.reasons.extend(dependence(&repeated, &values));
    trend(&repeated, &values, &mut found);
    found.notes.extend(two_modes(&repeated, &values));
    found
}

fn swing(repeated: &Repeated<'_>, values: &[f64]) -> Option<Reason> {
    let most = repeated.max_swing?;
    let seen = Swing::of(values).ok()?.relative_range()?;
    let figure = repeated.figure;
    let n = values.len();
    (seen > most).then(|| {
        Reason::new(
            "precondition.swing",
            Verdict::Inconclusive,
            format!(
                "`{figure}` swings by {:.1} % (range over median, n = {n}), more than `max_swing` {:.1} %: too restless to be judged",
                seen * 100.0,
                most * 100.0
            ),
            format!(
                "`{figure}` の揺れが {:.1} %（範囲÷中央値、n = {n}）で `max_swing` {:.1} % を超える: 判定できる静けさではない",
                seen * 100.0,
                most * 100.0
            ),
        )
    })
}

/// What a comparison rests on: log ratios of pairs where the limit compares pairs, else the repeats themselves.
fn series(repeated: &Repeated<'_>, values: &[f64]) -> Vec<f64> {
    let compares = repeated
        .limits
        .iter()
        .all(|e| e.limit.reference().is_some());
    match repeated.theirs.map(Sample::numbers) {
        Some(theirs)
            if compares && repeated.design == Design::Pairs && theirs.len() == values.len() =>
        {
            values
                .iter()
                .zip(&theirs)
                .filter(|(a, b)| **a > 0.0 && **b > 0.0)
                .map(|(a, b)| (a / b).ln())
                .collect()
        }
        _ => values.to_vec(),
    }
}

fn dependence(repeated: &Repeated<'_>, values: &[f64]) -> Option<Reason> {
    let alpha = Alpha::new(repeated.share).ok()?;
    let seen = independence::check(&series(repeated, values), alpha).ok()?;
    let ratio = seen.ratio.filter(|_| seen.finding == Dependence::Seen)?;
    let figure = repeated.figure;
    Some(Reason::new(
        "precondition.independence",
        Verdict::Inconclusive,
        format!(
            "`{figure}`: each repeat is too like the one before (von Neumann ratio {ratio:.2}, independent ones lie above {:.2}): they cannot be judged as independent; let the machine settle, or restart between repeats",
            seen.critical
        ),
        format!(
            "`{figure}`: 続く回どうしが似すぎている（von Neumann 比 {ratio:.2}、独立なら {:.2} 以上）: 独立な繰り返しとして判定できない",
            seen.critical
        ),
    ))
}

/// A trend spoils an absolute limit; between builds in turn it falls on both alike and is only told.
fn trend(repeated: &Repeated<'_>, values: &[f64], found: &mut Steadiness) {
    let Ok(alpha) = Alpha::new(repeated.share) else {
        return;
    };
    let Ok(trend) = drift::trend(values) else {
        return;
    };
    let Some(span) = trend
        .span
        .filter(|_| trend.movement(alpha) == Movement::Moved)
    else {
        return;
    };
    let (figure, percent) = (repeated.figure, span * 100.0);
    let absolute = repeated
        .limits
        .iter()
        .any(|e| e.limit.reference().is_none());
    if absolute {
        found.reasons.push(Reason::new(
            "precondition.drift",
            Verdict::Inconclusive,
            format!(
                "`{figure}` drifts by {percent:+.1} % from the first repeat to the last (Mann–Kendall p = {:.4}): there is no one level to hold to a limit",
                trend.p
            ),
            format!(
                "`{figure}` が最初から最後の回までに {percent:+.1} % 動いた（Mann–Kendall p = {:.4}）: 基準に照らす一つの水準が無い",
                trend.p
            ),
        ));
    } else {
        found.notes.push(format!(
            "`{figure}` drifts by {percent:+.1} % over the repeats (p = {:.4}); builds in turn share a drift, so the comparison stands",
            trend.p
        ));
    }
}

fn two_modes(repeated: &Repeated<'_>, values: &[f64]) -> Option<String> {
    let modes = modes::two_modes(values).ok().flatten()?;
    Some(format!(
        "`{}` has two modes: {} repeats near {:.4} and {} near {:.4}; the level between them is neither",
        repeated.figure, modes.low.repeats, modes.low.mean, modes.high.repeats, modes.high.mean
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::expect::{Limit, Reference};

    const SHARE: f64 = 0.01;

    fn expectation(limit: Limit) -> Expectation {
        Expectation {
            cell: None,
            figure: "decode_tok_s".into(),
            limit,
            text: String::new(),
            line: 1,
        }
    }

    fn looked(values: &[f64], limit: Limit, max_swing: Option<f64>) -> Steadiness {
        let held = expectation(limit);
        look(Repeated {
            figure: "decode_tok_s",
            ours: &Sample::Repeats(values.to_vec()),
            theirs: None,
            limits: &[&held],
            design: Design::Blocks,
            max_swing,
            share: SHARE,
        })
    }

    const STEADY: [f64; 8] = [100.2, 99.8, 100.1, 99.7, 100.3, 99.9, 100.0, 100.15];
    const RISING: [f64; 8] = [96.0, 97.1, 98.2, 98.9, 100.1, 101.0, 102.2, 103.0];

    #[test]
    fn steady_repeats_raise_nothing() {
        let found = looked(&STEADY, Limit::AtLeast(90.0), Some(0.05));
        assert!(found.reasons.is_empty(), "{:?}", found.reasons);
    }

    #[test]
    fn a_swing_above_the_limit_is_inconclusive() {
        let found = looked(&STEADY, Limit::AtLeast(90.0), Some(0.001));
        assert_eq!(found.reasons[0].code, "precondition.swing");
        assert_eq!(found.reasons[0].verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_drift_spoils_an_absolute_limit_and_is_only_told_between_builds() {
        let absolute = looked(&RISING, Limit::AtLeast(90.0), None);
        assert!(
            absolute
                .reasons
                .iter()
                .any(|r| r.code == "precondition.drift")
        );
        let between = looked(
            &RISING,
            Limit::RatioAtLeast(1.0, Reference::Build("incumbent".into())),
            None,
        );
        assert!(
            between
                .reasons
                .iter()
                .all(|r| r.code != "precondition.drift")
        );
        assert!(between.notes.iter().any(|n| n.contains("drifts")));
    }

    #[test]
    fn neighbours_that_are_alike_are_not_independent() {
        let slow: Vec<f64> = (0..16)
            .map(|i| 100.0 + 3.0 * (f64::from(i) * 0.4).sin())
            .collect();
        let found = looked(&slow, Limit::AtLeast(90.0), None);
        assert!(
            found
                .reasons
                .iter()
                .any(|r| r.code == "precondition.independence")
        );
    }

    #[test]
    fn pairs_that_drift_together_are_independent_in_their_ratio() {
        let theirs: Vec<f64> = RISING.iter().map(|v| v / 1.1).collect();
        let jitter = [1.001, 0.999, 1.002, 0.998, 1.0015, 0.9985, 1.0005, 0.9995];
        let ours: Vec<f64> = RISING.iter().zip(jitter).map(|(v, j)| v * j).collect();
        let held = expectation(Limit::RatioAtLeast(
            1.0,
            Reference::Build("incumbent".into()),
        ));
        let found = look(Repeated {
            figure: "decode_tok_s",
            ours: &Sample::Repeats(ours),
            theirs: Some(&Sample::Repeats(theirs)),
            limits: &[&held],
            design: Design::Pairs,
            max_swing: None,
            share: SHARE,
        });
        assert!(found.reasons.is_empty(), "{:?}", found.reasons);
    }

    #[test]
    fn two_modes_are_told() {
        let found = looked(
            &[100.0, 94.1, 100.2, 94.0, 99.9, 100.1, 93.9, 100.0],
            Limit::AtLeast(90.0),
            None,
        );
        assert!(found.notes.iter().any(|n| n.contains("two modes")));
    }
}
