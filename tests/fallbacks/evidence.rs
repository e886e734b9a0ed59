//! The evidence of a case: the common traffic with what the case states laid over it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sekimon::evidence::absence::Sighting;
use sekimon::evidence::body::Evidence;
use sekimon::evidence::environ::{Environ, EnvironSource};
use sekimon::evidence::exchange::{Exchange, Outcome, Usage};
use sekimon::evidence::exposition::Exposition;
use sekimon::evidence::libraries::{Holds, Library};
use sekimon::evidence::mounts::{Access, Mount};
use sekimon::evidence::packages::{Alteration, Altered, Package, RecordCheck};
use sekimon::evidence::processes::{Pin, Pins, Process, ProcessSet};
use sekimon::evidence::redaction::EnvVar;
use sekimon::evidence::resident::Resident;
use sekimon::evidence::role::{Rank, Role};
use sekimon::evidence::window::{
    Boot, CounterTestimony, GaugeSample, Identity, LogSlice, LogWitness, PinTestimony, Residents,
    Scrape, Window,
};
use sekimon::plan::{self, Slot, task::Task};

use crate::case::{Case, Piece, Stated, Variant};

/// Tokens of each prompt of the common traffic.
const PROMPT: u64 = 64;
/// Tokens of each answer of the common traffic, the `max_tokens` of the gates.
const COMPLETION: u64 = 128;
/// Decode rate of the common traffic in tok/s.
const RATE: f64 = 100.0;
/// Text of an answer that no degeneration check minds.
const ANSWER: &str =
    "The harbour wall was measured twice, once at low water and once after the rain.";

/// The evidence of one variant.
pub(crate) fn of(case: &Case, variant: Variant) -> Evidence {
    let stated = if variant == Variant::Broken {
        &case.broken
    } else {
        &case.healthy
    };
    let mut evidence = whole(case, stated);
    if variant == Variant::Removed {
        for piece in &case.removed {
            remove(&mut evidence, *piece);
        }
    }
    evidence
}

fn whole(case: &Case, stated: &Stated) -> Evidence {
    let mut evidence = Evidence {
        boots: vec![boot(case)],
        residents: vec![residents(stated)],
        ended: Some("complete".into()),
        ..Evidence::default()
    };
    let mut log = stated.log.clone();
    for planned in plan::cases(&case.gate) {
        let check = &case.gate.checks[planned.check];
        let kind = sekimon::check::planned(check.kind.name()).unwrap();
        for repeat in 0..check.repeats.min {
            let slot = Slot {
                check,
                cell: &planned.cell,
                repeat,
                build: check.subject(),
            };
            for wish in kind.windows(&slot) {
                let streams = match &wish.task {
                    Task::Load(load) => load.streams,
                    _ => 0,
                };
                let from = log.len() as u64;
                log.push_str(&stated.window);
                let mut window = window(case, stated, streams, repeat);
                window.id = format!("w{}", evidence.windows.len() + 1);
                window.case = planned.id.clone();
                window.part = wish.part;
                window.log = Some(LogSlice {
                    from,
                    to: log.len() as u64,
                    whole: true,
                    unbroken: true,
                });
                evidence.windows.push(window);
            }
        }
    }
    evidence.logs = BTreeMap::from([("b1".into(), log.into_bytes())]);
    evidence
}

fn boot(case: &Case) -> Boot {
    Boot {
        id: "b1".into(),
        build: "candidate".into(),
        url: case.gate.seat.url.clone(),
        started: "2026-12-01T05:41:00Z".into(),
        ready_s: Some(20.0),
        command: vec!["serve".into(), "m".into()],
        env: Vec::new(),
        identity: Identity {
            dialect: case.dialect.clone(),
            model: "m".into(),
            ..Identity::default()
        },
        log: LogWitness::Followed {
            file: "logs/b1.log".into(),
            source: "file serve.log".into(),
            from_beginning: true,
        },
    }
}

fn window(case: &Case, stated: &Stated, streams: u32, repeat: u32) -> Window {
    let exchanges: Vec<Exchange> = (0..streams).map(|n| exchange(stated, n)).collect();
    let running = stated.running.unwrap_or(f64::from(streams));
    let sample = |at_s: f64| GaugeSample {
        at_s,
        running: Some(running),
        waiting: Some(0.0),
    };
    Window {
        id: String::new(),
        case: String::new(),
        build: "candidate".into(),
        boot: "b1".into(),
        repeat,
        part: String::new(),
        started: "2026-12-01T05:42:00Z".into(),
        seconds: 2.0,
        counters: CounterTestimony {
            before: scrape(case, stated, &exchanges, End::Opening),
            after: scrape(case, stated, &exchanges, End::Close),
            gauges: (1..=5).map(|n| sample(f64::from(n) * 0.25)).collect(),
        },
        log: None,
        processes: PinTestimony {
            before: pins(stated, End::Opening),
            after: pins(stated, End::Close),
        },
        gpu: Sighting::absent("no GPU is looked at", "name one"),
        conditions: Vec::new(),
        results: stated.results.clone(),
        incidents: Vec::new(),
        exchanges,
    }
}

