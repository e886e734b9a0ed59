//! What `greedy_audit` says of scores made by hand.

use super::super::handmade::{Hand, answer, codes, conclude, faults, gate, numbers};
use super::*;
use crate::evidence::body::{ScoreFault, ScoredWindow};

const CHECK: &str = "kind = \"greedy_audit\"\nbuilds = [\"incumbent\", \"candidate\"]";
const CASE: &str = "greedy_audit/en/1";

/// A prompt of two tokens and an answer of three, each the likeliest.
fn scored() -> ScoredWindow {
    ScoredWindow {
        name: "en/0".into(),
        ids: vec![1, 2, 10, 11, 12],
        logprobs: vec![None, Some(-3.0), Some(-0.1), Some(-0.2), Some(-0.3)],
        ranks: vec![None, Some(5), Some(1), Some(1), Some(1)],
        best: vec![None, Some(-1.0), Some(-0.1), Some(-0.2), Some(-0.3)],
        prompt_tokens: Some(5),
        bytes: None,
        answer_from: Some(2),
        fault: None,
    }
}

/// The second token of the answer is another one.
fn departed(gap: f64) -> ScoredWindow {
    let mut scored = scored();
    scored.logprobs[3] = Some(-0.2 - gap);
    scored.ranks[3] = Some(7);
    scored
}

fn evidence(control: ScoredWindow, measure: Vec<ScoredWindow>) -> Hand {
    let mut hand = Hand::default();
    hand.window(
        CASE,
        "candidate",
        vec![answer("en/0", "abc", Some(&[10, 11, 12]))],
    );
    hand.scores(CASE, "incumbent", "control-audit", vec![control]);
    hand.scores(CASE, "incumbent", "measure", measure);
    hand
}

fn concluded(control: ScoredWindow, measure: Vec<ScoredWindow>) -> Conclusion {
    conclude(
        &gate(CHECK),
        &evidence(control, measure).evidence,
        "candidate",
    )
}

#[test]
fn likeliest_tokens_pass() {
    let said = concluded(scored(), vec![scored()]);
    assert_eq!(codes(&said), []);
    assert_eq!(numbers(&said, "rank1_share"), [1.0]);
    assert_eq!(numbers(&said, "worst_gap"), [0.0]);
    assert_eq!(numbers(&said, "tokens_audited"), [3.0]);
}

#[test]
fn a_near_tie_passes_and_shows_in_the_figures() {
    let said = concluded(scored(), vec![departed(0.25)]);
    assert_eq!(codes(&said), []);
    assert_eq!(numbers(&said, "worst_gap"), [0.25]);
    assert!(numbers(&said, "rank1_share")[0] < 0.7);
    let strict = format!("{CHECK}\ngap = 0.05");
    let hand = evidence(scored(), vec![departed(0.25)]);
    let said = conclude(&gate(&strict), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("audit.lossy", Verdict::Fail)]);
}

#[test]
fn a_token_that_the_target_would_not_write_fails_with_its_place() {
    let said = concluded(scored(), vec![departed(4.0)]);
    assert_eq!(codes(&said), [("audit.lossy", Verdict::Fail)]);
    let told = &said.reasons[0].text;
    for part in [
        "1 of 3 tokens",
        "token 1 of the answer",
        "rank 7",
        "-4.200",
        "-0.200",
        "(id 11)",
    ] {
        assert!(told.contains(part), "`{part}` is not in {told}");
    }
}

#[test]
fn an_auditor_that_rejects_itself_condemns_nobody() {
    let said = concluded(departed(4.0), vec![departed(4.0)]);
    assert_eq!(codes(&said), [("audit.control", Verdict::Unproven)]);
    assert!(said.measured.is_empty());
}

#[test]
fn zeroed_positive_and_missing_logprobs_are_no_audit() {
    let broken: [fn(&mut ScoredWindow); 3] = [
        |s| s.logprobs.iter_mut().flatten().for_each(|lp| *lp = 0.0),
        |s| s.logprobs[4] = Some(0.7),
        |s| s.logprobs[4] = None,
    ];
    for damage in broken {
        let mut bad = scored();
        damage(&mut bad);
        let said = concluded(scored(), vec![bad]);
        assert_eq!(codes(&said), [("logprobs.invalid", Verdict::Unproven)]);
        assert!(said.measured.is_empty());
    }
}

#[test]
fn scores_without_rank_and_best_are_no_audit() {
    let mut bare = scored();
    (bare.ranks, bare.best) = (Vec::new(), Vec::new());
    let mut control = scored();
    control.best.clear();
    let said = concluded(control, vec![bare]);
    assert_eq!(codes(&said), [("audit.ranks", Verdict::Unproven)]);
}

