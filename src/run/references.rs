//! Recorded runs that expectations refer to, read once at the start and kept in the journal.

use std::path::Path;

use crate::archive::record::RecordedReference;
use crate::archive::rundir::sha256_hex;
use crate::spec::gate::Gate;

/// Every recorded run of a gate; what cannot be read is kept as a fault.
pub fn read(gate: &Gate, gate_dir: &Path) -> Vec<RecordedReference> {
    gate.runs
        .iter()
        .map(|(name, run)| {
            let path = gate_dir.join(&run.path);
            let path = if path.is_dir() {
                path.join("report.json")
            } else {
                path
            };
            let empty = |sha256: String, fault: String| RecordedReference {
                name: name.clone(),
                sha256,
                report: None,
                fault: Some(fault),
            };
            let bytes = match std::fs::read(&path) {
                Ok(bytes) => bytes,
                Err(cause) => {
                    return empty(
                        String::new(),
                        format!("cannot read `{}`: {cause}", run.path),
                    );
                }
            };
            let sha256 = sha256_hex(&bytes);
            if run.sha256.as_ref().is_some_and(|want| *want != sha256) {
                return empty(
                    sha256,
                    format!(
                        "`{}` is not the run that the gate names: its SHA-256 differs",
                        run.path
                    ),
                );
            }
            match serde_json::from_slice(&bytes) {
                Ok(report) => RecordedReference {
                    name: name.clone(),
                    sha256,
                    report: Some(report),
                    fault: None,
                },
                Err(cause) => empty(sha256, format!("`{}` is no report: {cause}", run.path)),
            }
        })
        .collect()
}
