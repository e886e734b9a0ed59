//! The recorded prompt logprobs of real servers, and every way in which they may be wrong.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::cancel::Cancel;
use super::prompt_logprobs::{ScoreFault, Scores, Scoring, TokenScore, discover, score};
use super::request::Cache;
use super::score_reader::ScoreReader;
use super::tiny_server::{Step, TinyServer, answer};
use crate::dialect::{PromptLogprobs, named};

/// Ids of the probe's sentence, as the recorded tokenizer answered.
const SENTENCE: [u32; 17] = [
    504, 2365, 6354, 16438, 27003, 690, 260, 23790, 2767, 30, 7042, 314, 260, 3575, 282, 4649, 30,
];

fn recorded(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/servers");
    fs::read_to_string(root.join(name)).expect("recorded")
}

fn read(
    route: PromptLogprobs,
    sent: &[u32],
    body: &str,
    step: usize,
) -> Result<Scores, ScoreFault> {
    let mut reader = ScoreReader::new(route, sent);
    for chunk in body.as_bytes().chunks(step) {
        reader.feed(chunk)?;
    }
    reader.finish()
}

fn vllm(body: &str) -> Result<Scores, ScoreFault> {
    read(PromptLogprobs::Vllm, &SENTENCE, body, 100)
}

#[test]
fn recorded_scores_are_those_of_the_ids_sent_however_many_are_returned() {
    for run in ["vllm_ngram", "vllm_nospec", "vllm_draft_si8"] {
        let alone = recorded(&format!("vllm/{run}_cmpl_prompt_logprobs0_mt1.json"));
        let alone = vllm(&alone).expect("scores");
        let best = recorded(&format!("vllm/{run}_cmpl_prompt_logprobs1_mt1.json"));
        for step in [1, 2, 3, 7, 64, best.len()] {
            let best = read(PromptLogprobs::Vllm, &SENTENCE, &best, step).expect("scores");
            assert_eq!(
                best.tokens.len(),
                alone.tokens.len(),
                "{run} in steps of {step}"
            );
            for (best, alone) in best.tokens.iter().zip(&alone.tokens) {
                // The likeliest token's logprob is told only where its entry came.
                let likeliest = best.best.expect("top 1 was asked for");
                assert!(likeliest >= best.logprob, "{run}");
                assert_eq!(alone.best.is_some(), alone.rank == Some(1), "{run}");
                let plain = |t: &TokenScore| TokenScore { best: None, ..*t };
                assert_eq!(plain(best), plain(alone), "{run} in steps of {step}");
            }
            assert_eq!(best.usage.map(|u| (u.prompt, u.completion)), Some((17, 1)));
        }
    }
    let scores = vllm(&recorded("vllm/vllm_ngram_cmpl_prompt_logprobs1_mt1.json")).expect("scores");
    assert_eq!(scores.tokens.len(), 16);
    let first = scores.tokens[0];
    assert_eq!(
        (first.id, first.logprob, first.rank),
        (2365, -14.399277687072754, Some(14055))
    );
}

#[test]
fn an_echo_is_read_when_it_says_which_tokens_it_scored() {
    for name in [
        "echo_logprobs1_mt0",
        "echo_logprobs1_mt1",
        "echo_logprobs0_mt0",
    ] {
        let body = recorded(&format!("vllm/vllm_ngram_cmpl_{name}.json"));
        let silent = read(PromptLogprobs::Echo, &SENTENCE, &body, 50);
        assert_eq!(
            silent,
            Err(ScoreFault::IdsNotReturned),
            "recorded without ids"
        );
        let mut told: Value = serde_json::from_str(&body).expect("JSON");
        told["choices"][0]["prompt_token_ids"] = json!(SENTENCE);
        let scores = read(PromptLogprobs::Echo, &SENTENCE, &told.to_string(), 50).expect(name);
        assert_eq!(
            scores.tokens.len(),
            16,
            "{name}: the generated token is left out"
        );
        assert_eq!(scores.tokens[15].logprob, -0.4592720568180084);
    }
    let body = r#"{"choices":[{"logprobs":{"token_logprobs":[null,-1.5,-2],"tokens":["token_id:7","token_id:8","token_id:9"]}}]}"#;
    let scores = read(PromptLogprobs::Echo, &[7, 8, 9], body, 9).expect("scores");
    assert_eq!(scores.tokens.len(), 2);
    let other = read(PromptLogprobs::Echo, &[7, 8, 10], body, 9);
    assert!(
        matches!(other, Err(ScoreFault::IdMismatch { position: 2, .. })),
        "{other:?}"
    );
}

