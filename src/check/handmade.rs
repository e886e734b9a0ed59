//! Evidence made by hand, for the tests of the kinds.

use crate::evidence::absence::Sighting;
use crate::evidence::body::{Evidence, ScoredWindow};
use crate::evidence::exchange::{Exchange, Outcome, Usage};
use crate::evidence::exposition::Exposition;
use crate::evidence::window::{
    Boot, CounterTestimony, Identity, LogWitness, PinTestimony, Scrape, Window,
};
use crate::judge::sample::{Concludes, Conclusion, Measured, View};
use crate::judge::verdict::Verdict;
use crate::plan;
use crate::spec::gate::Gate;

/// A gate of three builds and one check.
pub(super) fn gate(check: &str) -> Gate {
    read(check).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The messages of the faults that such a gate has.
pub(super) fn faults(check: &str) -> Vec<String> {
    read(check).err().unwrap_or_default()
}

fn read(check: &str) -> Result<Gate, Vec<String>> {
    let source = format!(
        r#"title = "by hand"
[seat]
url = "http://127.0.0.1:0"
model = "m"
dialect = "vllm"
[builds.incumbent]
start = ["true"]
[builds.candidate]
start = ["true"]
[builds.late]
start = ["true"]
[paths.p]
announced = {{ line = "on" }}
moved = {{ counter = "calls_total" }}
[[check]]
path = "p"
workloads = ["en"]
streams = [1]
{check}
"#
    );
    match crate::spec::read::read("g", "g.toml", &source, &super::kinds()) {
        Ok(reading) => Ok(reading.gate),
        Err(faults) => Err(faults.list.into_iter().map(|f| f.message).collect()),
    }
}

/// A whole answer.
pub(super) fn answer(prompt: &str, text: &str, ids: Option<&[u32]>) -> Exchange {
    Exchange {
        prompt: prompt.into(),
        outcome: Outcome::Complete,
        finish_reason: Some("length".into()),
        usage: Some(Usage {
            prompt: 4,
            completion: ids.map_or(4, |i| i.len() as u64),
            cached: None,
        }),
        text: text.into(),
        text_sha256: text.into(),
        text_bytes: text.len() as u64,
        token_ids: ids.map(<[u32]>::to_vec),
        ..Exchange::default()
    }
}

/// Windows of one case, numbered as they are added.
#[derive(Debug, Default)]
pub(super) struct Hand {
    pub(super) evidence: Evidence,
}

impl Hand {
    /// Adds a window of a build; repeats of one part count themselves.
    pub(super) fn window(
        &mut self,
        case: &str,
        build: &str,
        exchanges: Vec<Exchange>,
    ) -> &mut Self {
        self.part(case, build, "measure", exchanges)
    }

    /// Adds a window of a part.
    pub(super) fn part(
        &mut self,
        case: &str,
        build: &str,
        part: &str,
        exchanges: Vec<Exchange>,
    ) -> &mut Self {
        let repeat = self.evidence.windows_of(case, build, part).count();
        let window = Window {
            id: format!("w{}", self.evidence.windows.len() + 1),
            case: case.into(),
            build: build.into(),
            boot: format!("b-{build}"),
            repeat: u32::try_from(repeat).unwrap(),
            part: part.into(),
            started: String::new(),
            seconds: 1.0,
            counters: CounterTestimony {
                before: scrape(),
                after: scrape(),
                gauges: Vec::new(),
            },
            log: None,
            processes: PinTestimony {
                before: Sighting::absent("by hand", "nothing"),
                after: Sighting::absent("by hand", "nothing"),
            },
            gpu: Sighting::absent("by hand", "nothing"),
            conditions: Vec::new(),
            results: serde_json::Map::new(),
            incidents: Vec::new(),
            exchanges,
        };
        self.evidence.windows.push(window);
        self
    }

    /// Adds a window of scores.
    pub(super) fn scores(
        &mut self,
        case: &str,
        build: &str,
        part: &str,
        scores: Vec<ScoredWindow>,
    ) -> &mut Self {
        self.part(case, build, part, Vec::new());
        let id = self.evidence.windows.last().unwrap().id.clone();
        self.evidence.scores.insert(id, scores);
        self
    }
}

/// A scrape of a vLLM without speculation.
fn scrape() -> Scrape {
    Scrape::Taken {
        file: "by-hand".into(),
        exposition: Exposition::parse("vllm:generation_tokens_total{engine=\"0\"} 1.0\n"),
    }
}

/// What a kind concludes of the first case on a build.
pub(super) fn conclude(gate: &Gate, evidence: &Evidence, build: &str) -> Conclusion {
    let check = &gate.checks[0];
    let kind: &dyn Concludes = super::concludes(check.kind.name()).unwrap();
    let case = plan::cases(gate).remove(0);
    let mut evidence = evidence.clone();
    evidence.boots = gate.builds.iter().map(|b| boot(&b.name)).collect();
    kind.conclude(&View {
        gate,
        check,
        case: &case,
        build,
        dialect: crate::dialect::named("vllm"),
        evidence: &evidence,
    })
}

fn boot(build: &str) -> Boot {
    Boot {
        id: format!("b-{build}"),
        build: build.into(),
        url: String::new(),
        started: String::new(),
        ready_s: None,
        command: Vec::new(),
        env: Vec::new(),
        identity: Identity::default(),
        log: LogWitness::Absent {
            why: "by hand".into(),
        },
    }
}

/// The numbers of one figure; empty when it was not measured.
pub(super) fn numbers(conclusion: &Conclusion, figure: &str) -> Vec<f64> {
    let measured: Option<&Measured> = conclusion.measured.iter().find(|m| m.figure == figure);
    measured.map(|m| m.sample.numbers()).unwrap_or_default()
}

/// The code and verdict of each reason.
pub(super) fn codes(conclusion: &Conclusion) -> Vec<(&str, Verdict)> {
    let reasons = conclusion.reasons.iter();
    reasons.map(|r| (r.code.as_str(), r.verdict)).collect()
}
