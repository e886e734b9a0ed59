//! Kinds for the tests of this room, which does not know the real ones.

use super::gate::{Check, Gate};
use super::kind::{
    Declaration, Default, FigureKind, Judged, Key, Kind, KindFault, Params, ProofNeed, Read as _,
    Takes,
};

/// Every kind of the tests.
pub(super) fn kinds() -> Vec<&'static dyn Kind> {
    vec![&Throughput, &Needle, &Health]
}

const fn number(name: &'static str, unit: &'static str) -> FigureKind {
    FigureKind {
        name,
        unit,
        unit_aliases: &[],
        words: &[],
        judged: Judged::ByBound,
        about: "A number.",
    }
}

#[derive(Debug)]
pub(super) struct Throughput;

pub(super) static RATE: FigureKind = number("decode_tok_s", "tok/s");
pub(super) static TTFT: FigureKind = FigureKind {
    unit_aliases: &[("ms", 0.001)],
    ..number("ttft_s", "s")
};
pub(super) static SHARE: FigureKind = FigureKind {
    unit_aliases: &[("%", 0.01)],
    judged: Judged::Each,
    ..number("share", "")
};
pub(super) static ANSWER: FigureKind = FigureKind {
    words: &["exact", "wrong"],
    judged: Judged::Each,
    ..number("answer", "word")
};

const THROUGHPUT_FIGURES: &[FigureKind] = &[
    number("decode_tok_s", "tok/s"),
    number("aggregate_tok_s", "tok/s"),
    FigureKind {
        unit_aliases: &[("ms", 0.001)],
        ..number("ttft_s", "s")
    },
];

const THROUGHPUT: Declaration = Declaration {
    name: "throughput",
    about: "Tokens per second.",
    keys: &[
        Key {
            name: "workloads",
            takes: Takes::Texts,
            default: Default::Texts(&["code", "ja"]),
            about: "Workloads.",
        },
        Key {
            name: "streams",
            takes: Takes::Counts(1, 1024),
            default: Default::Counts(&[1, 4]),
            about: "Streams.",
        },
        Key {
            name: "max_tokens",
            takes: Takes::Count(8, 1000),
            default: Default::Count(256),
            about: "Tokens at most.",
        },
    ],
    figures: THROUGHPUT_FIGURES,
    proof: ProofNeed::Required,
    repeats: 7,
};

impl Kind for Throughput {
    fn declaration(&self) -> &'static Declaration {
        &THROUGHPUT
    }

    fn cells(&self, params: &Params) -> Vec<String> {
        params
            .texts("workloads")
            .iter()
            .flat_map(|w| {
                params
                    .counts("streams")
                    .iter()
                    .map(move |n| format!("{w}/{n}"))
            })
            .collect()
    }
    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let known = ["code", "en", "ja"];
        let unknown = check.params.texts("workloads").iter();
        unknown
            .filter(|w| !known.contains(&w.as_str()))
            .map(|w| KindFault {
                key: Some("workloads"),
                message: format!("unknown workload `{w}`"),
                help: "one of `code`, `en`, `ja`".into(),
            })
            .collect()
    }
}

#[derive(Debug)]
struct Needle;

const NEEDLE_FIGURES: &[FigureKind] = &[
    FigureKind {
        words: &["exact", "wrong"],
        judged: Judged::Each,
        ..number("answer", "word")
    },
    FigureKind {
        judged: Judged::Each,
        ..number("needle_ttft_s", "s")
    },
];

const NEEDLE: Declaration = Declaration {
    name: "needle",
    about: "A fact in a long prompt.",
    keys: &[
        Key {
            name: "tokens",
            takes: Takes::Count(256, 10_000_000),
            default: Default::Count(166_000),
            about: "Length of the prompt.",
        },
        Key {
            name: "max_tokens",
            takes: Takes::Count(8, 100_000),
            default: Default::Count(64),
            about: "Tokens at most.",
        },
        Key {
            name: "languages",
            takes: Takes::Words(&["en", "ja"]),
            default: Default::Texts(&["en"]),
            about: "Languages.",
        },
        Key {
            name: "route",
            takes: Takes::Word(&["chat", "completion"]),
            default: Default::Text("chat"),
            about: "Route.",
        },
        Key {
            name: "controls",
            takes: Takes::Flag,
            default: Default::Flag(true),
            about: "Controls.",
        },
        Key {
            name: "deadline",
            takes: Takes::Time,
            default: Default::Number(900.0),
            about: "Deadline.",
        },
    ],
    figures: NEEDLE_FIGURES,
    proof: ProofNeed::Required,
    repeats: 1,
};

