//! Reading a run back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::record::{Record, Start};
use super::rundir::{ArchiveError, RunDir};
use crate::evidence::body::{Evidence, Omission, ScoredWindow};
use crate::evidence::exchange::Exchange;
use crate::evidence::exposition::Exposition;
use crate::evidence::window::{LogWitness, Scrape, Window};

/// A run as it was recorded.
#[derive(Debug)]
pub struct RecordedRun {
    /// The conditions that it began under.
    pub start: Start,
    /// The gate file's text.
    pub gate_source: String,
    /// The evidence.
    pub evidence: Evidence,
    /// Wall time in seconds; absent when the end was never written.
    pub seconds: Option<f64>,
}

/// Reads a run directory.
///
/// A torn last line (the program was killed while writing) is left out; anything else that does not read is an error.
///
/// # Errors
/// When the folder is not a run, or was changed.
pub fn read(dir: &RunDir) -> Result<RecordedRun, ArchiveError> {
    let gate_source = dir.read("gate.toml")?;
    let path = dir.evidence("journal.jsonl");
    let file = File::open(&path).map_err(|e| ArchiveError::at(&path, "read", e))?;
    let mut pile = Pile::default();
    let mut lines = BufReader::new(file).lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let line = line.map_err(|e| ArchiveError::at(&path, "read", e))?;
        match serde_json::from_str::<Record>(&line) {
            Ok(record) => pile.add(record),
            Err(_) if lines.peek().is_none() => break,
            Err(e) => {
                return Err(ArchiveError::unreadable(
                    &path,
                    format!("line {}: {e}", number + 1),
                ));
            }
        }
    }
    let start = pile
        .start
        .ok_or_else(|| ArchiveError::unreadable(&path, "the journal has no beginning"))?;
    let mut evidence = pile.evidence;
    for window in &mut evidence.windows {
        window.exchanges = pile.exchanges.remove(&window.id).unwrap_or_default();
        window.exchanges.sort_by_key(|e| e.id);
    }
    attach_files(dir, &mut evidence)?;
    Ok(RecordedRun {
        start: *start,
        gate_source,
        evidence,
        seconds: pile.seconds,
    })
}

#[derive(Default)]
struct Pile {
    start: Option<Box<Start>>,
    evidence: Evidence,
    exchanges: BTreeMap<String, Vec<Exchange>>,
    seconds: Option<f64>,
}

impl Pile {
    fn add(&mut self, record: Record) {
        match record {
            Record::Start(start) => self.start = Some(start),
            Record::Boot(boot) => self.evidence.boots.push(*boot),
            Record::Residents(residents) => self.evidence.residents.push(*residents),
            Record::Exchange { window, exchange } => {
                self.exchanges.entry(window).or_default().push(*exchange)
            }
            Record::Window(window) => self.evidence.windows.push(*window),
            Record::NotRun {
                case,
                build,
                reason,
            } => self.evidence.not_run.push(Omission {
                case,
                build,
                reason,
            }),
            Record::Stop { .. } => {}
            Record::End { how, seconds } => {
                self.evidence.ended = Some(how);
                self.seconds = Some(seconds);
            }
        }
    }
}

fn attach_files(dir: &RunDir, evidence: &mut Evidence) -> Result<(), ArchiveError> {
    for boot in &evidence.boots {
        if let LogWitness::Followed { file, .. } = &boot.log {
            evidence
                .logs
                .insert(boot.id.clone(), bytes(&dir.evidence(file))?);
        }
    }
    for window in &mut evidence.windows {
        attach_scrape(dir, &mut window.counters.before)?;
        attach_scrape(dir, &mut window.counters.after)?;
        if let Some(scores) = scores(dir, window)? {
            evidence.scores.insert(window.id.clone(), scores);
        }
    }
    Ok(())
}

fn attach_scrape(dir: &RunDir, scrape: &mut Scrape) -> Result<(), ArchiveError> {
    if let Scrape::Taken { file, exposition } = scrape {
        let text = bytes(&dir.evidence(file))?;
        *exposition = Exposition::parse(&String::from_utf8_lossy(&text));
    }
    Ok(())
}

fn scores(dir: &RunDir, window: &Window) -> Result<Option<Vec<ScoredWindow>>, ArchiveError> {
    let Some(file) = window.results.get("scores").and_then(|v| v.as_str()) else {
        return Ok(None);
    };
    let path = dir.evidence(file);
    let reader = BufReader::new(File::open(&path).map_err(|e| ArchiveError::at(&path, "read", e))?);
    let mut all = Vec::new();
    for line in reader.lines() {
        let line = line.map_err(|e| ArchiveError::at(&path, "read", e))?;
        all.push(
            serde_json::from_str(&line)
                .map_err(|e| ArchiveError::unreadable(&path, e.to_string()))?,
        );
    }
    Ok(Some(all))
}

fn bytes(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    fs::read(path).map_err(|e| ArchiveError::at(path, "read", e))
}
