//! One finding of each verdict, for the tests of every printer.

use super::sample::NOT_RUN;
use crate::judge::figure::{Against, Decision, Figure, LimitOutcome, Origin};
use crate::judge::finding::{
    Finding, Proof, ProofItem, ProofVerdict, Reason, ReferenceFigures, Tier,
};
use crate::judge::verdict::Verdict;

/// A figure on repeats, its interval as wide as given.
fn figure(
    name: &str,
    unit: &str,
    repeats: &[f64],
    value: f64,
    interval: Option<[f64; 2]>,
) -> Figure {
    let (low, high) = repeats
        .iter()
        .fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
    Figure {
        name: name.into(),
        unit: unit.into(),
        value: Some(value),
        interval,
        n: repeats.len() as u64,
        of: "repeats".into(),
        repeats: repeats.to_vec(),
        word: None,
        against: Vec::new(),
        limits: Vec::new(),
        origin: Origin::Measured,
        method: "Hodges–Lehmann, exact signed-rank".into(),
        half_range: (repeats.len() > 1).then_some((high - low) / 2.0),
        windows: (0..repeats.len())
            .map(|i| format!("w{}", 3 + 2 * i))
            .collect(),
    }
}

fn against(
    value: f64,
    band: [f64; 2],
    ratio: f64,
    interval: [f64; 2],
    separation: &str,
) -> Against {
    Against {
        build: "incumbent".into(),
        value,
        band,
        n: 7,
        ratio: Some(ratio),
        interval: Some(interval),
        difference: None,
        difference_interval: None,
        separation: separation.into(),
        aa_floor: Some(0.004),
        method: "ABBA pairs, exact signed-rank of log ratios".into(),
    }
}

fn limit(text: &str, decision: Decision, because: &str, margin: Option<f64>) -> LimitOutcome {
    LimitOutcome {
        text: text.into(),
        line: 41,
        decision,
        because: because.into(),
        margin,
        smallest_effect: margin.map(|m| m.abs() / 2.0),
    }
}

fn finding(id: &str, kind: &str, verdict: Verdict, line: usize, figures: Vec<Figure>) -> Finding {
    let windows = figures
        .first()
        .map(|f| f.windows.clone())
        .unwrap_or_default();
    Finding {
        id: id.into(),
        kind: kind.into(),
        build: "candidate".into(),
        verdict,
        reasons: Vec::new(),
        figures,
        references: Vec::new(),
        proof: None,
        windows,
        line,
        notes: Vec::new(),
    }
}

fn item(tier: Tier, source: &str, expected: &str, seen: &str, ok: Option<bool>) -> ProofItem {
    ProofItem {
        tier,
        source: source.into(),
        expected: expected.into(),
        seen: seen.into(),
        ok,
        ranks: if tier == Tier::Declared || ok.is_none() {
            Vec::new()
        } else {
            (0..8).collect()
        },
        windows: vec!["w3".into(), "w5".into()],
        example: None,
    }
}

fn proven() -> Proof {
    let mut active = item(
        Tier::Announced,
        "log of boot b2, bytes 0–18,234",
        "`F3 LNA2 MoE kernel ACTIVE` on each of 8 ranks",
        "8× on 8 of 8 ranks",
        Some(true),
    );
    active.example = Some("(Worker_TP0) INFO F3 LNA2 MoE kernel ACTIVE (16 rows)".into());
    Proof {
        path: "lna2".into(),
        verdict: ProofVerdict::Proven,
        items: vec![
            item(
                Tier::Declared,
                "environment of boot b2",
                "`MOE_KERNEL=lna2`",
                "`MOE_KERNEL=lna2`",
                Some(true),
            ),
            active,
            item(
                Tier::Moved,
                "counter `exl3_moe_calls_total{kernel=\"lna2\"}`",
                "moves in every window on each of 8 ranks",
                "moved in 7 of 7 windows, by 31,240 at least",
                Some(true),
            ),
        ],
    }
}

