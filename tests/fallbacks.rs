//! The known silent fallbacks: each must turn its gate red for the right reason, its healthy twin must pass, and with the
//! decisive evidence taken away the verdict must be UNPROVEN.
//!
//! A case is a folder of `fixtures/fallbacks`; it states only what is special. The traffic beside it is the same for all.

#![allow(
    clippy::unwrap_used,
    reason = "a case that does not read must fail the test"
)]

#[path = "fallbacks/case.rs"]
mod case;
#[path = "fallbacks/evidence.rs"]
mod evidence;

use case::{Case, Variant};
use sekimon::check;
use sekimon::evidence::body::Evidence;
use sekimon::judge::case::{Matter, finding};
use sekimon::judge::finding::Finding;
use sekimon::judge::verdict::Verdict;
use sekimon::plan;

/// Fewest cases that the project promises.
const PROMISED: usize = 40;

fn judge(case: &Case, evidence: &Evidence) -> Finding {
    let matter = Matter {
        gate: &case.gate,
        evidence,
        recorded: &[],
        earlier_runs: 0,
    };
    let cases = plan::cases(&case.gate);
    let found = cases.iter().find(|c| c.id == case.check);
    let planned = found.unwrap_or_else(|| {
        let known: Vec<&str> = cases.iter().map(|c| c.id.as_str()).collect();
        panic!("{}: no check `{}`, only {known:?}", case.id, case.check)
    });
    let kind = case.gate.checks[planned.check].kind.name();
    finding(matter, planned, check::concludes(kind).unwrap())
}

fn told(finding: &Finding) -> String {
    let reasons: Vec<String> = finding
        .reasons
        .iter()
        .map(|r| format!("      {} [{:?}] {}", r.code, r.verdict, r.text))
        .collect();
    format!("{:?}\n{}", finding.verdict, reasons.join("\n"))
}

/// Red is a verdict that says no, by the reason and in the words that name the cause.
fn is_red(case: &Case, finding: &Finding) -> bool {
    let says_no = matches!(finding.verdict, Verdict::Fail | Verdict::Inconclusive);
    says_no
        && finding.reasons.iter().any(|r| {
            r.code == case.reason && r.verdict == finding.verdict && r.text.contains(&case.names)
        })
}

#[test]
fn each_fallback_turns_red_its_healthy_twin_passes_and_without_evidence_it_is_unproven() {
    let cases = case::all();
    let total = cases.len();
    let (mut red, mut pass, mut unproven) = (0, 0, 0);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut look = |variant: Variant, right: &dyn Fn(&Finding) -> bool| {
            let finding = judge(case, &evidence::of(case, variant));
            let held = right(&finding);
            if !held {
                wrong.push(format!("{} {variant:?}: {}", case.id, told(&finding)));
            }
            usize::from(held)
        };
        red += look(Variant::Broken, &|f| is_red(case, f));
        pass += look(Variant::Healthy, &|f| f.verdict == Verdict::Pass);
        unproven += look(Variant::Removed, &|f| f.verdict == Verdict::Unproven);
    }
    println!(
        "broken: red {red} of {total} · healthy: pass {pass} of {total} · removed: unproven {unproven} of {total}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(total >= PROMISED, "only {total} fallback cases");
}
