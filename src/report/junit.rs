//! The report as JUnit XML, for CI systems that know nothing else.
//!
//! A suite is the gate, a case is a case. FAIL is a failure; INCONCLUSIVE and UNPROVEN are errors with the verdict as
//! their type, because a CI that ignores what it does not know must still turn red; NOT RUN is skipped. GitLab drops
//! cases of one name, so ids that occur twice get a number.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::Printer;
use super::document::Report;
use super::headline::sentence;
use super::outline::{Language, Outline};
use super::plain_text::clean;
use crate::judge::figure::Figure;
use crate::judge::finding::Finding;
use crate::judge::verdict::Verdict;

/// Prints `junit.xml`.
#[derive(Debug)]
pub struct Junit;

impl Printer for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn files(&self) -> &'static [(&'static str, Language)] {
        &[("junit.xml", Language::En)]
    }

    fn print(&self, report: &Report, outline: &Outline) -> String {
        xml(report, outline)
    }
}

fn xml(report: &Report, outline: &Outline) -> String {
    let language = outline.language;
    let mut suite = TestSuite::new(clean(&report.gate.name));
    for (name, value) in [
        ("verdict", outline.headline.word.clone()),
        ("why", outline.headline.why.clone()),
        ("run", clean(&report.id)),
        ("seat", clean(&report.seat.url)),
        ("model", clean(&report.seat.model)),
        ("fingerprint", clean(&report.seat.fingerprint)),
        ("gate.sha256", clean(&report.gate.sha256)),
        (
            "tool",
            format!(
                "{} {}",
                clean(&report.tool.name),
                clean(&report.tool.version)
            ),
        ),
    ] {
        suite.add_property((name, value.as_str()));
    }
    let mut names: Vec<String> = Vec::new();
    for finding in &report.checks {
        let mut case = TestCase::new(
            unique(&mut names, &clean(&finding.id)),
            status(finding, language),
        );
        case.set_classname(format!(
            "{}.{}",
            clean(&report.gate.name),
            clean(&finding.kind)
        ));
        case.set_time(duration(report, finding));
        properties(&mut case, finding);
        suite.add_test_case(case);
    }
    // A declared case without a finding is skipped too: what is not listed looks as if it had passed.
    for omitted in report
        .not_run
        .iter()
        .filter(|n| !report.checks.iter().any(|f| f.id == n.id))
    {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!(
            "{}: {}",
            Verdict::NotRun.word(),
            clean(&omitted.reason)
        ));
        suite.add_test_case(TestCase::new(
            unique(&mut names, &clean(&omitted.id)),
            status,
        ));
    }
    let mut whole = quick_junit::Report::new(clean(&report.gate.name));
    whole.add_test_suite(suite);
    let mut text = whole
        .to_string()
        .expect("writing XML to memory does not fail");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn unique(names: &mut Vec<String>, id: &str) -> String {
    let mut name = id.to_owned();
    let mut number = 1;
    while names.contains(&name) {
        number += 1;
        name = format!("{id} ({number})");
    }
    names.push(name.clone());
    name
}

fn status(finding: &Finding, language: Language) -> TestCaseStatus {
    let mut status = match finding.verdict {
        Verdict::Pass => return TestCaseStatus::success(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Inconclusive | Verdict::Unproven => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        Verdict::NotRun => TestCaseStatus::skipped(),
    };
    let word = finding.verdict.word();
    status.set_type(word.to_lowercase().replace(' ', "_"));
    let reasons: Vec<String> = finding
        .reasons
        .iter()
        .map(|r| format!("{} [{}]", sentence(r, language), clean(&r.code)))
        .collect();
    let first = reasons.first().map_or(word, String::as_str);
    status.set_message(format!("{word}: {first}"));
    status.set_description(reasons.join("\n"));
    status
}

/// Seconds of the case's windows, all builds together.
fn duration(report: &Report, finding: &Finding) -> Duration {
    let seconds: f64 = report
        .windows
        .iter()
        .filter(|w| finding.windows.contains(&w.id))
        .map(|w| w.seconds)
        .sum();
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn properties(case: &mut TestCase, finding: &Finding) {
    case.add_property(("verdict", finding.verdict.word()));
    case.add_property(("build", clean(&finding.build).as_str()));
    case.add_property(("gate.line", finding.line.to_string().as_str()));
    if let Some(proof) = &finding.proof {
        let verdict = super::phrases::proof_verdict(proof.verdict, Language::En);
        case.add_property((format!("path.{}", clean(&proof.path)).as_str(), verdict));
    }
    for figure in &finding.figures {
        let name = clean(&figure.name);
        for (suffix, value) in numbers(figure) {
            case.add_property((format!("{name}{suffix}").as_str(), value.as_str()));
        }
    }
}

/// The numbers of a figure, unrounded, what is absent left out.
fn numbers(figure: &Figure) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add =
        |suffix: &str, value: Option<String>| all.extend(value.map(|v| (suffix.to_owned(), v)));
    let number = |x: f64| x.is_finite().then(|| x.to_string());
    add(
        "",
        figure
            .value
            .and_then(number)
            .or_else(|| figure.word.as_deref().map(clean)),
    );
    add(".low", figure.interval.and_then(|i| number(i[0])));
    add(".high", figure.interval.and_then(|i| number(i[1])));
    add(".n", Some(figure.n.to_string()));
    add(".unit", Some(clean(&figure.unit)).filter(|u| !u.is_empty()));
    for against in &figure.against {
        let build = clean(&against.build);
        add(&format!(".ratio.{build}"), against.ratio.and_then(number));
        add(
            &format!(".difference.{build}"),
            against.difference.and_then(number),
        );
    }
    for limit in &figure.limits {
        add(".limit", Some(clean(&limit.text)));
        add(".margin", limit.margin.and_then(number));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn printed(report: &Report) -> String {
        xml(report, &Outline::of(report, Language::En))
    }

    #[test]
    fn each_verdict_has_its_own_element() {
        let text = printed(&sample::mixed());
        assert!(
            text.contains(r#"tests="7" skipped="1" errors="2" failures="1""#),
            "{text}"
        );
        assert!(
            text.contains(r#"<error type="inconclusive""#)
                || text.contains(r#"type="inconclusive""#)
        );
        assert!(text.contains(r#"type="unproven""#) && text.contains(r#"type="fail""#));
        assert_eq!(text.matches("<skipped").count(), 1);
    }

    #[test]
    fn cases_of_one_name_stay_apart() {
        let mut report = sample::mixed();
        report.checks[1].id = report.checks[0].id.clone();
        let text = printed(&report);
        assert!(text.contains(r#"name="throughput/code/1 (2)""#));
    }

    #[test]
    fn a_declared_case_without_a_finding_is_skipped() {
        let mut report = sample::mixed();
        report.checks.retain(|f| f.verdict != Verdict::NotRun);
        assert_eq!(printed(&report).matches("<skipped").count(), 1);
    }

    #[test]
    fn what_is_absent_is_left_out_and_never_zero() {
        let text = printed(&sample::mixed());
        assert!(text.contains(r#"name="accept_length.n" value="0""#));
        assert!(!text.contains(r#"name="accept_length" value"#));
    }
}