#[test]
fn an_answer_that_was_not_scored_leaves_it_unproven() {
    let said = concluded(scored(), Vec::new());
    assert_eq!(codes(&said), [("audit.partial", Verdict::Unproven)]);
    let mut faulty = scored();
    faulty.fault = Some(ScoreFault {
        infra: false,
        text: "another prompt".into(),
    });
    let said = concluded(scored(), vec![faulty.clone()]);
    assert_eq!(codes(&said), [("audit.unscored", Verdict::Unproven)]);
    faulty.fault = Some(ScoreFault {
        infra: true,
        text: "reset".into(),
    });
    let said = concluded(scored(), vec![faulty]);
    assert_eq!(codes(&said), [("logprobs.infra", Verdict::Inconclusive)]);
}

#[test]
fn no_ids_no_route_and_no_auditor_are_unproven_and_say_what_would_help() {
    let mut hand = evidence(scored(), vec![scored()]);
    hand.evidence.windows[0].exchanges[0].token_ids = None;
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("ids.absent", Verdict::Unproven)]);
    assert!(said.reasons[0].text.contains("return_token_ids"));

    let mut hand = evidence(scored(), vec![scored()]);
    let results = &mut hand.evidence.windows[2].results;
    results.insert("unsupported".into(), "no such field".into());
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("logprobs.unsupported", Verdict::Unproven)]);

    let mut hand = evidence(scored(), vec![scored()]);
    hand.evidence.windows.truncate(1);
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("audit.absent", Verdict::Unproven)]);
}

#[test]
fn an_auditor_below_the_judged_build_is_refused_unless_both_are_up_together() {
    assert_eq!(faults(CHECK), Vec::<String>::new());
    let below = CHECK.replace("incumbent", "late");
    assert!(
        faults(&below)[0].contains("declared below"),
        "{:?}",
        faults(&below)
    );
    let alone = CHECK.replace("\"incumbent\", ", "");
    assert!(faults(&alone)[0].contains("needs a build that scores"));
}

#[test]
fn the_auditor_comes_after_every_answer_one_at_a_time_and_side_by_side() {
    let check = format!("{CHECK}\nrepeats = 2");
    for together in [false, true] {
        let mut gate = gate(&check);
        if together {
            gate.seat.occupancy = Occupancy::SideBySide;
        }
        let plan = crate::plan::Plan::of(&gate, &|name| super::super::planned(name));
        let windows: Vec<_> = plan.windows().collect();
        let audits = windows
            .iter()
            .enumerate()
            .filter_map(|(at, w)| match &w.task {
                Task::Audit(audit) => Some((at, w.repeat, audit.written_by.as_str())),
                _ => None,
            });
        let mut seen = 0;
        for (at, repeat, writer) in audits {
            let written = windows[..at].iter().any(|w| {
                w.build == writer
                    && w.repeat == repeat
                    && w.part != crate::plan::WARM_UP
                    && matches!(w.task, Task::Load(_))
            });
            assert!(
                written,
                "together {together}: w{at} audits `{writer}` before it wrote"
            );
            seen += 1;
        }
        assert_eq!(seen, 4, "two repeats, each with its control");
    }
}

#[test]
fn an_auditor_that_is_to_be_restored_serves_after_the_judged_build_and_only_then() {
    use crate::plan::Step;
    let boots = |restore: &str| -> Vec<String> {
        let mut gate = gate(CHECK);
        gate.seat.restore = Some(restore.into());
        let plan = crate::plan::Plan::of(&gate, &|name| super::super::planned(name));
        let steps = plan.steps.iter().filter_map(|step| match step {
            Step::Boot(build) => Some(format!("boot {build}")),
            Step::Stop(build) => Some(format!("stop {build}")),
            Step::Window(_) | Step::Extend(_) => None,
        });
        steps.collect()
    };
    let measured = ["boot candidate", "stop candidate", "boot incumbent"];
    assert_eq!(boots("incumbent"), measured);
    let again = [&measured[..], &["stop incumbent", "boot candidate"]].concat();
    assert_eq!(boots("candidate"), again);
}

#[test]
fn an_auditor_that_speculates_is_told() {
    use crate::evidence::exposition::Exposition;
    use crate::evidence::window::Scrape;
    let mut hand = evidence(scored(), vec![scored()]);
    let scrape = |drafts: u32| Scrape::Taken {
        file: "by-hand".into(),
        exposition: Exposition::parse(&format!(
            "vllm:spec_decode_num_drafts_total{{engine=\"0\"}} {drafts}.0\n"
        )),
    };
    let counters = &mut hand.evidence.windows[2].counters;
    (counters.before, counters.after) = (scrape(1), scrape(4));
    let said = conclude(&gate(CHECK), &hand.evidence, "incumbent");
    assert_eq!(codes(&said), [("speculation.on", Verdict::Fail)]);
}
