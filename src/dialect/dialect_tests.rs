use std::collections::BTreeSet;

use regex::Regex;

use super::*;
use crate::evidence::log::LogReader;
use crate::evidence::selector::Selector;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"))
}

#[test]
fn every_expression_compiles_and_has_its_groups() {
    for d in DIALECTS {
        let line = regex(d.log.line);
        assert!(line.capture_names().any(|n| n == Some("msg")), "{}", d.id);
        assert!(line.is_match(""), "{}: every line is a record", d.id);
        assert!(line.is_match("no prefix at all"), "{}", d.id);
        LogReader::new(d);
        for pattern in d.log.first_lines.iter().chain(d.log.version) {
            regex(pattern);
        }
        for kv in d.kv {
            let told = ["tokens", "blocks", "gib", "mib", "concurrency", "dtype"];
            assert!(
                regex(kv.pattern)
                    .capture_names()
                    .flatten()
                    .any(|n| told.contains(&n)),
                "{}",
                kv.pattern
            );
        }
    }
}

#[test]
fn ids_and_preset_names_are_unique() {
    let ids: BTreeSet<&str> = DIALECTS.iter().map(|d| d.id).collect();
    assert_eq!(ids.len(), DIALECTS.len());
    for d in DIALECTS {
        let names: BTreeSet<&str> = d.presets.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), d.presets.len(), "{}", d.id);
    }
}

#[test]
fn every_announcing_line_matches_its_examples_and_no_near_miss() {
    for preset in DIALECTS.iter().flat_map(|d| d.presets) {
        for line in preset.announced {
            let expression = regex(line.pattern);
            assert!(
                !line.matches.is_empty() && !line.never.is_empty(),
                "{}: {}",
                preset.name,
                line.pattern
            );
            for example in line.matches {
                assert!(
                    expression.is_match(example),
                    "{}: `{}` misses `{example}`",
                    preset.name,
                    line.pattern
                );
            }
            for example in line.never {
                assert!(
                    !expression.is_match(example),
                    "{}: `{}` hits `{example}`",
                    preset.name,
                    line.pattern
                );
            }
        }
    }
}

#[test]
fn every_refuting_line_has_an_example_and_refutes_no_announcement() {
    for preset in DIALECTS.iter().flat_map(|d| d.presets) {
        let expressions: Vec<Regex> = preset.refuted.iter().map(|p| regex(p)).collect();
        for expression in &expressions {
            let hit = preset
                .refuted_matches
                .iter()
                .any(|e| expression.is_match(e));
            assert!(hit, "{}: {expression} is dead", preset.name);
        }
        let refuted = |text: &str| expressions.iter().any(|e| e.is_match(text));
        for example in preset.refuted_matches {
            assert!(
                refuted(example),
                "{}: `{example}` is not refuted",
                preset.name
            );
        }
        let healthy = preset
            .announced
            .iter()
            .filter(|l| l.part == Part::Message)
            .flat_map(|l| l.matches);
        for example in preset.refuted_never.iter().chain(healthy) {
            assert!(!refuted(example), "{}: `{example}` is refuted", preset.name);
        }
        assert_eq!(
            preset.refuted.is_empty(),
            preset.refuted_matches.is_empty(),
            "{}",
            preset.name
        );
    }
}

#[test]
fn every_preset_proves_something_and_its_selectors_parse() {
    for d in DIALECTS {
        for preset in d.presets {
            let any = preset.announced.len()
                + preset.refuted.len()
                + preset.moved.len()
                + preset.still.len();
            assert!(any > 0, "{}", preset.name);
            for series in preset.moved.iter().chain(preset.still) {
                Selector::parse(series).unwrap();
            }
        }
    }
}

#[test]
fn every_forbidden_line_is_told_from_its_healthy_neighbour() {
    for line in DIALECTS.iter().flat_map(|d| d.forbidden) {
        let expression = regex(line.pattern);
        assert!(
            !line.matches.is_empty() && !line.never.is_empty(),
            "{}",
            line.pattern
        );
        for example in line.matches {
            assert!(expression.is_match(example), "{}: {example}", line.pattern);
        }
        for example in line.never {
            assert!(!expression.is_match(example), "{}: {example}", line.pattern);
        }
    }
}

#[test]
fn the_scope_of_a_line_follows_the_version() {
    let graphs = named("vllm")
        .unwrap()
        .presets
        .iter()
        .find(|p| p.name == "cuda-graphs")
        .unwrap();
    let scope = |version| graphs.lines_for(version)[0].scope;
    assert_eq!(scope(Some((0, 15))), Scope::EveryRank);
    assert_eq!(scope(Some((0, 20))), Scope::EveryNode);
    assert_eq!(scope(None), Scope::EveryNode);
    // A line that a version cannot print is not asked of it.
    let runner = named("vllm")
        .unwrap()
        .presets
        .iter()
        .find(|p| p.name == "model-runner:v2")
        .unwrap();
    assert_eq!(runner.lines_for(Some((0, 32))).len(), 0);
    assert_eq!(runner.lines_for(Some((0, 33))).len(), 1);
}

#[test]
fn versions_are_read_by_their_front() {
    assert_eq!(major_minor("0.32.0"), Some((0, 32)));
    assert_eq!(major_minor("v0.9.2rc1"), Some((0, 9)));
    assert_eq!(major_minor("0.33rc1"), Some((0, 33)));
    assert_eq!(major_minor("b11434"), None);
    assert_eq!(major_minor(""), None);
}

#[test]
fn tensorrt_llms_draining_statistics_are_never_scraped() {
    let metrics = named("tensorrt_llm").unwrap().metrics.as_ref().unwrap();
    assert_eq!(metrics.path, "/prometheus/metrics");
}
