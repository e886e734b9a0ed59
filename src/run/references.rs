//! Recorded runs that expectations refer to, read once at the start and kept in the journal.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive::record::RecordedReference;
use crate::archive::rundir::sha256_hex;
use crate::judge::recorded::Session;
use crate::spec::gate::{Gate, RecordedRun};

/// Every recorded run of a gate; what cannot be read is kept as a fault.
pub fn read(gate: &Gate, gate_dir: &Path) -> Vec<RecordedReference> {
    gate.runs
        .iter()
        .map(|(name, run)| {
            let path = gate_dir.join(&run.path);
            let sessions = sessions_below(&path);
            let read = if sessions.is_empty() {
                one(run, &path)
            } else {
                several(run, &sessions)
            };
            match read {
                Ok(read) => RecordedReference {
                    name: name.clone(),
                    ..read
                },
                Err(fault) => RecordedReference {
                    name: name.clone(),
                    fault: Some(fault),
                    ..RecordedReference::default()
                },
            }
        })
        .collect()
}

/// The reports of the runs in a folder of runs, oldest first; none for a run directory or a file.
fn sessions_below(path: &Path) -> Vec<PathBuf> {
    if path.join("report.json").exists() {
        return Vec::new();
    }
    let mut reports: Vec<PathBuf> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("report.json"))
        .filter(|report| report.is_file())
        .collect();
    // Names of runs begin with their UTC time.
    reports.sort();
    reports
}

fn one(run: &RecordedRun, path: &Path) -> Result<RecordedReference, String> {
    let path = if path.is_dir() {
        path.join("report.json")
    } else {
        path.to_owned()
    };
    let bytes = fs::read(&path).map_err(|cause| format!("cannot read `{}`: {cause}", run.path))?;
    let sha256 = sha256_hex(&bytes);
    as_named(run, &sha256)?;
    let report = serde_json::from_slice(&bytes)
        .map_err(|cause| format!("`{}` is no report: {cause}", run.path))?;
    Ok(RecordedReference {
        sha256,
        report: Some(report),
        ..RecordedReference::default()
    })
}

fn as_named(run: &RecordedRun, sha256: &str) -> Result<(), String> {
    match &run.sha256 {
        Some(want) if want != sha256 => Err(format!(
            "`{}` is not the run that the gate names: its SHA-256 differs",
            run.path
        )),
        _ => Ok(()),
    }
}

/// Several certified runs: each passing one is a session; the digest is that of all their digests in order.
fn several(run: &RecordedRun, reports: &[PathBuf]) -> Result<RecordedReference, String> {
    let mut digests = String::new();
    let mut sessions = Vec::new();
    let mut newest = None;
    for path in reports {
        let shown = path.display();
        let bytes = fs::read(path).map_err(|cause| format!("cannot read `{shown}`: {cause}"))?;
        let report: Value = serde_json::from_slice(&bytes)
            .map_err(|cause| format!("`{shown}` is no report: {cause}"))?;
        // A run that did not pass is no baseline; it lies in the folder all the same.
        if let Ok(session) = Session::of(&report) {
            digests.push_str(&sha256_hex(&bytes));
            sessions.push(session);
            newest = Some(Box::new(report));
        }
    }
    let sha256 = sha256_hex(digests.as_bytes());
    as_named(run, &sha256)?;
    if newest.is_none() {
        return Err(format!("no run below `{}` passed", run.path));
    }
    Ok(RecordedReference {
        sha256,
        report: newest,
        sessions,
        ..RecordedReference::default()
    })
}
