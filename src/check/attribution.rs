//! Where a difference in decode rate comes from: tokens a step, or steps a second; and whether equal texts were accepted
//! equally.

use super::throughput::decode_rate;
use crate::dialect::Metrics;
use crate::evidence::window::Window;
use crate::judge::movement;
use crate::judge::sample::View;

/// Tokens a step and steps a second of one window; their product is the decode rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Parts {
    /// Tokens of a verification step, the bonus token included.
    pub(super) accept_length: f64,
    /// Verification steps a second of one stream.
    pub(super) steps_per_s: f64,
}

/// The parts of a window; absent without speculation, counters or a decode rate.
pub(super) fn of(window: &Window, metrics: &Metrics) -> Option<Parts> {
    let drafts = movement::of(window, metrics.drafts).filter(|d| *d > 0.0)?;
    let accepted = movement::of(window, metrics.accepted_tokens)?;
    let accept_length = 1.0 + accepted / drafts;
    Some(Parts {
        accept_length,
        steps_per_s: decode_rate(window)? / accept_length,
    })
}

/// One sentence for each reference: how the rates compare, and by which part.
pub(super) fn notes(view: &View<'_>, metrics: &Metrics) -> Vec<String> {
    let ours = mean(&view.windows("measure"), metrics);
    references(view)
        .filter_map(|reference| {
            let theirs = mean(&reference.windows("measure"), metrics)?;
            let ours = ours?;
            let length = ours.accept_length / theirs.accept_length;
            let steps = ours.steps_per_s / theirs.steps_per_s;
            Some(format!(
                "decode rate {:.3} × `{}` = accept length {length:.3} × · steps a second {steps:.3} × ({:.1} against {:.1} steps/s)",
                length * steps,
                reference.build,
                ours.steps_per_s,
                theirs.steps_per_s
            ))
        })
        .collect()
}

fn mean(windows: &[&Window], metrics: &Metrics) -> Option<Parts> {
    let parts: Vec<Parts> = windows.iter().filter_map(|w| of(w, metrics)).collect();
    let n = parts.len() as f64;
    (!parts.is_empty()).then(|| Parts {
        accept_length: parts.iter().map(|p| p.accept_length).sum::<f64>() / n,
        steps_per_s: parts.iter().map(|p| p.steps_per_s).sum::<f64>() / n,
    })
}

fn references<'a>(view: &'a View<'_>) -> impl Iterator<Item = View<'a>> + 'a {
    view.check
        .builds
        .iter()
        .filter(|b| *b != view.build && view.build == view.check.subject())
        .map(|build| View { build, ..*view })
}

/// For each repeat that both builds answered with the same texts, whether the same drafts were accepted.
///
/// A drafter sees only the text: on equal texts two sound builds accept equally, to the token, and no statistics is needed.
pub(super) fn equal_texts(view: &View<'_>, metrics: &Metrics) -> Vec<(&'static str, String)> {
    let Some(reference) = references(view).next() else {
        return Vec::new();
    };
    let theirs = reference.windows("measure");
    view.windows("measure")
        .iter()
        .filter_map(|ours| {
            let theirs = theirs.iter().find(|w| w.repeat == ours.repeat)?;
            let counts = |w: &Window| {
                Some((
                    movement::of(w, metrics.drafts)?,
                    movement::of(w, metrics.accepted_tokens)?,
                ))
            };
            let word = if texts(ours) != texts(theirs) {
                "other_texts"
            } else if counts(ours)? == counts(theirs)? {
                "equal"
            } else {
                "differs"
            };
            Some((word, ours.id.clone()))
        })
        .collect()
}

fn texts(window: &Window) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = window
        .exchanges
        .iter()
        .map(|e| (e.prompt.as_str(), e.text_sha256.as_str()))
        .collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::super::handmade::{Hand, answer, gate};
    use super::*;
    use crate::evidence::exchange::Exchange;
    use crate::evidence::exposition::Exposition;
    use crate::evidence::window::Scrape;
    use crate::plan;

    const CHECK: &str =
        "kind = \"accept_length\"\nbuilds = [\"incumbent\", \"candidate\"]\nrepeats = 5";

    fn timed(text: &str, seconds: f64) -> Exchange {
        Exchange {
            first_token_s: Some(1.0),
            last_token_s: Some(1.0 + seconds),
            first_chunk_tokens: Some(1),
            token_chunks: 8,
            ..answer("p", text, Some(&[1; 41]))
        }
    }

    fn hand(texts: [&str; 2], accepted: [u32; 2], seconds: [f64; 2]) -> Hand {
        let mut hand = Hand::default();
        for (at, build) in ["incumbent", "candidate"].into_iter().enumerate() {
            hand.window(
                "accept_length/en/1",
                build,
                vec![timed(texts[at], seconds[at])],
            );
            let scrape = |drafts: u32, accepted: u32| Scrape::Taken {
                file: "by-hand".into(),
                exposition: Exposition::parse(&format!(
                    "vllm:spec_decode_num_drafts_total{{engine=\"0\"}} {drafts}.0\nvllm:spec_decode_num_accepted_tokens_total{{engine=\"0\"}} {accepted}.0\n"
                )),
            };
            let window = hand.evidence.windows.last_mut().unwrap();
            window.counters.before = scrape(0, 0);
            window.counters.after = scrape(20, accepted[at]);
        }
        hand
    }

    fn with<R>(hand: &Hand, look: impl Fn(&View<'_>, &Metrics) -> R) -> R {
        let gate = gate(CHECK);
        let case = plan::cases(&gate).remove(0);
        let dialect = crate::dialect::named("vllm");
        let view = View {
            gate: &gate,
            check: &gate.checks[0],
            case: &case,
            build: "candidate",
            dialect,
            evidence: &hand.evidence,
        };
        look(&view, dialect.unwrap().metrics.as_ref().unwrap())
    }

    #[test]
    fn a_faster_build_is_told_apart_by_its_parts() {
        // Twice as fast: the same tokens a step, twice the steps a second.
        let hand = hand(["a", "b"], [20, 20], [2.0, 1.0]);
        let notes = with(&hand, notes);
        assert!(
            notes[0].contains("accept length 1.000 × · steps a second 2.000 ×"),
            "{notes:?}"
        );
    }

    #[test]
    fn equal_texts_must_be_accepted_equally() {
        let words = |texts, accepted| {
            let hand = hand(texts, accepted, [1.0, 1.0]);
            with(&hand, equal_texts)
                .into_iter()
                .map(|w| w.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(["a", "a"], [20, 20]), ["equal"]);
        assert_eq!(words(["a", "a"], [20, 19]), ["differs"]);
        assert_eq!(words(["a", "b"], [20, 19]), ["other_texts"]);
    }
}
