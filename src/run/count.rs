//! Occurrences of texts in files as the seat sees them.

use std::path::Path;

use serde_json::{Map, Value};

use super::boot::Stage;
use super::residents;
use super::window::Yield;
use crate::evidence::absence::Sighting;
use crate::spec::kind::{Params, Read as _};
use crate::witness::occurrences;

/// Counts every `text` row of a `config` check; the other rows are counted from what the boot's witnesses hold.
pub fn count(stage: &Stage, params: &Params) -> Yield {
    let pins = residents::pins(&stage.boot.url);
    let pid = pins.seen().and_then(|p| p.0.first()).map(|p| p.pid);
    let texts: Vec<Value> = params
        .rows("rows")
        .iter()
        .map(|row| {
            let sighting = match (row.text("count"), row.text("file"), pid) {
                (Some("text"), Some(file), Some(pid)) => occurrences::in_file_of(
                    pid,
                    Path::new(file),
                    row.text("pattern").unwrap_or_default().as_bytes(),
                ),
                (Some("text"), _, None) => Sighting::absent(
                    "no process of the seat was seen on this host",
                    "run sekimon on the seat's host, as its user or as root",
                ),
                _ => return Value::Null,
            };
            serde_json::to_value(sighting).unwrap_or(Value::Null)
        })
        .collect();
    let mut results = Map::new();
    results.insert("texts".into(), texts.into());
    Yield {
        results,
        ..Yield::default()
    }
}
