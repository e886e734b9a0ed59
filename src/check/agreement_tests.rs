//! What `agreement` says of answers made by hand.

use super::super::handmade::{Hand, answer, codes, conclude, faults, gate, numbers};
use super::*;

const CHECK: &str = "kind = \"agreement\"\nbuilds = [\"incumbent\", \"candidate\"]\nrepeats = 2";
const CASE: &str = "agreement/en/1";

/// The incumbent answers twice with one text, the candidate twice with these ids.
fn concluded(ids: &[u32], text: &str) -> Conclusion {
    let mut hand = Hand::default();
    for _ in 0..2 {
        hand.window(
            CASE,
            "incumbent",
            vec![answer("en/0", "abcd", Some(&[1, 2, 3, 4]))],
        );
        hand.window(CASE, "candidate", vec![answer("en/0", text, Some(ids))]);
    }
    conclude(&gate(CHECK), &hand.evidence, "candidate")
}

#[test]
fn equal_answers_agree_wholly_and_without_a_reason() {
    let said = concluded(&[1, 2, 3, 4], "abcd");
    assert_eq!(codes(&said), []);
    assert_eq!(numbers(&said, "agreement_fraction"), [1.0, 1.0]);
    assert_eq!(numbers(&said, "self_agreement"), [1.0]);
    assert_eq!(numbers(&said, "common_tokens"), [4.0, 4.0]);
    assert_eq!(numbers(&said, "divergence_hazard"), [0.0, 0.0]);
    assert_eq!(numbers(&said, "excess_hazard"), [0.0, 0.0]);
}

#[test]
fn answers_that_part_show_where_and_raise_the_hazard() {
    let said = concluded(&[1, 2, 9, 9], "abzz");
    assert_eq!(numbers(&said, "agreement_fraction"), [0.5, 0.5]);
    let third = 1.0 / 3.0;
    assert_eq!(numbers(&said, "excess_hazard"), [third, third]);
    let told = said
        .notes
        .iter()
        .find(|n| n.starts_with("first divergence: "))
        .unwrap();
    assert!(
        told.contains("\"ab\"") && told.contains("\"zz\"") && told.contains("\"cd\""),
        "{told}"
    );
    assert!(said.notes.iter().any(|n| n.contains("greedy_audit")));
}

#[test]
fn the_incumbent_beside_itself_is_the_floor() {
    let mut hand = Hand::default();
    hand.window(CASE, "incumbent", vec![answer("en/0", "abcd", None)]);
    hand.window(CASE, "incumbent", vec![answer("en/0", "abzz", None)]);
    let said = conclude(&gate(CHECK), &hand.evidence, "incumbent");
    assert_eq!(numbers(&said, "agreement_fraction"), [0.5]);
    assert_eq!(numbers(&said, "common_tokens"), Vec::<f64>::new());
}

#[test]
fn one_repeat_of_the_incumbent_leaves_it_unproven() {
    let mut hand = Hand::default();
    hand.window(CASE, "incumbent", vec![answer("en/0", "abcd", None)]);
    hand.window(CASE, "candidate", vec![answer("en/0", "abcd", None)]);
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("self.unknown", Verdict::Unproven)]);
}

#[test]
fn empty_answers_prove_no_agreement() {
    let mut hand = Hand::default();
    for _ in 0..2 {
        hand.window(CASE, "incumbent", vec![answer("en/0", "", None)]);
        hand.window(CASE, "candidate", vec![answer("en/0", "", None)]);
    }
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("answers.absent", Verdict::Unproven)]);
}

#[test]
fn prompts_that_the_servers_rendered_differently_are_told() {
    use crate::evidence::exchange::IdDigest;
    let with = |sha256: &str| {
        let mut e = answer("en/0", "abcd", Some(&[1, 2, 3, 4]));
        e.prompt_ids = Some(IdDigest {
            count: 4,
            sha256: sha256.into(),
        });
        vec![e]
    };
    let mut hand = Hand::default();
    for _ in 0..2 {
        hand.window(CASE, "incumbent", with("one"));
        hand.window(CASE, "candidate", with("other"));
    }
    let said = conclude(&gate(CHECK), &hand.evidence, "candidate");
    assert_eq!(codes(&said), [("prompt.differs", Verdict::Inconclusive)]);
}

#[test]
fn a_gate_that_cannot_show_agreement_is_refused() {
    assert_eq!(faults(CHECK), Vec::<String>::new());
    let alone = CHECK.replace("\"incumbent\", ", "");
    assert_eq!(faults(&alone), ["`agreement` compares two builds"]);
    let once = CHECK.replace("repeats = 2", "repeats = 1");
    assert!(
        faults(&once)[0].contains("one repeat"),
        "{:?}",
        faults(&once)
    );
}
