//! The grammar of expectations.

use super::expect::{Limit, Reference, parse};
use super::kind::FigureKind;
use super::test_kinds::{ANSWER, RATE, SHARE, TTFT};

fn incumbent() -> Reference {
    Reference::Build("incumbent".into())
}

#[test]
fn every_form_of_the_grammar_reads() {
    let certified = Reference::Run("certified".into());
    let rows: Vec<(&str, &FigureKind, Limit)> = vec![
        (">= 38 tok/s", &RATE, Limit::AtLeast(38.0)),
        (">=38tok/s", &RATE, Limit::AtLeast(38.0)),
        ("≥ 38 tok/s", &RATE, Limit::AtLeast(38.0)),
        ("  <= 1_000.5 tok/s ", &RATE, Limit::AtMost(1000.5)),
        ("≤ 391,000 tok/s", &RATE, Limit::AtMost(391_000.0)),
        (">= 1,234,567.5 tok/s", &RATE, Limit::AtLeast(1_234_567.5)),
        (">= 1e3 tok/s", &RATE, Limit::AtLeast(1000.0)),
        ("<= 1.5E-2 s", &TTFT, Limit::AtMost(0.015)),
        ("<= 250 ms", &TTFT, Limit::AtMost(0.25)),
        ("<= 250ms", &TTFT, Limit::AtMost(0.25)),
        ("= 8", &SHARE, Limit::Exactly(8.0)),
        ("== 8", &SHARE, Limit::Exactly(8.0)),
        (">= 98 %", &SHARE, Limit::AtLeast(0.98)),
        (
            "between 150 and 400 tok/s",
            &RATE,
            Limit::Between(150.0, 400.0),
        ),
        (
            "between 150 tok/s and 400 tok/s",
            &RATE,
            Limit::Between(150.0, 400.0),
        ),
        (
            ">= 1.05 x incumbent",
            &RATE,
            Limit::RatioAtLeast(1.05, incumbent()),
        ),
        (
            ">= 1.05x incumbent",
            &RATE,
            Limit::RatioAtLeast(1.05, incumbent()),
        ),
        (
            "<= 1.05× incumbent",
            &RATE,
            Limit::RatioAtMost(1.05, incumbent()),
        ),
        (
            "<= 1.02 x run:certified",
            &RATE,
            Limit::RatioAtMost(1.02, certified),
        ),
        (
            "within 2 % of incumbent",
            &RATE,
            Limit::WithinFraction(0.02, incumbent()),
        ),
        (
            "within 2% of incumbent",
            &RATE,
            Limit::WithinFraction(0.02, incumbent()),
        ),
        (
            "within 20 ms of incumbent",
            &TTFT,
            Limit::WithinAmount(0.02, incumbent()),
        ),
        ("in band of incumbent", &RATE, Limit::InBand(incumbent())),
        (
            "above band of incumbent",
            &RATE,
            Limit::AboveBand(incumbent()),
        ),
        (
            "below band of incumbent",
            &RATE,
            Limit::BelowBand(incumbent()),
        ),
        ("is exact", &ANSWER, Limit::Is("exact".into())),
        ("exact", &ANSWER, Limit::Is("exact".into())),
    ];
    for (text, figure, limit) in rows {
        assert_eq!(parse(text, figure), Ok(limit), "{text}");
    }
}

#[test]
fn a_fault_stands_on_the_piece_that_is_wrong() {
    let rows = [
        ("> 38 tok/s", ">"),
        (">= 38 ms", "ms"),
        ("  >= 38 ", "38"),
        (">= NaN tok/s", "NaN tok/s"),
        (">= 1,05 x incumbent", "1,05"),
        (">= 12,34 tok/s", "12,34"),
        (">= 1,234,5 tok/s", "1,234,5"),
        (">= 1.5,000 tok/s", "1.5,000"),
        (">= 1.0.5 tok/s", "1.0.5"),
        (">= 1.05 x two builds", "two builds"),
        ("between 1 and x tok/s", "x tok/s"),
        ("within ten % of incumbent", "ten"),
        ("quite fast", "quite fast"),
    ];
    for (text, piece) in rows {
        let wrong = parse(text, &RATE).unwrap_err();
        assert_eq!(&text[wrong.at.clone()], piece, "{text}: {}", wrong.message);
        assert!(wrong.help.is_some(), "{text}");
    }
}

#[test]
fn a_missing_piece_is_pointed_at_where_it_should_stand() {
    for (text, at) in [(">= 1.05 x", 9), (">=", 2), ("", 0)] {
        let wrong = parse(text, &RATE).unwrap_err();
        assert_eq!(wrong.at, at..at, "{text}: {}", wrong.message);
    }
}

/// No prefix, and no text with a character too many, makes the parser fall over or point outside.
#[test]
fn every_broken_expectation_is_told_its_place() {
    let texts = [
        ">= 1_000.5 tok/s",
        "between 150 and 400 tok/s",
        "<= 1.02 × run:certified",
        "within 2 % of incumbent",
        "above band of incumbent",
    ];
    let mut told = 0;
    for text in texts {
        for (at, c) in text.char_indices() {
            for new in ["", "é", ",", "e", "-"] {
                let broken = [&text[..at], new, &text[at + c.len_utf8()..]].concat();
                if let Err(wrong) = parse(&broken, &RATE) {
                    assert!(broken.get(wrong.at.clone()).is_some(), "{broken}");
                    told += 1;
                }
            }
        }
    }
    assert!(told > 100, "only {told} were refused");
}
