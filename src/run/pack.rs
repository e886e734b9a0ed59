//! A model pack looked at on disk.

use std::path::Path;

use serde_json::{Map, Value};

use super::window::Yield;
use crate::evidence::absence::Absent;
use crate::evidence::pack::Manifest;
use crate::plan::task::PackTask;
use crate::witness::pack;

/// Compares a pack with its manifest, and looks for what a restart would miss.
pub fn compare(task: &PackTask, gate_dir: &Path) -> Yield {
    let mut results = Map::new();
    match faults(task, gate_dir) {
        Ok(faults) => {
            results.insert(
                "pack_faults".into(),
                faults
                    .into_iter()
                    .map(Value::from)
                    .collect::<Vec<_>>()
                    .into(),
            );
        }
        Err(absent) => {
            results.insert(
                "pack_absent".into(),
                format!("{}; {}", absent.why, absent.mend).into(),
            );
        }
    }
    Yield {
        results,
        ..Yield::default()
    }
}

fn faults(task: &PackTask, gate_dir: &Path) -> Result<Vec<String>, Absent> {
    let folder = gate_dir.join(&task.dir);
    let mut faults: Vec<String> = pack::inspect(&folder)?
        .iter()
        .map(ToString::to_string)
        .collect();
    if !task.manifest.is_empty() {
        let path = gate_dir.join(&task.manifest);
        let again = "write it with `sekimon pack manifest DIR`";
        let bytes = std::fs::read(&path).map_err(|e| {
            Absent::new(
                format!("the manifest `{}` cannot be read: {e}", task.manifest),
                again,
            )
        })?;
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|e| Absent::new(format!("`{}` is no manifest: {e}", task.manifest), again))?;
        for fault in pack::compare(&manifest, &folder)? {
            let text = fault.to_string();
            if !faults.contains(&text) {
                faults.push(text);
            }
        }
    }
    Ok(faults)
}
