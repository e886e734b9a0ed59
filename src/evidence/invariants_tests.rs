use super::*;
use crate::dialect;

fn scrape(file: &str) -> Exposition {
    let path = format!("{}/fixtures/servers/{file}", env!("CARGO_MANIFEST_DIR"));
    Exposition::parse(&std::fs::read_to_string(path).unwrap())
}

fn of(id: &str, before: &Exposition, after: &Exposition, expected: &Expected) -> Vec<Invariant> {
    let metrics = dialect::named(id).unwrap().metrics.as_ref().unwrap();
    invariants(metrics, before, after, expected, &[])
}

fn holds<'a>(all: &'a [Invariant], name: &str) -> &'a Holds {
    &all.iter()
        .find(|i| i.name == name)
        .unwrap_or_else(|| panic!("no `{name}`"))
        .holds
}

/// What the recorded vLLM run with n-gram speculation sent: 29 requests, 858 prompt and 1,608 generated tokens.
const NGRAM: Expected = Expected {
    requests: 29,
    broken_off: 0,
    prompt_tokens: Some(858),
    cached_tokens: Some(0),
    generation_tokens: Some(1608),
    length_stops: Some(25),
    concurrency: None,
    draft_limit: Some(3),
    prefix_hits_allowed: Some(0),
    ttft_mean_s: Some(0.2),
};

fn ngram(expected: &Expected) -> Vec<Invariant> {
    let before = scrape("vllm/metrics/vllm_ngram_metrics_before.txt");
    let after = scrape("vllm/metrics/vllm_ngram_metrics_after.txt");
    of("vllm", &before, &after, expected)
}

#[test]
fn a_recorded_window_of_vllm_holds_in_every_invariant() {
    let all = ngram(&NGRAM);
    assert_eq!(all.len(), 15);
    for invariant in &all {
        assert_eq!(invariant.holds, Holds::Yes, "{invariant:?}");
    }
}

#[test]
fn each_lie_breaks_its_own_invariant() {
    for (expected, broken) in [
        (
            Expected {
                requests: 28,
                ..NGRAM
            },
            vec!["requests", "alone"],
        ),
        (
            Expected {
                prompt_tokens: Some(859),
                ..NGRAM
            },
            vec!["prompt-tokens"],
        ),
        (
            Expected {
                cached_tokens: Some(5),
                ..NGRAM
            },
            vec!["cached-tokens"],
        ),
        (
            Expected {
                generation_tokens: Some(1607),
                ..NGRAM
            },
            vec!["generation-tokens", "alone"],
        ),
        (
            Expected {
                length_stops: Some(29),
                ..NGRAM
            },
            vec!["length-stops"],
        ),
        (
            Expected {
                draft_limit: Some(2),
                ..NGRAM
            },
            vec!["draft-limit"],
        ),
        (
            Expected {
                ttft_mean_s: Some(0.1),
                ..NGRAM
            },
            vec!["ttft"],
        ),
    ] {
        let all = ngram(&expected);
        let no: Vec<&str> = all
            .iter()
            .filter(|i| i.holds == Holds::No)
            .map(|i| i.name)
            .collect();
        assert_eq!(no, broken, "{expected:?}");
    }
}

#[test]
fn broken_off_requests_widen_what_the_server_may_count() {
    let all = ngram(&Expected {
        requests: 27,
        broken_off: 2,
        generation_tokens: Some(1500),
        length_stops: None,
        ..NGRAM
    });
    assert!(all.iter().all(|i| i.holds != Holds::No), "{all:#?}");
}

#[test]
fn llama_cpp_counts_only_computed_prompts_and_no_requests() {
    let text = |prompt: u32, cached: u32, generated: u32| {
        Exposition::parse(&format!(
            "llamacpp:prompt_tokens_total {prompt}\nllamacpp:prompt_tokens_cached_total {cached}\nllamacpp:tokens_predicted_total {generated}\n"
        ))
    };
    let expected = Expected {
        requests: 2,
        prompt_tokens: Some(130),
        generation_tokens: Some(64),
        ..Expected::default()
    };
    let all = of("llamacpp", &text(10, 0, 5), &text(40, 100, 69), &expected);
    assert_eq!(*holds(&all, "prompt-tokens"), Holds::Yes);
    assert_eq!(*holds(&all, "generation-tokens"), Holds::Yes);
    assert!(
        matches!(holds(&all, "requests"), Holds::Unknown(why) if why.contains("no counter of finished requests"))
    );
    assert!(matches!(holds(&all, "same-process"), Holds::Unknown(_)));
    let all = of("llamacpp", &text(10, 0, 5), &text(40, 0, 69), &expected);
    assert_eq!(*holds(&all, "prompt-tokens"), Holds::No);
}

#[test]
fn llama_cpp_makes_its_positions_at_the_first_accepted_draft() {
    let before = scrape("llamacpp/metrics/llamacpp_specdraft_get_metrics.txt");
    let after = scrape("llamacpp/metrics/llamacpp_specdraft_metrics_after.txt");
    let all = of("llamacpp", &before, &after, &Expected::default());
    assert_eq!(*holds(&all, "position-sum"), Holds::Yes);
    assert_eq!(*holds(&all, "position-order"), Holds::Yes);
    assert_eq!(*holds(&all, "accepted-of-drafted"), Holds::Yes);
}

#[test]
fn what_a_family_never_counts_is_not_asked_of_it() {
    let text = "sglang:spec_verify_calls_total 5\nsglang:generation_tokens_total 9\n";
    let e = Exposition::parse(text);
    let names: Vec<&str> = of("sglang", &e, &e, &NGRAM)
        .iter()
        .map(|i| i.name)
        .collect();
    assert!(
        !names
            .iter()
            .any(|n| n.starts_with("position") || n.starts_with("spec") || *n == "draft-limit"),
        "{names:?}"
    );
}

#[test]
fn a_front_end_without_the_engines_counters_proves_nothing() {
    let e = Exposition::parse("http_requests_total 5\n");
    let all = of("vllm", &e, &e, &NGRAM);
    assert!(!all.iter().any(|i| i.name.starts_with("position")));
    for name in [
        "requests",
        "prompt-tokens",
        "generation-tokens",
        "alone",
        "no-preemption",
    ] {
        assert!(matches!(holds(&all, name), Holds::Unknown(_)), "{name}");
    }
}

#[test]
fn concurrency_and_company_show_in_the_gauges() {
    let e = Exposition::default();
    let metrics = dialect::named("vllm").unwrap().metrics.as_ref().unwrap();
    let see = |running: &[f64]| {
        let gauges: Vec<GaugeSample> = running
            .iter()
            .map(|&r| GaugeSample {
                at_s: 0.0,
                running: Some(r),
                waiting: None,
            })
            .collect();
        let all = invariants(
            metrics,
            &e,
            &e,
            &Expected {
                concurrency: Some(4),
                ..Expected::default()
            },
            &gauges,
        );
        (
            holds(&all, "concurrency").clone(),
            holds(&all, "alone").clone(),
        )
    };
    assert_eq!(see(&[1.0, 4.0, 4.0]).0, Holds::Yes);
    assert_eq!(see(&[1.0, 3.0, 3.0]).0, Holds::No);
    assert!(matches!(see(&[1.0, 3.0]).0, Holds::Unknown(_)));
    assert_eq!(see(&[1.0, 5.0, 4.0]).1, Holds::No);
}
