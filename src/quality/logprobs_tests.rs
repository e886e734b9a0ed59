//! Each guard against its fault, and all of them against healthy logprobs.

use super::*;

/// Logprobs as text has them: mostly likely tokens, some rare ones, mean near 2 nats.
fn healthy(tokens: usize) -> Vec<Option<f64>> {
    let mut list = vec![None];
    list.extend((1..tokens).map(|n| Some(-0.01 - 0.37 * ((n * 7919) % 11) as f64)));
    list
}

fn with(tokens: usize, at: usize, value: Option<f64>) -> Vec<Option<f64>> {
    let mut list = healthy(tokens);
    list[at] = value;
    list
}

#[test]
fn healthy_logprobs_pass_in_every_length() {
    for tokens in [2, 3, 10, 100, 2_048] {
        assert_eq!(guard(&healthy(tokens), None), Ok(()), "{tokens}");
        assert_eq!(
            guard_for(tokens, &healthy(tokens), Some(32_000)),
            Ok(()),
            "{tokens}"
        );
    }
    // Noise of float32 above zero, and a single impossible word in a thousand, are healthy too.
    assert_eq!(guard(&with(100, 5, Some(5e-7)), None), Ok(()));
    assert_eq!(guard(&with(1_000, 5, Some(-25.0)), None), Ok(()));
}

#[test]
fn a_list_without_values_or_of_another_length_is_none() {
    assert_eq!(guard(&[], None), Err(Fault::None));
    assert_eq!(guard(&[None], None), Err(Fault::None));
    assert_eq!(
        guard_for(11, &healthy(10), None),
        Err(Fault::Count {
            got: 10,
            wanted: 11
        })
    );
}

#[test]
fn a_first_token_with_a_logprob_means_a_shift() {
    assert_eq!(
        guard(&with(10, 0, Some(-1.0)), None),
        Err(Fault::First { value: -1.0 })
    );
}

#[test]
fn each_impossible_value_is_named_with_its_place() {
    assert_eq!(
        guard(&with(10, 4, None), None),
        Err(Fault::Missing { at: 4 })
    );
    assert_eq!(
        guard(&with(10, 4, Some(f64::NAN)), None),
        Err(Fault::NotFinite { at: 4 })
    );
    assert_eq!(
        guard(&with(10, 4, Some(f64::NEG_INFINITY)), None),
        Err(Fault::NotFinite { at: 4 })
    );
    assert_eq!(
        guard(&with(10, 4, Some(0.5)), None),
        Err(Fault::Positive { at: 4, value: 0.5 })
    );
    assert_eq!(
        guard(&with(10, 4, Some(-9999.0)), None),
        Err(Fault::Sentinel { at: 4 })
    );
}

#[test]
fn zeros_and_constants_are_no_logprobs() {
    let constant = |value| [vec![None], vec![Some(value); 20]].concat();
    assert_eq!(guard(&constant(0.0), None), Err(Fault::AllZero));
    assert_eq!(guard(&constant(-0.0), None), Err(Fault::AllZero));
    assert_eq!(
        guard(&constant(-2.5), None),
        Err(Fault::AllEqual { value: -2.5 })
    );
}

#[test]
fn worse_than_uniform_needs_no_baseline() {
    // The mean that vLLM#53488 showed.
    let bad: Vec<Option<f64>> = [
        vec![None],
        (0..100)
            .map(|n| Some(-13.0 - f64::from(n % 3) / 2.0))
            .collect(),
    ]
    .concat();
    assert!(
        matches!(guard(&bad, Some(151_936)), Err(Fault::WorseThanUniform { nats, uniform })
        if (13.4..13.6).contains(&nats) && (11.9..11.95).contains(&uniform))
    );
    assert!(matches!(
        guard(&bad, None),
        Err(Fault::WorseThanUniform { .. })
    ));
}

#[test]
fn a_polluted_part_shows_in_its_surprises() {
    let mut list = healthy(1_000);
    for value in &mut list[100..130] {
        *value = Some(-24.0);
    }
    assert_eq!(
        guard(&list, None),
        Err(Fault::Surprises {
            share: 30.0 / 999.0
        })
    );
}

#[test]
fn every_fault_reads_as_a_clause() {
    let fault = guard(&with(10, 4, Some(-9999.0)), None).expect_err("a sentinel");
    assert_eq!(
        fault.to_string(),
        "the logprob of token 4 is the server's stand-in for minus infinity (-9999)"
    );
}

#[test]
fn differences_are_taken_where_both_have_values() {
    let left = [None, Some(-1.0), Some(-2.0), None, Some(-3.0)];
    let right = [None, Some(-1.5), Some(-2.0), Some(-9.0)];
    let found = difference(&left, &right).expect("two places");
    assert_eq!(
        found,
        Difference {
            max: 0.5,
            at: 1,
            mean: 0.25,
            shift: -0.25,
            places: 2
        }
    );
    assert!(found.within(0.5, 0.25) && !found.within(0.4, 0.25) && !found.within(0.5, 0.2));
    assert_eq!(largest_difference(&left, &right), Some(0.5));
    assert_eq!(difference(&left, &[]), None);
    assert_eq!(
        largest_difference(&[Some(f64::NAN)], &[Some(-1.0)]),
        Some(f64::INFINITY)
    );
}

#[test]
fn equal_lists_differ_by_nothing() {
    assert_eq!(largest_difference(&healthy(100), &healthy(100)), Some(0.0));
}

#[test]
fn perplexity_of_a_coin_is_two() {
    let coin: Vec<Option<f64>> = [vec![None], vec![Some(0.5_f64.ln()); 8]].concat();
    let nll = nll(&coin).expect("eight tokens");
    assert_eq!(nll.tokens, 8);
    assert!((nll.ppl() - 2.0).abs() < 1e-12);
    assert!((nll.per_token() - std::f64::consts::LN_2).abs() < 1e-12);
    assert!((nll.bits_per_byte(4).expect("bytes") - 2.0).abs() < 1e-12);
    assert_eq!(nll.bits_per_byte(0), None);
    assert_eq!(super::nll(&[None]), None);
}

#[test]
fn shuffled_text_is_worse_for_a_scorer_that_reads_it() {
    let text = healthy(100);
    let worse: Vec<Option<f64>> = text.iter().map(|lp| lp.map(|v| v - 3.0)).collect();
    let rise = shuffled_rise(&text, &worse).expect("both");
    assert!(rise > SHUFFLED_RISE, "{rise}");
    // A scorer that does not care for the order shows no rise.
    assert!(shuffled_rise(&text, &text).expect("both") < SHUFFLED_RISE);
    assert_eq!(shuffled_rise(&text, &[]), None);
}
