//! The verdict of the gate, and why, in one sentence.

use super::document::Report;
use super::outline::{Headline, Tally};
use super::phrases::{self, Language, Phrase, fill};
use super::plain_text::clean;
use crate::judge::finding::{Finding, Reason};
use crate::judge::verdict::Verdict;

/// Verdicts, worst first.
const WORST_FIRST: [Verdict; 5] =
    [Verdict::Fail, Verdict::NotRun, Verdict::Unproven, Verdict::Inconclusive, Verdict::Pass];

/// Characters of a reason that the headline shows; the whole stands among the reasons.
const ROOM: usize = 280;

pub(super) fn of(report: &Report, language: Language) -> Headline {
    let checks = match report.checks.len() {
        1 => Phrase::OneCheck.text(language).to_owned(),
        n => fill(Phrase::CheckCount.text(language), &[&n.to_string()]),
    };
    Headline {
        verdict: report.verdict,
        word: phrases::verdict(report.verdict, language),
        title: clean(&report.gate.title),
        why: why(report, language),
        tally: tally(report, language),
        checks,
        subject: subject(report),
    }
}

/// The sentence of a reason in a language, made plain.
pub(super) fn sentence(reason: &Reason, language: Language) -> String {
    clean(match language {
        Language::En => &reason.text,
        Language::Ja => &reason.text_ja,
    })
}

/// Every judged build, in the order of the checks.
pub(super) fn judged_builds(report: &Report) -> Vec<String> {
    let mut builds: Vec<String> = Vec::new();
    for build in report.checks.iter().map(|f| clean(&f.build)) {
        if !build.is_empty() && !builds.contains(&build) {
            builds.push(build);
        }
    }
    builds
}

fn subject(report: &Report) -> String {
    [judged_builds(report).join(", "), clean(&report.seat.model), clean(&report.seat.url), clean(&report.id)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

fn tally(report: &Report, language: Language) -> Vec<Tally> {
    WORST_FIRST
        .into_iter()
        .map(|verdict| Tally {
            verdict,
            word: phrases::verdict(verdict, language),
            count: report.checks.iter().filter(|f| f.verdict == verdict).count(),
        })
        .filter(|t| t.count > 0)
        .collect()
}

fn why(report: &Report, language: Language) -> String {
    if report.checks.is_empty() {
        return Phrase::WhyEmpty.text(language).into();
    }
    if report.verdict == Verdict::Pass {
        return why_pass(report, language);
    }
    let Some(worst) = report.checks.iter().max_by_key(|f| (f.verdict, std::cmp::Reverse(f.line))) else {
        return Phrase::WhyEmpty.text(language).into();
    };
    let others = report.checks.iter().filter(|f| f.verdict == worst.verdict).count().saturating_sub(1);
    let more = match others {
        0 => String::new(),
        n => format!(" ({})", fill(Phrase::AndMore.text(language), &[&n.to_string()])),
    };
    format!("{}: {}{more}", clean(&worst.id), short(&first_reason(worst, language)))
}

fn first_reason(finding: &Finding, language: Language) -> String {
    let decisive = finding.reasons.iter().find(|r| r.verdict == finding.verdict);
    decisive
        .or(finding.reasons.first())
        .map_or_else(|| phrases::verdict(finding.verdict, language), |r| sentence(r, language))
}

fn why_pass(report: &Report, language: Language) -> String {
    let mut paths: Vec<String> = Vec::new();
    for proof in report.checks.iter().filter_map(|f| f.proof.as_ref()) {
        let path = format!("`{}`", clean(&proof.path));
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    match paths.len() {
        0 => Phrase::WhyPassNoPath.text(language).into(),
        1 => fill(Phrase::WhyPassPaths.text(language), &[&paths[0]]),
        _ => Phrase::WhyPass.text(language).into(),
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= ROOM {
        return text.into();
    }
    let mut cut: String = text.chars().take(ROOM).collect();
    // A literal must not stay open.
    if cut.matches('`').count() % 2 == 1 {
        cut.push('`');
    }
    cut.push('…');
    cut
}