#[test]
fn servers_that_ignore_the_question_are_told_by_the_missing_field() {
    for name in [
        "llamacpp/llamacpp_nospec_cmpl_prompt_logprobs0_mt1.json",
        "mistralrs/mistralrs_cmpl_prompt_logprobs1_mt1.json",
        "vllm/vllm_ngram_cmpl_seed.json",
    ] {
        let fault = vllm(&recorded(name));
        assert!(
            matches!(fault, Err(ScoreFault::MissingField(_))),
            "{name}: {fault:?}"
        );
    }
    for name in [
        "llamacpp/llamacpp_specdraft_cmpl_echo_logprobs1_mt1.json",
        "mistralrs/mistralrs_cmpl_echo_logprobs1_mt1.json",
        "transformers/tfserve_cmpl_echo_logprobs1_mt1.json",
    ] {
        let fault = read(PromptLogprobs::Echo, &SENTENCE, &recorded(name), 33);
        assert!(
            matches!(fault, Err(ScoreFault::MissingField(_))),
            "{name}: {fault:?}"
        );
    }
}

#[test]
fn sglang_s_triples_are_read() {
    let body = |triples: &str| {
        format!(
            r#"{{"text":"","meta_info":{{"prompt_tokens":3,"completion_tokens":0,"cached_tokens":0,"input_token_logprobs":[{triples}]}}}}"#
        )
    };
    let read = |triples: &str| {
        read(
            PromptLogprobs::SglangGenerate,
            &[7, 8, 9],
            &body(triples),
            5,
        )
    };
    let scores = read("[null,7,null],[-1.25,8,null],[-0.5,9,null]").expect("scores");
    assert_eq!(scores.tokens[0].logprob, -1.25);
    assert_eq!(scores.usage.and_then(|u| u.cached), Some(0));
    assert_eq!(
        read("[null,7,null],[null,8,null],[-0.5,9,null]"),
        Err(ScoreFault::NullInside(1))
    );
    let other = read("[null,7,null],[-1,9,null],[-0.5,9,null]");
    assert!(matches!(
        other,
        Err(ScoreFault::IdMismatch { position: 1, .. })
    ));
    assert!(matches!(
        read("[null,7,null],[-1,8,null]"),
        Err(ScoreFault::WrongCount { got: 2, .. })
    ));
}

/// The recorded scores with this text in place of that.
fn changed(from: &str, to: &str) -> Result<Scores, ScoreFault> {
    let good = recorded("vllm/vllm_ngram_cmpl_prompt_logprobs0_mt1.json");
    assert!(good.contains(from), "{from}");
    vllm(&good.replacen(from, to, 1))
}

#[test]
fn each_wrong_value_has_its_own_fault() {
    let sixth = "-0.004425731021910906";
    assert_eq!(changed(sixth, "NaN"), Err(ScoreFault::NotFinite(5)));
    assert_eq!(changed(sixth, "-Infinity"), Err(ScoreFault::NotFinite(5)));
    assert_eq!(changed(sixth, "-9999.0"), Err(ScoreFault::Sentinel(5)));
    assert_eq!(changed(sixth, "null"), Err(ScoreFault::NullInside(5)));
    let positive = ScoreFault::Positive {
        position: 5,
        logprob: 0.5,
    };
    assert_eq!(changed(sixth, "0.5"), Err(positive));
}

