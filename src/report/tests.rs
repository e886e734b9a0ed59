//! One sample through every printer: golden files, hostile text, and the tally of verdicts.

use std::fs;
use std::path::PathBuf;

use super::outline::{Language, Outline};
use super::plain_text::is_deceptive;
use super::terminal::{Charset, Colour, Depth, Page, Width};
use super::{PRINTERS, sample};
use crate::judge::verdict::Verdict;

/// Compares with `fixtures/reports/NAME`; `UPDATE_GOLDEN=1` rewrites it.
fn golden(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    if wanted != actual {
        let line = wanted.lines().zip(actual.lines()).position(|(a, b)| a != b);
        panic!("fixtures/reports/{name} differs, first at line {line:?}; UPDATE_GOLDEN=1 cargo test rewrites it");
    }
}

fn page(columns: u16, colour: Colour, charset: Charset) -> Page {
    Page { width: Width::columns(columns), colour, charset, depth: Depth::Essential }
}

#[test]
fn every_printer_gives_the_golden_text() {
    let report = sample::mixed();
    for printer in PRINTERS {
        for (file, language) in printer.files() {
            golden(file, &printer.print(&report, &Outline::of(&report, *language)));
        }
    }
}

#[test]
fn a_terminal_gives_the_golden_text_at_every_width() {
    let report = sample::mixed();
    let (en, ja) = (Outline::of(&report, Language::En), Outline::of(&report, Language::Ja));
    golden("terminal-140.txt", &page(140, Colour::Off, Charset::Unicode).render(&en));
    golden("terminal-80.txt", &page(80, Colour::Off, Charset::Unicode).render(&en));
    golden("terminal-80.ja.txt", &page(80, Colour::Off, Charset::Unicode).render(&ja));
    golden("terminal-140.ja.txt", &page(140, Colour::Off, Charset::Unicode).render(&ja));
    golden("terminal-140.ansi", &page(140, Colour::On, Charset::Unicode).render(&en));
    golden("terminal-80.ansi", &page(80, Colour::On, Charset::Unicode).render(&en));
    golden("terminal-80.ascii.txt", &page(80, Colour::Off, Charset::Ascii).render(&en));
    let whole = Page { depth: Depth::Full, ..page(140, Colour::Off, Charset::Unicode) };
    golden("terminal-full.txt", &whole.render(&en));
}

#[test]
fn every_printer_says_every_verdict_as_often_as_it_was_given() {
    let report = sample::mixed();
    for verdict in [Verdict::Pass, Verdict::Inconclusive, Verdict::Unproven, Verdict::NotRun, Verdict::Fail] {
        assert!(report.checks.iter().any(|f| f.verdict == verdict), "the sample has no {verdict:?}");
        for printer in PRINTERS {
            let text = printer.print(&report, &Outline::of(&report, Language::En));
            let word = match printer.name() {
                "json" => format!("\"verdict\": {}", serde_json::to_string(&verdict).unwrap()),
                _ => verdict.word().to_owned(),
            };
            let given = report.checks.iter().filter(|f| f.verdict == verdict).count();
            let said = text.matches(&word).count();
            assert!(said >= given, "{} says {word} {said} times of {given}", printer.name());
        }
    }
}

#[test]
fn every_printer_names_every_case_and_what_was_not_run() {
    let report = sample::mixed();
    for printer in PRINTERS {
        let text = printer.print(&report, &Outline::of(&report, Language::En));
        for finding in &report.checks {
            assert!(text.contains(&finding.id), "{} leaves out {}", printer.name(), finding.id);
        }
        assert!(text.contains(&report.not_run[0].reason), "{}", printer.name());
    }
}

#[test]
fn nothing_hostile_survives_any_printer() {
    let report = sample::hostile();
    for language in [Language::En, Language::Ja] {
        let outline = Outline::of(&report, language);
        for printer in PRINTERS {
            let (name, text) = (printer.name(), printer.print(&report, &outline));
            let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || is_deceptive(*c));
            assert_eq!(bad, None, "{name} lets {bad:?} through");
            assert!(!text.contains("\n# heading"), "{name} starts a line of the attacker's choice");
            assert!(!text.contains("owned"), "{name} sets a window title") ;
            if matches!(name, "html" | "junit") {
                assert!(!text.contains("<script"), "{name} writes a script");
            }
        }
    }
}

#[test]
fn colour_is_off_unless_asked_for() {
    let outline = Outline::of(&sample::hostile(), Language::En);
    let off = page(100, Colour::Off, Charset::Unicode).render(&outline);
    assert!(!off.contains('\u{1b}'));
    let on = page(100, Colour::On, Charset::Unicode).render(&outline);
    assert!(on.contains("\u{1b}["));
    // Only sequences that set colours: nothing moves the cursor.
    for part in on.split('\u{1b}').skip(1) {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        assert_eq!(&part[end..=end], "m", "{part}");
    }
}

#[test]
fn ascii_paper_holds_only_ascii() {
    for language in [Language::En, Language::Ja] {
        let text = page(80, Colour::Off, Charset::Ascii).render(&Outline::of(&sample::mixed(), language));
        assert!(text.is_ascii());
    }
}

#[test]
fn an_empty_report_says_that_nothing_is_known_and_is_not_green() {
    let report = sample::empty();
    for printer in PRINTERS.iter().filter(|p| p.name() != "json") {
        let text = printer.print(&report, &Outline::of(&report, Language::En));
        assert!(text.contains("NOT RUN"), "{}", printer.name());
        assert!(!text.contains("PASS"), "{} says PASS of nothing", printer.name());
    }
}

#[test]
fn a_passing_gate_names_the_path_that_was_proven() {
    let outline = Outline::of(&sample::passing(), Language::En);
    assert!(outline.headline.why.contains("`lna2`"), "{}", outline.headline.why);
    let outline = Outline::of(&sample::passing(), Language::Ja);
    assert!(outline.headline.why.contains("`lna2`"), "{}", outline.headline.why);
}