fn exchange(stated: &Stated, n: u32) -> Exchange {
    let completion = stated.completion.unwrap_or(COMPLETION);
    let cut = n < stated.failed;
    let last = 0.1 + completion.saturating_sub(1) as f64 / RATE;
    Exchange {
        id: n,
        stream: n,
        prompt: format!("en/{n}"),
        headers_s: Some(0.05),
        first_token_s: (completion > 0).then_some(0.1),
        last_token_s: (completion > 0).then_some(last),
        ended_s: last,
        token_chunks: u32::try_from(completion).unwrap(),
        usage: (!cut).then_some(Usage {
            prompt: PROMPT,
            completion,
            cached: None,
        }),
        status: Some(200),
        outcome: if cut {
            Outcome::Cut {
                cause: "the stream ended without `[DONE]`".into(),
            }
        } else {
            Outcome::Complete
        },
        finish_reason: Some(stated.finish.clone().unwrap_or_else(|| "length".into())),
        text: ANSWER.into(),
        text_bytes: ANSWER.len() as u64,
        ..Exchange::default()
    }
}

/// An end of a window.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Opening,
    Close,
}

/// The server's counters, as they count the traffic, then what the case states.
fn scrape(case: &Case, stated: &Stated, exchanges: &[Exchange], end: End) -> Scrape {
    let whole: Vec<&Exchange> = exchanges.iter().filter(|e| e.is_complete()).collect();
    let sum = |of: fn(&Usage) -> u64| -> u64 {
        whole.iter().filter_map(|e| e.usage.as_ref().map(of)).sum()
    };
    let (prompt, generated, requests) = (sum(|u| u.prompt), sum(|u| u.completion), whole.len());
    let mut common: Vec<(String, f64)> = match case.dialect.as_str() {
        "vllm" => vec![
            ("vllm:prompt_tokens_total".into(), prompt as f64),
            ("vllm:generation_tokens_total".into(), generated as f64),
            ("vllm:request_success_total".into(), requests as f64),
            ("vllm:num_preemptions_total".into(), 0.0),
        ],
        "llamacpp" => vec![
            ("llamacpp:prompt_tokens_total".into(), prompt as f64),
            ("llamacpp:prompt_tokens_cached_total".into(), 0.0),
            ("llamacpp:tokens_predicted_total".into(), generated as f64),
        ],
        "sglang" => vec![
            ("sglang:prompt_tokens_total".into(), prompt as f64),
            ("sglang:generation_tokens_total".into(), generated as f64),
        ],
        other => panic!("{}: no common traffic for `{other}`", case.id),
    };
    for line in &stated.adds {
        let (name, by) = series(line);
        let found = common.iter_mut().find(|(known, _)| known == name);
        found
            .unwrap_or_else(|| panic!("{}: no series `{name}`", case.id))
            .1 += by;
    }
    // Before the window the seat had served some other requests: 1000 of everything.
    let base = 1000.0;
    let moved = |by: f64| if end == End::Close { base + by } else { base };
    let mut text = String::from("process_start_time_seconds 1796103660\n");
    for (name, by) in &common {
        let _ = writeln!(text, "{name} {}", moved(*by));
    }
    for line in &stated.moved {
        let (name, by) = series(line);
        let _ = writeln!(text, "{name} {}", moved(by));
    }
    for line in &stated.stands {
        let _ = writeln!(text, "{line}");
    }
    Scrape::Taken {
        file: "metrics.txt".into(),
        exposition: Exposition::parse(&text),
    }
}

fn series(line: &str) -> (&str, f64) {
    let (name, value) = line.rsplit_once(' ').unwrap();
    (name, value.parse().unwrap())
}

/// Pid of the first worker.
const FIRST: u32 = 101;

fn pin(stated: &Stated, n: u32, end: End) -> Pin {
    let restarted = stated.restarted && end == End::Close;
    Pin {
        boot_id: "boot".into(),
        pid: FIRST + n,
        start_ticks: if restarted { 900 } else { 100 },
        exe: Some("/usr/bin/python3".into()),
        comm: "VLLM::Worker_TP".into(),
        cmdline: if stated.arguments.is_empty() {
            vec![format!("VLLM::Worker_TP{n}")]
        } else {
            stated.arguments.clone()
        },
    }
}

fn workers(stated: &Stated) -> u32 {
    let most = stated.env.len().max(stated.libraries.len()).max(1);
    u32::try_from(most).unwrap()
}

