//! A report without numbers that JSON cannot write.
//!
//! A number that is not finite says that nothing was measured. It becomes absent, and a note says so: `null` in the place
//! of a number would not read back, and 0 would be a lie. Lengths of windows and runs come from a clock and are finite.

use super::document::Report;
use crate::judge::figure::{Against, Figure};

/// The report with every number finite.
pub(super) fn only(report: &Report) -> Report {
    let mut report = report.clone();
    for finding in &mut report.checks {
        let mut lost: Vec<String> = Vec::new();
        let theirs = finding.references.iter_mut().flat_map(|r| &mut r.figures);
        for figure in finding.figures.iter_mut().chain(theirs) {
            if !figure_only(figure) {
                lost.push(figure.name.clone());
            }
        }
        for name in lost {
            finding.notes.push(format!("a number of `{name}` was not finite and is left out"));
        }
    }
    for window in &mut report.windows {
        window.seat.prompt_tokens = window.seat.prompt_tokens.filter(|x| x.is_finite());
        window.seat.generation_tokens = window.seat.generation_tokens.filter(|x| x.is_finite());
    }
    for boot in &mut report.conditions.boots {
        boot.ready_s = boot.ready_s.filter(|x| x.is_finite());
    }
    report
}

/// Drops what is not finite; whether nothing had to go.
fn figure_only(figure: &mut Figure) -> bool {
    let before = figure.clone();
    figure.value = figure.value.filter(|x| x.is_finite());
    figure.interval = finite_pair(figure.interval);
    figure.half_range = figure.half_range.filter(|x| x.is_finite());
    figure.repeats.retain(|x| x.is_finite());
    figure.against.retain(|a| a.value.is_finite() && a.band.iter().all(|x| x.is_finite()));
    figure.against.iter_mut().for_each(against_only);
    for limit in &mut figure.limits {
        limit.margin = limit.margin.filter(|x| x.is_finite());
    }
    // Equality fails on NaN, which is just what was dropped.
    before == *figure
}

fn against_only(against: &mut Against) {
    against.ratio = against.ratio.filter(|x| x.is_finite());
    against.interval = finite_pair(against.interval);
    against.difference = against.difference.filter(|x| x.is_finite());
    against.difference_interval = finite_pair(against.difference_interval);
}

fn finite_pair(pair: Option<[f64; 2]>) -> Option<[f64; 2]> {
    pair.filter(|p| p.iter().all(|x| x.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{json, sample};

    #[test]
    fn a_report_with_finite_numbers_is_left_alone() {
        assert_eq!(only(&sample::mixed()), sample::mixed());
    }

    #[test]
    fn a_number_that_is_not_finite_becomes_absent_and_is_noted() {
        let mut report = sample::mixed();
        let figure = &mut report.checks[0].figures[0];
        figure.value = Some(f64::NAN);
        figure.repeats.push(f64::INFINITY);
        figure.against[0].ratio = Some(f64::NEG_INFINITY);
        let clean = only(&report);
        assert_eq!(clean.checks[0].figures[0].value, None);
        assert!(clean.checks[0].notes[0].contains("decode_tok_s"));
        let text = json::bytes(&report);
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), clean);
    }
}
