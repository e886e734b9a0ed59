//! How the logprobs of one text differ between two builds, token by token, and from one scoring to the next on one build.
//!
//! A perplexity is one number over thousands of tokens: a token that moved by two nats hides in it.

use crate::evidence::body::ScoredWindow;
use crate::judge::sample::{Measured, Sample, View, percentile};
use crate::spec::kind::{FigureKind, Judged};

const fn nats(name: &'static str, about: &'static str) -> FigureKind {
    FigureKind {
        name,
        unit: "nats",
        unit_aliases: &[("nat", 1.0)],
        words: &[],
        judged: Judged::Each,
        about,
    }
}

/// Mean −ln p.
pub(super) const NATS_PER_TOKEN: FigureKind = nats(
    "nats_per_token",
    "Mean −ln p over the scored tokens: the logarithm of the perplexity.",
);
/// Largest |Δ ln p| against the first reference.
pub(super) const DELTA_MAX: FigureKind = nats(
    "delta_max",
    "Largest |Δ ln p| of a token between this build and its first reference.",
);
/// 99th percentile of |Δ ln p| against the first reference.
pub(super) const DELTA_P99: FigureKind = nats(
    "delta_p99",
    "|Δ ln p| that 99 % of the tokens do not exceed, between this build and its first reference.",
);
/// Largest |Δ ln p| between two scorings of one text on this build.
pub(super) const AA_DELTA_MAX: FigureKind = nats(
    "aa_delta_max",
    "Largest |Δ ln p| between two scorings of the same text on this build (A/A floor).",
);

/// The figures that this evidence holds.
pub(super) fn figures(view: &View<'_>, scored: &[&ScoredWindow], ids: &[String]) -> Vec<Measured> {
    let mut figures = Vec::new();
    let mut add = |figure: FigureKind, value: Option<f64>| {
        figures.extend(value.map(|value| Measured {
            figure: figure.name,
            sample: Sample::Each(vec![value]),
            windows: ids.to_vec(),
        }));
    };
    let all: Vec<f64> = scored
        .iter()
        .filter(|s| s.fault.is_none())
        .flat_map(|s| s.logprobs.iter().flatten())
        .map(|lp| -lp)
        .collect();
    add(
        NATS_PER_TOKEN,
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64),
    );
    let again = part(view, view.build, "control-reversed");
    add(AA_DELTA_MAX, largest(&gaps(scored, &again)));
    let reference = view
        .check
        .builds
        .first()
        .filter(|b| b.as_str() != view.build);
    if let Some(reference) = reference {
        let gaps = gaps(scored, &part(view, reference, "measure"));
        add(DELTA_MAX, largest(&gaps));
        add(DELTA_P99, percentile(&gaps, 0.99));
    }
    figures
}

fn part<'a>(view: &View<'a>, build: &str, part: &str) -> Vec<&'a ScoredWindow> {
    let of = View { build, ..*view };
    let ids: Vec<String> = of.windows(part).iter().map(|w| w.id.clone()).collect();
    ids.iter()
        .filter_map(|id| view.evidence.scores.get(id))
        .flatten()
        .filter(|s| s.fault.is_none())
        .collect()
}

/// |Δ ln p| of every token that both scored; windows pair by name, and only where the ids are the same.
fn gaps(ours: &[&ScoredWindow], theirs: &[&ScoredWindow]) -> Vec<f64> {
    ours.iter()
        .filter_map(|a| {
            let b = theirs.iter().find(|b| b.name == a.name && b.ids == a.ids)?;
            Some(a.logprobs.iter().zip(&b.logprobs))
        })
        .flatten()
        .filter_map(|(a, b)| Some((a.as_ref()? - b.as_ref()?).abs()))
        .collect()
}

fn largest(gaps: &[f64]) -> Option<f64> {
    gaps.iter().copied().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(name: &str, logprobs: &[f64]) -> ScoredWindow {
        ScoredWindow {
            name: name.into(),
            ids: (0..=logprobs.len() as u32).collect(),
            logprobs: std::iter::once(None)
                .chain(logprobs.iter().map(|lp| Some(*lp)))
                .collect(),
            ranks: Vec::new(),
            best: Vec::new(),
            prompt_tokens: None,
            bytes: None,
            fault: None,
            answer_from: None,
        }
    }

    #[test]
    fn gaps_pair_by_name_and_by_ids() {
        let (a, b) = (scored("en/0", &[-1.0, -2.0]), scored("en/0", &[-1.5, -2.0]));
        assert_eq!(gaps(&[&a], &[&b]), [0.5, 0.0]);
        let mut other = b.clone();
        other.ids[1] = 99;
        assert!(gaps(&[&a], &[&other]).is_empty());
        assert!(gaps(&[&a], &[&scored("en/1", &[-1.0, -2.0])]).is_empty());
    }

    #[test]
    fn a_hundredth_of_the_tokens_lies_above_the_99th_percentile() {
        let sorted: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&sorted, 0.99), Some(198.0));
        assert_eq!(percentile(&[], 0.99), None);
        assert_eq!(percentile(&[3.0], 0.99), Some(3.0));
    }
}