fn pins(stated: &Stated, end: End) -> Sighting<Pins> {
    let value = Pins((0..workers(stated)).map(|n| pin(stated, n, end)).collect());
    Sighting::Seen { value }
}

fn residents(stated: &Stated) -> Residents {
    let process = |n| Process {
        pin: pin(stated, n, End::Opening),
        parent: 1,
        role: Role::Worker {
            rank: Rank {
                tp: Some(n),
                ..Rank::default()
            },
        },
    };
    let mounts = || Sighting::Seen {
        value: stated.mounts.iter().map(|target| mount(target)).collect(),
    };
    let of = |all: &[Vec<String>], n: u32| all.get(n as usize).cloned().unwrap_or_default();
    let each = |n: u32| Resident {
        pid: FIRST + n,
        rank: Some(n),
        mounts: mounts(),
        packages: packages(stated),
        environ: Sighting::Seen {
            value: Environ {
                source: EnvironSource::Memory {
                    object: "libc.so.6".into(),
                },
                variables: of(&stated.env, n)
                    .iter()
                    .map(|entry| EnvVar::parse(entry).unwrap())
                    .collect(),
                cut: false,
            },
        },
        libraries: Sighting::Seen {
            value: of(&stated.libraries, n)
                .iter()
                .map(|entry| library(stated, entry))
                .collect(),
        },
    };
    Residents {
        boot: "b1".into(),
        set: Sighting::Seen {
            value: ProcessSet {
                owners: vec![FIRST],
                processes: (0..workers(stated)).map(process).collect(),
                notes: Vec::new(),
            },
        },
        each: (0..workers(stated)).map(each).collect(),
        mounts: mounts(),
    }
}

/// A package as the case states it: `name version`, then the files that are not as recorded.
fn packages(stated: &Stated) -> Sighting<Vec<Package>> {
    let package = |line: &String| {
        let mut words = line.split(' ').map(str::to_owned);
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        let altered: Vec<Altered> = words
            .map(|path| Altered {
                path,
                how: Alteration::Changed,
            })
            .collect();
        Package {
            name,
            version,
            folder: "/opt/venv/lib/python3.12/site-packages".into(),
            editable: None,
            files: Sighting::Seen {
                value: RecordCheck {
                    listed: 900,
                    checked: 900,
                    altered_in_all: altered.len() as u64,
                    altered,
                },
            },
        }
    };
    Sighting::Seen {
        value: stated.packages.iter().map(package).collect(),
    }
}

fn library(stated: &Stated, entry: &str) -> Library {
    let (path, sha256) = match entry.split_once('=') {
        Some((path, digest)) => (path, digest.to_owned()),
        None => (entry, "0".repeat(64)),
    };
    Library {
        path: path.into(),
        device: "08:01".into(),
        inode: 7,
        deleted: stated.deleted,
        holds: Holds::Code,
        bytes: Some(4096),
        sha256: Sighting::Seen { value: sha256 },
        build_id: None,
    }
}

fn mount(target: &str) -> Mount {
    Mount {
        target: target.into(),
        root: "/".into(),
        source: None,
        file_system: "ext4".into(),
        access: Access::ReadOnly,
    }
}

/// Takes one piece of evidence away, as a seat that cannot give it would leave it.
fn remove(evidence: &mut Evidence, piece: Piece) {
    match piece {
        Piece::Log => {
            evidence.logs.clear();
            evidence.boots[0].log = LogWitness::Absent {
                why: "no log was named".into(),
            };
            for window in &mut evidence.windows {
                window.log = None;
            }
        }
        Piece::Counters => {
            for window in &mut evidence.windows {
                let absent = Scrape::Absent {
                    why: "the metrics route answers 404".into(),
                };
                window.counters = CounterTestimony {
                    before: absent.clone(),
                    after: absent,
                    gauges: Vec::new(),
                };
            }
        }
        Piece::Residents => evidence.residents.clear(),
        // What setproctitle leaves of the start environment: nothing, and nothing can be concluded from it.
        Piece::LiveEnviron => {
            for resident in evidence.residents.iter_mut().flat_map(|r| &mut r.each) {
                resident.environ = Sighting::Seen {
                    value: Environ {
                        source: EnvironSource::Start {
                            why: "no right to read the worker's memory; its start environment is blank".into(),
                        },
                        variables: Vec::new(),
                        cut: false,
                    },
                };
            }
        }
        Piece::Usage => {
            for exchange in evidence.windows.iter_mut().flat_map(|w| &mut w.exchanges) {
                exchange.usage = None;
            }
        }
        Piece::Results => {
            for window in &mut evidence.windows {
                window.results.clear();
            }
        }
    }
}