pub(super) fn code() -> Finding {
    let mut decode = figure(
        "decode_tok_s",
        "tok/s",
        &[108.1, 109.2, 108.4, 107.9, 109.4, 108.8, 108.6],
        108.62,
        Some([107.9, 109.3]),
    );
    decode.against = vec![against(86.1, [85.2, 86.9], 1.261, [1.248, 1.274], "above")];
    decode.limits = vec![limit(
        ">= 1.05 x incumbent",
        Decision::Clears,
        "1.261 [1.248, 1.274] ×, n = 7: the bound clears it",
        Some(0.198),
    )];
    let mut ttft = figure(
        "ttft_s",
        "s",
        &[0.412, 0.405, 0.418, 0.409, 0.411, 0.404, 0.415],
        0.4105,
        Some([0.405, 0.416]),
    );
    ttft.limits = vec![limit(
        "<= 0.5 s",
        Decision::Clears,
        "0.4105 [0.405, 0.416] s, n = 7: the bound clears it",
        Some(0.084),
    )];
    let theirs = figure(
        "decode_tok_s",
        "tok/s",
        &[86.0, 85.2, 86.9, 86.1, 86.4, 85.8, 86.2],
        86.1,
        Some([85.6, 86.6]),
    );
    let mut finding = finding(
        "throughput/code/1",
        "throughput",
        Verdict::Pass,
        38,
        vec![decode, ttft],
    );
    finding.references = vec![ReferenceFigures {
        build: "incumbent".into(),
        figures: vec![theirs],
        proof: None,
    }];
    finding.proof = Some(proven());
    finding
}

pub(super) fn english() -> Finding {
    let mut decode = figure(
        "aggregate_tok_s",
        "tok/s",
        &[146.4, 143.2, 149.6, 131.0, 147.3],
        145.1,
        Some([131.0, 149.6]),
    );
    decode.against = vec![against(
        124.0,
        [95.0, 133.0],
        1.17,
        [0.985, 1.401],
        "overlaps",
    )];
    decode.limits = vec![limit(
        ">= 1.05 x incumbent",
        Decision::Open,
        "1.170 [0.985, 1.401] ×, n = 5: the interval straddles it; about 6 more repeats would settle it",
        Some(-0.065),
    )];
    let mut finding = finding(
        "throughput/en/4",
        "throughput",
        Verdict::Inconclusive,
        38,
        vec![decode],
    );
    finding.reasons = vec![Reason::new(
        "limit.open",
        Verdict::Inconclusive,
        "`aggregate_tok_s` does not decide `>= 1.05 x incumbent`: 1.170 [0.985, 1.401] ×, n = 5: the interval straddles it; about 6 more repeats would settle it (4 min)",
        "`aggregate_tok_s` は「>= 1.05 x incumbent」を判定できない: 1.170 [0.985, 1.401] ×、n = 5。区間が基準をまたぐ。あと約 6 回（4 分）で決着する見込み",
    )];
    finding.proof = Some(proven());
    finding
}

pub(super) fn japanese() -> Finding {
    let mut decode = figure(
        "aggregate_tok_s",
        "tok/s",
        &[81.2, 80.9, 82.0, 81.5, 80.4, 81.1, 81.7],
        81.2,
        Some([80.7, 81.7]),
    );
    decode.against = vec![against(
        98.3,
        [81.0, 111.0],
        0.826,
        [0.741, 0.982],
        "overlaps",
    )];
    decode.limits = vec![limit(
        ">= 1.05 x incumbent",
        Decision::Misses,
        "0.826 [0.741, 0.982] ×, n = 7: the opposite bound misses it",
        Some(-0.309),
    )];
    let mut finding = finding(
        "throughput/ja/4",
        "throughput",
        Verdict::Fail,
        38,
        vec![decode],
    );
    finding.reasons = vec![
        Reason::new(
            "path.contradicted",
            Verdict::Fail,
            "the evidence contradicts the path `lna2`: counter `exl3_moe_calls_total{kernel=\"lna2\"}`: expected moves in every window on each of 8 ranks, seen present and still in w21, w23, w25",
            "経路 `lna2` を証拠が否定: カウンター `exl3_moe_calls_total{kernel=\"lna2\"}`: 期待 全 8 ランクで毎窓増加、実際 w21, w23, w25 で静止",
        ),
        Reason::new(
            "limit.missed",
            Verdict::Fail,
            "`aggregate_tok_s` misses `>= 1.05 x incumbent`: 0.826 [0.741, 0.982] ×, n = 7: the opposite bound misses it",
            "`aggregate_tok_s` は「>= 1.05 x incumbent」を満たさない: 0.826 [0.741, 0.982] ×、n = 7",
        ),
    ];
    let mut declined = item(
        Tier::Announced,
        "log of boot b2, windows w21–w33",
        "no `F3 LNA2 declined`",
        "5,640×",
        Some(false),
    );
    declined.example = Some("(Worker_TP3) WARNING F3 LNA2 declined: shared pool is busy".into());
    finding.proof = Some(Proof {
        path: "lna2".into(),
        verdict: ProofVerdict::Contradicted,
        items: vec![
            declined,
            proven().items.remove(1),
            item(
                Tier::Moved,
                "counter `exl3_moe_calls_total{kernel=\"lna2\"}`",
                "moves in every window on each of 8 ranks",
                "present and still in w21, w23, w25",
                Some(false),
            ),
        ],
    });
    finding.notes = vec![
        "the log says ACTIVE on 8 of 8 ranks at start; that alone proves nothing about decode"
            .into(),
    ];
    finding
}