#[test]
fn each_wrong_list_has_its_own_fault() {
    let entry = r#"{"690":{"logprob":-0.004425731021910906,"rank":1,"decoded_token":" over"}}"#;
    assert_eq!(changed(entry, "null"), Err(ScoreFault::NullInside(5)));
    let mismatch = ScoreFault::IdMismatch {
        position: 5,
        sent: Some(690),
        got: Some(691),
    };
    assert_eq!(changed("\"690\":", "\"691\":"), Err(mismatch));
    let missing = changed(&format!(",{entry}"), "");
    assert!(
        matches!(missing, Err(ScoreFault::IdMismatch { position: 5, .. })),
        "{missing:?}"
    );
    let last = r#",{"30":{"logprob":-0.4592720568180084,"rank":1,"decoded_token":"."}}"#;
    assert!(matches!(
        changed(last, ""),
        Err(ScoreFault::WrongCount { got: 16, .. })
    ));
    let twice = changed(last, &last.repeat(2));
    assert!(
        matches!(
            twice,
            Err(ScoreFault::IdMismatch { position: 17, .. } | ScoreFault::WrongCount { .. })
        ),
        "{twice:?}"
    );
    assert!(matches!(
        changed("[null,", "["),
        Err(ScoreFault::IdMismatch { position: 0, .. })
    ));
    assert_eq!(
        changed("[null,", r#"[{"504":{"logprob":-1.0}},"#),
        Err(ScoreFault::FirstScored)
    );
    assert!(matches!(
        changed("\"prompt_tokens\":17", "\"prompt_tokens\":16"),
        Err(ScoreFault::WrongCount { got: 16, .. })
    ));
    assert!(matches!(
        changed("\"prompt_logprobs\"", "\"prompt_logprob\""),
        Err(ScoreFault::MissingField(_))
    ));
    assert!(matches!(
        changed("[null,", "[nil,"),
        Err(ScoreFault::Malformed(_))
    ));
    let good = recorded("vllm/vllm_ngram_cmpl_prompt_logprobs0_mt1.json");
    for end in [10, good.len() / 2, good.len() - 1] {
        let cut = vllm(&good[..end]);
        assert!(matches!(cut, Err(ScoreFault::Cut(_))), "{cut:?}");
    }
}

fn scoring(server: &TinyServer, dialect: &str) -> Scoring {
    let dialect = named(dialect).expect("known");
    Scoring {
        client: server.client(),
        model: "m".to_owned(),
        dialect,
        route: dialect.requests.prompt_logprobs,
        top: 0,
        deadline: Duration::from_secs(60),
        stall: Duration::from_millis(200),
    }
}

#[tokio::test]
async fn the_request_names_its_ids_and_the_answer_is_read_from_the_wire() {
    let body = recorded("vllm/vllm_ngram_cmpl_prompt_logprobs0_mt1.json");
    let server =
        TinyServer::start(move |_, _| answer("200 OK", "application/json", body.as_bytes())).await;
    let cold = Cache::Cold("00ff".to_owned());
    let scores = score(
        &scoring(&server, "vllm"),
        &SENTENCE,
        &cold,
        &Cancel::never(),
    )
    .await;
    assert_eq!(scores.expect("scores").tokens.len(), 16);
    let sent: Value =
        serde_json::from_slice(&server.bodies.lock().expect("no panic")[0]).expect("JSON");
    assert_eq!(sent["prompt"], json!(SENTENCE));
    assert_eq!(sent["prompt_logprobs"], 0);
    assert_eq!(sent["stream"], false);
    assert_eq!(sent["cache_salt"], "00ff");
}

#[tokio::test]
async fn a_crash_is_the_machine_s_fault_and_a_wrong_answer_is_not() {
    let half = br#"HTTP/1.1 200 OK
content-type: application/json
content-length: 1000

{"choices":[{"prompt_logprobs":[null,"#;
    let scripts: [Vec<Step>; 4] = [
        answer(
            "500 Internal Server Error",
            "application/json",
            b"{\"error\":\"CUDA out of memory\"}",
        ),
        vec![Step::Reset],
        vec![
            Step::Write(half.to_vec()),
            Step::Pause(Duration::from_millis(20)),
            Step::Reset,
        ],
        vec![Step::Write(half.to_vec()), Step::Hang],
    ];
    for script in scripts {
        let shown = format!("{script:?}");
        let server = TinyServer::start(move |_, _| script.clone()).await;
        let fault = score(
            &scoring(&server, "vllm"),
            &SENTENCE,
            &Cache::Allowed,
            &Cancel::never(),
        )
        .await
        .expect_err("a fault");
        assert!(fault.is_infra(), "{shown}: {fault}");
    }
    let body = recorded("vllm/vllm_ngram_cmpl_seed.json");
    let server =
        TinyServer::start(move |_, _| answer("200 OK", "application/json", body.as_bytes())).await;
    let fault = score(
        &scoring(&server, "vllm"),
        &SENTENCE,
        &Cache::Allowed,
        &Cancel::never(),
    )
    .await
    .expect_err("a fault");
    assert!(!fault.is_infra(), "{fault}");
}

#[tokio::test]
async fn the_probe_finds_the_route_that_works_or_says_that_none_does() {
    let server = TinyServer::start(|_, body| {
        let asked: Value = serde_json::from_slice(body).expect("JSON");
        let reply = match asked["echo"].as_bool() {
            Some(true) => json!({"choices": [{"logprobs": {
                "token_logprobs": [null, -1.5, -2.5, -0.5],
                "tokens": ["token_id:40", "token_id:73", "token_id:55", "token_id:1"],
            }}]}),
            _ => json!({"choices": [{"text": "x"}]}),
        };
        answer("200 OK", "application/json", reply.to_string().as_bytes())
    })
    .await;
    let found = discover(&scoring(&server, "openai"), &Cancel::never()).await;
    assert_eq!(found, Ok(PromptLogprobs::Echo));
    let fault = discover(&scoring(&server, "vllm"), &Cancel::never()).await;
    assert!(
        matches!(fault, Err(ScoreFault::MissingField(_))),
        "{fault:?}"
    );

    let body = recorded("llamacpp/llamacpp_nospec_cmpl_echo_logprobs1_mt1.json");
    let llama =
        TinyServer::start(move |_, _| answer("200 OK", "application/json", body.as_bytes())).await;
    let fault = discover(&scoring(&llama, "llamacpp"), &Cancel::never()).await;
    let said = fault.expect_err("none").to_string();
    assert!(said.contains("llama-perplexity"), "{said}");

    let zeros = TinyServer::start(|_, _| {
        let zero = |id: u32| json!({id.to_string(): {"logprob": 0.0, "rank": 1}});
        let list = json!([null, zero(73), zero(55)]);
        let reply = json!({"choices": [{"prompt_logprobs": list}]});
        answer("200 OK", "application/json", reply.to_string().as_bytes())
    })
    .await;
    let fault = discover(&scoring(&zeros, "vllm"), &Cancel::never()).await;
    assert_eq!(fault, Err(ScoreFault::AllEqual(0.0)));
}
