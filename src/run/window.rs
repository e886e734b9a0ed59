//! One window: the witnesses take their places, the programme runs, the witnesses are heard.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::boot::{LogHand, Stage};
use super::gauges::Sampler;
use super::residents;
use crate::archive::rundir::{ArchiveError, RunDir};
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::exchange::Exchange;
use crate::evidence::exposition::Exposition;
use crate::evidence::log_copy::{LogMark, LogPin};
use crate::evidence::processes::Pins;
use crate::evidence::window::{
    CounterTestimony, LogSlice, LogWitness, PinTestimony, Scrape, Window,
};
use crate::judge::movement;
use crate::plan::PlannedWindow;
use crate::witness::gpu::{GpuWindow, GpuWitness};

/// An open window.
#[derive(Debug)]
pub struct Open<'a> {
    dir: &'a RunDir,
    planned: &'a PlannedWindow,
    case: &'a str,
    started: String,
    opened: Instant,
    before: Scrape,
    mark: Option<LogMark>,
    pins: Sighting<Pins>,
    sampler: Sampler,
    gpu: Result<GpuWindow, Absent>,
    incidents: Vec<String>,
}

/// What a programme leaves for its window.
#[derive(Debug, Default)]
pub struct Yield {
    /// Conditions of the requests, name and value.
    pub conditions: Vec<(String, String)>,
    /// Results by name.
    pub results: Map<String, Value>,
    /// What disturbed it.
    pub incidents: Vec<String>,
    /// The requests.
    pub exchanges: Vec<Exchange>,
}

/// How long a scrape may take: /metrics of a busy vLLM was seen to take 1 s.
const SCRAPE: Duration = Duration::from_secs(10);
/// How long the server's counters may lag behind the answers that they count; vLLM writes them after the last chunk.
const SETTLE: Duration = Duration::from_secs(2);
/// Time between two looks at lagging counters.
const LOOK: Duration = Duration::from_millis(20);

impl<'a> Open<'a> {
    /// Opens a window: log marked, counters read, sampler started.
    ///
    /// # Errors
    /// When the evidence cannot be written.
    pub async fn open(
        dir: &'a RunDir,
        stage: &mut Stage,
        planned: &'a PlannedWindow,
        case: &'a str,
        gpu: &Result<GpuWitness, Absent>,
    ) -> Result<Open<'a>, ArchiveError> {
        let mut incidents = Vec::new();
        let mark = mark(stage, &mut incidents).await;
        let pins = residents::pins(&stage.boot.url);
        let before = take(dir, stage, &format!("scrapes/{}.before.prom", planned.id)).await?;
        let gpu = gpu
            .as_ref()
            .map_err(Clone::clone)
            .and_then(GpuWitness::window);
        let opened = Instant::now();
        Ok(Self {
            dir,
            planned,
            case,
            started: jiff::Timestamp::now().to_string(),
            opened,
            before,
            mark,
            pins,
            sampler: Sampler::start(stage.endpoints(), stage.dialect, opened),
            gpu,
            incidents,
        })
    }

    /// The moment of the opening: time zero of its exchanges.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Closes it: the counters are waited for, the log is marked again.
    ///
    /// # Errors
    /// When the evidence cannot be written.
    pub async fn close(
        mut self,
        stage: &mut Stage,
        outcome: Yield,
    ) -> Result<Window, ArchiveError> {
        let seconds = self.opened.elapsed().as_secs_f64();
        let gauges = self.sampler.stop();
        let gpu = match self.gpu {
            Ok(window) => Sighting::Seen {
                value: window.close(),
            },
            Err(absent) => Sighting::Absent(absent),
        };
        let file = format!("scrapes/{}.after.prom", self.planned.id);
        let after = settled(self.dir, stage, &self.before, &file, &outcome.exchanges).await?;
        let end = mark(stage, &mut self.incidents).await;
        let log = match (self.mark, end) {
            (Some(from), Some(to)) => Some(LogSlice {
                from: from.offset,
                to: to.offset,
                whole: to.incidents.is_empty(),
                unbroken: !stage.log_broken,
            }),
            _ => None,
        };
        self.incidents.extend(outcome.incidents);
        Ok(Window {
            id: self.planned.id.clone(),
            case: self.case.into(),
            build: self.planned.build.clone(),
            boot: stage.boot.id.clone(),
            repeat: self.planned.repeat,
            part: self.planned.part.clone(),
            started: self.started,
            seconds,
            counters: CounterTestimony {
                before: self.before,
                after,
                gauges,
            },
            log: log.filter(|_| matches!(stage.boot.log, LogWitness::Followed { .. })),
            processes: PinTestimony {
                before: self.pins,
                after: residents::pins(&stage.boot.url),
            },
            gpu,
            conditions: outcome.conditions,
            results: outcome.results,
            incidents: self.incidents,
            exchanges: Vec::new(),
        })
    }
}

async fn mark(stage: &mut Stage, incidents: &mut Vec<String>) -> Option<LogMark> {
    let mark = match &mut stage.log {
        LogHand::Captured(path) => {
            let offset = std::fs::metadata(path.as_path()).ok()?.len();
            LogMark {
                offset,
                pin: LogPin::Command { pid: 0 },
                incidents: Vec::new(),
            }
        }
        LogHand::Followed(follower) => follower.mark().await,
        LogHand::None => return None,
    };
    incidents.extend(mark.incidents.iter().map(ToString::to_string));
    stage.log_broken |= !mark.incidents.is_empty();
    Some(mark)
}

async fn take(dir: &RunDir, stage: &Stage, file: &str) -> Result<Scrape, ArchiveError> {
    match stage.endpoints().scrape(stage.dialect, SCRAPE).await {
        Ok(text) => keep(dir, file, text),
        Err(absence) => Ok(Scrape::Absent {
            why: absence.to_string(),
        }),
    }
}

fn keep(dir: &RunDir, file: &str, text: String) -> Result<Scrape, ArchiveError> {
    let path = dir.evidence(file);
    std::fs::write(&path, &text).map_err(|e| ArchiveError::at(&path, "write", e))?;
    Ok(Scrape::Taken {
        file: file.into(),
        exposition: Exposition::parse(&text),
    })
}

/// The closing scrape: the first one whose generation counter has caught up with what the answers say, or the last one
/// before the counters' time is over.
async fn settled(
    dir: &RunDir,
    stage: &Stage,
    before: &Scrape,
    file: &str,
    exchanges: &[Exchange],
) -> Result<Scrape, ArchiveError> {
    let Scrape::Taken {
        exposition: before, ..
    } = before
    else {
        return take(dir, stage, file).await;
    };
    let generated: u64 = exchanges
        .iter()
        .filter_map(|e| e.usage)
        .map(|u| u.completion)
        .sum();
    let names = stage
        .dialect
        .metrics
        .as_ref()
        .map_or(&[][..], |m| m.generation_tokens);
    let started = Instant::now();
    loop {
        let text = match stage.endpoints().scrape(stage.dialect, SCRAPE).await {
            Ok(text) => text,
            Err(absence) => {
                return Ok(Scrape::Absent {
                    why: absence.to_string(),
                });
            }
        };
        let after = Exposition::parse(&text);
        let moved = names.iter().find_map(|name| {
            Some(movement::total(&after, name)? - movement::total(before, name).unwrap_or(0.0))
        });
        let caught_up = moved.is_none_or(|m| m >= generated as f64 || m < 0.0);
        if caught_up || started.elapsed() >= SETTLE {
            return keep(dir, file, text);
        }
        sleep(LOOK).await;
    }
}