pub(super) fn accept_length() -> Finding {
    let mut length = figure("accept_length", "", &[], 0.0, None);
    length.value = None;
    length.n = 0;
    length.of = "windows".into();
    length.method = "no interval: no observations".into();
    length.limits = vec![limit(
        ">= 1.80",
        Decision::Absent,
        "nothing was measured",
        None,
    )];
    let mut finding = finding(
        "accept_length/ja",
        "accept_length",
        Verdict::Unproven,
        57,
        vec![length],
    );
    finding.reasons = vec![Reason::new(
        "counters.absent",
        Verdict::Unproven,
        "accept length cannot be counted: `vllm:spec_decode_num_accepted_tokens_total` is absent from `/metrics`; start the server with speculation on, or leave this check out",
        "受理長を数えられない: `/metrics` に `vllm:spec_decode_num_accepted_tokens_total` がない。投機を有効にして起動するか、この検査を外す",
    )];
    finding.proof = Some(Proof {
        path: "speculation".into(),
        verdict: ProofVerdict::Unproven,
        items: vec![item(
            Tier::Moved,
            "counter `vllm:spec_decode_num_drafts_total`",
            "moves in every window",
            "absent in w9",
            None,
        )],
    });
    finding
}

pub(super) fn needle() -> Finding {
    let mut finding = finding(
        "needle/166000/ja",
        "needle",
        Verdict::NotRun,
        63,
        Vec::new(),
    );
    finding.reasons = vec![Reason::new(
        "not.run",
        Verdict::NotRun,
        NOT_RUN,
        "窓を開く前に SIGINT で実行が中断された",
    )];
    finding
}

pub(super) fn kv_window() -> Finding {
    let mut kv = figure("kv_tokens", "tokens", &[395_069.0], 395_069.0, None);
    kv.against = vec![Against {
        n: 1,
        interval: None,
        ..against(
            396_656.0,
            [396_656.0, 396_656.0],
            0.996,
            [0.0, 0.0],
            "below",
        )
    }];
    kv.limits = vec![limit(
        ">= 389_120 tokens",
        Decision::Clears,
        "each of 1 holds",
        Some(5_949.0),
    )];
    kv.origin = Origin::Reported;
    kv.of = "boots".into();
    kv.method = "each of 1".into();
    finding("kv_window", "kv_window", Verdict::Pass, 70, vec![kv])
}

pub(super) fn perplexity() -> Finding {
    let mut ppl = figure(
        "ppl",
        "",
        &[4.7702, 4.7581, 4.7655, 4.7660, 4.7637],
        4.7647,
        Some([4.7581, 4.7702]),
    );
    ppl.of = "text windows".into();
    ppl.against = vec![Against {
        ratio: None,
        interval: None,
        difference: Some(0.0017),
        difference_interval: Some([-0.0009, 0.0043]),
        ..against(4.7630, [4.7566, 4.7690], 1.0, [1.0, 1.0], "overlaps")
    }];
    ppl.limits = vec![limit(
        "within 0.02 of incumbent",
        Decision::Clears,
        "0.0017 [-0.0009, 0.0043], n = 5: the bound clears it",
        Some(0.0157),
    )];
    finding(
        "perplexity/fixed",
        "perplexity",
        Verdict::Pass,
        81,
        vec![ppl],
    )
}