impl Kind for Needle {
    fn declaration(&self) -> &'static Declaration {
        &NEEDLE
    }

    fn cells(&self, _: &Params) -> Vec<String> {
        vec![String::new()]
    }
    fn faults(&self, check: &Check, _gate: &Gate) -> Vec<KindFault> {
        let (tokens, answer) = (
            check.params.count("tokens"),
            check.params.count("max_tokens"),
        );
        if answer < tokens {
            return Vec::new();
        }
        vec![KindFault {
            key: Some("max_tokens"),
            message: "the answer has more room than the prompt".into(),
            help: "give it fewer tokens".into(),
        }]
    }
}

#[derive(Debug)]
struct Health;

const COLUMNS: &[Key] = &[
    Key {
        name: "key",
        takes: Takes::Text,
        default: Default::Required,
        about: "A key.",
    },
    Key {
        name: "value",
        takes: Takes::Text,
        default: Default::Absent,
        about: "Its value.",
    },
];

const HEALTH: Declaration = Declaration {
    name: "health",
    about: "The seat answers.",
    keys: &[Key {
        name: "rows",
        takes: Takes::Rows(COLUMNS),
        default: Default::Absent,
        about: "Rows.",
    }],
    figures: &[],
    proof: ProofNeed::None,
    repeats: 1,
};

impl Kind for Health {
    fn declaration(&self) -> &'static Declaration {
        &HEALTH
    }
}

/// A gate that uses every key of the file.
pub(super) const GOOD: &str = r#"title = "席の門: a gate"

[seat]
url         = "http://127.0.0.1:0/"
model       = "m"
dialect     = "vllm"
ranks       = { tp = 4, pp = 2, dp = 1, nodes = 2 }
log         = { docker = "dsv4" }
metrics     = ["http://127.0.0.1:8001/metrics", "https://[::1]:8002/metrics"]
api_key_env = "SEAT_KEY"
restore     = "incumbent"
gpus        = [0, 1]
clock_floor = "1500 MHz"

[builds.incumbent]
start = ["serve", "--port", "{port}"]
stop  = ["docker", "rm", "-f", "dsv4"]
env   = { SEQS = "4", SPEC = "on" }
cwd   = "recipes"
ready = "45m"
path  = "old"

[builds.candidate]
like = "incumbent"
env  = { SPEC = "", KERNEL = "lna2" }
log  = { file = "serve.log" }
url  = "http://127.0.0.1:8003"
path = "lna2"

[paths.lna2]
announced = { line = 'LNA2 ACTIVE', on = "every rank", when = "since boot", matches = ["LNA2 ACTIVE"], never = ["LNA2 declined"] }
resident  = [
  { library = "x.so", sha256 = "0000000000000000000000000000000000000000000000000000000000000000", env = { STRICT = "" } },
  { unset = ["FALLBACK"] },
]
moved     = [{ counter = 'calls_total{kernel="lna2"}', rank_label = "rank", at_least = 16 }, { counter = "steps_total" }]
still     = { counter = 'calls_total{kernel=~"old|older",}' }
refuted   = [{ line = 'declined', except = 'x=\(512,', when = "window", matches = ["declined x=(16,"], never = ["declined x=(512,"] }]

[paths.old]
preset    = ["engine:v1", "cuda-graphs"]
announced = [{ line = 'old ACTIVE', on = { exactly = 8 } }, { line = 'ready', on = { at_least = 1 } }]
moved     = { counter = "steps_total" }

[runs.certified]
report = "reports/certified"
build  = "candidate"
sha256 = "00"

[[check]]
id        = "speed"
kind      = "throughput"
builds    = ["incumbent", "candidate"]
path      = "lna2"
workloads = ["code", "ja"]
streams   = [1, 4]
repeats   = { min = 8, max = 20 }
alpha     = "1 %"
max_swing = "4 %"

  [check.expect]
  decode_tok_s = [">= 1.05 x incumbent", ">= 0.98× run:certified"]
  ttft_s       = "<= 250 ms"
  "code/1"     = { decode_tok_s = "between 1_00 and 1,000 tok/s" }

[[check]]
kind     = "needle"
builds   = ["candidate"]
path     = "lna2"
tokens   = 166_000
deadline = "2h"
repeats  = 2
expect   = { answer = "is exact" }

[[check]]
kind   = "health"
builds = ["candidate"]
rows   = [{ key = "a", value = "b" }]
"#;
